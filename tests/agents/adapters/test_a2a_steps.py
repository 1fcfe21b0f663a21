"""What A2A agents send, as steps: every piece once, calls as calls, and what is not sent as unknown."""

import base64
from dataclasses import replace
from itertools import count

import pytest

from evaltui.agents.adapters.remote.a2a_steps import (
    Received,
    TurnSteps,
    a2a_part,
    genai_part,
    plain_numbers,
)
from evaltui.core.conversation.drafting import TurnDraft, draft_case
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls, tool_responses
from evaltui.core.model.events import CALLS, Event, split_step

PLACE = {"taskId": "t1", "contextId": "c1"}


def status(state, *parts, message_id="", **metadata):
    given = {"state": f"TASK_STATE_{state}"}
    if parts:
        given["message"] = message(*parts, message_id=message_id)
    return {"statusUpdate": PLACE | {"status": given, "metadata": metadata}}


def message(*parts, message_id="", role="ROLE_AGENT"):
    return {"messageId": message_id, "role": role, "parts": list(map(part, parts))}


def part(given):
    return {"text": given} if isinstance(given, str) else given


def artifact(name, *parts, append=False, last=True, **metadata):
    held = {"artifactId": name, "parts": list(map(part, parts))}
    update = PLACE | {"artifact": held, "append": append, "lastChunk": last, "metadata": metadata}
    return {"artifactUpdate": update}


def adk_call(name, args, call_id="id-1", **more):
    data = {"id": call_id, "name": name, "args": args}
    return {"data": data, "metadata": {"adk_type": "function_call", **more}}


def adk_result(name, response, call_id="id-1"):
    data = {"id": call_id, "name": name, "response": response}
    return {"data": data, "metadata": {"adk_type": "function_response"}}


def turn_of(*responses, received=None):
    turn = TurnSteps("desk", received or Received(), count(1))
    steps = [step for response in responses for step in turn.steps_of(response)]
    return turn, [*steps, *turn.end()]


def texts(steps):
    return [one["text"] for step in steps if not step.partial for one in step.parts if "text" in one]


def invocation(steps):
    events = [Event("user", {"role": "user", "parts": [{"text": "hello"}]}, turn=0)]
    for step in steps:
        events += [] if step.partial else [replace(one, turn=0) for one in split_step(step)]
    return invocations_from_events(events)[0]


def test_a_message_is_the_whole_turn():
    turn, steps = turn_of({"message": message("Hello.", message_id="m") | {"contextId": "c9"}})
    assert texts(steps) == ["Hello."]
    assert (turn.context_id, turn.task_id, turn.state) == ("c9", "", "")
    assert steps[-1].framework == {"a2a": {"context_id": "c9", "task_id": ""}}


def test_chunks_of_an_artifact_are_one_text_and_are_seen_as_they_come():
    _, steps = turn_of(
        status("WORKING"),
        artifact("a", "Good ", last=False),
        artifact("a", "morn", append=True, last=False),
        artifact("a", "ing.", append=True, last=True),
        status("COMPLETED"),
    )
    assert [step.content["parts"][0]["text"] for step in steps if step.partial] == ["Good ", "morn"]
    assert texts(steps) == ["Good morning."]


def test_an_artifact_that_is_sent_again_replaces_what_it_held():
    _, steps = turn_of(
        artifact("a", "Draft", last=False), artifact("a", "Final", last=False), status("COMPLETED")
    )
    assert texts(steps) == ["Final"]


def test_an_artifact_that_never_says_that_it_is_whole_is_so_at_the_end():
    _, steps = turn_of(
        artifact("a", "One. ", last=False), artifact("b", "Two.", last=False), status("COMPLETED")
    )
    assert texts(steps) == ["One. ", "Two."]
    assert scored_text(invocation(steps), thoughts=False) == "One. \nTwo."


def test_no_text_comes_twice_when_message_and_artifact_hold_it():
    task = {
        "id": "t1",
        "status": {"state": "TASK_STATE_COMPLETED", "message": message("Hello.")},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "Hello."}]}],
        "history": [message("hello", role="ROLE_USER")],
    }
    for responses in (
        (status("WORKING", "Hello."), artifact("a", "Hello."), status("COMPLETED")),
        (artifact("a", "Hel", "lo."), status("COMPLETED", "Hello.", message_id="m")),
        (artifact("a", "Hel", last=False), artifact("a", "lo.", append=True), status("COMPLETED", "Hello.")),
        (status("WORKING", "Hello.", message_id="m"), status("COMPLETED", "Hello.", message_id="m")),
        ({"task": task},),
    ):
        _, steps = turn_of(*responses)
        assert "".join(texts(steps)) == "Hello.", responses


def test_a_task_in_an_unknown_state_is_not_over():
    task = {"task": PLACE | {"id": "task-1", "status": {"state": "TASK_STATE_UNSPECIFIED"}}}
    for response in (task, status("UNSPECIFIED"), status("OF_TOMORROW")):
        assert turn_of(response)[0].state == "working"
        assert turn_of(response, status("COMPLETED"))[0].state == "completed"


def test_what_is_said_on_the_way_is_not_the_answer():
    _, steps = turn_of(
        status("WORKING", "Looking it up.", message_id="m1"),
        artifact("a", "It is 19."),
        status("COMPLETED", "Done.", message_id="m2"),
    )
    assert texts(steps) == ["Looking it up.", "Done.", "It is 19."]
    assert scored_text(invocation(steps), thoughts=False) == "It is 19."


def test_a_task_that_comes_again_says_nothing_twice():
    received = Received()
    task = {
        "id": "t1",
        "contextId": "c1",
        "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": message("Which city?", message_id="m1")},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "A list."}]}],
    }
    first, steps = turn_of({"task": task}, received=received)
    assert texts(steps) == ["Which city?", "A list."]
    assert steps[-1].framework == {"a2a": {"context_id": "c1", "task_id": "t1"}}
    task["history"] = [message("Which city?", message_id="m1"), message("Oslo", role="ROLE_USER")]
    task["status"] = {"state": "TASK_STATE_COMPLETED", "message": message("Booked.", message_id="m2")}
    second, steps = turn_of({"task": task}, received=received)
    assert texts(steps) == ["Booked."]
    assert (first.state, second.state) == ("input_required", "completed")
    assert steps[-1].framework == {"a2a": {"context_id": "c1", "task_id": ""}}


def test_a_message_that_names_no_conversation_is_of_the_current_one():
    turn = TurnSteps("desk", Received(), count(1), "c9")
    list(turn.steps_of({"message": message("Hello.", message_id="m")}))
    assert turn.end()[-1].framework == {"a2a": {"context_id": "c9", "task_id": ""}}


def test_calls_of_adk_are_calls_with_their_numbers_as_integers():
    about = {"adk_author": "desk", "adk_session_id": "c1", "adk_event_id": "e1"}
    changed = {"adk_actions": {"stateDelta": {"heat": 19.0, "_adk_x": 1.0}, "transferToAgent": "bookings"}}
    usage = {"adk_usage_metadata": {"promptTokenCount": 12.0, "candidatesTokenCount": 3.0, "new": 1.0}}
    _, steps = turn_of(
        status("WORKING", adk_call("set_heat", {"degrees": 19.0, "more": [0.5, 2.0]}), **about, **usage),
        status("WORKING", adk_result("set_heat", {"ok": True}), **about | {"adk_event_id": "e2"}, **changed),
        status("WORKING", "It is 19.", **about | {"adk_event_id": "e3"}),
        artifact("a", "It is 19.", **about | {"adk_event_id": "e3"}),
        status("COMPLETED", **about | {"adk_event_id": "e3"}),
    )
    assert [step.id for step in steps] == ["e1", "e2", "e3", "step-1"]
    happened = invocation(steps)
    (call,) = tool_calls(happened.intermediate_data)
    assert (call.name, call.id) == ("set_heat", "id-1")
    assert repr(call.args) == repr({"degrees": 19, "more": [0.5, 2]})
    assert tool_responses(happened.intermediate_data)[0].response == {"ok": True}
    assert steps[0].usage == {"prompt_token_count": 12, "candidates_token_count": 3}
    assert (repr(steps[1].state), steps[1].transfer) == ("{'heat': 19}", "bookings")
    assert texts(steps) == ["It is 19."]
    assert all(step.untold == () for step in steps)


@pytest.mark.parametrize(
    "response",
    [
        {
            "artifacts": [{"artifactId": "result", "parts": [part("Hi.")]}],
            "status": {"state": "TASK_STATE_COMPLETED"},
        },
        {"status": {"state": "TASK_STATE_COMPLETED", "message": message("Hi.", message_id="m")}},
    ],
    ids=["artifact", "message"],
)
def test_content_of_another_task_is_new_whatever_its_id(response):
    received = Received()
    for task in ("t1", "t2"):
        whole = {"task": {"id": task, "contextId": "c1", **response}}
        # The same task twice is one.
        _, steps = turn_of(whole, whole, received=received)
        assert texts(steps) == ["Hi."]


def test_events_that_adk_sends_as_artifacts_keep_their_order():
    about = {"adk_author": "desk"}
    _, steps = turn_of(
        artifact("a", adk_call("find", {}), **about),
        artifact("b", adk_result("find", {"hits": 1.0}), **about),
        artifact("c", "Fou", last=False, **about),
        artifact("c", "Found.", last=True, **about),
        status("COMPLETED"),
    )
    whole = [step for step in steps if step.parts and not step.partial]
    assert [next(iter(step.parts[0])) for step in whole] == ["function_call", "function_response", "text"]
    assert texts(steps) == ["Found."]


def test_a_call_that_waits_for_a_person_is_long_running_and_keeps_its_task():
    waits = adk_call("approve", {"total": 90.0}, adk_is_long_running=True)
    turn, steps = turn_of(
        status("WORKING", waits, message_id="m1", adk_session_id="c1"),
        status("INPUT_REQUIRED", waits, message_id="m1", adk_session_id="c1"),
    )
    calls = [step for step in steps if step.parts]
    assert [step.long_running for step in calls] == [("id-1",)]
    assert calls[0].final
    assert turn.state == "input_required"
    assert steps[-1].framework["a2a"]["task_id"] == "t1"
    assert [event.kind for event in split_step(calls[0])] == ["tool_call"]


def test_a_task_that_failed_says_why_and_is_no_answer():
    for state in ("FAILED", "REJECTED", "CANCELED"):
        turn, steps = turn_of(status("WORKING", "On it.", message_id="m1"), status(state, "No flights."))
        assert (turn.state, turn.failure) == (state.lower(), "No flights.")
        assert texts(steps) == ["On it."]


def test_calls_that_are_not_sent_are_unknown_and_none_are_expected_of_them():
    _, steps = turn_of(artifact("a", "It is 19."), status("COMPLETED"))
    assert steps[-1].untold == (CALLS,)
    assert invocation(steps).intermediate_data is None
    events = [Event("user", {"role": "user", "parts": [{"text": "hello"}]}, turn=0)]
    events += [event for step in steps for event in split_step(step)]
    drafted = draft_case("one", [TurnDraft(events)], app_name="", user_id="", state={})
    assert "intermediate_data" not in drafted.case["conversation"][0]
    assert drafted.marks == {0: "skip"}


def test_thoughts_files_and_data_are_what_they_are():
    assert genai_part({"text": "hm", "metadata": {"adk_thought": True}}) == {"text": "hm", "thought": True}
    raw = base64.b64encode(b"\xff\xfe\xfd").decode()
    data = genai_part({"raw": raw, "mediaType": "image/png", "filename": "a.png"})["inline_data"]
    assert base64.urlsafe_b64decode(data["data"]) == b"\xff\xfe\xfd"
    assert (data["mime_type"], data["display_name"]) == ("image/png", "a.png")
    for items in ({"b": 2.0, "a": {"d": 1, "c": 0}}, {"a": {"c": 0, "d": 1}, "b": 2.0}):
        assert genai_part({"data": items}) == {"text": '{"a": {"c": 0, "d": 1}, "b": 2}'}
    assert genai_part({"url": "https://x/y"}) == {"file_data": {"file_uri": "https://x/y"}}
    assert genai_part({"data": {"total": 2.0}}) == {"text": '{"total": 2}'}
    assert genai_part({"data": ["é"], "metadata": {"adk_type": "function_call"}}) == {"text": '["é"]'}
    assert genai_part({"text": ""}) is None
    assert genai_part({}) is None


def test_what_a_user_sends_comes_back_as_it_was():
    given = [
        {"text": "hello"},
        {"inline_data": {"data": "aGk=", "mime_type": "text/plain", "display_name": "a.txt"}},
        {"file_data": {"file_uri": "gs://a/b", "mime_type": "image/png"}},
        {"function_response": {"id": "1", "name": "ask", "response": {"result": "Ada"}}},
    ]
    assert [genai_part(a2a_part(one)) for one in given] == given
    assert a2a_part({"function_call": {"name": "x"}}) is None


def test_whole_numbers_are_integers_again_where_that_is_exact():
    assert repr(plain_numbers([1.0, -0.0, 0.5, 1e300, 2.0**53, True, {"a": 3.0}])) == repr(
        [1, 0, 0.5, 1e300, 2**53, True, {"a": 3}]
    )


def test_messages_of_one_id_are_all_there():
    received = Received()
    first = [
        status("WORKING", "I look.", message_id="1"),
        status("INPUT_REQUIRED", "Which city?", message_id="1"),
    ]
    _, steps = turn_of(*first, received=received)
    assert texts(steps) == ["I look.", "Which city?"]
    history = [message("I look.", message_id="1"), message("Which city?", message_id="1")]
    task = {"task": {"id": "t1", "history": history, "status": {"state": "TASK_STATE_WORKING"}}}
    _, steps = turn_of(task, status("COMPLETED", "Which city?", message_id="1"), received=received)
    assert texts(steps) == ["Which city?"]


def test_an_artifact_without_a_status_is_of_a_task_that_goes_on():
    turn, _ = turn_of(artifact("a", "It is ", last=False))
    assert turn.state == "working"
