"""Criteria of cost, seconds and tokens: lower is better, and unknown is not evaluated."""

import pytest
from eval_data import make_turn

from evaltui.core.metrics.metric import MetricInput
from evaltui.core.metrics.registry import run_metric
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import ModelSpending, Spending, Tokens

TURN = Invocation.model_validate(make_turn("hi")).model_copy(update={"duration": 1.5})
LIVE = ModelSpending("agent", "m", 2, tokens=Tokens(100, output=20), usd=0.02)
REPLAYED = ModelSpending("agent", "m", replayed=1, saved_tokens=Tokens(10, output=2), saved_usd=0.01)
JUDGE = ModelSpending("judge", "j", 1, tokens=Tokens(900, output=9), usd=9.0, unpriced=1)
UNPRICED = ModelSpending("agent", "m", 1, unmetered=1, unpriced=1)


def result(name, most, *models, turns=(TURN, TURN), **fields):
    [metric] = EvalConfig.model_validate({"evaltui": {"criteria": {name: most}}}).metrics()
    spent = None if models == (None,) else Spending(models, **fields)
    return run_metric(MetricInput(None, turns, metric, spent=spent))


@pytest.mark.parametrize(
    ("name", "models", "score"),
    [
        ("cost_usd", (LIVE, JUDGE), 0.02),
        ("cost_usd", (LIVE, REPLAYED), 0.03),
        ("cost_usd", (), 0.0),
        ("tokens", (LIVE, JUDGE), 120),
        ("tokens", (LIVE, REPLAYED), 132),
        ("seconds", (LIVE,), 3.0),
        ("seconds", (None,), 3.0),
    ],
)
def test_at_most_the_threshold_passes(name, models, score):
    passed, failed = result(name, score, *models), result(name, score - 0.001, *models)
    assert (passed.score, passed.status, passed.lower_is_better) == (score, Status.PASSED, True)
    assert (failed.status, "is above" in failed.reason) == (Status.FAILED, True)


@pytest.mark.parametrize(
    ("name", "models", "why"),
    [
        ("cost_usd", (None,), "the model calls are unknown"),
        ("cost_usd", (LIVE, UNPRICED), "the cost is unknown: 1 unpriced call"),
        ("cost_usd", (ModelSpending("agent", "m", replayed=1),), "the cost is unknown: 1 unpriced call"),
        ("tokens", (LIVE, UNPRICED), "the tokens are unknown"),
        ("tokens", (None,), "the model calls are unknown"),
        ("seconds", (LIVE, REPLAYED), "model calls are replayed"),
    ],
)
def test_what_is_not_known_is_not_evaluated(name, models, why):
    found = result(name, 100, *models)
    assert (found.status, found.score) == (Status.NOT_EVALUATED, None)
    assert found.reason.startswith(why)


def test_calls_that_nobody_saw_and_turns_without_time_are_not_evaluated():
    assert "cannot be seen" in result("cost_usd", 1, unseen=1).reason
    untimed = TURN.model_copy(update={"duration": None})
    assert result("seconds", 9, turns=(TURN, untimed)).status is Status.NOT_EVALUATED
    assert result("seconds", 9, turns=()).status is Status.NOT_EVALUATED
