"""Conversations in the layouts of producers, each as spans of which none is missing."""

import json
from dataclasses import replace
from functools import cache, partial

from evaltui.core.model.events import Step, split_step
from evaltui.traces.conversations import conversations_in
from evaltui.traces.writing.turn import SESSION, Held, spans_of_turns
from tests.traces import test_several_turns as several
from tests.traces import written_traces
from tests.traces.adk_spans import OLD, SCHEMA, SPANS, Reply, run
from tests.traces.test_cut_traces import EVERY
from tests.traces.test_trace_layouts import AGENT, genai, langfuse, openinference

_BELOW = several.genai, several.logfire, several.openinference, several.langfuse
_AGENTS = (
    (several.genai, AGENT),
    (several.openinference, several.RUN),
    (several.langfuse, several.GENAI_RUN),
)
_TALKS = {
    "tools": ["Find a lamp", "What does it cost?", "Thanks"],
    "agent_tool": ["Which desk?"],
    "transfer": ["Sofa, please", "Thanks"],
    "raising": ["Stock?", "Try", "Stock?"],
    "sequence": ["Write", "Again"],
    "waiting": ["Which price?", Reply("adk_request_confirmation", {"confirmed": True}), "Thanks"],
    "long_running": ["Find a lamp", Reply("pending", {"found": "lamp"}), "Thanks"],
}
_WRITTEN = ((SPANS, written_traces.otlp_json), (OLD, written_traces.console))


def _in_traces(layout, root):
    """A trace for each turn of a session."""
    spans = []
    for number, requests in enumerate((several.REQUESTS[:2], several.REQUESTS[2:]), start=1):
        for one in several.under(root | {"session.id": "c1"}, layout, requests):
            start, end = one.start + number * 10**9, one.end + number * 10**9
            spans.append(replace(one, trace_id=f"{number:032x}", start=start, end=end))
    return spans


def _resumed(layout):
    """A person has responded before the tool returns, in a trace of its own."""
    root, first, tool, last = layout()
    moved = {"trace_id": "2".rjust(32, "0"), "parent_id": root.span_id}
    later = replace(root, trace_id=moved["trace_id"], start=tool.start - 1)
    for one in (root, later):
        # Layouts with messages in the span of the agent say which one began the turn.
        one.attributes = {key: one.attributes[key] for key in one.attributes if "put" not in key}
    root.end = first.end + 1
    return [root, first, later, replace(tool, **moved), replace(last, **moved)]


def _with_inner_agent(layout):
    """The tool is an agent, whose model has a message and a response of its own."""
    root, first, tool, last = layout()
    _, model = several.under({}, getattr(several, layout.__name__), several.STATELESS[1:])
    attributes = {key: root.attributes[key] for key in root.attributes if "put" not in key}
    times = {"start": tool.start + 1, "end": tool.end - 1}
    inner = replace(root, span_id="a" * 16, parent_id=tool.span_id, attributes=attributes, **times)
    times = {"start": inner.start + 1, "end": inner.end - 1}
    model = replace(model, span_id="b" * 16, parent_id=inner.span_id, **times)
    return [root, first, tool, inner, model, last]


@cache
def _of_adk(talk, schema):
    environment, write = _WRITTEN[schema]
    return written_traces.read_bytes(write(run(talk, _TALKS[talk], environment)))


def _exported():
    """A talk with google-adk as evaltui exports it; its first turn changes the session state."""
    (conversation,) = conversations_in([_of_adk("tools", 0)]).conversations
    events = [*conversation.events, *split_step(Step("shop", id="state", turn=0, state={"seen": "lamp"}))]
    session = json.dumps({"app_name": "shop", "user_id": "u", "state": {"seen": "none", "city": "Rome"}})
    held = Held("s1", "shop", 10**18, {SESSION: session}, final_state={"seen": "lamp", "city": "Rome"})
    return spans_of_turns(held, sorted(events, key=lambda event: event.turn), ())


WHOLE = {
    "own export": _exported,
    **{layout.__name__: layout for layout in EVERY},
    **{
        f"turns of {layout.__name__} below a {name}": partial(several.under, wrapper, layout)
        for name, wrapper in several.WRAPPERS.items()
        for layout in _BELOW
    },
    **{f"traces of {layout.__name__}": partial(_in_traces, layout, root) for layout, root in _AGENTS},
    **{
        f"person in {layout.__name__}": partial(_resumed, layout)
        for layout in (genai, openinference, langfuse)
    },
    **{
        f"agent in a tool of {layout.__name__}": partial(_with_inner_agent, layout)
        for layout in (genai, openinference, langfuse)
    },
    **{
        f"{talk}, schema {environment[SCHEMA]}": lambda talk=talk, schema=schema: _of_adk(talk, schema).spans
        for talk in _TALKS
        for schema, (environment, _) in enumerate(_WRITTEN)
    },
}
"""By name, functions that return the spans of one conversation."""
