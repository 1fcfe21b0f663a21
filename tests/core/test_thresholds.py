"""A threshold that every score reaches, or none, is refused."""

import math

import pytest
from pydantic import ValidationError

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.problems import Severity


def errors(criteria, **config):
    read, problems = validate_config({"criteria": criteria, **config})
    found = [str(problem) for problem in problems if problem.severity is Severity.ERROR]
    assert (read is None) == bool(found)
    return found


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        (True, "is true"),
        (False, "is false"),
        (math.nan, "must be a finite number"),
        (math.inf, "must be a finite number"),
        (-math.inf, "must be a finite number"),
        (-0.1, "its threshold, -0.1, is outside of its range, 0 to 1"),
        (80, "its threshold, 80, is outside of its range, 0 to 1"),
    ],
)
def test_what_is_no_threshold(threshold, said):
    for criterion in (threshold, {"threshold": threshold}):
        (found,) = errors({"response_match_score": criterion})
        assert found.startswith("criteria.response_match_score")
        assert said in found
        (found,) = errors({}, evaltui={"criteria": {"trajectory_recall": criterion}})
        assert found.startswith("evaltui.criteria.trajectory_recall")
        assert said in found


@pytest.mark.parametrize("threshold", [True, math.nan, -math.inf])
def test_in_python_too(threshold):
    with pytest.raises(ValidationError, match="response_match_score"):
        EvalConfig(criteria={"response_match_score": threshold})


def test_every_metric_has_its_own_range():
    assert errors({"response_evaluation_score": 0.5, "response_match_score": 0, "safety_v1": 1}) == [
        "criteria.response_evaluation_score: its threshold, 0.5, is outside of its range, 1 to 5"
    ]
    assert errors({"tokens": 40}) == []
    assert errors({"tokens": -1}) == ["criteria.tokens: its threshold, -1, is below 0"]


def test_a_range_may_be_the_users_own():
    def mine(threshold, least=-50, most=100):
        interval = {"min_value": least, "max_value": most}
        info = {"metric_name": "mine", "metric_value_info": {"interval": interval}}
        metrics = {"mine": {"code_config": {"name": "a.b"}, "metric_info": info}}
        return errors({"mine": threshold}, custom_metrics=metrics)

    assert mine(80) == mine(-20) == []
    assert mine(800) == ["criteria.mine: its threshold, 800, is outside of its range, -50 to 100"]
