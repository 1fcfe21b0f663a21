"""Content that limits of OpenTelemetry have cut is unknown; the rest is never read as the content."""

import json
import random

import pytest

from evaltui import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls
from evaltui.core.model.events import ANSWERS, ARGUMENTS, CALLS, USER_MESSAGE
from evaltui.traces.conversations import conversations_in
from evaltui.traces.span import Recorded
from tests.traces.test_trace_layouts import (
    ANSWER,
    ARGS,
    LAYOUTS,
    QUESTION,
    RESULT,
    genai,
    genai_details,
    span,
    tree,
)

TIMES = 6
ADK = "gcp.vertex.agent"
# As instrumentations write it: longer than what is said.
SCHEMA = json.dumps({"name": "weather", "parameters": {"type": "object", "properties": {"city": {}}}})


def adk_schema_1():
    call = {"function_call": {"id": "call_1", "name": "weather", "args": ARGS}}
    returned = {"function_response": {"id": "call_1", "name": "weather", "response": RESULT}}
    asked = [{"role": "user", "parts": [{"text": QUESTION}]}]
    again = [*asked, {"role": "model", "parts": [call]}, {"role": "user", "parts": [returned]}]

    def model(second):
        response = {"content": {"role": "model", "parts": [{"text": ANSWER} if second else call]}}
        return {
            f"{ADK}.session_id": "c1",
            f"{ADK}.llm_request": json.dumps({"model": "m", "contents": again if second else asked}),
            f"{ADK}.llm_response": json.dumps(response),
        }

    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        f"{ADK}.tool_call_args": json.dumps(ARGS),
        f"{ADK}.tool_response": json.dumps(RESULT),
    }
    spans = tree(agent, model, tool)
    spans[1].name = spans[3].name = "call_llm"
    return spans


def only(kind):
    """The spans of an agent and of models, or of tools: the others are not watched."""

    def layout():
        spans = kind()
        return spans[:2] + spans[3:]

    layout.__name__ = f"{kind.__name__}_without_tools"
    return layout


def spans_and_records():
    """Messages in attributes, and as values in a log record."""
    spans = genai()
    for one, other in zip(spans, genai_details(), strict=True):
        one.events = other.events
    return spans


EVERY = (*LAYOUTS, spans_and_records, adk_schema_1, *map(only, LAYOUTS), only(adk_schema_1))
OF_LAYOUTS = pytest.mark.parametrize("layout", EVERY, ids=lambda one: one.__name__)


def holders(spans):
    return [one for each in spans for one in (each, *each.events)]


def unknown_or_right(spans):
    """The names of what is unknown of a conversation in which nothing else is wrong."""
    unknown = set()
    for found in conversations_in([Recorded(spans)]).conversations:
        for turn in found.turns:
            unknown |= set(turn.untold)
            assert USER_MESSAGE in turn.untold or turn.user == QUESTION
            (one,) = invocations_from_events(turn.events)
            # What a score says brings the content is what lists of conversations say.
            assert dict(one.untold) == {what: turn.untold[what] for what in turn.untold if what in one.untold}
            made = [(call.name, call.args) for call in tool_calls(one.intermediate_data)]
            if CALLS not in turn.untold:
                assert [name for name, _ in made] == ["weather"]
            if CALLS not in turn.untold and ARGUMENTS not in turn.untold:
                assert made == [("weather", ARGS)]
            assert all(name and args in (None, {}, ARGS) for name, args in made)
            assert ANSWERS in turn.untold or scored_text(one, thoughts=False) == ANSWER
            assert not turn.untold or turn.remarks == ()
    return unknown


@OF_LAYOUTS
def test_a_value_that_is_cut_anywhere_is_unknown(layout):
    choose = random.Random(layout.__name__)
    for _ in range(TIMES):
        spans = layout()
        places = [
            (one, name)
            for one in holders(spans)
            for name, value in one.attributes.items()
            if isinstance(value, str) and value[:1] in ("{", "[") and len(value) > 2
        ]
        if not places:
            return
        one, name = choose.choice(places)
        one.attributes[name] = one.attributes[name][: choose.randrange(1, len(one.attributes[name]))]
        unknown_or_right(spans)


def cut(value, limit):
    """A value as OpenTelemetry cuts it: of lists and objects, which log records have, the texts inside."""
    if isinstance(value, dict):
        return {name: cut(inner, limit) for name, inner in value.items()}
    if isinstance(value, list):
        return [cut(inner, limit) for inner in value]
    return value[:limit] if isinstance(value, str) else value


@OF_LAYOUTS
def test_a_limit_on_all_values_leaves_what_is_known(layout):
    """Texts are cut at the length at which JSON was."""
    assert unknown_or_right(layout()) == set()
    for limit in random.Random(layout.__name__).sample(range(6, len(SCHEMA)), TIMES):
        spans = layout()
        for one in spans:
            one.attributes |= {"llm.tools.0.tool.json_schema": SCHEMA} if "weather" not in one.name else {}
        for one in holders(spans):
            one.attributes = cut(one.attributes, limit)
        unknown_or_right(spans)


@OF_LAYOUTS
def test_what_is_left_of_dropped_attributes_is_not_all(layout):
    choose = random.Random(layout.__name__)
    for _ in range(TIMES):
        spans = layout()
        one = choose.choice(spans)
        gone = choose.sample(sorted(one.attributes), choose.randint(1, len(one.attributes)))
        one.attributes = {name: value for name, value in one.attributes.items() if name not in gone}
        one.dropped = len(gone)
        unknown_or_right(spans)


def test_an_export_whose_events_were_cut_does_not_say_what_was_called():
    """An agent may not have told its calls, which the events say and the spans do not."""
    events = [{"kind": "user", "content": {"role": "user", "parts": [{"text": QUESTION}]}}]
    root = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
        ),
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
        ),
        "evaltui.events": json.dumps(events)[:-9],
    }
    assert unknown_or_right([span(1, 0, root)]) >= {CALLS, ANSWERS}


@OF_LAYOUTS
def test_the_limit_is_named(layout):
    for remedy, limited in (
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", False),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", True),
    ):
        spans = layout()
        for one in holders(spans):
            if limited:
                one.attributes = {
                    name: value for name, value in one.attributes.items() if "message" not in name
                }
            else:
                one.attributes = {
                    name: value[:22] if isinstance(value, str) else value
                    for name, value in one.attributes.items()
                }
        for one in spans:
            one.dropped = 1 if limited else 0
        for found in conversations_in([Recorded(spans)]).conversations:
            for turn in found.turns:
                assert all(remedy in text for text in turn.untold.values())
