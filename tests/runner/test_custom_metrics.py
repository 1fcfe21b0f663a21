"""Custom metric functions with ADK's signature, in a host of their own."""

from __future__ import annotations

import textwrap

import pytest
from eval_data import make_case, make_set, make_turn

from evaltui import EvalCase, EvalConfig, Status, evaluate
from evaltui.core.scoring import Expected, score_repeat

ECHO = "def root_agent(message, session):\n    return message\n"

METRICS = """
    import os
    import statistics

    from evaltui import (
        ConversationScenario,
        EvalMetric,
        EvalStatus,
        EvaluationResult,
        Invocation,
        PerInvocationResult,
        RubricScore,
    )


    def _result(score, metric, actual):
        status = EvalStatus.PASSED if score >= metric.criterion.threshold else EvalStatus.FAILED
        turns = [
            PerInvocationResult(actual_invocation=one, score=score, eval_status=status) for one in actual
        ]
        return EvaluationResult(overall_score=score, overall_eval_status=status, per_invocation_results=turns)


    def exact(metric: EvalMetric, actual: list[Invocation], expected: list[Invocation] | None, scenario):
        assert metric.threshold is None and isinstance(metric, EvalMetric)
        assert metric.custom_function_path.endswith(".metrics.exact")
        assert all(isinstance(one, Invocation) for one in actual)
        assert scenario is None
        same = [a.final_response == e.final_response for a, e in zip(actual, expected)]
        return _result(statistics.mean(map(float, same)), metric, actual)


    async def asynchronous(metric, actual, expected, scenario):
        return _result(0.25, metric, actual)


    def extras(metric, actual, expected, scenario):
        return _result(metric.criterion.weight, metric, actual)


    def rubrics(metric, actual, expected, scenario):
        result = _result(1.0, metric, actual)
        for turn in result.per_invocation_results:
            turn.rubric_scores = [RubricScore(rubric_id="kind", score=1.0, rationale="It greets back.")]
        return result


    def no_verdict(metric, actual, expected, scenario):
        result = _result(1.0, metric, actual)
        return EvaluationResult(overall_score=1.0, per_invocation_results=result.per_invocation_results)


    def three_arguments(actual, expected, criterion):
        return 1.0


    def _changed(result, **fields):
        for name, value in fields.items():
            setattr(result, name, value)
        return result
"""
# Bodies of functions that do something wrong, and the error that this is.
WRONG = {
    "raises": ("raise RuntimeError('judge 500')", "RuntimeError", "judge 500"),
    "leaves": ("raise SystemExit('bye')", "SystemExit", "bye"),
    "dies": ("os._exit(3)", "AgentProcessError", "the metric's process ended itself with exit code 3"),
    "wrong_type": (
        "return 0.5",
        "CustomMetricError",
        "my_agent.metrics.wrong_type returned a float; it must return",
    ),
    "nothing": ("pass", "CustomMetricError", "returned None; it must return an EvaluationResult"),
    "no_turns": (
        "return EvaluationResult(overall_score=1.0, overall_eval_status=EvalStatus.PASSED)",
        "CustomMetricError",
        "per_invocation_results has 0 entries for 1 turn",
    ),
    "nan": ("return _result(float('nan'), metric, actual)", "CustomMetricError", "overall_score"),
    "text": (
        "return _changed(_result(1.0, metric, actual), overall_score='much')",
        "CustomMetricError",
        "overall_score",
    ),
    "no_list": (
        "return _changed(_result(1.0, metric, actual), per_invocation_results=None)",
        "CustomMetricError",
        "must return an EvaluationResult",
    ),
    "three_arguments": ("", "TypeError", '"function": "my_agent.metrics.three_arguments"'),
    "absent": ("", "FunctionNotFoundError", "metrics.py has no function absent"),
}
METRICS = textwrap.dedent(METRICS) + "\n".join(
    f"def {name}(metric, actual, expected, scenario):\n    {body}\n"
    for name, (body, *_) in WRONG.items()
    if body
)


def config(*names: str, place: str = "my_agent.metrics", **more) -> EvalConfig:
    return EvalConfig.model_validate(
        {
            "criteria": {"response_match_score": 0.5, **{name: more.get(name, 0.5) for name in names}},
            "custom_metrics": {name: {"code_config": {"name": f"{place}.{name}"}} for name in names},
        }
    )


KIND = {"rubrics": [{"rubric_id": "kind", "rubric_content": {"text_property": "It is kind."}}]}


def sets(*says: str) -> dict:
    return make_set(
        "s", *(make_case(text, make_turn(text, text, **KIND)) for text in says or ("good morning",))
    )


def metrics_of(result, case=0):
    return {one.name: one for one in result.cases[case].metrics}


@pytest.mark.parametrize("place", ["my_agent.metrics", "agent.metrics"])
async def test_a_function_with_adks_signature_scores(write_agent, place):
    agent = write_agent(ECHO, metrics=METRICS)
    result = await evaluate(agent, sets(), config("exact", place=place))
    metric = metrics_of(result)["exact"]
    assert (metric.status, metric.score, metric.threshold, metric.reason) == (Status.PASSED, 1.0, 0.5, "")
    assert [turn.score for turn in metric.per_invocation] == [1.0]
    assert result.status is Status.PASSED


async def test_what_functions_may_do(write_agent):
    names = ("asynchronous", "extras", "rubrics", "no_verdict")
    criteria = config(*names, extras={"threshold": 0.7, "weight": 0.75})
    metrics = metrics_of(await evaluate(write_agent(ECHO, metrics=METRICS), sets(), criteria))
    assert {name: (metrics[name].status, metrics[name].score) for name in names} == {
        "asynchronous": (Status.FAILED, 0.25),
        "extras": (Status.PASSED, 0.75),
        "rubrics": (Status.PASSED, 1.0),
        "no_verdict": (Status.NOT_EVALUATED, 1.0),
    }
    (judgement,) = metrics["rubrics"].per_invocation[0].judgements
    assert (judgement.id, judgement.subject) == ("kind", "It is kind.")
    assert (judgement.score, judgement.rationale) == (1.0, "It greets back.")
    assert metrics["no_verdict"].reason.endswith("returned no overall_eval_status")


async def test_what_a_function_does_wrong_is_an_error_of_that_metric_alone(write_agent):
    result = await evaluate(write_agent(ECHO, metrics=METRICS), sets(), config(*WRONG, "exact"))
    metrics = metrics_of(result)
    assert {name: metrics[name].status for name in WRONG} == dict.fromkeys(WRONG, Status.ERROR)
    assert {name: metrics[name].error.type for name in WRONG} == {name: one[1] for name, one in WRONG.items()}
    for name, (*_, says) in WRONG.items():
        assert says in metrics[name].reason
    assert "metrics.py" in metrics["raises"].error.traceback
    assert metrics["no_turns"].error.where.startswith("metrics.py:")
    assert metrics["no_turns"].error.where.endswith(" in no_turns")
    assert metrics["exact"].status is metrics["response_match_score"].status is Status.PASSED
    assert result.status is Status.ERROR


async def test_what_ends_a_run_of_adk_is_no_pass_by_its_verdicts(write_agent):
    agent = write_agent(ECHO, metrics=METRICS)
    passed_over = {"raises", "three_arguments"}
    ends = ("nothing", "wrong_type", "no_turns", "leaves", "dies")
    names = (*ends, *passed_over)
    result = await evaluate(agent, sets(), config(*names), adk_verdicts=True)
    assert {one.status for name, one in metrics_of(result).items() if name in names} == {Status.ERROR}
    assert result.status is Status.ERROR
    found = {name: metrics_of(result)[name] for name in names}
    scored = Expected(
        "s", EvalCase.model_validate(sets()["eval_cases"][0]), config("exact"), adk_verdicts=True
    )
    actual = result.cases[0].repeats[0].actual
    for name in names:

        async def custom(given, name=name):
            return found[name]

        repeat = await score_repeat(scored, actual, final_state=None, custom=custom)
        assert repeat.status is (Status.ERROR if name in ends else Status.PASSED), name


async def test_a_crash_is_never_green_and_never_hides_a_failure(write_agent):
    agent = write_agent(ECHO, metrics=METRICS)
    for names in (("raises", "asynchronous"), ("asynchronous", "raises")):
        result = await evaluate(agent, sets(), config(*names))
        assert result.status is Status.FAILED
        assert metrics_of(result)["raises"].error is not None


async def test_a_module_that_cannot_be_imported_is_an_error_with_its_traceback(write_agent):
    agent = write_agent(ECHO, metrics="import no_such_library\n")
    metric = metrics_of(await evaluate(agent, sets(), config("exact")))["exact"]
    assert (metric.status, metric.error.type) == (Status.ERROR, "ModuleNotFoundError")
    assert metric.error.where == "metrics.py:1"


PICKY = """
    import os, time
    from evaltui import EvalStatus, EvaluationResult, PerInvocationResult

    def picky(metric, actual, expected, scenario):
        said = actual[0].user_content.parts[0].text
        if said == "hang":
            time.sleep(600)
        if said == "die":
            os._exit(3)
        passed = EvalStatus.PASSED
        turns = [PerInvocationResult(actual_invocation=one, score=1.0, eval_status=passed) for one in actual]
        return EvaluationResult(overall_score=1.0, overall_eval_status=passed, per_invocation_results=turns)
"""


async def test_a_function_that_hangs_or_brings_its_process_down_harms_no_other_case(write_agent):
    agent = write_agent(ECHO, metrics=PICKY)
    says = ("one", "die", "two", "hang", "three")
    result = await evaluate(agent, sets(*says), config("picky"), parallel=4, workers=1, timeout=5.0)
    _, dead, _, hung, _ = picky = [metrics_of(result, number)["picky"] for number in range(len(says))]
    passed, error = Status.PASSED, Status.ERROR
    assert [one.status for one in picky] == [passed, error, passed, error, passed]
    assert "exit code 3" in dead.reason
    assert "no response within 5 s" in hung.reason
    assert "metrics.py:8 in picky" in hung.reason


async def test_an_edited_module_counts_in_the_next_run(write_agent):
    agent = write_agent(ECHO, metrics=METRICS)
    before = await evaluate(agent, sets(), config("asynchronous"))
    # Of the same size, and within the time that tells one compiled file from another.
    (agent / "metrics.py").write_text(METRICS.replace("_result(0.25,", "_result(0.75,"))
    after = await evaluate(agent, sets(), config("asynchronous"))
    assert [metrics_of(one)["asynchronous"].score for one in (before, after)] == [0.25, 0.75]


async def test_a_metric_gets_the_environment_of_the_agent(write_agent):
    metrics = """
        import os
        from evaltui import EvalStatus, EvaluationResult

        def keyed(metric, actual, expected, scenario):
            assert os.environ["SERVICE_KEY"] == "s3cret"
            return EvaluationResult(overall_score=1.0, overall_eval_status=EvalStatus.INFORMATIONAL)
    """
    agent = write_agent(ECHO, metrics=metrics)
    (agent / ".env").write_text("SERVICE_KEY=s3cret\n")
    metric = metrics_of(await evaluate(agent, sets(), config("keyed")))["keyed"]
    assert (metric.status, metric.score) == (Status.INFORMATIONAL, 1.0)
