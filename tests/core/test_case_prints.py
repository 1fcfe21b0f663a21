"""Telling what changed in a case."""

from evaltui.core.model.fingerprints import case_print


def case(said="hi", answer="hello", **more):
    turn = {"user_content": {"parts": [{"text": said}]}, "final_response": {"parts": [{"text": answer}]}}
    return {"eval_id": "a", "conversation": [turn], **more}


def test_what_the_agent_gets_to_see_is_told_from_what_is_expected():
    before = case_print(case())
    assert case_print(case()) == before
    for expected in (case(answer="hey"), case(final_session_state={"a": 1})):
        now = case_print(expected)
        assert now.given == before.given
        assert now.whole != before.whole
    for given in (case(said="ho"), case(session_input={"state": {"a": 1}}), {"conversation_scenario": {}}):
        assert case_print(given).given != before.given


def test_both_spellings_of_keys_are_read_and_nothing_is_too_odd():
    camel = {"evalId": "a", "conversation": [{"userContent": {"parts": [{"text": "hi"}]}}]}
    assert case_print(camel).given == case_print(case()).given
    for odd in (None, [], {"conversation": 3}, {"conversation": [None]}):
        assert case_print(odd) == case_print(odd)
