"""What comes of the scores that a function in short form gives, and of the ranges that configs promise."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import invocations, turn

from evaltui.core.metrics.custom import rejudge, result_of_evaluation, result_of_turns
from evaltui.core.metrics.metric import MetricInput
from evaltui.core.model.config import EvalConfig, Interval
from evaltui.core.model.outcome import ErrorInfo, Status

scores = st.lists(st.none() | st.floats(-10, 10), min_size=1, max_size=5)


def short(threshold=0.5, **more):
    criterion = {"threshold": threshold, "function": "my_agent.metrics.brevity", **more}
    config = EvalConfig.model_validate({"evaltui": {"criteria": {"brevity": criterion}}})
    return config.metrics()[0]


def given_turns(metric, count, **marks):
    actual = invocations([turn("a", answer="Please.")] * count)
    return MetricInput(expected=None, actual=actual, metric=metric, **marks)


def result(metric, *found, **marks):
    return result_of_turns(given_turns(metric, len(found), **marks), [{"score": one} for one in found])


@given(scores, st.floats(-10, 10), st.booleans())
def test_the_verdict_is_that_of_the_threshold_on_the_mean(found, threshold, lower):
    metric = short(threshold, lower_is_better=lower)
    out = result(metric, *found)
    known = [score for score in found if score is not None]
    assert [one.score for one in out.per_invocation] == found
    if not known:
        assert (out.status, out.score, out.reason) == (
            Status.NOT_EVALUATED,
            None,
            "no score from its function",
        )
        return
    assert min(known) - 1e-9 <= out.score <= max(known) + 1e-9
    passes = out.score <= threshold if lower else out.score >= threshold
    assert out.status is (Status.PASSED if passes else Status.FAILED)


@given(scores, st.floats(-10, 10), st.floats(-10, 10))
def test_another_threshold_gives_what_it_would_have_given(found, before, after):
    assert rejudge(result(short(before), *found), short(after)) == result(short(after), *found)


def test_a_turn_that_raised_makes_it_an_error_whatever_the_others_are():
    error = ErrorInfo(
        "ZeroDivisionError", "division by zero", "Traceback ...", "metrics.py:3 in brevity", kind=None
    )
    turns = [{"score": 1.0}, {"error": asdict(error)}, {"score": None}]
    out = result_of_turns(given_turns(short(), 3), turns)
    assert (out.status, out.score, out.error) == (Status.ERROR, None, error)
    assert out.reason == "turn 2: metrics.py:3 in brevity: ZeroDivisionError: division by zero"
    assert [one.score for one in out.per_invocation] == [1.0, None, None]
    context = result_of_turns(given_turns(short(), 3, context=frozenset([1])), turns)
    assert (context.status, context.score) == (Status.PASSED, 1.0)
    assert rejudge(out, short(0.1)).status is Status.ERROR


@pytest.mark.parametrize("wrong", [{"score": "1"}, {"score": True}, {"error": "what"}])
def test_what_is_no_score_is_an_error(wrong):
    out = result_of_turns(given_turns(short(), 1), [wrong])
    assert out.status is Status.ERROR
    assert out.reason.startswith("my_agent.metrics.brevity returned an unusable result: ")


def test_a_score_that_the_config_does_not_promise_is_an_error():
    metric = short(0.5, interval={"min_value": 0, "max_value": 1})
    assert result(metric, 1.0, 0.0).status is Status.PASSED
    out = result(metric, 1.0, 3.0)
    assert (out.status, out.score) == (Status.ERROR, None)
    assert out.reason.endswith("the score 3, where the config promises 0 to 1")
    assert [one.score for one in out.per_invocation] == [1.0, 3.0]


def with_info(**interval):
    info = {
        "metric_name": "x",
        "metric_value_info": {"interval": {"min_value": -1, "max_value": 1, **interval}},
    }
    custom = {"x": {"code_config": {"name": "my_agent.metrics.x"}, "metric_info": info}}
    return EvalConfig.model_validate({"criteria": {"x": 0.5}, "custom_metrics": custom}).metrics()[0]


@pytest.mark.parametrize(
    ("metric", "overall", "of_turn", "fits"),
    [
        (with_info(), -0.5, 1.0, True),
        (with_info(), 1.0000000001, 1.0, True),
        (with_info(), 0.5, 1.5, False),
        (with_info(), -1.5, 0.5, False),
        (with_info(), None, None, True),
        (with_info(open_at_max=True), 1.0, 0.0, False),
        (with_info(open_at_min=True), -1.0, 0.0, False),
    ],
)
def test_metric_info_is_a_promise_but_for_adk(metric, overall, of_turn, fits):
    returned = {
        "overall_score": overall,
        "overall_eval_status": "PASSED",
        "per_invocation_results": [{"score": of_turn, "eval_status": "PASSED"}],
    }
    out = result_of_evaluation(given_turns(metric, 1), returned, "metrics.py:3 in x")
    assert out.status is (Status.PASSED if fits else Status.ERROR)
    assert fits or out.error.where == "metrics.py:3 in x"
    as_adk = result_of_evaluation(given_turns(metric, 1, as_adk=True), returned)
    assert (as_adk.status, as_adk.score) == (Status.PASSED, overall)


def test_intervals_in_words():
    assert str(Interval(min_value=-1, max_value=1)) == "-1 to 1"
    closed = Interval(min_value=0, open_at_min=True, max_value=5, open_at_max=True)
    assert str(closed) == "above 0 to below 5"


def test_rubric_scores_of_the_whole_stand_at_the_last_turn():
    rubric = {"rubric_id": "kind", "rubric_content": {"text_property": "It is kind."}}
    config = {
        "criteria": {"x": {"threshold": 0.5, "rubrics": [rubric, "what"]}},
        "custom_metrics": {"x": {"code_config": {"name": "my_agent.metrics.x"}}},
    }
    returned = {
        "overall_score": 1.0,
        "overall_eval_status": "PASSED",
        "per_invocation_results": [{"score": 1.0, "eval_status": "PASSED"}] * 2,
        "overall_rubric_scores": [
            {"rubric_id": "kind", "score": 1.0, "rationale": "It greets."},
            {"rubric_id": "brief", "score": None},
        ],
    }
    metric = EvalConfig.model_validate(config).metrics()[0]
    first, last = result_of_evaluation(given_turns(metric, 2), returned).per_invocation
    assert first.judgements == ()
    found = [(one.id, one.subject, one.score, one.rationale) for one in last.judgements]
    assert found == [("kind", "It is kind.", 1.0, "It greets."), ("brief", "", None, "")]
