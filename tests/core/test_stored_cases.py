"""Cases as text: the same cases, and no model before one is asked for."""

from unittest.mock import patch

import pytest
from eval_data import make_case

from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.stored_cases import StoredCase, StoredCases, ids_and_turns

PART = {"inline_data": {"mime_type": "image/png", "data": "AAECAw=="}}
CASES = [
    make_case("a", {"user_content": {"parts": [PART, {"text": "né"}]}}, own=1),
    make_case("b"),
    {"eval_id": "c", "conversation_scenario": {"starting_prompt": "s", "conversation_plan": "p"}},
]
MODELS = [EvalCase.model_validate(case) for case in CASES]


@pytest.fixture
def stored() -> StoredCases:
    return StoredCases(map(StoredCase.of, MODELS))


def test_they_are_the_same_cases(stored):
    assert list(stored) == MODELS
    assert stored[1] == MODELS[1]
    assert list(stored[1:]) == MODELS[1:]
    assert list(stored.only({"a", "c"})) == [MODELS[0], MODELS[2]]


def test_what_is_known_without_a_model(stored):
    assert list(ids_and_turns(stored)) == list(ids_and_turns(MODELS)) == [("a", 1), ("b", 0), ("c", None)]


def test_no_model_is_made_before_it_is_asked_for(stored):
    with patch.object(EvalCase, "model_validate_json") as made:
        list(ids_and_turns(stored))
        stored.only({"a"})
        assert len(stored) == 3
        assert made.call_count == 0
        _ = stored[2]
        assert made.call_count == 1
