"""Which calls wait for a response, and which of them a recorded response is for."""

import pytest

from evaltui.core.conversation.waiting import (
    CallPlace,
    NotWaitingError,
    WaitingCalls,
    call_places,
    waiting_calls,
)
from evaltui.core.model.events import Event

CONFIRM = "adk_request_confirmation"


def asks(*calls, turn=0, **data):
    """A step that calls, `(id, name)` each; those whose id begins with `w` are long-running."""
    waits = [call_id for call_id, _ in calls if call_id.startswith("w")]
    events = [
        Event(
            "tool_call",
            {"parts": [{"function_call": {"id": call_id, "name": name, "args": {"of": call_id}}}]},
            id=call_id,
            turn=turn,
            data={"step": "s"} | data,
        )
        for call_id, name in calls
    ]
    events[0].data["long_running"] = waits
    return events


def response(call_id, name, **given):
    part = {"function_response": {"id": call_id, "name": name, "response": given}}
    return {"role": "user", "parts": [part]}


def said(content, turn=1):
    return Event("user", content, turn=turn)


def text(words):
    return {"role": "user", "parts": [{"text": words}]}


def of(*events):
    waiting = WaitingCalls()
    for event in events:
        waiting.on_event(event)
    return waiting


def target(waiting, content, places=None):
    return waiting.resolved(content, 1, places)["parts"][0]["function_response"]["id"]


def test_a_long_running_call_waits_until_it_is_responded_to():
    turns = [asks(("a", "pay"), ("w1", CONFIRM)), [said(response("w1", CONFIRM, confirmed=True))]]
    (call,) = waiting_calls(turns[:1])
    assert (call.id, call.name, call.args) == ("w1", CONFIRM, {"of": "w1"})
    assert waiting_calls(turns) == []


def test_a_message_sets_calls_aside_behind_those_asked_since():
    turns = [asks(("w1", "approve")), [said(text("hello")), *asks(("w2", "approve"), turn=1)]]
    assert [(call.id, call.set_aside) for call in waiting_calls(turns)] == [("w2", False), ("w1", True)]


def test_calls_inside_a_tool_wait_for_that_tool():
    assert waiting_calls([asks(("w1", "approve"), nested=True)]) == []


def test_a_response_goes_to_the_call_of_its_id_else_to_the_first_of_its_name():
    waiting = of(*asks(("w1", "approve"), ("w2", CONFIRM), ("w3", CONFIRM)))
    assert target(waiting, response("w3", CONFIRM)) == "w3"
    assert target(waiting, response("recorded", CONFIRM)) == "w2"
    assert target(waiting, response("", "approve")) == "w1"


def test_a_response_goes_to_the_call_where_its_own_was_made():
    waiting = of(*asks(("w1", CONFIRM), ("w2", CONFIRM)))
    places = call_places([[("x", "pay"), ("first", CONFIRM), ("second", CONFIRM)]])
    assert places["second"] == CallPlace(0, 1)
    assert target(waiting, response("second", CONFIRM), places) == "w2"


def test_responses_of_one_message_go_to_different_calls():
    waiting = of(*asks(("w1", CONFIRM), ("w2", CONFIRM)))
    both = {"parts": [*response("x", CONFIRM)["parts"], *response("y", CONFIRM)["parts"]]}
    parts = waiting.resolved(both, 1)["parts"]
    assert [part["function_response"]["id"] for part in parts] == ["w1", "w2"]


def test_a_tool_may_be_responded_to_again_a_request_may_not():
    for name, again in (("approve", True), (CONFIRM, False)):
        waiting = of(*asks(("w1", name)))
        waiting.on_event(said(waiting.resolved(response("recorded", name), 1)))
        if again:
            assert target(waiting, response("recorded", name)) == "w1"
        else:
            with pytest.raises(NotWaitingError):
                waiting.resolved(response("recorded", name), 2)


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([("a", "pay")], "turn 2 responds to adk_request_confirmation, but no call waits"),
        ([("w1", "approve")], "turn 2 responds to adk_request_confirmation, but only approve waits"),
    ],
)
def test_a_response_that_nothing_waits_for_is_an_error(calls, says):
    with pytest.raises(NotWaitingError, match=says):
        of(*asks(*calls)).resolved(response("x", CONFIRM), 1)
