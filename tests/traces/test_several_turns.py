"""Several messages of the user under one span are several turns."""

import json

import pytest

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls
from evaltui.core.model.events import ANSWERS, CALLS
from evaltui.traces.conversations import conversations_in
from evaltui.traces.span import Recorded
from tests.traces.test_trace_layouts import span

ASKED = {"role": "user", "content": "What is the price of order 7?"}
FUNCTION = {"name": "price", "arguments": json.dumps({"order": 7})}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}]}
RETURNED = {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"price": 12.5})}
PRICE = {"role": "assistant", "content": "It is 12.50."}
THANKS, WELCOME = {"role": "user", "content": "thanks"}, {"role": "assistant", "content": "You are welcome."}
REQUESTS = [
    ([ASKED], CALL),
    ([ASKED, CALL, RETURNED], PRICE),
    ([ASKED, CALL, RETURNED, PRICE, THANKS], WELCOME),
]
TWO = [
    (ASKED["content"], [("price", {"order": 7})], PRICE["content"]),
    (THANKS["content"], [], WELCOME["content"]),
]
GENAI = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def genai(inputs, output):
    messages = {"gen_ai.input.messages": json.dumps(inputs), "gen_ai.output.messages": json.dumps([output])}
    return {**GENAI, **messages}


def logfire(inputs, output):
    """The messages as one attribute, the answer as the last of them."""
    events = [{"event.name": f"gen_ai.{one['role']}.message", **one} for one in [*inputs, output]]
    return {**GENAI, "events": json.dumps(events)}


def openinference(inputs, output):
    said = {"openinference.span.kind": "LLM", "input.value": json.dumps({"messages": inputs})}
    for prefix, messages in (("input", inputs), ("output", [output])):
        for number, one in enumerate(messages):
            place = f"llm.{prefix}_messages.{number}.message"
            said |= {f"{place}.{key}": one[key] for key in ("role", "content", "tool_call_id") if key in one}
            for key in FUNCTION if "tool_calls" in one else ():
                said[f"{place}.tool_calls.0.tool_call.function.{key}"] = FUNCTION[key]
    return said


def langfuse(inputs, output):
    value = {"input": json.dumps(inputs), "output": json.dumps(output), "type": "generation"}
    return {f"langfuse.observation.{name}": text for name, text in value.items()}


WRAPPERS = {
    "langfuse": {
        "langfuse.observation.type": "span",
        "langfuse.observation.input": json.dumps({"args": [["a", "b"]], "kwargs": {}}),
        "langfuse.observation.output": json.dumps("You are welcome."),
    },
    "workflow": {"traceloop.span.kind": "workflow", "traceloop.entity.name": "talk"},
    "workflow of GenAI": {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "talk"},
    "function": {"http.method": "POST"},
}
RUN = {"openinference.span.kind": "AGENT", "agent.name": "desk"}


def turns(spans):
    (found,) = conversations_in([Recorded(spans)]).conversations
    return found.turns


def facts(turn):
    (one,) = invocations_from_events(turn.events)
    made = [(call.name, call.args) for call in tool_calls(one.intermediate_data)]
    return turn.user, made, scored_text(one, thoughts=False)


def under(root, layout, requests=REQUESTS):
    models = [span(2 + number, 1, layout(*one)) for number, one in enumerate(requests)]
    return [span(1, 0, root, length=900), *models]


@pytest.mark.parametrize(
    ("wrapper", "layout"),
    [
        ("function", genai),
        ("function", logfire),
        ("function", openinference),
        ("workflow", genai),
        ("workflow of GenAI", genai),
        ("langfuse", langfuse),
    ],
)
def test_each_message_of_the_user_is_a_turn(wrapper, layout):
    found = turns(under(WRAPPERS[wrapper], layout))
    assert [facts(turn) for turn in found] == TWO
    assert [dict(turn.untold) for turn in found] == [{}, {}]
    # Each has the time of its own spans.
    assert [turn.seconds for turn in found] == [0.11, 0.01]


def test_turns_whose_calls_began_at_the_same_moment_are_told_apart():
    spans = under(WRAPPERS["function"], genai, [([ASKED], PRICE), ([ASKED, PRICE, THANKS], WELCOME)])
    for one in spans:
        one.start = spans[0].start
    assert [turn.user for turn in turns(spans)] == [ASKED["content"], THANKS["content"]]


@pytest.mark.parametrize("layout", [genai, logfire, openinference, langfuse], ids=lambda one: one.__name__)
def test_a_turn_whose_first_model_is_missing_is_one_of_its_own(layout):
    """Its next request has the call of that model and the result."""
    again = {"role": "user", "content": "Once more?"}
    dearer = {"role": "assistant", "content": "Now it is 13."}
    history = [ASKED, CALL, RETURNED, PRICE, again]
    requests = [*REQUESTS[:2], (history, CALL), ([*history, CALL, RETURNED], dearer)]
    both = turns(under(WRAPPERS["function"], layout, requests))
    assert [facts(turn) for turn in both] == [TWO[0], ("Once more?", TWO[0][1], "Now it is 13.")]
    first, second = turns(under(WRAPPERS["function"], layout, [*requests[:2], requests[3]]))
    assert (facts(first), dict(first.untold)) == (TWO[0], {})
    assert (second.user, facts(second)[2]) == ("Once more?", "Now it is 13.")
    assert CALLS in second.untold
    assert ANSWERS not in second.untold


@pytest.mark.parametrize("root", [RUN, {"http.method": "POST"}], ids=["trace of the SDK", "function"])
def test_several_runs_of_an_agent_in_one_trace_are_turns(root):
    spans = [span(1, 0, root, length=900), span(2, 1, RUN, length=280), span(5, 1, RUN, length=200)]
    for number, parent in ((3, 2), (4, 2), (6, 5)):
        spans.append(span(number, parent, openinference(*REQUESTS[len(spans) - 3])))
    assert [facts(turn) for turn in turns(spans)] == TWO


@pytest.mark.parametrize("root", [RUN, WRAPPERS["langfuse"] | {"langfuse.observation.input": '"What?"'}])
def test_a_message_that_a_run_writes_to_itself_is_no_turn(root):
    """A review of a draft, say."""
    layout = openinference if root is RUN else langfuse
    assert len(turns(under(root, layout))) == 1


def test_a_request_that_was_cut_may_be_another_turn():
    spans = under(WRAPPERS["function"], genai)
    for one in spans:
        name = "gen_ai.input.messages"
        one.attributes |= {name: one.attributes[name][:90]} if name in one.attributes else {}
    (turn,) = turns(spans)
    assert {CALLS, ANSWERS} <= set(turn.untold)
    assert all("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in text for text in turn.untold.values())


def test_what_fails_in_the_end_is_of_the_last_turn():
    spans = under(WRAPPERS["function"], genai)
    spans[0].status, spans[0].message = "error", "not today"
    assert [turn.error.message if turn.error else "" for turn in turns(spans)] == ["", "not today"]
