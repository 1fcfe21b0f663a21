"""What a list shows and searches of a case, in both spellings and both shapes."""

from evaltui.core.model.case_id import CaseInfo, case_info


def info(**fields):
    problems = []
    found = case_info(fields, ("eval_cases", 0), problems)
    assert problems == []
    return found


def said(*texts):
    return {"parts": [{"text": text} for text in texts] + [{"inline_data": {}}, 3]}


def test_texts_by_turn_and_each_tool_once():
    turns = [
        {"user_content": said("a", "b"), "intermediate_data": {"tool_uses": [{"name": "x"}, {"name": "y"}]}},
        {"user_content": said(), "intermediate_data": {"tool_uses": [{"name": "x"}, {}, None]}},
        {"userContent": said("c"), "intermediateData": {"toolUses": [{"name": "z"}]}},
    ]
    assert info(eval_id="one", conversation=turns) == CaseInfo(
        "one", 3, "a", ("a\nb", "", "c"), ("x", "y", "z")
    )


def test_tools_of_events():
    parts = [{"text": "so"}, {"function_call": {"name": "x"}}, {"functionCall": {"name": "y"}}]
    events = [{"author": "a", "content": {"parts": parts}}, {"author": "a", "content": None}, None]
    turn = {"user_content": None, "intermediate_data": {"invocation_events": events}}
    assert info(evalId="one", conversation=[turn]) == CaseInfo("one", 1, "", ("",), ("x", "y"))


def test_a_simulated_user_begins_with_the_prompt():
    found = info(eval_id="one", conversation_scenario={"startingPrompt": "hi"})
    assert found == CaseInfo("one", None, "hi", ("hi",))
