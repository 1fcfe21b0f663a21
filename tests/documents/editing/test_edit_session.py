"""Session, states, rubrics and simulated users."""

import pytest

from evaltui.core.model.validation import validate_case
from evaltui.documents.editing.set import CaseEditor
from evaltui.documents.edits import EditError
from tests.changed_values import changed_case, changed_set


def data_of(**fields):
    turns = {"conversation": [{"user_content": {"parts": [{"text": "hi"}]}}]}
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", **turns, **fields}]}


def case(data):
    assert validate_case(data["eval_cases"][0])[0] is not None
    return data["eval_cases"][0]


def test_a_session_is_made_with_the_names_that_adk_needs():
    data = data_of()
    after = changed_case(data, lambda case: case.session.state.put("city", "Bonn"))
    assert case(after)["session_input"] == {
        "app_name": "EvaluationGenerator",
        "user_id": "test_user_id",
        "state": {"city": "Bonn"},
    }
    after = changed_case(data, lambda case: case.session.change("user_id", "me"))
    assert case(after)["session_input"] == {"app_name": "EvaluationGenerator", "user_id": "me"}


def test_state_keys_are_put_renamed_and_removed():
    data = data_of(session_input={"appName": "a", "userId": "u", "mine": 1})
    data = changed_case(data, lambda case: case.session.state.put("a", 1))
    data = changed_case(data, lambda case: case.session.state.put("b", 2))
    data = changed_case(data, lambda case: case.session.state.rename("a", "z"))
    assert list(case(data)["session_input"]["state"].items()) == [("z", 1), ("b", 2)]
    data = changed_case(data, lambda case: case.session.state.remove("z"))
    data = changed_case(data, lambda case: case.session.change("user_id", "v"))
    data = changed_case(data, lambda case: case.session.change("session_id", "one"))
    assert case(data)["session_input"] == {
        "appName": "a", "userId": "v", "mine": 1, "state": {"b": 2}, "sessionId": "one",
    }  # fmt: skip
    data = changed_case(data, lambda case: case.session.change("session_id", ""))
    assert "sessionId" not in case(data)["session_input"]
    assert "session_input" not in case(changed_case(data, lambda case: case.session.remove()))


def test_the_final_state_is_absent_empty_or_has_values():
    data = data_of()
    assert CaseEditor(data, 0).final_state.value == {}
    after = changed_case(data, lambda case: case.final_state.put("a", [1]))
    after = changed_case(after, lambda case: case.final_state.rename("a", "b"))
    assert case(after)["final_session_state"] == {"b": [1]}
    after = changed_case(after, lambda case: case.final_state.remove("b"))
    assert case(after)["final_session_state"] == {}


def test_rubrics_of_a_case_and_of_a_turn_have_different_ids():
    data = data_of()
    data = changed_case(data, lambda case: case.rubrics.add("is polite"))
    data = changed_case(data, lambda case: case.turn(0).rubrics.add("asks", "TOOL_USE_QUALITY"))
    assert case(data)["rubrics"][0] == {
        "rubric_id": "rubric_1",
        "rubric_content": {"text_property": "is polite"},
        "type": "FINAL_RESPONSE_QUALITY",
    }
    assert case(data)["conversation"][0]["rubrics"][0]["rubric_id"] == "rubric_2"
    data = changed_case(data, lambda case: case.rubrics.change(0, "text", "is kind"))
    data = changed_case(data, lambda case: case.rubrics.change(0, "description", "d"))
    data = changed_case(data, lambda case: case.rubrics.change(0, "type", ""))
    data = changed_case(data, lambda case: case.rubrics.change(0, "rubric_id", "kind"))
    assert case(data)["rubrics"] == [
        {"rubric_id": "kind", "rubric_content": {"text_property": "is kind"}, "description": "d"}
    ]
    with pytest.raises(EditError, match="already"):
        changed_case(data, lambda case: case.rubrics.change(0, "rubric_id", "rubric_2"))
    data = changed_case(data, lambda case: case.turn(0).rubrics.delete(0))
    assert case(data)["conversation"][0]["rubrics"] == []


def test_a_conversation_becomes_a_scenario_and_back():
    data = data_of(mine=1)
    mark = {"set": "s", "case": "c", "turn": 0, "mode": "skip"}
    config = {"criteria": {}, "evaltui": {"turns": [mark]}}
    after, config = changed_set(data, config, lambda eval_set: eval_set.case(0).to_scenario())
    assert case(after)["conversation_scenario"] == {"starting_prompt": "hi", "conversation_plan": ""}
    assert config == {"criteria": {}, "evaltui": {}}
    after = changed_case(after, lambda case: case.scenario.set_plan("pay"))
    after = changed_case(after, lambda case: case.scenario.set_starting_prompt("hello"))
    after = changed_case(after, lambda case: case.scenario.set_persona("NOVICE"))
    assert case(after)["conversation_scenario"] == {
        "starting_prompt": "hello", "conversation_plan": "pay", "user_persona": "NOVICE",
    }  # fmt: skip
    after = changed_case(after, lambda case: case.scenario.set_persona(None))
    assert "user_persona" not in case(after)["conversation_scenario"]
    after = changed_case(after, lambda case: case.to_conversation())
    assert case(after)["conversation"][0]["user_content"]["parts"] == [{"text": "hello"}]
    assert (case(after)["mine"], "conversation_scenario" in case(after)) == (1, False)
    with pytest.raises(EditError, match="no simulated user"):
        changed_case(after, lambda case: case.scenario.set_plan("x"))
