"""What custom metric functions may return."""

import json

import pytest
from metric_cases import invocations, turn

from evaltui.core.metrics.custom import EvaluationResult, PerInvocationResult, result_of_evaluation
from evaltui.core.metrics.metric import MetricInput
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.outcome import Status

METRIC = EvalMetric(metric_name="politeness", threshold=0.5, custom_function_path="my_agent.metrics.polite")


def result_from(returned, turns, metric=METRIC):
    actual = invocations([turn("a", answer="Please.")] * turns)
    return result_of_evaluation(MetricInput(expected=actual, actual=actual, metric=metric), returned)


def returned(status="PASSED", score=0.75, turns=(("PASSED", 1.0), ("FAILED", 0.5))):
    return {
        "overall_score": score,
        "overall_eval_status": status,
        "per_invocation_results": [{"score": each, "eval_status": name} for name, each in turns],
    }


def test_result_is_taken_over():
    result = result_from(returned(), 2)

    assert (result.name, result.score, result.threshold) == ("politeness", 0.75, 0.5)
    assert result.status is Status.PASSED
    assert [(turn.score, turn.status) for turn in result.per_invocation] == [
        (1.0, Status.PASSED),
        (0.5, Status.FAILED),
    ]
    assert result.reason == "failed in turn 2"


def test_result_built_with_our_models_is_accepted():
    [actual] = invocations([turn("a", answer="Please.")])
    built = EvaluationResult(
        overall_score=1,
        overall_eval_status=Status.PASSED,
        per_invocation_results=[
            PerInvocationResult(actual_invocation=actual, score=1.0, eval_status=Status.PASSED)
        ],
    )

    result = result_from(json.loads(built.model_dump_json()), 1)

    assert (result.status, result.score) == (Status.PASSED, 1.0)


def test_defaults_are_those_of_adk():
    result = result_from({}, 3)

    assert (result.status, result.score, result.per_invocation) == (Status.NOT_EVALUATED, None, ())
    assert result.reason


@pytest.mark.parametrize("status", ["NOT_EVALUATED", "INFORMATIONAL"])
def test_results_without_a_verdict_need_no_turns(status):
    result = result_from(returned(status, None, turns=[("PASSED", 1.0)]), 2)

    assert (result.status, result.per_invocation, result.error) == (Status(status), (), None)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (returned(turns=[("PASSED", 1.0)]), "per_invocation_results has 1 entry for 2 turns"),
        (returned(status="GREAT"), "overall_eval_status"),
        (returned(status="ERROR"), "overall_eval_status"),
        (returned(status=1), "overall_eval_status"),
        (returned(score="0.5"), "overall_score"),
        (returned(score=True), "overall_score"),
        (returned(score=float("nan")), "overall_score"),
        (returned(turns=[("PASSED", 1.0), ("MAYBE", 1.0)]), "per_invocation_results[1].eval_status"),
        ({"per_invocation_results": 3}, "per_invocation_results"),
    ],
)
def test_broken_contract_is_an_error_that_says_how(wrong, complaint):
    result = result_from(wrong, 2)

    assert (result.status, result.score) == (Status.ERROR, None)
    assert result.reason.startswith("my_agent.metrics.polite returned an unusable result: ")
    assert complaint in result.reason
    assert result.error.message == result.reason


@pytest.mark.parametrize("status", ["PASSED", "FAILED"])
def test_as_adk_has_it_the_verdict_beside_a_score_that_is_no_number_counts(status):
    actual = invocations([turn("a", answer="Please.")])
    given = MetricInput(expected=actual, actual=actual, metric=METRIC, as_adk=True)

    result = result_of_evaluation(given, returned(status, float("nan"), ((status, float("inf")),)))

    assert (result.status, result.score) == (Status[status], None)
    assert [turn.score for turn in result.per_invocation] == [None]
