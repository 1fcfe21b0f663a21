"""What a turn did otherwise than the turn that it repeats, and where a case can be continued from."""

import pytest

from evaltui.core.model import events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Event
from evaltui.workbench.chat.conversation import ChatTurn, TurnStage, state_after
from evaltui.workbench.chat.origins import MAX_CALLS, difference, origin

KEY = CaseId("some.evalset.json", "late")


def user(text):
    return {"role": "user", "parts": [{"text": text}]}


def turn(*what, state=None):
    happened = [Event("user", user("hi"), turn=0), *what]
    return ChatTurn(user("hi"), stage=TurnStage.DONE, events=happened, state_after=state)


def heat(degrees, name="heat"):
    return events.tool_call(name, {"degrees": degrees})


def looks(found, text="Let me see."):
    result = events.tool_result("heat", {"found": found})
    return events.text(text), heat(19), result, events.text("done")


@pytest.mark.parametrize(
    ("before", "now", "sentence"),
    [
        (turn(heat(19), events.text("done"), state={"a": 1}),) * 2 + ("",),
        (turn(events.text("done")), turn(heat(19)), "unexpected call heat; no response"),
        (turn(state={"a": 1}), turn(), ""),
        (turn(*looks(1, "Let me see.")), turn(*looks(1, "One moment.")), "text before the response differs"),
        (turn(*looks(1)), turn(*looks(2)), "response of heat differs"),
    ],
    ids=["the same", "no answer", "unknown state", "text before", "tool response"],
)
def test_what_is_said_of_a_repeated_turn(before, now, sentence):
    assert difference(before, now).sentence == sentence


def test_what_differs_is_one_sentence():
    before = turn(heat(19), events.text("done"), state={"a": 1, "gone": 2})
    now = turn(heat("19"), heat(1, "notify"), events.text("Done!"), state={"a": 1, "new": 3})
    found = difference(before, now)
    assert found.sentence == (
        'heat: degrees is "19" (string), expected 19; unexpected call notify; response differs; 2 more'
    )
    assert [(diff.path, diff.expected, diff.actual) for diff in found.state] == [
        ("gone", 2, None),
        ("new", None, 3),
    ]


def test_an_agent_that_calls_without_end_is_not_compared():
    calls = [heat(number) for number in range(MAX_CALLS + 1)]
    found = difference(turn(*calls, state={"a": 1}), turn(state={"a": 2}))
    assert found.sentence == "501 calls: too many to compare"
    assert [diff.path for diff in found.state] == ["a"]


def test_without_events_there_is_nothing_to_compare():
    assert difference(ChatTurn(user("hi")), turn()) is None


def test_the_state_follows_from_what_happened():
    happened = [
        Event("state", data={"delta": {"a": 1, "b": 2}}),
        Event("state", data={"delta": {"a": 9}, "nested": True}),
        Event("state", data={"delta": {"b": None}, "removed": ["b"]}),
    ]
    state = {"c": 3}
    assert state_after(state, happened) == {"a": 1, "c": 3}
    assert state == {"c": 3}


CASE = {
    "eval_id": "late",
    "session_input": {"app_name": "app", "user_id": "ann", "state": {"n": 1}},
    "conversation": [
        {
            "user_content": user("one"),
            "intermediate_data": {
                "tool_uses": [{"name": "heat", "args": {"degrees": 19}}],
                "tool_responses": [{"name": "heat", "response": {"ok": True}}],
            },
            "final_response": {"role": "model", "parts": [{"text": "warm"}]},
        },
        {"user_content": user("two")},
    ],
}


def test_where_a_case_cannot_be_continued():
    found = origin(KEY, EvalCase.model_validate(CASE))
    assert found.refuses(2, "case") is None
    assert found.refuses(3, "case") == "late has 2 turns: no turn 4"
    assert found.refuses(0, "result") is None
    assert found.refuses(1, "result") == ("late has no result; continue from its expected turns")


def test_a_simulated_user_has_said_nothing_before_a_run():
    scenario = {"starting_prompt": "hi", "conversation_plan": "talk"}
    found = origin(KEY, EvalCase.model_validate({"eval_id": "late", "conversation_scenario": scenario}))
    assert found.conversation(0, "case").proposal == user("hi")
    assert [turn.text for turn in found.conversation(1, None).turns] == ["hi"]
    assert found.refuses(1, None) is None
    assert found.refuses(1, "case") == ("late has a simulated user, so no expected turns")
    with pytest.raises(ValueError, match="late has no result"):
        found.last_run()
