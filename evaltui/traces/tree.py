"""The spans of one trace to turns: what began one, and the calls of models and tools that were made in it.

Nothing here goes by the names of spans. Every walk has a stack of its own: a trace may be nested as deeply as
it likes, and its parents may go round in circles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from math import inf

from evaltui.core.model.events import USER_MESSAGE
from evaltui.core.model.json_values import ABSENT
from evaltui.traces.layouts import adk, genai, langfuse, openinference, openllmetry
from evaltui.traces.layouts.limits import leave_out_cut, limit_of
from evaltui.traces.layouts.messages import without_attachments
from evaltui.traces.layouts.operation import Layout, Operation, calls_in, prefer
from evaltui.traces.span import OtelSpan
from evaltui.traces.trace_turn import TraceTurn, Work

# What knows most about a span comes first.
_LAYOUTS = (adk.LAYOUT, genai.LAYOUT, openinference.LAYOUT, openllmetry.LAYOUT, langfuse.LAYOUT)
_KINDS = frozenset(layout.kind for layout in _LAYOUTS if layout.kind)
_CONTENT = ("evaltui.", *(prefix for layout in _LAYOUTS for prefix in layout.content))
_MESSAGES = tuple(prefix for layout in _LAYOUTS for prefix in layout.messages)
_SESSIONS = tuple(layout.session for layout in _LAYOUTS if layout.session)
_NO_PARENT = (
    "spans around others are missing: flush the tracer before the process ends, and export all spans of the "
    "trace"
)
_EMPTY = "the run of an agent has no spans of models or tools: export all spans of the trace"
_NO_KIND = (
    "a span has messages and does not name its operation (gen_ai.operation.name or its kind): export all "
    "attributes of spans"
)
_TWIN = "two spans of the trace have the same id; give each its own where the agent runs"
_CONVERSATIONS = (
    "calls below one span are of several conversations: record the same gen_ai.conversation.id or session.id "
    "on all spans of one, or begin a trace for each"
)


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
        merged.conversation = merged.conversation or _session(span)
        if span.status == "error" and not merged.error:
            merged.error = str(span.attributes.get("error.type") or "Error")
        if not _has_content(merged) and (limit := limit_of(span)):
            merged.is_cut, merged.remedy = True, limit
        outputs = merged.outputs
        merged.outputs = without_attachments(outputs)
        merged.lacks_attachment = merged.outputs != outputs
    return merged


def _session(span: OtelSpan) -> str:
    return next((str(span.attributes[name]) for name in _SESSIONS if span.attributes.get(name)), "")


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
    _settle_adk(roots)
    turns_by_root = [(root, list(_turns_below(root))) for root in roots]
    turns = [turn for _, some in turns_by_root for turn in some]
    sessions = _sessions_around(roots)
    for turn in turns:
        turn.session = sessions.get(turn.span.span_id, "")
    if not turns:
        # The spans in a run of an agent are missing.
        turns = [replace(_turn(node), lost=_EMPTY) for node in filter(_is_run, _preorder(roots))][:1]
    _settle_orphans(turns_by_root, {span.span_id for span in spans})
    return sorted(turns, key=lambda turn: (turn.start, turn.span.span_id))


def _sessions_around(roots: Sequence[_Node]) -> dict[str, str]:
    """For the id of each span, the session that it or the nearest span around it names; "" for none."""
    sessions: dict[str, str] = {}
    waiting = [(root, "") for root in roots]
    while waiting:
        node, outer = waiting.pop()
        session = sessions[node.span.span_id] = _session(node.span) or outer
        waiting += [(child, session) for child in node.children]
    return sessions


def _turns_below(root: _Node) -> Iterator[TraceTurn]:
    for anchor in _anchors(root) or [root]:
        for turn in _by_conversation(anchor):
            if turn.works or (turn.operation is not None and _is_turn(turn.operation)):
                yield turn


def _settle_orphans(turns_by_root: Sequence[tuple[_Node, Sequence[TraceTurn]]], ids: Collection[str]) -> None:
    """Marks turns of one trace as unknown where spans between others are missing: the parent of a span of
    google-adk, which is in its process, or the parent of spans that were made during another turn."""
    is_lost = False
    latest = 0.0
    for root, turns in sorted(turns_by_root, key=_start_of_turns):
        has_parent = not root.span.parent_id or root.span.parent_id in ids
        orphans = root.children if root.is_absent else [] if has_parent else [root]
        end = max((turn.end for turn in turns), default=0)
        if orphans and 0 < end <= latest:
            is_lost = True
            for turn in turns:
                # It may be the argument of a call.
                turn.unknown[USER_MESSAGE] = _NO_PARENT
        is_lost |= any(_is_inside_adk(node.operation) for node in orphans)
        # A call without an end may be around all that follows.
        latest = inf if any(map(_waits_for_call, turns)) else max(latest, end)
    for _, turns in turns_by_root:
        for turn in turns:
            turn.lost = turn.lost or (_NO_PARENT if is_lost else "")


def _start_of_turns(entry: tuple[_Node, Sequence[TraceTurn]]) -> int:
    return min((turn.start for turn in entry[1]), default=0)


def _waits_for_call(turn: TraceTurn) -> bool:
    last = max(turn.works, key=lambda work: work.span.start, default=None)
    if last is None or turn.has_ended:
        return False
    return last.operation.kind == "tool" or bool(calls_in(last.operation.outputs or ()))


def _is_inside_adk(operation: Operation | None) -> bool:
    """Whether google-adk has another span around one, in the same process."""
    return operation is not None and operation.is_adk and (operation.kind != "agent" or operation.is_run)


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
    reached = _ids(roots)
    for node in nodes.values():
        if node.span.span_id in reached:
            continue
        # It is in a circle: cut where it began.
        nodes[node.span.parent_id].children.remove(node)
        roots.append(node)
        reached |= _ids([node])
    return roots


def _settle_adk(roots: Sequence[_Node]) -> None:
    """Marks agents around spans of google-adk as its own, and the span of the invocation around them as one:
    not all formats have their scope, and they have no other mark."""
    for node in reversed([*_preorder(roots)]):
        inner = [child.operation for child in node.children if _is_inside_adk(child.operation)]
        agent = next((operation for operation in inner if operation and operation.kind == "agent"), None)
        if node.operation is not None:
            node.operation.is_adk |= node.operation.kind == "agent" and bool(inner)
        elif agent is not None and not node.is_absent:
            node.operation = replace(agent, name="", agent="", inputs=None, outputs=None, is_run=False)


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
    node = max(children, key=lambda node: node.span.end)
    last = node.span
    span = OtelSpan(last.trace_id, span_id, "", "", children[0].span.start, last.end, {})
    if not _is_tool(node):
        span.status, span.message = last.status, last.message
    return [_Node(span, None, children, is_absent=True)]


def _ids(roots: Iterable[_Node]) -> set[str]:
    return {node.span.span_id for node in _preorder(roots)}


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
    anchors = [node for node in anchors if _does_something(node)]
    # Functions beside all calls of models, such as a search, are around none.
    is_beside = not any(_is_run(node) or _asks_model(node) for node in anchors) and _asks_model(root)
    return [] if is_beside else anchors


def _asks_model(root: _Node) -> bool:
    return any(node.operation is not None and node.operation.kind == "model" for node in _preorder([root]))


def _does_something(anchor: _Node) -> bool:
    return any(
        node.operation.kind in ("model", "tool") or _is_turn(node.operation)
        for node in _preorder([anchor])
        if node.operation is not None
    )


def _is_run(node: _Node) -> bool:
    operation = node.operation
    return operation is not None and operation.kind == "agent" and (operation.is_run or operation.is_adk)


def _preorder(roots: Iterable[_Node]) -> Iterator[_Node]:
    """Nodes and all below them, each after its parent."""
    waiting = [*roots]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _by_conversation(anchor: _Node) -> list[TraceTurn]:
    """The turn that a span began; where the spans below it are of several conversations, one turn of each."""
    ids = _conversations_below(anchor)
    parts: list[tuple[str, _Node]] = []
    around: list[_Node] = []
    waiting = [anchor]
    while waiting:
        node = waiting.pop()
        if len(ids[node.span.span_id]) > 1 and _is_open(node):
            around.append(node)
            waiting += reversed(node.children)
        else:
            parts.append((next(iter(ids[node.span.span_id]), ""), node))
    if not around:
        turn = _turn(anchor)
        turn.conversation = next(iter(ids[anchor.span.span_id])) if len(ids[anchor.span.span_id]) == 1 else ""
        return [turn]
    groups, lost = _grouped(sorted(parts, key=lambda part: part[1].span.start))
    turns: list[TraceTurn] = []
    for conversation, nodes in groups.items():
        first = replace(nodes[0].span, status="", message="", events=[])
        turn = _turn(nodes[0] if len(nodes) == 1 else _Node(first, None, nodes, is_absent=True))
        turn.conversation = conversation
        turn.has_ended |= not anchor.is_absent
        turn.lost = turn.lost or lost or next(filter(None, map(_loss, around)), "")
        turns.append(turn)
    last = max(turns, key=lambda turn: turn.end)
    last.failed += [node.span for node in around if node.span.status == "error"]
    return turns


def _conversations_below(anchor: _Node) -> dict[str, dict[str, None]]:
    """For the id of each span, the ids of the outermost conversations at it and below, in their order."""
    ids: dict[str, dict[str, None]] = {}
    for node in reversed([*_preorder([anchor])]):
        operation = node.operation
        own = operation.conversation if operation else "" if node is anchor else _session(node.span)
        # What is in a call of a tool is none of the agent's own.
        inner = (
            () if _is_tool(node) else (name for child in node.children for name in ids[child.span.span_id])
        )
        ids[node.span.span_id] = dict.fromkeys([own] if own else inner)
    return ids


def _is_open(node: _Node) -> bool:
    """Whether a span may be around several conversations: no work, and no run of an agent."""
    operation = node.operation
    return (
        operation is None or operation.kind == "other" or (operation.kind == "agent" and not operation.is_run)
    )


def _grouped(parts: Sequence[tuple[str, _Node]]) -> tuple[dict[str, list[_Node]], str]:
    """The nodes of each conversation, and the remedy where one without an id may be of another; else ""."""
    names = [name for name, _ in parts]
    before = list(accumulate(names, _latest))
    after = list(accumulate(reversed(names), _latest))[::-1]
    is_mixed = sum(1 for _ in groupby(filter(None, names))) > len({*names} - {""})
    groups: dict[str, list[_Node]] = {}
    lost = ""
    for (name, node), last, following in zip(parts, before, after, strict=True):
        # A tool is called by a model before it.
        is_sure = last == following or not (last and following) or _is_tool(node)
        if not name and _does_something(node) and (is_mixed or not is_sure):
            lost = _CONVERSATIONS
        groups.setdefault(last or following, []).append(node)
    return groups, lost


def _latest(last: str, name: str) -> str:
    return name or last


def _is_tool(node: _Node) -> bool:
    return node.operation is not None and node.operation.kind == "tool"


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
    outermost_run: str = ""
    conversation: str = ""
    """The id that the innermost run of an agent around it names; "" for none."""


def _turn(anchor: _Node) -> TraceTurn:
    turn = TraceTurn(anchor.span, anchor.operation)
    is_call = anchor.operation is not None and anchor.operation.kind in ("model", "tool")
    turn.has_ended = not anchor.is_absent and not is_call and anchor.span.end > 0
    waiting = [_Place(anchor, "", turn.works)]
    conversations: set[str] = set()
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
            if operation.is_run:
                inside.run = node.span.span_id
                inside.outermost_run = place.outermost_run or inside.run
                inside.conversation = operation.conversation or place.conversation
            if not place.in_tool:
                turn.runs.append((operation, node.span))
        elif operation is not None and operation.kind == "model":
            inside.model = Work(node.span, operation, operation.agent or place.agent, run=place.run)
            inside.model.outermost_run = place.outermost_run
            inside.tool = None
            (place.works if place.model is None else place.model.wrapped).append(inside.model)
            if not place.in_tool:
                conversations.add(place.conversation or operation.conversation)
        elif operation is not None and operation.kind == "tool":
            _enter_tool(place, inside, operation)
        waiting += [replace(inside, node=child) for child in reversed(node.children)]
    turn.works = _without_wrappers(turn.works)
    if len(conversations - {""}) > 1:
        turn.lost = turn.lost or _CONVERSATIONS
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
        if not _is_tool(inner):
            waiting += inner.children


def _loss(node: _Node) -> str:
    """The remedy for the content of a span of which too little is left to read it; "" for other spans."""
    span = node.span
    if span.has_twin:
        return _TWIN
    if node.operation is None and any(name.startswith(_MESSAGES) for name in span.attributes):
        return limit_of(span) or _NO_KIND
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
    return _without_twins(sorted(unwrapped, key=lambda work: work.span.start))


def _without_twins(works: list[Work]) -> list[Work]:
    """Each call of a model once, where two libraries have recorded it beside each other: both name the
    response that the provider gave, one inside the time of the other."""
    single: list[Work] = []
    by_response: dict[str, Work] = {}
    for work in works:
        if (request := _request_of(work, single)) is not None:
            request.operation = prefer(request.operation, work.operation)
            continue
        response_id = work.operation.response_id
        outer = by_response.setdefault(response_id, work) if response_id else work
        if outer is work or work.span.end > outer.span.end:
            single.append(work)
        else:
            outer.operation = prefer(outer.operation, work.operation)
    return single


def _request_of(work: Work, earlier: Sequence[Work]) -> Work | None:
    """The call of a model whose streamed response is a record of its own, as Logfire has it; None for other
    calls."""
    if work.span.attributes.get("logfire.span_type") != "log":
        return None
    requests = (
        other
        for other in reversed(earlier)
        if other.operation.outputs is None
        and other.span.parent_id == work.span.parent_id
        and other.operation.inputs == work.operation.inputs
    )
    return next(requests, None)


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
