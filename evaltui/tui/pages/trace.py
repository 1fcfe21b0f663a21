"""The trace: a span as a row, and in full its events, model request, response and the graph of its turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evaltui.core.model.events import Event, Json, describe_response
from evaltui.core.trace.graph import AgentUse, Graph
from evaltui.core.trace.spans import Request, Span
from evaltui.text.figures import counted, show_duration
from evaltui.text.lines import Line, cells, pad
from evaltui.text.lines import Span as Text
from evaltui.text.lines import cut as cut_line
from evaltui.text.plots import waterfall_bar
from evaltui.text.syntax import arguments_line, value_line
from evaltui.text.values import cut, visible, visible_block
from evaltui.tui.pages.writer import Page, write_code, write_json

_LABEL = 9
_TOKENS = 11
_DURATION = 7
# Times are a picture where there is room for it.
_WITH_BARS = 90
_MOST_BAR = 40
# Seconds.
_LONG = 0.5
_SPAN_ROLES = {"agent": "agent", "model": "model", "tool": "tool"}
_MOST_INDENT = 6
# What does not fit in a row anyway need not be made into text.
_LONGEST = 300
_MARKS: Mapping[str, Text] = {
    "same": ("= ", "muted"),
    "changed": ("≠ ", "error"),
    "moved": ("↕ ", "error"),
    "extra": ("+ ", "error"),
}
NO_MARK: Text = ("  ", "")


class Scale(NamedTuple):
    """The time that the bars of a case are parts of, in seconds since the run began."""

    begin: float
    end: float


def span_line(span: Span, scale: Scale, width: int, *, folded: bool, op: str = "") -> Line:
    """A span as a row. `op` says how a call differs."""
    right = _right(span, scale, width)
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
        return [*line, (fold, "muted"), (visible(span.agent), "bold error" if span.failed else "bold agent")]
    if span.kind == "error":
        return [*line, (fold, ""), (pad("! error", _LABEL + 1), "error"), *_error(span.events[0].data)]
    return [
        *line,
        (fold, "muted"),
        (pad(span.kind, _LABEL), _SPAN_ROLES.get(span.kind, "muted")),
        *_what(span, room),
    ]


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
            return arguments_line(event.data.get("delta"), _LONGEST)[1:]
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
    call = _part_of(called, "function_call") or _part_of(returned, "function_response")
    line: Line = [(visible(str(call.get("name", ""))), "bold"), *arguments_line(call.get("args"), _LONGEST)]
    if returned is not None:
        # Of long arguments and a long result, both are seen to begin.
        line = cut_line(line, max(_LABEL, room // 2))
        response = _part_of(returned, "function_response").get("response")
        line += [("  ← ", "muted"), *value_line(response, _LONGEST)]
    return line


def _error(data: Json) -> Line:
    known = [str(data.get(name) or "") for name in ("type", "message")]
    return [(_short(": ".join(part for part in known if part)), "error")]


def _right(span: Span, scale: Scale, width: int) -> Line:
    timed = span.kind in _SPAN_ROLES or span.kind == "turn"
    tokens = tokens_of(span.usage) if span.kind == "model" else ""
    shown = "…" if span.is_open else show_duration(span.seconds) if timed else ""
    took: Line = [("  ", ""), (f"{shown:>{_DURATION}}", "bold" if span.seconds >= _LONG else "muted")]
    if width < _WITH_BARS:
        return [(f"{tokens:>{_TOKENS}}", "muted"), *took] if tokens else took if shown else []
    room = min(_MOST_BAR, width // 4)
    bar: Line = [(" " * room, "")]
    if span.kind in _SPAN_ROLES:
        role = "error" if span.failed else _SPAN_ROLES[span.kind]
        bar = waterfall_bar(
            span.begin - scale.begin, span.end - scale.begin, scale.end - scale.begin, room, role
        )
    return [(f"{tokens:>{_TOKENS}}", "muted"), ("  ", ""), *bar, *took]


def tokens_of(usage: Json | None) -> str:
    """`612 → 38` for the tokens asked and answered."""
    known = usage or {}
    asked, answered = known.get("prompt_token_count"), known.get("candidates_token_count")
    if asked is None and answered is None:
        total = known.get("total_token_count")
        return "" if total is None else str(total)
    return f"{asked or 0} → {answered or 0}"


def _part_of(event: Event | None, name: str) -> Mapping[str, Any]:
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


_MAX_VALUE = 160


def write_events(page: Page, events: Sequence[Event]) -> None:
    """One after the other; where there are several, each with its kind above it."""
    for event in events:
        if len(events) > 1:
            page.blank()
            page.row((event.kind.replace("_", " ").capitalize(), "bold accent"))
        write_event(page, event)
    if not events:
        page.text([("nothing but what ran inside of it is known", "muted")])


def write_response(page: Page, events: Sequence[Event]) -> None:
    """What a model or a tool has answered, as a value."""
    answers = [event for event in events if event.kind in ("model_response", "tool_result", "error")]
    if not answers:
        waiting = (
            "no answer yet, or none that is known" if events else "only models and tools have a response"
        )
        page.text([(waiting, "muted")])
    for event in answers:
        write_event(page, event)


def write_event(page: Page, event: Event) -> None:
    """When and how long, its texts as they are meant to be read, then all of it as JSON."""
    facts = {
        "agent": visible(event.agent),
        "branch": visible(event.branch),
        "at": f"{show_duration(event.t)} after the start",
        "took": "" if event.duration is None else show_duration(event.duration),
        "tokens": tokens_of(event.usage),
        "tool call": "inside a tool call" if event.data.get("nested") else "",
    }
    for label, value in facts.items():
        if value:
            page.labelled(label, [(value, "")])
    for title, text in _titled_texts(event):
        page.blank()
        page.row((title, "bold"))
        write_code(page, text, "pytb" if title == "Error" else "markdown")
    page.blank()
    page.row(("JSON", "bold"))
    write_json(page, event.to_json())


def _titled_texts(event: Event) -> list[tuple[str, str]]:
    parts: list[dict[str, Any]] = (event.content or {}).get("parts") or []
    texts = [("Thought" if part.get("thought") else "Text", str(part.get("text") or "")) for part in parts]
    # In ADK it may be a whole content, which the JSON shows.
    instruction = event.data.get("system_instruction")
    texts += [("Instruction", instruction if isinstance(instruction, str) else "")]
    texts += [("Error", str(event.data.get("traceback") or event.data.get("message") or ""))]
    return [(title, text) for title, text in texts if text]


NO_REQUEST = "no request to a model is known here: this framework, or this agent, reports none"


def write_request(page: Page, request: Request | None) -> None:
    """New contents first to the eye: those that were there before are dim."""
    if request is None:
        page.text([(NO_REQUEST, "muted")])
        return
    page.labelled("model", [(visible(request.model), "")])
    if not request.is_first:
        added = len(request.contents) - request.new
        page.labelled("new", [(f"{added} of {len(request.contents)} contents", "bold accent")])
    for change in request.changes:
        page.labelled("changed", [(visible(change), "warning")])
    if request.unrecorded:
        page.labelled("not all", [(visible(request.unrecorded), "error")])
    _write_instruction(page, request.system_instruction)
    _write_contents(page, request)
    _write_tools(page, request)
    if request.config:
        page.blank()
        page.row(("Config", "bold"))
        write_json(page, request.config)


def _write_instruction(page: Page, instruction: str) -> None:
    page.blank()
    page.row(("System instruction", "bold"))
    if instruction:
        write_code(page, instruction, "markdown")
    else:
        page.block([("none", "muted")], 2)


def _write_contents(page: Page, request: Request) -> None:
    page.blank()
    page.row(("Contents", "bold"), ("  what is new has a +", "muted"))
    for number, content in enumerate(request.contents):
        is_new = number >= request.new
        mark: Line = [("+ " if is_new else "  ", "bold accent" if is_new else "muted")]
        role = visible(str(content.get("role") or "user"))
        for part in content.get("parts") or ():
            page.text(_part(part, "" if is_new else "muted"), [*mark, (f"{role:<7}", "muted")])


def _part(part: Json, role: str) -> Line:
    if part.get("text"):
        text = visible_block(str(part["text"]))
        return [("(thought) ", "muted"), (text, role)] if part.get("thought") else [(text, role)]
    if call := part.get("function_call"):
        name = visible(str(call.get("name")))
        return [("→ ", "tool"), (name, role), *arguments_line(call.get("args"), _MAX_VALUE)]
    if result := part.get("function_response"):
        name = visible(str(result.get("name")))
        response = result.get("response")
        shown = response if isinstance(response, dict) else {"result": response}
        return [("← ", "muted"), (name, role), *arguments_line(shown, _MAX_VALUE)]
    return [(f"({visible(', '.join(part))})", "muted")]


def _write_tools(page: Page, request: Request) -> None:
    page.blank()
    page.row(("Tools", "bold"))
    if not request.tools:
        page.row(("  none", "muted"))
    for tool in request.tools:
        description = visible(" ".join(str(tool.get("description") or "").split()))
        page.text(
            [(description, "muted")], [("  ", ""), (visible(str(tool.get("name") or "?")), ""), ("  ", "")]
        )
        schema = tool.get("parameters_json_schema") or tool.get("parameters")
        if schema:
            write_json(page, schema, indent=6)


_SYMBOLS = {"agent": "", "tool": "→ ", "transfer": "⇒ "}


def write_graph(page: Page, graph: Graph) -> None:
    if not graph.agents:
        page.text([("no agent is known to have done anything in this turn", "muted")])
        return
    page.row(("Agents and tools", "bold"), ("  numbers are steps of the path below", "muted"))
    for agent in graph.agents:
        page.blank()
        _write_agent(page, agent)
    page.blank()
    page.row(("Path", "bold"))
    for step in graph.path:
        name: Line = [
            (_SYMBOLS[step.kind], "muted"),
            (visible(step.name), "bold" if step.kind == "agent" else ""),
        ]
        by: Line = [] if step.kind == "agent" else [(f"   by {visible(step.agent)}", "muted")]
        page.row((f"  {step.place:>3}  ", "bold accent"), ("  " * step.depth, ""), *name, *by)


def _write_agent(page: Page, agent: AgentUse) -> None:
    where = f"  inside {visible(agent.inside)}" if agent.inside else ""
    calls = f"  {counted(agent.model_calls, 'model call')}" if agent.model_calls else ""
    page.row(
        ("  ", ""), (visible(agent.name), "bold"), (where, "muted"), (calls, "muted"), _steps(agent.steps)
    )
    lines: list[Line] = [
        [
            (visible(tool.name), "error" if tool.failed else "" if tool.steps else "muted"),
            _steps(tool.steps) if tool.steps else ("  not called", "muted"),
        ]
        for tool in agent.tools
    ]
    lines += [
        [("⇒ ", "muted"), (visible(name), "bold"), ("  took over", "muted"), _steps((place,))]
        for name, place in agent.handed_over
    ]
    for number, line in enumerate(lines):
        branch = "└─ " if number == len(lines) - 1 else "├─ "
        page.row(("  ", ""), (branch, "muted"), *line)


def _steps(places: Sequence[int]) -> tuple[str, str]:
    shown = ", ".join(str(place) for place in places[:12])
    return (f"  {shown}{', …' if len(places) > 12 else ''}", "bold accent")
