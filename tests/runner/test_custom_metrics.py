"""Custom metric functions in a host of their own."""

from __future__ import annotations

import pytest

from evaltui import EvalConfig, EvalSet, Status, evaluate

ECHO = "def root_agent(message, session):\n    return message\n"

METRICS = """
    import os
    import statistics

    from evaltui import EvaluationResult, PerInvocationResult, Status


    def _result(score, metric, actual):
        status = Status.PASSED if score >= metric.criterion.threshold else Status.FAILED
        turns = [
            PerInvocationResult(actual_invocation=one, score=score, eval_status=status) for one in actual
        ]
        return EvaluationResult(overall_score=score, overall_eval_status=status, per_invocation_results=turns)


    def exact(metric, actual, expected, scenario):
        assert metric.threshold is None
        same = [a.final_response == e.final_response for a, e in zip(actual, expected)]
        return _result(statistics.mean(map(float, same)), metric, actual)


    async def asynchronous(metric, actual, expected, scenario):
        return _result(0.25, metric, actual)


    def raises(metric, actual, expected, scenario):
        raise RuntimeError("judge 500")


    def dies(metric, actual, expected, scenario):
        os._exit(3)


    def wrong_type(metric, actual, expected, scenario):
        return 0.5


    def no_turns(metric, actual, expected, scenario):
        return EvaluationResult(overall_score=1.0, overall_eval_status=Status.PASSED)
"""


def config(*names: str, place: str = "my_agent.metrics") -> EvalConfig:
    return EvalConfig.model_validate(
        {
            "criteria": {"response_match_score": 0.5, **dict.fromkeys(names, 0.5)},
            "custom_metrics": {name: {"code_config": {"name": f"{place}.{name}"}} for name in names},
        }
    )


def sets() -> EvalSet:
    content = {"role": "user", "parts": [{"text": "good morning"}]}
    answer = {"role": "model", "parts": [{"text": "good morning"}]}
    return EvalSet.model_validate(
        {
            "eval_set_id": "s",
            "eval_cases": [
                {"eval_id": "one", "conversation": [{"user_content": content, "final_response": answer}]}
            ],
        }
    )


@pytest.mark.parametrize("place", ["my_agent.metrics", "agent.metrics"])
async def test_a_function_with_adks_signature_scores(write_agent, place):
    agent = write_agent(ECHO, metrics=METRICS)
    result = await evaluate(agent, sets(), config("exact", place=place))
    metric = {one.name: one for one in result.cases[0].metrics}["exact"]
    assert (metric.status, metric.score, metric.threshold) == (Status.PASSED, 1.0, 0.5)
    assert [turn.score for turn in metric.per_invocation] == [1.0]
    assert result.status is Status.PASSED


async def test_an_async_function_fails_below_its_threshold(write_agent):
    result = await evaluate(write_agent(ECHO, metrics=METRICS), sets(), config("asynchronous"))
    assert result.status is Status.FAILED


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", "judge 500"),
        ("dies", "exit code 3"),
        ("wrong_type", "must return an EvaluationResult"),
        ("no_turns", "1"),
        ("absent", "absent"),
    ],
)
async def test_what_a_function_does_wrong_is_an_error_of_that_metric(write_agent, name, says):
    result = await evaluate(write_agent(ECHO, metrics=METRICS), sets(), config(name))
    metrics = {one.name: one for one in result.cases[0].metrics}
    assert metrics[name].status is Status.ERROR
    assert says in metrics[name].reason
    assert metrics["response_match_score"].status is Status.PASSED
    assert result.status is Status.ERROR


async def test_a_crash_is_never_green_and_never_hides_a_failure(write_agent):
    agent = write_agent(ECHO, metrics=METRICS)
    for names in (("raises", "asynchronous"), ("asynchronous", "raises")):
        result = await evaluate(agent, sets(), config(*names))
        assert result.status is Status.FAILED
        broken = {one.name: one for one in result.cases[0].metrics}["raises"]
        assert broken.error is not None
        assert "metrics.py" in broken.error.traceback
