"""Session, states, rubrics and simulated users."""

import pytest

from evaltui.core.editing import session
from evaltui.core.jsondoc.edits import EditError, apply_to_data
from evaltui.core.model.validation import validate_case


def data_of(**fields):
    turns = {"conversation": [{"user_content": {"parts": [{"text": "hi"}]}}]}
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", **turns, **fields}]}


def case(data):
    assert validate_case(data["eval_cases"][0])[0] is not None
    return data["eval_cases"][0]


def test_a_session_is_made_with_the_names_that_adk_needs():
    data = data_of()
    after = apply_to_data(data, session.put_state(data, 0, "city", "Bonn", app_name="desk"))
    assert case(after)["session_input"] == {
        "app_name": "desk",
        "user_id": "test_user_id",
        "state": {"city": "Bonn"},
    }
    after = apply_to_data(data, session.set_session_field(data, 0, "user_id", "me"))
    assert case(after)["session_input"] == {"app_name": "EvaluationGenerator", "user_id": "me"}


def test_state_keys_are_put_renamed_and_removed():
    data = data_of(session_input={"appName": "a", "userId": "u", "mine": 1})
    data = apply_to_data(data, session.put_state(data, 0, "a", 1))
    data = apply_to_data(data, session.put_state(data, 0, "b", 2))
    data = apply_to_data(data, session.rename_state(data, 0, "a", "z"))
    assert list(case(data)["session_input"]["state"].items()) == [("z", 1), ("b", 2)]
    data = apply_to_data(data, session.remove_state(data, 0, "z"))
    data = apply_to_data(data, session.set_session_field(data, 0, "user_id", "v"))
    data = apply_to_data(data, session.set_session_field(data, 0, "session_id", "one"))
    assert case(data)["session_input"] == {
        "appName": "a", "userId": "v", "mine": 1, "state": {"b": 2}, "sessionId": "one",
    }  # fmt: skip
    data = apply_to_data(data, session.set_session_field(data, 0, "session_id", ""))
    assert "sessionId" not in case(data)["session_input"]
    data = apply_to_data(data, session.replace_state(data, 0, {"q": None}))
    assert case(data)["session_input"]["state"] == {"q": None}
    assert "session_input" not in case(apply_to_data(data, session.remove_session(data, 0)))


def test_the_final_state_is_absent_empty_or_has_values():
    data = data_of()
    assert session.replace_final_state(data, 0, None) == []
    after = apply_to_data(data, session.replace_final_state(data, 0, {}))
    assert case(after)["final_session_state"] == {}
    after = apply_to_data(data, session.put_final_state(data, 0, "a", [1]))
    after = apply_to_data(after, session.rename_final_state(after, 0, "a", "b"))
    assert case(after)["final_session_state"] == {"b": [1]}
    after = apply_to_data(after, session.remove_final_state(after, 0, "b"))
    assert apply_to_data(after, session.replace_final_state(after, 0, None)) == data


def test_rubrics_of_a_case_and_of_a_turn_have_different_ids():
    data = data_of()
    data = apply_to_data(data, session.add_rubric(data, 0, "is polite"))
    data = apply_to_data(data, session.add_rubric(data, 0, "asks", "TOOL_USE_QUALITY", turn=0))
    assert case(data)["rubrics"][0] == {
        "rubric_id": "rubric_1",
        "rubric_content": {"text_property": "is polite"},
        "type": "FINAL_RESPONSE_QUALITY",
    }
    assert case(data)["conversation"][0]["rubrics"][0]["rubric_id"] == "rubric_2"
    data = apply_to_data(data, session.set_rubric(data, 0, 0, "text", "is kind"))
    data = apply_to_data(data, session.set_rubric(data, 0, 0, "description", "d"))
    data = apply_to_data(data, session.set_rubric(data, 0, 0, "type", ""))
    data = apply_to_data(data, session.set_rubric(data, 0, 0, "rubric_id", "kind"))
    assert case(data)["rubrics"] == [
        {"rubric_id": "kind", "rubric_content": {"text_property": "is kind"}, "description": "d"}
    ]
    with pytest.raises(EditError, match="already"):
        session.set_rubric(data, 0, 0, "rubric_id", "rubric_2")
    data = apply_to_data(data, session.delete_rubric(data, 0, 0, turn=0))
    assert case(data)["conversation"][0]["rubrics"] == []


def test_a_conversation_becomes_a_scenario_and_back():
    data = data_of(mine=1)
    mark = {"set": "s", "case": "c", "turn": 0, "mode": "skip"}
    config = {"criteria": {}, "evaltui": {"turns": [mark]}}
    changes = session.to_scenario(data, config, 0)
    after = apply_to_data(data, changes.of_set)
    assert case(after)["conversation_scenario"] == {"starting_prompt": "hi", "conversation_plan": ""}
    assert apply_to_data(config, changes.of_config) == {"criteria": {}, "evaltui": {}}
    after = apply_to_data(after, session.set_plan(after, 0, "pay"))
    after = apply_to_data(after, session.set_starting_prompt(after, 0, "hello"))
    after = apply_to_data(after, session.set_persona(after, 0, "NOVICE"))
    assert case(after)["conversation_scenario"] == {
        "starting_prompt": "hello", "conversation_plan": "pay", "user_persona": "NOVICE",
    }  # fmt: skip
    after = apply_to_data(after, session.set_persona(after, 0, None))
    assert "user_persona" not in case(after)["conversation_scenario"]
    after = apply_to_data(after, session.to_conversation(after, 0))
    assert case(after)["conversation"][0]["user_content"]["parts"] == [{"text": "hello"}]
    assert (case(after)["mine"], "conversation_scenario" in case(after)) == (1, False)
    with pytest.raises(EditError, match="not simulated"):
        session.set_plan(after, 0, "x")
