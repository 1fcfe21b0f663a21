"""Configs that name models whose end is announced."""

from datetime import date

import pytest

from evaltui.core.metrics.config_validation import MODEL_ENDS, validate_config
from evaltui.core.model.problems import has_error

JUDGED = {"threshold": 0.5}


def config(judge=None, user=None):
    options = {} if judge is None else {"judge_model_options": {"judge_model": judge}}
    simulator = {} if user is None else {"user_simulator_config": {"model": user}}
    return {"criteria": {"final_response_match_v2": JUDGED | options}, **simulator}


@pytest.mark.parametrize(
    ("named", "warnings"),
    [
        ({}, []),
        ({"judge": "gemini-3.5-flash-lite"}, []),
        ({"judge": "gemini-2.5-flash-lite", "user": "my.models:user"}, []),
        ({"judge": "models/gemini-2.5-flash"}, ["criteria.final_response_match_v2.judge_model_options"]),
        ({"user": "gemini-2.0-flash"}, ["user_simulator_config"]),
    ],
)
def test_a_named_model_with_a_known_end_is_a_warning(named, warnings):
    model, problems = validate_config(config(**named))
    assert model is not None
    assert not has_error(problems)
    found = [problem for problem in problems if "announced end 20" in problem.message]
    assert [".".join(map(str, problem.path[:-1])) for problem in found] == warnings


def test_each_row_has_its_source_and_days():
    for row in MODEL_ENDS:
        assert "." in row.source.partition("/")[0]
        assert date.fromisoformat(row.read)
        assert date.fromisoformat(row.end)
    names = [name for row in MODEL_ENDS for name in row.names]
    assert len(names) == len({*names})
