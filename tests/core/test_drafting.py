from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from eval_data import make_case
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.conversation.drafting import TurnDraft, draft_case, propose_eval_id
from evaltui.core.model.events import Event, Step, is_final, split_step
from evaltui.core.model.validation import validate_case

USER = {"role": "user", "parts": [{"text": "lights off"}]}
CALL = {"function_call": {"id": "c1", "name": "set_light", "args": {"room": None}}}
RESULT = {"function_response": {"id": "c1", "name": "set_light", "response": {"result": None}}}


def text(message, **more):
    return {"text": message, **more}


def step(*parts, author="house", role="model", **more):
    made = Step(author, {"role": role, "parts": list(parts)}, id=str(id(parts)), **more)
    return replace(made, final=is_final(made))


def turn(*steps, user=USER, **choices):
    events = [Event("user", user, turn=4)]
    for number, one in enumerate(steps):
        events += split_step(replace(one, id=f"step-{number}", turn=4))
    return TurnDraft(events, **choices)


def drafted(*turns, state=None, app_name="", user_id="", final_state=None):
    return draft_case(
        "a", turns, app_name=app_name, user_id=user_id, state=state or {}, final_state=final_state
    )


def drafted_turn(*steps, **choices):
    """One turn of a case, which has no problems."""
    case = drafted(turn(*steps, **choices)).case
    # An attachment of a response is in the case, though nothing compares it.
    assert [problem for problem in validate_case(case)[1] if problem.path[-1] != "inline_data"] == []
    return case["conversation"][0]


def expected_parts(expected):
    """`(author, part)` of everything before the answer."""
    events = expected["intermediate_data"]["invocation_events"]
    return [(event["author"], part) for event in events for part in event["content"]["parts"]]


ALL = (
    step(text("Let me see."), CALL, usage={"total_token_count": 9}, model_version="m", invocation_id="i"),
    step(RESULT, role="user"),
    step(text("Done."), author="floor"),
)


def test_everything_is_kept_with_its_author_and_nothing_that_belongs_to_the_run():
    assert drafted(turn(*ALL)).case == make_case(
        "a",
        {
            "user_content": USER,
            "final_response": {"role": "model", "parts": [{"text": "Done."}]},
            "intermediate_data": {
                "invocation_events": [
                    {
                        "author": "house",
                        "content": {"role": "model", "parts": [{"text": "Let me see."}, CALL]},
                    },
                    {"author": "house", "content": {"role": "user", "parts": [RESULT]}},
                ]
            },
        },
    )


def test_what_is_not_chosen_is_not_expected():
    author = "house"
    said = (author, {"text": "Let me see."})
    assert expected_parts(drafted_turn(*ALL, results=False)) == [said, (author, CALL)]
    assert expected_parts(drafted_turn(*ALL, intermediate=False)) == [(author, CALL), (author, RESULT)]
    # Results without their calls would keep the case from passing.
    assert expected_parts(drafted_turn(*ALL, calls=False)) == [said]
    assert "intermediate_data" not in drafted_turn(*ALL, calls=False, intermediate=False)
    assert "final_response" not in drafted_turn(*ALL, answer=False)


def test_no_call_is_an_expectation_of_none():
    assert drafted_turn(step(text("Hello.")))["intermediate_data"] == {"invocation_events": []}


def test_what_the_config_says_of_turns():
    turns = [
        turn(*ALL),
        turn(*ALL, context=True, calls=False),
        turn(*ALL, calls=False),
        turn(*ALL, calls=False, answer=False),
        turn(*ALL, answer=False),
    ]
    assert drafted(*turns).marks == {1: "context", 2: "skip", 3: "context"}
    # A context turn keeps what happened in it, so that it can be continued from.
    case = drafted(turn(*ALL, context=True)).case
    assert case == drafted(turn(*ALL)).case


def test_the_session_is_left_out_where_it_says_nothing():
    assert "session_input" not in drafted(turn(*ALL)).case
    state = {"mode": None, "log": []}
    named = drafted(turn(*ALL), app_name="home", user_id="ada", state=state).case
    assert named["session_input"] == {"app_name": "home", "user_id": "ada", "state": state}
    assert drafted(turn(*ALL), state={"a": 1}).case["session_input"]["app_name"] == ""
    assert validate_case(drafted(turn(*ALL), state={"a": 1}).case)[1] == []


def test_the_state_at_the_end_is_expected_but_for_what_no_session_keeps():
    case = drafted(turn(*ALL), final_state={"a": 1, "temp:b": 2, "user:c": None}).case
    assert case["final_session_state"] == {"a": 1, "user:c": None}
    assert "final_session_state" not in drafted(turn(*ALL), final_state={"temp:b": 2}).case
    assert "final_session_state" not in drafted(turn(*ALL)).case


def test_thoughts_are_never_expected():
    thought = text("Hm.", thought=True)
    expected = drafted_turn(step(thought, CALL), step(RESULT), step(thought, text("Done.")))
    assert "Hm." not in json.dumps(expected)
    assert expected["final_response"]["parts"] == [{"text": "Done."}]


def test_after_an_answer_of_thoughts_only_what_was_said_before_is_the_answer():
    picture = {"inline_data": {"mime_type": "image/png", "data": "AAAA"}}
    thought = text("Hm.", thought=True)
    steps = [step(text("It is off."), CALL), step(RESULT), step(thought, picture)]
    assert drafted_turn(*steps)["final_response"]["parts"] == [{"text": "It is off."}, picture]
    assert "final_response" not in drafted_turn(step(thought))


def test_an_answer_that_calls_is_expected_once():
    """A long-running call ends the turn: its text is the answer, its call one of the calls."""
    waiting = replace(step(text("I asked."), CALL, long_running=("c1",)), final=True)
    expected = drafted_turn(waiting, step(RESULT, role="user"))
    assert expected["final_response"]["parts"] == [{"text": "I asked."}]
    assert expected_parts(expected) == [("house", CALL), ("house", RESULT)]
    assert "intermediate_data" not in drafted_turn(waiting, calls=False)


@pytest.mark.parametrize(
    "response",
    [{"id": "earlier", "name": "set_light", "response": {}}, {"name": "other", "response": {}}],
    ids=["call of another turn", "no such call"],
)
def test_a_result_without_its_call_is_not_expected(response):
    expected = drafted_turn(step(CALL), step(RESULT, {"function_response": response}), step(text("Done.")))
    assert expected_parts(expected) == [("house", CALL), ("house", RESULT)]


def test_pieces_of_a_streamed_text_are_expected_as_a_whole_only():
    pieces = [Event("text", {"parts": [text("Do")]}, data={"partial": True}, turn=4)]
    steps = [step(text("Let me"), partial=True), step(text("Let me see."), CALL), step(RESULT)]
    whole = turn(*steps, step(text("Done.")))
    expected = drafted(replace(whole, events=[*whole.events, *pieces])).case["conversation"][0]
    assert [part for _, part in expected_parts(expected)] == [text("Let me see."), CALL, RESULT]


def test_a_role_that_nobody_knows_is_no_problem_of_the_case():
    drafted_turn(
        step(text("One."), CALL, role="agent"), step(RESULT, role="tool"), step(text("Two."), role="bot")
    )


def test_files_and_signatures_are_kept_to_the_byte():
    data = bytes(range(256))
    blob = {"mime_type": "image/png", "data": base64.b64encode(data).decode()}
    user = {"role": "user", "parts": [{"inline_data": blob}]}
    signed = text("See.", thought_signature=blob["data"])
    case, _ = validate_case(drafted(turn(step(signed), user=user)).case)
    assert case is not None
    assert case.conversation[0].user_content.parts[0].inline_data.data == data
    assert case.conversation[0].final_response.parts[0].thought_signature == data


def test_events_that_are_no_turn_are_refused():
    with pytest.raises(ValueError, match="one turn"):
        drafted(TurnDraft([]))
    two = [*turn(*ALL).events, Event("user", USER, turn=5)]
    with pytest.raises(ValueError, match="one turn"):
        drafted(TurnDraft(two))


@pytest.mark.parametrize(
    ("message", "eval_id"),
    [
        ("Turn off the living room light!", "turn_off_the_living_room_light"),
        ("What's 3.5 × 4?", "whats_3_5_4"),
        ("ﬁnd CAFÉ\nnow", "find_café_now"),
        ("ไฟปิดแล้ว ครับ", "ไฟปิดแล้ว_ครับ"),
        ("これはテストの正解です", "これはテストの正解です"),
        ("a" * 50, "a" * 40),
        ("please " + "b" * 50, "please"),
        ("\U0001f600 …", "case"),
        ("", "case"),
    ],
)
def test_an_id_is_proposed(message, eval_id):
    assert propose_eval_id(message, []) == eval_id


def test_a_proposed_id_is_not_taken():
    assert propose_eval_id("Set to 19", ["set_to_19"]) == "set_to_19_2"
    assert propose_eval_id("Set to 19", ["set_to_19", "set_to_19_2"]) == "set_to_19_3"
    assert propose_eval_id("", ["case"]) == "case_2"
    full = "turn_off_all_of_the_lights_in_this_house"
    assert propose_eval_id(full.replace("_", " "), [full]) == "turn_off_all_of_the_lights_in_this_2"


@given(message=st.text(), taken=st.integers(0, 12))
def test_a_proposed_id_fits_and_can_be_selected(message, taken):
    ids: list[str] = []
    for _ in range(taken + 1):
        ids.append(propose_eval_id(message, ids))
    assert len(set(ids)) == len(ids)
    assert all(0 < len(one) <= 40 and not set(one) & set(":, \n/") for one in ids)


def test_a_result_that_nobody_knows_is_not_expected():
    unknown = {"function_response": {"id": "c1", "name": "set_light"}}
    expected = drafted_turn(step(CALL), step(unknown, role="user"), step(text("Done.")))
    assert [part for _, part in expected_parts(expected)] == [{"function_call": CALL["function_call"]}]
