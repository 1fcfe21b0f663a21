"""Events as rows of a trace: who, what, how many tokens, how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len

from evaltui.core.events import Event
from evaltui.core.show import cut, show_value, visible
from evaltui.reports.lines import Line, Span, cells, pad
from evaltui.reports.lines import cut as cut_line
from evaltui.tui.pages.calls import inline_args

_KINDS: Mapping[str, tuple[str, str]] = {
    "model_request": ("request", "dim"),
    "model_response": ("response", "dim"),
    "text": ("text", ""),
    "tool_call": ("call", ""),
    "tool_result": ("result", "dim"),
    "transfer": ("transfer", "bold"),
    "state": ("state", "dim"),
    "error": ("! error", "red"),
    "console": ("console", "dim"),
}
_KIND = 9
_TOKENS = 11
_DURATION = 7
_BAR = 24
# Authors have a column of their own, and times a picture, where there is room for them.
_WITH_AUTHORS, _WITH_BARS = 72, 110
_MOST_INDENT = 4
# What does not fit in a row anyway need not be made into text.
_LONGEST = 300


@dataclass
class TraceRows:
    """What the rows share: how deep each is nested, when turns begin and end, how wide authors are."""

    events: list[Event] = field(default_factory=list)
    authors: int = 0
    _depths: list[int] = field(default_factory=list)
    _known: dict[str, tuple[str, int]] = field(default_factory=dict)
    _turns: dict[int | None, tuple[float, float]] = field(default_factory=dict)
    _responses: bool = False
    _tokens: int = 0

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            depth = self._depth(event)
            if event.id:
                self._known[event.id] = event.kind, depth
            self.events.append(event)
            self._depths.append(depth)
            self.authors = max(self.authors, min(16, cell_len(visible(event.agent))))
            self._count_tokens(event)
            begin, _ = self._turns.get(event.turn, (event.t - (event.duration or 0), 0.0))
            self._turns[event.turn] = begin, event.t

    def _count_tokens(self, event: Event) -> None:
        if event.kind == "model_response" and not self._responses:
            # The steps that a response is made into repeat its usage.
            self._responses, self._tokens = True, 0
        if not self._responses or event.kind == "model_response":
            self._tokens += (event.usage or {}).get("total_token_count") or _asked_and_answered(event)

    def _depth(self, event: Event) -> int:
        """A call, a result or a request is as deep as what it belongs to; what a call does is deeper."""
        if event.parent not in self._known:
            return 1 if event.data.get("nested") else 0
        kind, depth = self._known[event.parent]
        inside = kind == "tool_call" and event.kind != "tool_result"
        return depth + 1 if inside else depth

    @property
    def tokens(self) -> int:
        return self._tokens

    def first_of(self, turn: int) -> int | None:
        """The row that a turn begins in."""
        return next((number for number, event in enumerate(self.events) if event.turn == turn), None)

    @property
    def seconds(self) -> float:
        return sum(end - begin for begin, end in self._turns.values())

    def line(self, number: int, width: int) -> Line:
        event = self.events[number]
        right = self._right(event, width)
        left = self._left(number, event, width)
        room = width - cells(right) - 1
        left = cut_line(left, room)
        return [*left, (" " * (width - cells(left) - cells(right)), ""), *right]

    def _left(self, number: int, event: Event, width: int) -> Line:
        if event.kind == "user":
            turn = "" if event.turn is None else f" {event.turn + 1}"
            return [(pad(f"Turn{turn}", _KIND), "bold"), *_what(event)]
        label, tone = _KINDS[event.kind]
        if event.kind == "console":
            label = str(event.data.get("source", label))
        indent = "  " * min(_MOST_INDENT, self._depths[number])
        line: Line = [(f"  {indent}", ""), (pad(label, _KIND), tone)]
        agent = visible(event.agent)
        if width >= _WITH_AUTHORS:
            line += [(pad(agent, self.authors), "dim"), ("  ", "")] if self.authors else []
        elif agent and agent != self._author_before(number):
            line.append((f"{agent}: ", "dim"))
        return [*line, *_what(event)]

    def _author_before(self, number: int) -> str:
        before = (self.events[n].agent for n in range(number - 1, -1, -1))
        return visible(next((agent for agent in before if agent), ""))

    def _right(self, event: Event, width: int) -> Line:
        begin, end = self._turns[event.turn]
        seconds = end - begin if event.kind == "user" else event.duration
        tokens = "" if self._responses and event.kind != "model_response" else tokens_of(event)
        shown = "" if seconds is None else duration(seconds)
        if width < _WITH_BARS and not tokens:
            # Where there is little room, an empty column has none.
            return [("  ", ""), (shown, "dim")] if shown else []
        bar: Line = []
        if width >= _WITH_BARS:
            spent = (begin, end) if event.kind == "user" else (event.t - (seconds or 0), event.t)
            tone = "dim" if event.kind == "user" else "accent"
            bar = [("  ", ""), (_bar(spent, (begin, end)) if shown else " " * _BAR, tone)]
        tail: Span = (f"{shown:>{_DURATION}}", "" if event.kind == "user" else "dim")
        return [(f"{tokens:>{_TOKENS}}", "dim"), *bar, ("  ", ""), tail]


def _bar(spent: tuple[float, float], turn: tuple[float, float]) -> str:
    whole = (turn[1] - turn[0]) or 1.0
    first = min(_BAR - 1, max(0, int((spent[0] - turn[0]) / whole * _BAR)))
    length = (spent[1] - spent[0]) / whole * _BAR
    drawn = "█" * min(_BAR - first, round(length)) or "▏"
    return pad(" " * first + drawn, _BAR)


def duration(seconds: float) -> str:
    """`<1 ms`, `12 ms`, `1.23 s`, `123 s`"""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.0005 else "<1 ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


def tokens_of(event: Event) -> str:
    """`612 → 38` for the tokens asked and answered."""
    usage = event.usage or {}
    asked, answered = usage.get("prompt_token_count"), usage.get("candidates_token_count")
    if asked is None and answered is None:
        total = usage.get("total_token_count")
        return "" if total is None else str(total)
    return f"{asked or 0} → {answered or 0}"


def _asked_and_answered(event: Event) -> int:
    usage = event.usage or {}
    return (usage.get("prompt_token_count") or 0) + (usage.get("candidates_token_count") or 0)


def _what(event: Event) -> Line:
    """What happened, on one line of any length."""
    parts = (event.content or {}).get("parts") or []
    match event.kind:
        case "model_request":
            return _request(event)
        case "tool_call":
            call = _first(parts, "function_call")
            return [(visible(str(call.get("name", ""))), "bold"), (_short_args(call.get("args")), "dim")]
        case "tool_result":
            response = _first(parts, "function_response").get("response")
            return [("← ", "dim"), (show_value(response, _LONGEST), "dim")]
        case "transfer":
            return [("→ ", "dim"), (visible(str(event.data.get("to", ""))), "bold")]
        case "state":
            return [(_short_args(event.data.get("delta")).lstrip(), "dim")]
        case "error":
            known = [str(event.data.get(name) or "") for name in ("type", "message")]
            return [(_short(": ".join(part for part in known if part)), "red")]
        case "console":
            return [(_short(str(event.data.get("text", ""))), "dim")]
        case "model_response":
            wrong = str(event.data.get("error_message") or "nothing")
            return [(_short(_said(parts)) if parts else _short(wrong), "dim")]
        case _:
            tone = "bold" if event.kind == "user" else "dim" if event.data.get("partial") else ""
            return [(_short(_said(parts)), tone)]


def _first(parts: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((part[name] for part in parts if name in part), {})


def _request(event: Event) -> Line:
    data = event.data
    contents = data.get("contents_before", 0) + len(data.get("contents") or ())
    tools = len(data.get("tools") or ())
    facts = [visible(str(data.get("model", ""))), _count(contents, "content"), _count(tools, "tool")]
    return [(" · ".join(fact for fact in facts if fact), "dim")]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}" if number else ""


def _said(parts: Iterable[Mapping[str, Any]]) -> str:
    said: list[str] = []
    for part in parts:
        if part.get("text"):
            said.append(f"(thought) {part['text']}" if part.get("thought") else str(part["text"]))
        elif "function_call" in part:
            said.append(f"→ {part['function_call'].get('name', '')}")
        else:
            said.append(f"({', '.join(part)})")
    return " ".join(said)


def _short(text: str) -> str:
    return visible(cut(" ".join(text[: 4 * _LONGEST].split()), _LONGEST))


def _short_args(args: Mapping[str, Any] | None) -> str:
    return cut(inline_args(args), _LONGEST)
