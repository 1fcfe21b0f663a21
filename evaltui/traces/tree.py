"""The spans of one trace to turns: what began one, and the calls of models and tools that were made in it.

Nothing here goes by the names of spans. Every walk has a stack of its own: a trace may be nested as deeply as
it likes, and its parents may go round in circles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from evaltui.core.model.json_values import ABSENT
from evaltui.traces.layouts import adk, genai, langfuse, openinference, openllmetry
from evaltui.traces.layouts.limits import leave_out_cut, limit_of
from evaltui.traces.layouts.messages import without_attachments
from evaltui.traces.layouts.operation import Json, Layout, Operation, prefer
from evaltui.traces.span import OtelSpan

# What knows most about a span comes first.
_LAYOUTS = (adk.LAYOUT, genai.LAYOUT, openinference.LAYOUT, openllmetry.LAYOUT, langfuse.LAYOUT)
_KINDS = frozenset(layout.kind for layout in _LAYOUTS if layout.kind)
_CONTENT = ("evaltui.", *(prefix for layout in _LAYOUTS for prefix in layout.content))
_SESSIONS = tuple(layout.session for layout in _LAYOUTS if layout.session)
_TWIN = "two spans of the trace have the same id; give each its own where the agent runs"


def operation_of(span: OtelSpan) -> Operation | None:
    """Reads a span in its layout, after `leave_out_cut`; None for a span that is not an agent's."""
    merged: Operation | None = None
    for layout in _LAYOUTS:
        operation = layout.read(span)
        if operation is None or (operation.is_guess and _is_in_another(span, layout)):
            continue
        if merged is None:
            merged = operation
        elif merged.kind == operation.kind:
            conversation = merged.conversation or operation.conversation
            merged = prefer(merged, operation)
            merged.conversation = conversation
    if merged is not None:
        session = next((span.attributes[name] for name in _SESSIONS if span.attributes.get(name)), "")
        merged.conversation = merged.conversation or str(session)
        if span.status == "error" and not merged.error:
            merged.error = str(span.attributes.get("error.type") or "Error")
        if not _has_content(merged) and (limit := limit_of(span)):
            merged.is_cut, merged.remedy = True, limit
        outputs = merged.outputs
        merged.outputs = without_attachments(outputs)
        merged.lacks_attachment = merged.outputs != outputs
    return merged


def _is_in_another(span: OtelSpan, layout: Layout) -> bool:
    """Whether a span has attributes of another layout, which knows better."""
    others = tuple(f"{kind.partition('.')[0]}." for kind in _KINDS - {layout.kind})
    return any(name.startswith(others) for name in span.attributes)


def _may_be_of_an_agent(span: OtelSpan) -> bool:
    """Whether a span that is nothing of an agent's may have been before a limit cut it."""
    if span.cut & _KINDS:
        return True
    names = span.attributes
    return span.dropped > 0 and (not names or any(name.startswith(_CONTENT) for name in names))


def _has_content(operation: Operation) -> bool:
    if operation.kind == "tool":
        return bool(operation.name) and operation.arguments is not ABSENT and operation.result is not ABSENT
    return operation.inputs is not None and operation.outputs is not None


@dataclass(slots=True)
class Work:
    """A call of a model or a tool; spans that tell of the same call are one."""

    span: OtelSpan
    operation: Operation
    agent: str
    inner: list[Work] = field(default_factory=list)
    """Works inside a call of a tool: they are not the agent's own."""
    run: str = ""
    """The id of the span of the run of an agent in which it was; "" for none."""
    wrapped: list[Work] = field(default_factory=list)
    """Calls of a model that this one stands around."""


@dataclass(slots=True)
class TraceTurn:
    """Turn of a conversation, with the spans of one trace that a message of the user led to."""

    span: OtelSpan
    """First span of the turn."""
    operation: Operation | None
    """None where that is nothing of an agent's."""
    works: list[Work] = field(default_factory=list)
    agents: list[Operation] = field(default_factory=list)
    """The agents that worked in it, but for those in calls of tools."""
    agent_spans: list[OtelSpan] = field(default_factory=list)
    """Theirs."""
    spans: list[OtelSpan] = field(default_factory=list)
    lost: str = ""
    """Remedy for spans that cannot be read, which may be its calls and its answer; "" where none is lost."""
    failed: list[OtelSpan] = field(default_factory=list)
    """The spans with an error that are runs of agents, or around them and calls of models, but for those in
    calls of tools."""
    has_ended: bool = True
    """Whether a span around its calls has ended, or a further message of the user followed."""

    @property
    def start(self) -> int:
        return min((span.start for span in self.spans if span.start), default=0)

    @property
    def end(self) -> int:
        return max((span.end for span in self.spans), default=0)

    @property
    def models(self) -> list[Work]:
        """Its calls of models, by their ends, but for those in calls of tools."""
        calls = [work for work in self.works if work.operation.kind == "model"]
        return sorted(calls, key=lambda work: (work.span.end, work.span.start))


@dataclass(slots=True)
class _Node:
    span: OtelSpan
    operation: Operation | None
    children: list[_Node] = field(default_factory=list)
    is_absent: bool = False
    """Whether only its children are in the trace."""


def turns_of(spans: Sequence[OtelSpan]) -> list[TraceTurn]:
    """The turns in the spans of one trace, in the order in which they began."""
    leave_out_cut(spans)
    roots = _forest(spans)
    turns: list[TraceTurn] = []
    for root in roots:
        anchors = _anchors(root)
        for anchor in anchors or [root]:
            turn = _turn(anchor)
            if turn.works or (turn.operation is not None and _is_turn(turn.operation)):
                turns.append(turn)
    return sorted(turns, key=lambda turn: (turn.start, turn.span.span_id))


def _is_turn(operation: Operation) -> bool:
    has_data = bool(operation.inputs or operation.outputs or operation.error)
    return has_data or (operation.kind == "agent" and operation.is_cut)


def _forest(spans: Sequence[OtelSpan]) -> list[_Node]:
    """The roots; parents that are not here are some, and so is the first one of a circle."""
    ordered = sorted(spans, key=lambda span: span.start)
    nodes: dict[str, _Node] = {}
    for span in ordered:
        nodes.setdefault(span.span_id, _Node(span, operation_of(span)))
    roots: list[_Node] = []
    orphans: dict[str, list[_Node]] = {}
    for node in nodes.values():
        parent = nodes.get(node.span.parent_id)
        if parent is None and node.span.parent_id:
            orphans.setdefault(node.span.parent_id, []).append(node)
        elif parent is None or parent is node:
            roots.append(node)
        else:
            parent.children.append(node)
    for parent_id, children in orphans.items():
        roots += _above(children, parent_id)
    reached = _reached(roots)
    for node in nodes.values():
        if node.span.span_id in reached:
            continue
        # It is in a circle: cut where it began.
        nodes[node.span.parent_id].children.remove(node)
        roots.append(node)
        reached |= _reached([node])
    return roots


def _above(children: list[_Node], span_id: str) -> list[_Node]:
    """The parent that these have, which is not here: calls of tools are of a turn with those of models.

    Without tools, or in several conversations, each child stands for itself.
    """
    operations = [node.operation for node in children if node.operation is not None]
    conversations = {operation.conversation for operation in operations} - {""}
    if (
        len(operations) < 2
        or len(conversations) > 1
        or all(operation.kind != "tool" for operation in operations)
    ):
        return children
    last = max((node.span for node in children), key=lambda span: span.end)
    span = OtelSpan(last.trace_id, span_id, "", "", children[0].span.start, last.end, {})
    span.status, span.message = last.status, last.message
    return [_Node(span, None, children, is_absent=True)]


def _reached(nodes: Iterable[_Node]) -> set[str]:
    waiting, seen = list(nodes), set()
    while waiting:
        node = waiting.pop()
        if node.span.span_id not in seen:
            seen.add(node.span.span_id)
            waiting += node.children
    return seen


def _anchors(root: _Node) -> list[_Node]:
    """The agents and workflows that stand in no other one, and in no call of a tool."""
    anchors: list[_Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        kind = node.operation.kind if node.operation else ""
        if kind == "agent":
            anchors.append(node)
        elif kind != "tool":
            waiting += reversed(node.children)
    # What stands beside them, such as a model that is asked for a title, is no turn by itself.
    return [node for node in anchors if _does_something(node)]


def _does_something(anchor: _Node) -> bool:
    waiting = [anchor]
    while waiting:
        node = waiting.pop()
        if node.operation is not None and (
            node.operation.kind in ("model", "tool") or _is_turn(node.operation)
        ):
            return True
        waiting += node.children
    return False


@dataclass(slots=True)
class _Place:
    """Where in a turn a span stands."""

    node: _Node
    agent: str
    works: list[Work]
    model: Work | None = None
    tool: Work | None = None
    in_tool: bool = False
    run: str = ""


def _turn(anchor: _Node) -> TraceTurn:
    turn = TraceTurn(anchor.span, anchor.operation)
    is_call = anchor.operation is not None and anchor.operation.kind in ("model", "tool")
    turn.has_ended = not anchor.is_absent and not is_call
    waiting = [_Place(anchor, "", turn.works)]
    while waiting:
        place = waiting.pop()
        node, operation = place.node, place.node.operation
        if not node.is_absent:
            turn.spans.append(node.span)
        if not place.in_tool:
            turn.lost = turn.lost or _loss(node)
            if node.span.status == "error" and _is_around_agent(node):
                turn.failed.append(node.span)
        inside = replace(place)
        if operation is not None and operation.kind == "agent":
            inside.agent = operation.agent or operation.name or place.agent
            inside.model = inside.tool = None
            inside.run = node.span.span_id if operation.is_run else place.run
            if not place.in_tool:
                turn.agents.append(operation)
                turn.agent_spans.append(node.span)
        elif operation is not None and operation.kind == "model":
            inside.model = Work(node.span, operation, operation.agent or place.agent, run=place.run)
            inside.tool = None
            (place.works if place.model is None else place.model.wrapped).append(inside.model)
        elif operation is not None and operation.kind == "tool":
            _enter_tool(place, inside, operation)
        waiting += [replace(inside, node=child) for child in reversed(node.children)]
    turn.works = _without_wrappers(turn.works)
    return turn


def _is_around_agent(node: _Node) -> bool:
    """Whether a span is a run of an agent, or around one or a call of a model. Errors of other spans, such as
    requests over HTTP, are handled by what they are in."""
    if node.operation is not None and node.operation.kind != "other":
        return node.operation.kind == "agent"
    return any(
        inner.operation is not None and inner.operation.kind in ("agent", "model") for inner in _below(node)
    )


def _below(node: _Node) -> Iterator[_Node]:
    """The nodes below a node, but for those in calls of tools."""
    waiting = [*node.children]
    while waiting:
        inner = waiting.pop()
        yield inner
        if inner.operation is None or inner.operation.kind != "tool":
            waiting += inner.children


def _loss(node: _Node) -> str:
    """The remedy for the content of a span of which too little is left to read it; "" for other spans."""
    span = node.span
    if span.has_twin:
        return _TWIN
    is_unread = node.operation is None or node.operation.kind == "other"
    return limit_of(span) if is_unread and _may_be_of_an_agent(span) else ""


def _enter_tool(place: _Place, inside: _Place, operation: Operation) -> None:
    """A tool over the client of a server over the server of one call is one call: the outermost one."""
    outer = place.tool
    if outer is not None and (
        outer.operation.name == operation.name
        or (operation.call_id and outer.operation.call_id == operation.call_id)
    ):
        prefer(outer.operation, operation)
        return
    work = Work(place.node.span, operation, operation.agent or place.agent)
    place.works.append(work)
    inside.works, inside.tool, inside.model, inside.in_tool = work.inner, work, None, True


def _without_wrappers(works: list[Work]) -> list[Work]:
    """Each call of a model once: what stands around a single one is that one, around several it is none."""
    unwrapped: list[Work] = []
    for work in works:
        work.inner = _without_wrappers(work.inner) if work.inner else work.inner
        leaves = _leaves(work)
        if len(leaves) == 1 and leaves[0] is not work:
            unwrapped.append(_joined(work))
        else:
            unwrapped += leaves
    return sorted(unwrapped, key=lambda work: work.span.start)


def _leaves(work: Work) -> list[Work]:
    leaves, waiting = [], [work]
    while waiting:
        node = waiting.pop()
        waiting += reversed(node.wrapped)
        if not node.wrapped:
            leaves.append(node)
    return leaves


def _joined(work: Work) -> Work:
    inner = work
    while inner.wrapped:
        inner = inner.wrapped[0]
        work.operation = prefer(work.operation, inner.operation)
        work.agent = work.agent or inner.agent
    return work


def user_message(turn: TraceTurn) -> list[Json] | None:
    """The parts of what the user said; None where nobody recorded it."""
    models = sorted(turn.models, key=lambda work: work.span.start)
    # Another agent's message may be other than the one that was cut.
    is_cut = turn.operation is not None and turn.operation.is_cut
    agents = turn.agents[: 1 if is_cut else 2]
    for operation in (turn.operation, *agents, *(work.operation for work in models[:1])):
        if operation is not None and operation.inputs:
            return _last_said(operation.inputs, alone=operation.is_adk)
    return None


# How google-adk has an agent read what another one said; a user's own text may begin so, too.
_FROM_OTHERS = re.compile(
    r"For context:\s*(?:\Z|below is a transcript of what another agent did|\[[^\]\n]+\] )"
)


def _last_said(inputs: Sequence[Json], *, alone: bool) -> list[Json]:
    """The parts of the user's messages after the last one of a model; results of tools are none.

    Where a message stands `alone`, those before it are of turns that failed before a model answered.
    """
    user_message: list[Json] = []
    for content in reversed(inputs):
        if content["role"] == "model":
            if user_message:
                break
        elif parts := user_parts([content]):
            user_message = [*parts, *user_message]
            if alone:
                break
        elif user_message and not _without_responses(content):
            break
    return user_message


def user_parts(contents: Sequence[Json]) -> list[Json]:
    """The parts of messages that a user wrote: no results of tools, and nothing that another agent did."""
    return [
        part
        for parts in map(_without_responses, contents)
        if parts and not _FROM_OTHERS.match(str(parts[0].get("text") or ""))
        for part in parts
    ]


def _without_responses(content: Json) -> list[Json]:
    return [part for part in content["parts"] if "function_response" not in part]
