"""Metrics by name."""

import pytest
from metric_cases import metric_input, turn

from evaltui.core.metrics.declaration import MetricInfo
from evaltui.core.metrics.registry import METRICS, run_metric
from evaltui.core.model.outcome import Status

COMPUTED = [name for name, info in METRICS.items() if info.function]
# What a case may take: see test_spent_criteria.
AT_MOST = [name for name, info in METRICS.items() if info.lower_is_better]
JUDGED = [name for name, info in METRICS.items() if not info.function]


def run(name, **fields):
    return run_metric(metric_input(name, **{"expected": [turn("a")], "actual": [turn("a")], **fields}))


@pytest.mark.parametrize("name", [name for name in COMPUTED if name not in AT_MOST])
def test_computed_metrics_give_a_score(name):
    info = METRICS[name]
    said = {"author": "agent", "content": {"parts": [{"text": "wait"}]}}
    expected, actual = turn("a", answer="yes"), turn("a", answer="yes", recorded=True, duration=1.0)
    expected["intermediate_data"]["intermediate_responses"] = [["agent", [{"text": "wait"}]]]
    actual["intermediate_data"]["invocation_events"].insert(0, said)
    result = run(
        name,
        threshold=0.5 if info.gates else None,
        criterion={"tool": "a"} if info.gates else None,
        expected=[expected],
        actual=[actual],
    )

    assert result.name == name
    if info.gates:
        assert (result.score, result.status) == (1.0, Status.PASSED)
    else:
        assert result.status is Status.INFORMATIONAL


@pytest.mark.parametrize("name", JUDGED)
def test_judged_metrics_are_not_evaluated_without_a_judge(name):
    result = run(name)

    assert (result.status, result.score, result.threshold) == (Status.NOT_EVALUATED, None, 1.0)
    assert result.reason == "is judged when the case is run"
    assert METRICS[name].judged
    assert "a judge model" in METRICS[name].needs


def test_misspelt_name_gets_a_suggestion():
    result = run("respons_match_score")

    assert result.status is Status.NOT_EVALUATED
    assert result.reason == "unknown metric respons_match_score. Did you mean response_match_score?"
    assert "evaltui metrics" in run("zzz").reason


def test_what_a_metric_raises_is_an_error_and_not_an_exception(monkeypatch):
    def broken(_):
        raise RuntimeError("out of luck")

    monkeypatch.setitem(METRICS, "broken", MetricInfo("Raises.", name="broken", function=broken))
    result = run("broken", threshold=0.5)

    assert (result.status, result.threshold, result.reason) == (Status.ERROR, 0.5, "out of luck")
    assert (result.error.type, result.error.message) == ("RuntimeError", "out of luck")
    assert "in broken" in result.error.traceback


def test_custom_function_is_never_replaced_by_a_built_in_of_the_same_name():
    given_ = metric_input("response_match_score", expected=[turn(answer="a")], actual=[turn(answer="a")])
    given_.metric.custom_function_path = "mine.score"

    assert run_metric(given_).status is Status.NOT_EVALUATED
