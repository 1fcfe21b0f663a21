import pytest

from evaltui.core.model.case_id import case_fingerprint
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.stored_cases import StoredCase


def case(**fields):
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "hi"}]},
        "final_response": {"parts": [{"text": "ho"}]},
        "intermediate_data": {"tool_uses": [{"name": "dim", "args": {"to": 5}}]},
    }
    turn |= fields.pop("turn", {})
    return EvalCase.model_validate({"eval_id": "c", "conversation": [turn], **fields})


CAMEL = {
    "userContent": {"role": "user", "parts": [{"text": "hi", "inlineData": None}]},
    "finalResponse": {"parts": [{"text": "ho", "thought": None}]},
    "intermediateData": {"toolUses": [{"name": "dim", "args": {"to": 5}}], "toolResponses": []},
}


@pytest.mark.parametrize(
    "other",
    [
        case(
            creation_timestamp=5.0, turn={"creation_timestamp": 7.0, "invocation_id": "e-1", "duration": 1.5}
        ),
        EvalCase.model_validate({"evalId": "c", "conversation": [CAMEL]}),
        StoredCase.of(case()).model(),
    ],
    ids=["times and ids", "another spelling", "stored"],
)
def test_the_same_case_has_the_same_fingerprint(other):
    assert case_fingerprint(other) == case_fingerprint(case())


@pytest.mark.parametrize(
    "other",
    [
        case(turn={"user_content": {"role": "user", "parts": [{"text": "hello"}]}}),
        case(turn={"final_response": {"parts": [{"text": "hm"}]}}),
        case(turn={"final_response": None}),
        case(turn={"intermediate_data": {"tool_uses": [{"name": "dim", "args": {"to": 5.5}}]}}),
        case(turn={"intermediate_data": {}}),
        case(turn={"intermediate_data": None}),
        case(turn={"intermediate_data": {"tool_uses": [{"name": "dim", "args": {"to": None}}]}}),
        case(session_input={"app_name": "a", "user_id": "u", "state": {"tier": "gold"}}),
        case(final_session_state={"tier": "gold"}),
        case(note="kept by ADK"),
    ],
)
def test_whatever_a_case_says_tells(other):
    assert case_fingerprint(other) != case_fingerprint(case())
