"""A span as a row of the trace: its action, tokens, a bar, its duration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evaltui.core.model.events import Event, Json, describe_response
from evaltui.core.trace.spans import Span
from evaltui.text.lines import Line, cells, pad
from evaltui.text.lines import Span as Text
from evaltui.text.lines import cut as cut_line
from evaltui.text.values import cut, show_duration, show_value, visible
from evaltui.tui.pages.calls import inline_args

_LABEL = 9
_TOKENS = 11
_DURATION = 7
# Times are a picture where there is room for it.
_WITH_BARS, _LONG_BARS = 90, 140
_MOST_INDENT = 6
# What does not fit in a row anyway need not be made into text.
_LONGEST = 300
_MARKS: Mapping[str, Text] = {
    "same": ("= ", "muted"),
    "changed": ("~ ", "warning"),
    "moved": ("↕ ", "warning"),
    "extra": ("+ ", "warning"),
}
NO_MARK: Text = ("  ", "")


def span_line(span: Span, turn: Span, width: int, *, folded: bool, op: str = "") -> Line:
    """`turn` is the one that the span is of: bars are parts of it. `op` says how a call differs."""
    right = _right(span, turn, width)
    room = width - cells(right) - 1
    left = cut_line(_left(span, folded, op, room), room)
    return [*left, (" " * (width - cells(left) - cells(right)), ""), *right]


def _left(span: Span, folded: bool, op: str, room: int) -> Line:
    if span.kind == "turn":
        return _turn(span)
    indent = "  " * min(_MOST_INDENT, span.depth - 1)
    line: Line = [_MARKS.get(op, NO_MARK), (indent, "")]
    fold = ("▸ " if folded else "▾ ") if span.children else "  "
    if span.kind == "agent":
        return [*line, (fold, "muted"), (visible(span.agent), "bold" if not span.failed else "error")]
    if span.kind == "error":
        return [*line, (fold, ""), (pad("! error", _LABEL + 1), "error"), *_error(span.events[0].data)]
    return [*line, (fold, "muted"), (pad(span.kind, _LABEL), "muted"), *_what(span, room)]


def _turn(span: Span) -> Line:
    number = "Start" if span.turn is None else f"Turn {span.turn + 1}"
    role = "error" if span.failed else "bold"
    message = span.events[0].content if span.events and span.events[0].kind == "user" else None
    return [(pad(number, _LABEL + 1), role), (_short(text_of(message)), "bold")]


def _what(span: Span, room: int) -> Line:
    event = span.events[-1]
    match span.kind:
        case "model":
            return _model(span)
        case "tool":
            return _tool(span, room)
        case "transfer":
            return [("→ ", "muted"), (visible(str(event.data.get("to", ""))), "bold")]
        case "state":
            return [(cut(inline_args(event.data.get("delta")), _LONGEST).lstrip(), "muted")]
        case "console":
            return [(_short(str(event.data.get("text", ""))), "muted")]
    if event.data.get("partial"):
        pieces = "".join(text_of(piece.content) for piece in span.events)
        return [(_short(pieces), "muted")]
    return [(_short(text_of(event.content)), "")]


def _model(span: Span) -> Line:
    asked, answered = span.event("model_request"), span.event("model_response")
    name = str((asked.data if asked else answered.data if answered else {}).get("model") or "")
    line: Line = [(visible(name), "")]
    if failed := span.event("error"):
        return [*line, ("  ", ""), *_error(failed.data)]
    if answered is not None and answered.content is None:
        return [*line, ("  ", ""), (_short(str(answered.data.get("error_message") or "nothing")), "error")]
    return line


def _tool(span: Span, room: int) -> Line:
    called, returned = span.event("tool_call"), span.event("tool_result")
    call = _part(called, "function_call") or _part(returned, "function_response")
    line: Line = [(visible(str(call.get("name", ""))), "bold"), (_args(call.get("args")), "muted")]
    if returned is not None:
        # Of long arguments and a long result, both are seen to begin.
        line = cut_line(line, max(_LABEL, room // 2))
        response = _part(returned, "function_response").get("response")
        line += [("  ← ", "muted"), (show_value(response, _LONGEST), "muted")]
    return line


def _error(data: Json) -> Line:
    known = [str(data.get(name) or "") for name in ("type", "message")]
    return [(_short(": ".join(part for part in known if part)), "error")]


def _right(span: Span, turn: Span, width: int) -> Line:
    timed = span.kind in ("turn", "agent", "model", "tool")
    tokens = tokens_of(span.usage) if span.kind == "model" else ""
    shown = "…" if span.is_open else show_duration(span.seconds) if timed else ""
    if width < _WITH_BARS and not tokens:
        return [("  ", ""), (shown, "muted")] if shown else []
    bar: Line = []
    if width >= _WITH_BARS:
        room = 32 if width >= _LONG_BARS else 16
        role = "error" if span.failed else "bold accent" if span.kind in ("model", "tool") else "muted"
        bar = [("  ", ""), (_bar(span, turn, room) if timed else " " * room, role)]
    return [(f"{tokens:>{_TOKENS}}", "muted"), *bar, ("  ", ""), (f"{shown:>{_DURATION}}", "muted")]


def _bar(span: Span, turn: Span, room: int) -> str:
    whole = turn.seconds or 1.0
    first = min(room - 1, max(0, int((span.begin - turn.begin) / whole * room)))
    drawn = "█" * min(room - first, round(span.seconds / whole * room)) or "▏"
    return pad(" " * first + drawn, room)


def tokens_of(usage: Json | None) -> str:
    """`612 → 38` for the tokens asked and answered."""
    known = usage or {}
    asked, answered = known.get("prompt_token_count"), known.get("candidates_token_count")
    if asked is None and answered is None:
        total = known.get("total_token_count")
        return "" if total is None else str(total)
    return f"{asked or 0} → {answered or 0}"


def _part(event: Event | None, name: str) -> Mapping[str, Any]:
    parts = (event.content or {}).get("parts") or [] if event else []
    return next((part[name] for part in parts if name in part), {})


def text_of(content: Json | None) -> str:
    """The texts of a content, and in words what else is in it."""
    return " ".join(_texts((content or {}).get("parts") or []))


def _texts(parts: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for part in parts:
        if part.get("text"):
            yield f"(thought) {part['text']}" if part.get("thought") else str(part["text"])
        elif "function_call" in part:
            yield f"→ {part['function_call'].get('name', '')}"
        elif "function_response" in part:
            yield describe_response(part["function_response"])
        else:
            yield f"({', '.join(part)})"


def _short(text: str) -> str:
    return visible(cut(" ".join(text[: 4 * _LONGEST].split()), _LONGEST))


def _args(args: Mapping[str, Any] | None) -> str:
    return cut(inline_args(args), _LONGEST)
