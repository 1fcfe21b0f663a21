"""The details of a row of the trace: its events, the model request, the response, the graph of the turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaltui.core.model.events import Event, Json
from evaltui.core.trace.graph import AgentUse, Graph
from evaltui.core.trace.spans import Request
from evaltui.text.lines import Line
from evaltui.text.values import show_duration, visible, visible_block, visible_lines
from evaltui.tui.pages.calls import inline_args
from evaltui.tui.pages.span_row import tokens_of
from evaltui.tui.pages.writer import Page, write_json

_LONGEST_TEXT = 20_000


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
        "at": f"{event.t:.3f} s of the run",
        "took": "" if event.duration is None else show_duration(event.duration),
        "tokens": tokens_of(event.usage),
        "tool call": "inside a tool call" if event.data.get("nested") else "",
    }
    for label, value in facts.items():
        if value:
            page.labelled(label, [(value, "")])
    for title, text in _texts(event):
        page.blank()
        page.row((title, "bold"))
        for line in visible_lines(text[:_LONGEST_TEXT]):
            page.block([(line, "")], 2)
        if len(text) > _LONGEST_TEXT:
            page.row((f"  … {len(text) - _LONGEST_TEXT:,} characters are left out here", "warning"))
    page.blank()
    page.row(("JSON", "bold"))
    write_json(page, event.to_json())


def _texts(event: Event) -> list[tuple[str, str]]:
    parts: list[dict[str, Any]] = (event.content or {}).get("parts") or []
    texts = [("Thought" if part.get("thought") else "Text", str(part.get("text") or "")) for part in parts]
    texts += [("Instruction", _instruction(event.data.get("system_instruction")))]
    texts += [("Error", str(event.data.get("traceback") or event.data.get("message") or ""))]
    return [(title, text) for title, text in texts if text]


def _instruction(given: object) -> str:
    """A text; in ADK it may be a whole content, which the JSON shows."""
    return given if isinstance(given, str) else ""


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
    for line in visible_lines(instruction) if instruction else ["none"]:
        page.block([(line, "" if instruction else "muted")], 2)


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
        return [
            ("→ ", "muted"),
            (visible(str(call.get("name"))), role),
            (inline_args(call.get("args")), "muted"),
        ]
    if result := part.get("function_response"):
        name = visible(str(result.get("name")))
        return [("← ", "muted"), (name, role), (inline_args(_object(result.get("response"))), "muted")]
    return [(f"({visible(', '.join(part))})", "muted")]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {"result": value}


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
    calls = (
        f"  {agent.model_calls} model call{'s' if agent.model_calls != 1 else ''}"
        if agent.model_calls
        else ""
    )
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
