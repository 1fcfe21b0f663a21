"""A span in full: event, request, response, expectation, graph and source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaltui.core.model.events import SCRIPTED_PREFIX, Event, Json, parts_in
from evaltui.core.model.outcome import CallDiff, TurnResult
from evaltui.core.trace.span_lines import KIND_ROLES, answer_summary, model_of, part_of, tokens_of, version_of
from evaltui.core.trace.spans import Request, Span, ancestors, request_of
from evaltui.project.agent_source import SourcePlace, frame_place, source_lines
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.syntax import arguments_line, code_lines
from evaltui.text.values import visible, visible_block
from evaltui.tui.inspector import InspectorTab
from evaltui.tui.widgets.writer import Page, write_code, write_json
from evaltui.views.rows import made_call
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.editors import place_of_agent, place_of_tool


@dataclass
class ToolUse:
    """A tool of an agent; `steps` are the path positions of its calls."""

    name: str
    steps: list[int] = field(default_factory=list)
    failed: bool = False


@dataclass
class AgentUse:
    """An agent with its tools and calls.

    `inside` is the tool around it, "" for an agent that talks to the user. `handed_over` are the agents that
    took over from it, each with its path position.
    """

    name: str
    inside: str
    steps: list[int] = field(default_factory=list)
    model_calls: int = 0
    tools: dict[str, ToolUse] = field(default_factory=dict)
    handed_over: list[tuple[str, int]] = field(default_factory=list)

    def tool(self, name: str) -> ToolUse:
        return self.tools.setdefault(name, ToolUse(name))


StepKind = Literal["agent", "tool", "transfer"]


@dataclass(frozen=True)
class PathStep:
    """A step of the path. `place` counts from 1; `depth` is 0 outside of tools."""

    place: int
    kind: StepKind
    name: str
    agent: str
    depth: int
    span: int


@dataclass(frozen=True)
class Graph:
    agents: tuple[AgentUse, ...]
    path: tuple[PathStep, ...]


def graph_of(spans: Sequence[Span], turn: int | None) -> Graph:
    """The agents and tools of a turn, with their steps; the tools of an agent come from its requests."""
    agents: dict[tuple[str, str], AgentUse] = {}
    path: list[PathStep] = []

    def step(kind: StepKind, name: str, span: Span) -> int:
        depth = sum(spans[number].kind == "tool" for number in ancestors(spans, span.number))
        path.append(PathStep(len(path) + 1, kind, name, span.agent, depth, span.number))
        return len(path)

    for span in _spans_in_order(spans, turn):
        if not span.agent or span.kind == "turn":
            continue
        above = (spans[number] for number in ancestors(spans, span.number))
        inside = next((_called_tool(around) for around in above if around.kind == "tool"), "")
        agent = agents.setdefault((span.agent, inside), AgentUse(span.agent, inside))
        if span.kind == "agent":
            agent.steps.append(step("agent", span.agent, span))
        elif span.kind == "model":
            agent.model_calls += 1
            request = span.event("model_request")
            for declared in (request.data.get("tools") or ()) if request else ():
                if "name" in declared:
                    agent.tool(str(declared["name"]))
        elif span.kind == "tool":
            tool = agent.tool(_called_tool(span))
            tool.steps.append(step("tool", tool.name, span))
            tool.failed |= span.failed
        elif span.kind == "transfer":
            to = str(span.events[0].data.get("to", ""))
            agent.handed_over.append((to, step("transfer", to, span)))
    return Graph(tuple(agents.values()), tuple(path))


def _called_tool(span: Span) -> str:
    for event in span.events:
        for part in parts_in(event.content):
            call = part.get("function_call") or part.get("function_response")
            if call:
                return str(call.get("name") or "")
    return ""


def _spans_in_order(spans: Sequence[Span], turn: int | None) -> list[Span]:
    """The spans of a turn, each before the spans inside it, others by start."""
    ordered: list[Span] = []
    stack = [span.number for span in reversed(spans) if span.kind == "turn" and span.turn == turn]
    while stack:
        span = spans[stack.pop()]
        ordered.append(span)
        stack += reversed(span.children)
    return ordered


_MAX_VALUE = 160
# More of what was there before is read in the log.
_MAX_CONTENTS = 200
_SOURCE_LINES = 60


def write_head(page: Page, span: Span, call: int) -> None:
    """Writes the kind and the duration; `call` is the number of the model call in its turn, from 1, or 0."""
    named = _name_of(span)
    left: Line = [(span.kind, _KIND_ROLES.get(span.kind, "muted"))]
    left += [(" ", ""), (visible(named), "bold")] if named else []
    turn = "" if span.turn is None else f"turn {span.turn + 1}"
    if turn and call:
        turn = f"call {call} of {turn}"
    left += [(f"  {turn}", "muted")] if turn and span.kind != "turn" else []
    throttled = f"throttled {show_duration(span.throttled)}, " if span.throttled else ""
    page.ends(left, [(throttled + (UNKNOWN if span.is_open else show_duration(span.seconds)), "muted")])
    facts = _span_facts(span)
    if facts:
        page.blank()
    for label, value in facts:
        page.labelled(label, [(value, "")])


_KIND_ROLES = {**KIND_ROLES, "error": "error"}


def _name_of(span: Span) -> str:
    match span.kind:
        case "agent":
            return span.agent
        case "turn":
            return "Start" if span.turn is None else str(span.turn + 1)
        case "tool":
            called = part_of(span.event("tool_call"), "function_call")
            return str((called or part_of(span.event("tool_result"), "function_response")).get("name", ""))
        case "model":
            return model_of(span)
        case "output":
            return str(span.events[0].data.get("node") or "")
    return ""


def _span_facts(span: Span) -> list[tuple[str, str]]:
    usage = span.usage or {}
    parts = [
        ("prompt_token_count", "in"),
        ("cached_content_token_count", "cached"),
        ("candidates_token_count", "out"),
        ("thoughts_token_count", "thoughts"),
    ]
    tokens = "   ".join(f"{show_number(usage[name])} {word}" for name, word in parts if usage.get(name))
    if span.kind == "agent" and span.tokens:
        tokens = show_number(span.tokens)
    answered = span.event("model_response")
    origin = answer_summary(answered.content) if answered is not None and answered.content else ""
    facts = [
        ("agent", visible(span.agent) if span.kind != "agent" else ""),
        ("served by", "" if _name_of(span).startswith(SCRIPTED_PREFIX) else visible(version_of(span))),
        ("tokens", tokens),
        ("response", visible(origin)),
        ("recording", _recording_text(span)),
    ]
    return [(label, value) for label, value in facts if value]


def _recording_text(span: Span) -> str:
    """The source of the response, live or recorded; "" where it is unknown."""
    data = {key: value for event in span.events for key, value in event.data.items()}
    if data.get("replayed"):
        return "replayed"
    if data.get("missed"):
        return "not in the recording"
    if data.get("stubbed"):
        return f"stub from the {visible(str(data['stubbed']))}"
    if span.kind != "model" or not span.event("model_request"):
        return ""
    return "scripted, offline" if _name_of(span).startswith(SCRIPTED_PREFIX) else "live"


def write_events(page: Page, events: Sequence[Event]) -> None:
    """Writes the events; of several, each with its kind above it."""
    for event in events:
        if len(events) > 1:
            page.section((event.kind.replace("_", " ").capitalize(), "bold"))
        write_event(page, event)
    if not events:
        page.text([("No event of its own; only what ran in it is known", "muted")])


def write_response(page: Page, span: Span) -> None:
    """Writes the response of a model or a tool: texts as prose, values in colour."""
    answers = [event for event in span.events if event.kind in ("model_response", "tool_result", "error")]
    if not answers:
        has_response = span.kind in ("model", "tool")
        page.text([("No response yet" if has_response else "Only models and tools have a response", "muted")])
    for event in answers:
        if event.data.get("unrecorded"):
            page.text([("Not in the trace", "muted")])
        _write_texts(page, event)
        for part in parts_in(event.content):
            _write_value_of(page, part)


def _write_value_of(page: Page, part: Json) -> None:
    if call := part.get("function_call"):
        page.section(("Call ", "bold"), (visible(str(call.get("name", ""))), "bold"))
        write_json(page, call.get("args") or {}, 1)
    elif returned := part.get("function_response"):
        page.section(("Response", "bold"))
        if "response" in returned:
            write_json(page, returned["response"], 1)
        else:
            page.text([("Not in the trace", "muted")])
    elif not part.get("text"):
        page.section((visible(", ".join(part)), "bold"))
        write_json(page, part, 1)


def write_event(page: Page, event: Event) -> None:
    """Writes the time and duration, its texts as prose, then the whole event as JSON."""
    facts = {
        "agent": visible(event.agent),
        "branch": visible(event.branch),
        "at": f"{show_duration(event.t)} after the start",
        "took": "" if event.duration is None else show_duration(event.duration),
        "tokens": tokens_of(event.usage),
        "tool call": "inside a tool call" if event.data.get("nested") else "",
        "note": "may contain thoughts, which the trace does not mark"
        if event.data.get("may_hold_thoughts")
        else "",
    }
    for label, value in facts.items():
        if value:
            page.labelled(label, [(value, "")])
    _write_texts(page, event)
    if event.kind == "output":
        page.section(("Output", "bold"))
        write_json(page, event.data.get("output"), 1)
    page.section(("JSON", "bold"))
    write_json(page, event.to_json(), 1)


def _write_texts(page: Page, event: Event) -> None:
    texts = [
        ("Thought" if part.get("thought") else "Text", str(part.get("text") or ""))
        for part in parts_in(event.content)
    ]
    # In ADK it may be a whole content, which the JSON shows.
    instruction = event.data.get("system_instruction")
    texts += [("Instruction", instruction if isinstance(instruction, str) else "")]
    texts += [("Error", str(event.data.get("traceback") or event.data.get("message") or ""))]
    for title, text in texts:
        if text:
            page.section((title, "bold"))
            write_code(page, text, "pytb" if title == "Error" else "markdown", 1)


NO_REQUEST_NOTE = "No request known: this framework, or this agent, reports none"


def write_request(page: Page, request: Request | None) -> None:
    """Writes the new part since the request before, then instruction, tools and config, then the full
    text."""
    if request is None:
        page.text([(NO_REQUEST_NOTE, "muted")])
        return
    page.labelled("model", [(visible(request.model), "")])
    for change in request.changes:
        page.labelled("changed", [(visible(change), "warning")])
    if request.unrecorded:
        page.labelled("not all", [(visible(request.unrecorded), "error")])
    if not request.is_first:
        page.section(("New since the previous request", "bold"))
        for content in request.contents[request.new :]:
            _write_content(page, content, [(" + ", "success")])
    page.section(("System instruction", "bold"))
    if request.system_instruction:
        write_code(page, request.system_instruction, "markdown", 1)
    else:
        page.block([("none", "muted")], 1)
    _write_tools(page, request)
    if request.config:
        page.section(("Config", "bold"))
        write_json(page, request.config, 1)
    _write_contents(page, request)
    _write_schemas(page, request)


def _write_contents(page: Page, request: Request) -> None:
    page.section(("Contents", "bold"), ("  + new", "muted"))
    left_out = max(0, len(request.contents) - _MAX_CONTENTS)
    if left_out:
        page.row((f"   … {counted(left_out, 'earlier content')}", "muted"))
    for number, content in enumerate(request.contents[left_out:], left_out):
        is_new = number >= request.new
        _write_content(page, content, [(" + ", "success")] if is_new else [("   ", "")], is_new=is_new)


def _write_content(page: Page, content: Json, mark: Line, *, is_new: bool = True) -> None:
    role = visible(str(content.get("role") or "user"))
    for part in parts_in(content):
        page.text(_part(part, "" if is_new else "muted"), [*mark, (f"{role:<7}", "muted")])


def _part(part: Json, role: str) -> Line:
    if part.get("text"):
        text = visible_block(str(part["text"]))
        return [("(thought) ", "muted"), (text, role)] if part.get("thought") else [(text, role)]
    if call := part.get("function_call"):
        name = visible(str(call.get("name")))
        return [("→ ", "tool"), (name, f"bold {role}".strip()), *arguments_line(call.get("args"), _MAX_VALUE)]
    if result := part.get("function_response"):
        name = visible(str(result.get("name")))
        response = result.get("response")
        shown = response if isinstance(response, dict) else {"result": response}
        values = arguments_line(shown, _MAX_VALUE) if "response" in result else [(f" {UNKNOWN}", "muted")]
        return [("← ", "muted"), (name, f"bold {role}".strip()), *values]
    return [(f"({visible(', '.join(part))})", "muted")]


def _write_tools(page: Page, request: Request) -> None:
    """Writes the signature of each tool: `set_light(location, status)`."""
    page.section(("Tools", "bold"))
    if not request.tools:
        page.row((" none", "muted"))
    for tool in request.tools:
        schema = tool.get("parameters_json_schema") or tool.get("parameters") or {}
        names = ", ".join(map(str, schema.get("properties") or {})) if isinstance(schema, dict) else ""
        name = visible(str(tool.get("name") or "?"))
        page.hanging(
            [(f" {name}", "function"), ("(", "comment"), (visible(names), "key"), (")", "comment")], 4
        )


def _write_schemas(page: Page, request: Request) -> None:
    for tool in request.tools:
        page.section((f"Tool {visible(str(tool.get('name') or '?'))}", "bold"))
        if description := visible_block(str(tool.get("description") or "")):
            page.block([(description, "muted")], 1)
        if schema := tool.get("parameters_json_schema") or tool.get("parameters"):
            write_json(page, schema, 1)


_OPS = {
    "same": ("=", "muted", "as expected"),
    "changed": ("≠", "error", "argument differs"),
    "moved": ("↕", "error", "out of order"),
    "extra": ("+", "error", "unexpected call"),
    "missing": ("−", "error", "missing"),
}


def write_expected(page: Page, span: Span, turn: TurnResult | None) -> None:
    """Writes the expected side: for a call its expected arguments, for other spans the expectation of the
    turn."""
    if turn is None:
        page.text([("Nothing expected here", "muted")])
        return
    row = made_call(turn, span.call) if span.call is not None else None
    if row is not None:
        _write_expected_call(page, row)
        return
    page.section(("Calls", "bold"), (f"  {turn.expectation}", "muted"))
    for diff in turn.calls:
        glyph, role, word = _OPS[diff.op] if turn.checks_calls else (" ", "muted", "")
        call = diff.expected or diff.actual
        name = visible(call.name) if call else "?"
        page.ends(
            [(f" {glyph} ", role), (name, "bold"), *arguments_line(call.args if call else {}, 60)],
            [(word, "muted")],
        )
    page.section(("Response", "bold"))
    if turn.response.expected is None:
        page.row((" not checked", "muted"))
    else:
        write_code(page, turn.response.expected, "markdown", 1)


def _write_expected_call(page: Page, row: CallDiff) -> None:
    glyph, role, word = _OPS[row.op]
    page.row((f"{glyph} {word}", role))
    for title, call, tint in (("Expected", row.expected, "success"), ("Actual", row.actual, "error")):
        page.section((title, f"bold {tint}" if row.op != "same" else "bold"))
        if call is None:
            page.row((" no call", "muted"))
        else:
            page.row((f" {visible(call.name)}", "bold"))
            write_json(page, call.args, 1)


def _write_source(page: Page, agent: AgentState, place: SourcePlace | None) -> None:
    """Writes the file around a place."""
    lines = source_lines(place, _SOURCE_LINES) if place else []
    if place is None or not lines:
        page.text([("No source found in the agent's folder", "muted")])
        return
    opens: Line = [(key_of("open_source"), "bold accent"), (" open", "muted")]
    page.ends([(visible(place.shown(agent.dir)), "underline function")], opens)
    page.blank()
    width = len(str(lines[-1][0]))
    coloured = code_lines("\n".join(text for _, text in lines), "python")
    for (number, _), line in zip(lines, coloured, strict=False):
        is_place = number == place.line
        mark: Line = [("▌" if is_place else " ", "bold accent"), (f"{number:>{width}}  ", "muted")]
        page.row(*mark, *line)


_SYMBOLS = {"agent": "", "tool": "→ ", "transfer": "⇄ "}


def write_graph(page: Page, graph: Graph) -> None:
    if not graph.agents:
        page.text([("No agent is known in this turn", "muted")])
        return
    page.section(("Agents and tools", "bold"), ("  numbers: steps of the path", "muted"))
    for agent in graph.agents:
        page.blank()
        _write_agent(page, agent)
    page.section(("Path", "bold"))
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
        for tool in agent.tools.values()
    ]
    lines += [
        [("⇄ ", "muted"), (visible(name), "bold"), ("  took over", "muted"), _steps((place,))]
        for name, place in agent.handed_over
    ]
    for number, line in enumerate(lines):
        branch = "└─ " if number == len(lines) - 1 else "├─ "
        page.row(("  ", ""), (branch, "muted"), *line)


def _steps(places: Sequence[int]) -> tuple[str, str]:
    shown = ", ".join(str(place) for place in places[:12])
    return (f"  {shown}{', …' if len(places) > 12 else ''}", "bold accent")


FIRST_TAB = {"agent": "Graph", "model": "Request", "tool": "Response"}
"""The most useful tab, by kind of span."""


def source_of(span: Span, agent: AgentState) -> SourcePlace | None:
    """The source of the tool, of the instruction of the agent with the model call, or of an error."""
    if (failed := span.event("error")) is not None and failed.data.get("traceback"):
        return frame_place(agent.dir, str(failed.data["traceback"]))
    call = span.event("tool_call")
    for part in parts_in(call.content) if call else []:
        if (tool := place_of_tool(agent, str((part.get("function_call") or {}).get("name")))) is not None:
            return tool
    return place_of_agent(agent, span.agent)


def span_tabs(
    agent: AgentState,
    spans: Sequence[Span],
    span: Span,
    turn: TurnResult | None,
    *,
    is_of_chat: bool,
) -> list[InspectorTab]:
    """The tabs of a span; `turn` is the result of its turn, None where it is unknown."""
    number = 0
    if span.kind == "model":
        before = spans[: span.number + 1]
        number = sum(earlier.kind == "model" and earlier.turn == span.turn for earlier in before)

    def tab(name: str, write: Callable[[Page], None]) -> InspectorTab:
        def write_page(page: Page) -> None:
            write_head(page, span, number)
            page.blank()
            write(page)

        return InspectorTab(name, write_page)

    events = span.events or [spans[child].events[0] for child in span.children[:1]]
    tabs = [
        tab("Event", lambda page: write_events(page, events)),
        tab("Request", lambda page: write_request(page, request_of(spans, span.number))),
        tab("Response", lambda page: write_response(page, span)),
        tab("Expected", lambda page: write_expected(page, span, turn)),
        tab("Graph", lambda page: write_graph(page, graph_of(spans, span.turn))),
        tab("Source", lambda page: _write_source(page, agent, source_of(span, agent))),
    ]
    # Nothing is expected of a chat.
    return [tab for tab in tabs if not (is_of_chat and tab.name == "Expected")]
