"""What a list shows and searches of a case, in both spellings and both shapes."""

from evaltui.core.model.case_id import CaseOutline, outline_of


def outline(**fields):
    found = outline_of(fields)
    assert found.problems == ()
    return found


def said(*texts):
    return {"parts": [{"text": text} for text in texts] + [{"inline_data": {}}, 3]}


def test_texts_by_turn_and_each_tool_once():
    turns = [
        {"user_content": said("a", "b"), "intermediate_data": {"tool_uses": [{"name": "x"}, {"name": "y"}]}},
        {"user_content": said(), "intermediate_data": {"tool_uses": [{"name": "x"}, {}, None]}},
        {"userContent": said("c"), "intermediateData": {"toolUses": [{"name": "z"}]}},
    ]
    assert outline(eval_id="one", conversation=turns) == CaseOutline(
        "one", 3, "a", ("a\nb", "", "c"), ("x", "y", "z")
    )


def test_tools_of_events():
    parts = [{"text": "so"}, {"function_call": {"name": "x"}}, {"functionCall": {"name": "y"}}]
    events = [{"author": "a", "content": {"parts": parts}}, {"author": "a", "content": None}, None]
    turn = {"user_content": None, "intermediate_data": {"invocation_events": events}}
    assert outline(evalId="one", conversation=[turn]) == CaseOutline("one", 1, "", ("",), ("x", "y"))


def test_a_simulated_user_begins_with_the_prompt():
    found = outline(eval_id="one", conversation_scenario={"startingPrompt": "hi"})
    assert found == CaseOutline("one", None, "hi", ("hi",))
