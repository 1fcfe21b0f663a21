"""Telling whether the agent gets to see something else in a case."""

from evaltui.core.model.case_id import input_fingerprint


def case(said="hi", answer="hello", **more):
    turn = {"user_content": {"parts": [{"text": said}]}, "final_response": {"parts": [{"text": answer}]}}
    return {"eval_id": "a", "conversation": [turn], **more}


def test_what_the_agent_gets_to_see_is_told_from_what_is_expected():
    before = input_fingerprint(case())
    for expected in (case(), case(answer="hey"), case(final_session_state={"a": 1})):
        assert input_fingerprint(expected) == before
    for given in (case(said="ho"), case(session_input={"state": {"a": 1}}), {"conversation_scenario": {}}):
        assert input_fingerprint(given) != before
