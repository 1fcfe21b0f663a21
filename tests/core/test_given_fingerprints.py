"""Telling whether the agent gets to see something else in a case."""

from evaltui.core.model.case_id import given_fingerprint


def case(said="hi", answer="hello", **more):
    turn = {"user_content": {"parts": [{"text": said}]}, "final_response": {"parts": [{"text": answer}]}}
    return {"eval_id": "a", "conversation": [turn], **more}


def test_what_the_agent_gets_to_see_is_told_from_what_is_expected():
    before = given_fingerprint(case())
    for expected in (case(), case(answer="hey"), case(final_session_state={"a": 1})):
        assert given_fingerprint(expected) == before
    for given in (case(said="ho"), case(session_input={"state": {"a": 1}}), {"conversation_scenario": {}}):
        assert given_fingerprint(given) != before


def test_both_spellings_of_keys_are_read_and_nothing_is_too_odd():
    camel = {"evalId": "a", "conversation": [{"userContent": {"parts": [{"text": "hi"}]}}]}
    assert given_fingerprint(camel) == given_fingerprint(case())
    for odd in (None, [], {"conversation": 3}, {"conversation": [None]}):
        assert given_fingerprint(odd) == given_fingerprint(odd)
