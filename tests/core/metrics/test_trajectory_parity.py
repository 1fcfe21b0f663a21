"""Tool trajectories score as in google-adk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import call_pairs, metric_input, thresholds, turn

from evaltui.core.metrics.registry import run_metric
from evaltui.core.model.outcome import Status

eval_case = pytest.importorskip("google.adk.evaluation.eval_case")
eval_metrics = pytest.importorskip("google.adk.evaluation.eval_metrics")
adk = pytest.importorskip("google.adk.evaluation.trajectory_evaluator")

pytestmark = pytest.mark.compat

NAME = "tool_trajectory_avg_score"

match_types = st.sampled_from(
    [0, 1, 2, "EXACT", "in_order", " Any-Order ", "IN ORDER", "1", "FUZZY", 3, 1.0, True, None]
)
flags = st.sampled_from([True, False, 0, 1, "true", "no", "perhaps", None])
criteria = st.none() | st.fixed_dictionaries(
    {},
    optional={"match_type": match_types, "matchType": match_types, "ignore_args": flags, "ignoreArgs": flags},
)
# Mostly criteria that can be used.
usable_criteria = st.fixed_dictionaries(
    {},
    optional={
        "match_type": st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]),
        "ignore_args": st.booleans(),
    },
)
conversations = st.lists(st.tuples(call_pairs(), st.booleans(), st.booleans()), max_size=4)


def by_adk(metric, expected, actual):
    evaluator = adk.TrajectoryEvaluator(eval_metric=eval_metrics.EvalMetric.model_validate(metric))
    return evaluator.evaluate_invocations(
        [eval_case.Invocation.model_validate(each) for each in actual],
        [eval_case.Invocation.model_validate(each) for each in expected],
    )


@given(conversation=conversations, criterion=usable_criteria | criteria, threshold=thresholds)
def test_scores_and_verdicts_are_those_of_adk(conversation, criterion, threshold):
    expected = [turn(*calls, recorded=recorded) for (calls, _), recorded, _ in conversation]
    actual = [turn(*calls, recorded=recorded) for (_, calls), _, recorded in conversation]
    metric = {"metric_name": NAME, "threshold": threshold}
    if criterion is not None:
        metric["criterion"] = {"threshold": threshold, **criterion}

    ours = run_metric(
        metric_input(NAME, expected=expected, actual=actual, threshold=threshold, criterion=criterion)
    )

    try:
        theirs = by_adk(metric, expected, actual)
    except ValueError:
        # ADK reports an unusable criterion as not evaluated; here it is an error in the config.
        assert ours.status is Status.ERROR
        return
    assert ours.status.value == theirs.overall_eval_status.name
    assert ours.score == theirs.overall_score
    assert [(each.score, each.status.value) for each in ours.per_invocation] == [
        (each.score, each.eval_status.name) for each in theirs.per_invocation_results
    ]


@pytest.mark.parametrize("data", [None, {}, {"tool_uses": []}, {"invocation_events": []}])
def test_turn_without_expected_calls_forbids_calls_as_in_adk(data):
    expected, actual = [turn(intermediate_data=data)], [turn("get_time", recorded=True)]

    theirs = by_adk({"metric_name": NAME, "threshold": 1.0}, expected, actual)
    ours = run_metric(metric_input(NAME, expected=expected, actual=actual))

    assert (ours.score, ours.status.value) == (theirs.overall_score, theirs.overall_eval_status.name)
    assert ours.score == 0.0
