"""What a plain reader gets wrong in spans of google-adk, each from spans that it wrote in this process."""

import pytest

pytest.importorskip("google.adk")

from google.genai import types

from evaltui import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls
from evaltui.core.model.events import ANSWERS, ARGUMENTS, CALLS, RESULTS, TEXTS, USER_MESSAGE
from evaltui.core.trace.span_lines import span_body_line
from evaltui.core.trace.spans import SpanTree
from evaltui.text.lines import draw
from evaltui.traces.conversations import conversations_in
from tests.traces import written_traces
from tests.traces.adk_spans import BARE, EVENTS_ONLY, OLD, OLD_BARE, SPANS, Reply, run

pytestmark = pytest.mark.adk

CONTENT = pytest.mark.parametrize("environment", [SPANS, OLD], ids=["schema 2", "schema 1"])


def conversation(agent, messages, environment, write=written_traces.otlp_json):
    (found,) = conversations_in(
        [written_traces.read_bytes(write(run(agent, messages, environment)))]
    ).conversations
    return found


def turns(found):
    """Of each turn what the user said, what was called, and what was answered."""
    return [
        (
            turn.user,
            [(call.name, call.args) for call in tool_calls(one.intermediate_data)],
            scored_text(one, thoughts=False),
        )
        for turn in found.turns
        for one in invocations_from_events(turn.events)
    ]


def results(found):
    parts = (event.content["parts"][0] for event in found.events if event.kind == "tool_result")
    return [part["function_response"].get("response") for part in parts]


SHOPPING = [
    ("Find a lamp", [("find", {"what": "lamp"})], "There is one lamp."),
    ("What does it cost?", [("price", {"what": "lamp", "currency": "USD"})], "12.50 dollars."),
    ("Thanks", [], "You are welcome."),
    ("What time is it?", [("now", {})], "It is 14:05."),
]
SAID = [user for user, _, _ in SHOPPING]


@CONTENT
def test_a_conversation_is_several_traces_and_history_is_no_user(environment):
    found = conversation("tools", SAID, environment)
    assert turns(found) == SHOPPING
    assert len(found.traces) == 4
    assert not any(turn.untold for turn in found.turns)
    assert results(found)[0] == {"found": ["lamp"], "count": 1}
    # The duplicate model span of schema 1 is no call of its own.
    asked = [event for event in found.events if event.kind == "model_request"]
    assert len(asked) == 7
    assert SpanTree_of(found).turns[0].seconds > 0
    # A tool takes the time of its span, which may begin before that of the model ends.
    assert all(
        one.seconds == pytest.approx(one.event("tool_result").duration)
        for one in SpanTree_of(found).spans
        if one.kind == "tool"
    )
    assert models_of(found) == [
        f"scripted → {came}" for came in ("find", "text", "price", "text", "text", "now", "text")
    ]


def models_of(found):
    """The calls of models as the trace pane shows them."""
    spans = SpanTree_of(found).spans
    return [draw(span_body_line(span, 80), color=False) for span in spans if span.kind == "model"]


def SpanTree_of(found):
    tree = SpanTree()
    tree.add(found.events)
    return tree


def test_messages_only_in_log_records():
    found = conversation("tools", SAID[:2], EVENTS_ONLY)
    assert turns(found) == SHOPPING[:2]
    assert results(found) == [{"found": ["lamp"], "count": 1}, {"amount": 12.5, "currency": "USD"}]
    # A backend that keeps no log records has the names of the tools.
    bare = conversation("tools", SAID[:2], EVENTS_ONLY, written_traces.jaeger)
    assert turns(bare) == [("", [("find", None)], ""), ("", [("price", None)], "")]


@pytest.mark.parametrize(
    ("environment", "variable"),
    [
        (BARE, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT"),
        (OLD_BARE, "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"),
    ],
    ids=["schema 2", "schema 1"],
)
def test_what_was_not_captured_is_absent_not_empty(environment, variable):
    found = conversation("tools", ["Find a lamp", "Thanks", "What time is it?"], environment)
    first, second, third = found.turns
    assert set(first.untold) == set(third.untold) == {USER_MESSAGE, ARGUMENTS, RESULTS, TEXTS, ANSWERS}
    assert set(second.untold) == {USER_MESSAGE, ANSWERS}
    assert all(variable in remedy for turn in found.turns for remedy in turn.untold.values())
    assert turns(found) == [("", [("find", None)], ""), ("", [], ""), ("", [("now", None)], "")]
    assert results(found) == [None, None]
    assert models_of(found) == ["scripted → —"] * 5


def test_the_dev_server_restores_what_was_not_captured():
    found = conversation("tools", SAID[:2], BARE, written_traces.dev_server)
    assert [(user, answer) for user, _, answer in turns(found)] == [(u, a) for u, _, a in SHOPPING[:2]]
    assert [call for _, calls, _ in turns(found) for call in calls] == [
        c for _, cs, _ in SHOPPING[:2] for c in cs
    ]


@CONTENT
def test_a_streamed_answer_is_one_text_without_the_thought_in_front(environment):
    assert turns(conversation("streaming", ["Hi"], environment)) == [("Hi", [], "Hello world")]


def test_thoughts_look_like_answers_in_schema_2_and_are_marked_in_schema_1():
    marked = conversation("thoughts", ["Think"], OLD)
    assert turns(marked) == [("Think", [], "Forty-two.")]
    unmarked = conversation("thoughts", ["Think"], SPANS)
    (text,) = [event for event in unmarked.events if event.kind == "text"]
    assert text.data["may_hold_thoughts"] is True
    assert unmarked.turns[0].remarks == ("response may contain thoughts, which the trace does not mark",)
    assert not marked.turns[0].remarks


def test_a_thought_that_was_streamed_looks_like_the_beginning_of_the_answer_in_schema_2():
    """All pieces together are the whole then, so that nothing tells the thought from the answer."""
    found = conversation("streaming", ["Think aloud"], SPANS)
    assert turns(found) == [("Think aloud", [], "hiddenHello world")]
    assert found.turns[0].remarks == ("response may contain thoughts, which the trace does not mark",)
    # A thought that was not streamed is left out for good.
    assert not conversation("streaming", ["Hi"], SPANS).turns[0].remarks
    marked = conversation("streaming", ["Think aloud"], OLD)
    assert turns(marked) == [("Think aloud", [], "Hello world")]
    assert not marked.turns[0].remarks


@CONTENT
def test_an_agent_tool_is_one_call_and_opens_no_turn(environment):
    found = conversation("agent_tool", ["Which desk?"], environment)
    assert turns(found) == [("Which desk?", [("expert", {"request": "Which desk?"})], "The oak desk.")]
    nested = [event for event in found.events if event.data.get("nested")]
    assert {"model_request", "tool_call", "tool_result", "text"} <= {event.kind for event in nested}
    (call,) = [event for event in found.events if event.kind == "tool_call" and not event.data.get("nested")]
    assert all(event.parent for event in nested)
    tree = SpanTree_of(found)
    inner = next(span for span in tree.spans if span.kind == "tool" and "find" in str(span.events[0].content))
    assert tree.spans.index(tree.call(0, 0)) in tree.ancestors(inner.number)
    assert call.id == tree.call(0, 0).events[0].id


@CONTENT
def test_a_transfer_is_one_turn_of_two_agents(environment):
    found = conversation("transfer", ["Sofa, please"], environment)
    calls = [("transfer_to_agent", {"agent_name": "sales"}), ("price", {"what": "sofa"})]
    assert turns(found) == [("Sofa, please", calls, "The sofa costs 12.50.")]
    assert [event.data["to"] for event in found.events if event.kind == "transfer"] == ["sales"]
    assert {event.agent for event in found.events} == {"", "shop", "sales"}


@CONTENT
def test_what_another_agent_did_is_not_what_the_user_said(environment):
    """After a transfer google-adk has it in messages of the user, `For context:`."""
    found = conversation("transfer", ["Sofa, please", "And a rug?"], environment)
    assert [user for user, _, _ in turns(found)] == ["Sofa, please", "And a rug?"]
    asked = [event for event in found.turns[1].events if event.kind == "model_request"]
    assert "For context:" in str([event.data for event in asked])


def test_an_invocation_without_attributes_is_one_turn():
    """Python's console exporter writes no scope, and schema 1 has no attributes there."""
    messages = ["Sofa, please", "And a rug?"]
    found = conversation("transfer", messages, OLD, written_traces.console)
    assert turns(found) == turns(conversation("transfer", messages, OLD))


@CONTENT
@pytest.mark.parametrize(
    ("agent", "name", "message", "unknown"),
    [
        ("waiting", "adk_request_confirmation", "Which price?", {CALLS, ANSWERS}),
        ("long_running", "pending", "Find a lamp", set()),
    ],
)
def test_a_turn_in_which_a_person_responds_is_not_that_before(environment, agent, name, message, unknown):
    """The response and the request to the person have no spans."""
    found = conversation(agent, [message, Reply(name, {"confirmed": True}), "Thanks"], environment)
    assert [turn.user for turn in found.turns] == [message, "", "Thanks"]
    first, second, third = ({USER_MESSAGE, CALLS, ANSWERS} & turn.untold.keys() for turn in found.turns)
    assert (first, second, third) == (unknown, {USER_MESSAGE, CALLS}, set())
    assert turns(found)[1][2] in ("12.50 euros.", "One lamp.")


@CONTENT
def test_a_loop_that_ends_with_a_tool_waits_for_nobody(environment):
    (turn,) = conversation("loop", ["Go on"], environment).turns
    assert CALLS not in turn.untold


@CONTENT
def test_a_response_that_the_next_request_does_not_repeat_is_unknown(environment):
    found = conversation("replaced", ["Hi", "And now?"], environment)
    # Nothing after the last turn tells of its response.
    assert [ANSWERS in turn.untold for turn in found.turns] == [True, False]


def test_calls_of_a_response_with_an_error_code_alone_are_unknown_in_schema_2():
    (turn,) = conversation("refused", ["Hi"], SPANS).turns
    assert {CALLS, ANSWERS} <= turn.untold.keys()


@CONTENT
def test_calls_at_once_are_in_the_order_in_which_they_were_asked_for(environment):
    calls = [
        ("price", {"what": "lamp"}),
        ("find", {"what": "rug"}),
        ("price", {"what": "rug", "currency": "USD"}),
    ]
    told = run("parallel", ["Compare"], environment)
    document = written_traces.otlp(told)
    tools = [
        span
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        if span["name"].startswith("execute_tool ")
    ]
    # As if the last one had begun first.
    begins = [span["startTimeUnixNano"] for span in tools]
    for span, begin in zip(tools[:3], begins[2::-1], strict=True):
        span["startTimeUnixNano"] = begin
    import json

    (found,) = conversations_in([written_traces.read_bytes(json.dumps(document).encode())]).conversations
    assert turns(found) == [("Compare", calls, "The rug is cheaper.")]
    assert len(results(found)) == 3
    names = {
        event.id: event.content["parts"][0]["function_call"]
        for event in found.events
        if event.kind == "tool_call"
    }
    for event in found.events:
        if event.kind == "tool_result":
            response = event.content["parts"][0]["function_response"]
            call = names[event.parent]
            # The id of a call in a message is not that of its span.
            assert call["name"] == response["name"]
            if call["name"] == "price":
                assert response["response"]["currency"] == call["args"].get("currency", "EUR")
            else:
                assert response["response"]["found"] == [call["args"]["what"]]


def test_calls_at_once_without_content_are_in_the_order_in_which_they_began():
    found = conversation("parallel", ["Compare"], BARE)
    assert turns(found) == [("", [("price", None), ("find", None), ("price", None)], "")]


@CONTENT
def test_a_tool_that_raises_ends_the_turn_and_one_that_refuses_does_not(environment):
    found = conversation("raising", ["Try", "Stock?"], environment)
    first, second = found.turns
    (error,) = [event for event in first.events if event.kind == "error"]
    assert error.data["message"] == "the shop is closed"
    assert "RuntimeError" in error.data["type"]
    assert first.error is not None
    assert "the shop is closed" in first.error.message
    assert second.error is None
    assert turns(found)[1] == ("Stock?", [("refusing", {})], "None left.")
    assert results(found) == [{"error": "no stock"}]


PICTURE = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG"))


@CONTENT
def test_a_message_of_an_attachment_alone_is_one_that_was_not_recorded(environment):
    """Schema 1 leaves data out without a mark, so that no part of such a message is left."""
    found = conversation("attachment", [[PICTURE]], environment)
    assert found.turns[0].user.startswith("[attachment not recorded")
    assert found.turns[0].remarks == ("an attachment not recorded",)


def test_an_attachment_is_said_not_to_be_there():
    found = conversation("attachment", [[types.Part(text="Look"), PICTURE]], SPANS)
    assert found.turns[0].user.startswith("Look")
    assert found.turns[0].remarks == ("an attachment not recorded",)


@CONTENT
def test_an_attachment_of_a_response_is_said_not_to_be_there(environment):
    """Schema 1 has a description as the text of its part."""
    found = conversation("painter", ["Paint a lamp"], environment)
    assert turns(found) == [("Paint a lamp", [], "A lamp.")]
    assert found.turns[0].remarks == ("an attachment not recorded",)


def test_a_model_that_was_asked_counts_although_nobody_knows_what_it_said():
    found = conversation("thoughts", ["Think"], BARE)
    (one,) = invocations_from_events(found.events)
    (asked,) = one.intermediate_data.invocation_events
    assert (asked.model_version, asked.usage_metadata.thoughts_token_count) == ("scripted", 7)
    assert one.final_response is None
