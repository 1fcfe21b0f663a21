"""Spans as lines of text: their content, tokens and time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evaltui.core.model.events import Event, Json, describe_response, parts_in
from evaltui.core.model.served import is_other_model
from evaltui.core.trace.spans import Span, SpanKind, TimeSpent
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.lines import Line, cells
from evaltui.text.syntax import arguments_line, value_line
from evaltui.text.values import cut, visible

TIMED_KINDS: Mapping[str, str] = {"agent": "agent", "model": "model", "tool": "tool"}
"""The kinds of spans with a duration, each with the role of its name and bar."""
KIND_ROLES: Mapping[str, str] = {**TIMED_KINDS, "state": "warning"}
# Cells without which the response of a tool is left to the inspector.
_MIN_RESPONSE = 16
# What does not fit in a row anyway need not be made into text.
_MAX_LINE = 300


class Scale(NamedTuple):
    """The time range of the bars of a case, in seconds since the start of the run."""

    start: float
    end: float

    @classmethod
    def of(cls, spans: Sequence[Span], turns: Iterable[Span]) -> Scale:
        """The scale for all turns, so that their bars are comparable, from the first agent span on."""
        timed = [
            spans[number]
            for turn in turns
            if turn.turn is not None
            for number in turn.children
            if spans[number].kind in TIMED_KINDS
        ]
        if not timed:
            return cls(0.0, 0.0)
        return cls(min(span.start for span in timed), max(span.end for span in timed))


def model_of(span: Span) -> str:
    """The name of a span's model; "" where it is unknown."""
    event = span.event("model_request") or span.event("model_response")
    return str((event.data if event else {}).get("model") or "")


def version_of(span: Span) -> str:
    """The model that answered, as its response names it; "" where it names none."""
    event = span.event("model_response")
    return str((event.data if event else {}).get("model_version") or "")


def span_body_line(span: Span, room: int, *, named: bool = True) -> Line:
    """The text of a span other than a turn, without its kind.

    The response of a tool is shown only where `room` cells are enough, the name of a model only if `named`.
    """
    if span.kind == "agent":
        return [(visible(span.agent), "bold error" if span.failed else "bold")]
    event = span.events[-1]
    match span.kind:
        case "error":
            return _error(span.events[0].data)
        case "model":
            return _model(span, model_of(span) if named else "")
        case "tool":
            return _tool(span, room)
        case "transfer":
            return [("⇄ ", "muted"), (visible(str(event.data.get("to", ""))), "bold agent")]
        case "state":
            return arguments_line(event.data.get("delta"), _MAX_LINE)[1:]
        case "output":
            node = str(event.data.get("node") or "")
            name: Line = [(visible(node), "bold"), (" → ", "muted")] if node else []
            return [*name, *value_line(event.data.get("output"), _MAX_LINE)]
        case "console":
            return [(one_line(str(event.data.get("text", ""))), "muted")]
    if event.data.get("partial"):
        pieces = "".join(text_of(piece.content) for piece in span.events)
        return [(one_line(pieces), "muted")]
    return [(one_line(text_of(event.content)), "")]


def _model(span: Span, name: str) -> Line:
    answered = span.event("model_response")
    line: Line = [(visible(name), ""), (" ", "")] if name else []
    is_replayed = any(event.data.get("replayed") for event in span.events)
    if not is_replayed and is_other_model(model_of(span), version := version_of(span)):
        line += [(f"served by {visible(version)}", "warning"), (" ", "")]
    if failed := span.event("error"):
        return [*line, *_error(failed.data)]
    if answered is None:
        return line[:1]
    if answered.content is None and answered.data.get("unrecorded"):
        return [*line, (f"→ {UNKNOWN}", "muted")]
    if answered.content is None:
        return [*line, (one_line(str(answered.data.get("error_message") or "no content")), "error")]
    return [*line, (f"→ {visible(answer_summary(answered.content))}", "muted")]


def answer_summary(content: Json) -> str:
    """The answer of a model in a word: the called tools, else `text`."""
    calls = [part["function_call"].get("name", "") for part in parts_in(content) if _calls(part)]
    if len(calls) > 1:
        return f"{calls[0]} and {show_number(len(calls) - 1)} more"
    return str(calls[0]) if calls else "text" if parts_in(content) else "nothing"


def _calls(part: Mapping[str, Any]) -> bool:
    return bool(part.get("function_call"))


def _tool(span: Span, room: int) -> Line:
    called, returned = span.event("tool_call"), span.event("tool_result")
    call = part_of(called, "function_call") or part_of(returned, "function_response")
    line: Line = [(visible(str(call.get("name", ""))), "bold"), *arguments_line(call.get("args"), _MAX_LINE)]
    response = part_of(returned, "function_response")
    if "response" in response and cells(line) + _MIN_RESPONSE <= room:
        line += [(" → ", "muted"), *value_line(response["response"], _MAX_LINE)]
    return line


def _error(data: Json) -> Line:
    texts = [str(data.get(name) or "") for name in ("type", "message")]
    return [(one_line(": ".join(part for part in texts if part)), "error")]


def tokens_of(usage: Json | None) -> str:
    """Input and output tokens: `612 → 38`."""
    counts = usage or {}
    input_tokens, output_tokens = counts.get("prompt_token_count"), counts.get("candidates_token_count")
    if input_tokens is None and output_tokens is None:
        total = counts.get("total_token_count")
        return "" if total is None else show_number(total)
    return f"{show_number(input_tokens or 0)} → {show_number(output_tokens or 0)}"


def span_tokens(span: Span) -> str:
    """The tokens of an agent or a model call; "" where they are unknown, and for other spans."""
    if span.kind == "agent" and span.tokens:
        return show_number(span.tokens)
    return tokens_of(span.usage) if span.kind == "model" else ""


def turn_title(span: Span) -> str:
    """The title of the span of a turn, or of what was before the first one."""
    return "Start" if span.turn is None else f"Turn {span.turn + 1}"


def turn_message(span: Span) -> str:
    """The user's message of the span of a turn, on one line."""
    message = span.events[0].content if span.events and span.events[0].kind == "user" else None
    return one_line(text_of(message))


class TimeFact(NamedTuple):
    """The time of a kind of work."""

    kind: str
    seconds: float
    duration: str
    """The seconds in words."""
    what: str
    """The number of calls, or the kind of time."""


def time_facts(spent: TimeSpent, unknown: Collection[SpanKind]) -> Iterator[TimeFact]:
    """The times of models, tools, agents and, if any, throttling and waiting; none where it is `unknown`."""
    facts = [
        ("model", spent.model, counted(spent.model_calls, "call")),
        ("tool", spent.tool, counted(spent.tool_calls, "call")),
        ("agent", spent.agent, "overhead"),
    ]
    if spent.throttled:
        facts.append(("throttled", spent.throttled, "waiting for limits"))
    if show_duration(spent.waiting) != show_duration(0):
        facts.append(("waiting", spent.waiting, "before and after the agent"))
    for kind, seconds, what in facts:
        is_unknown = kind in unknown
        duration = show_duration(None if is_unknown or not spent.whole else seconds)
        yield TimeFact(kind, seconds, duration, f"calls {UNKNOWN}" if is_unknown else what)


def part_of(event: Event | None, name: str) -> Mapping[str, Any]:
    """The first part with a name in an event's content, such as `function_call`; empty for none."""
    parts = parts_in(event.content) if event else []
    return next((part[name] for part in parts if name in part), {})


def text_of(content: Json | None) -> str:
    """The texts of a content, and its other parts in words."""
    return " ".join(_texts(parts_in(content)))


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


def one_line(text: str) -> str:
    """A text on one line, cut."""
    return visible(cut(" ".join(text[: 4 * _MAX_LINE].split()), _MAX_LINE))
