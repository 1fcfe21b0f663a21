"""Calls, tokens and seconds are counted as in google-adk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import invocations, metric_input, tool_calls, turn

from evaltui.core.metrics.efficiency import duration_split, token_usage
from evaltui.core.metrics.registry import METRICS, metrics_to_run, run_metric
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import Status

eval_case = pytest.importorskip("google.adk.evaluation.eval_case")
eval_metrics = pytest.importorskip("google.adk.evaluation.eval_metrics")
eval_config = pytest.importorskip("google.adk.evaluation.eval_config")

pytestmark = pytest.mark.compat

NAMES = ["tool_call_count_v1", "inference_call_count_v1", "token_usage_v1", "invocation_duration_v1"]

counts = st.integers(0, 5) | st.none()
usages = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        [
            "prompt_token_count",
            "tool_use_prompt_token_count",
            "candidates_token_count",
            "thoughts_token_count",
            "cached_content_token_count",
            "total_token_count",
        ],
        counts,
    ),
)
contents = st.lists(tool_calls.map(lambda call: {"function_call": call}), max_size=2).map(
    lambda parts: {"parts": parts}
)
events = st.fixed_dictionaries(
    {"author": st.just("agent")},
    optional={
        "usage_metadata": usages,
        "model_version": st.sampled_from(["", "gemini-test"]),
        "content": contents,
    },
)
data = st.one_of(
    st.none(),
    st.lists(tool_calls, max_size=3).map(lambda calls: {"tool_uses": calls}),
    st.lists(events, max_size=4).map(lambda found: {"invocation_events": found}),
)
seconds = st.none() | st.floats(0, 3) | st.sampled_from([0.0, 0.0005, 1.0])
turns = st.builds(
    lambda intermediate, total, model, tool: turn(
        intermediate_data=intermediate, duration=total, model_duration=model, tool_duration=tool
    ),
    data,
    seconds,
    seconds,
    seconds,
)


def details(result):
    """The parts of a compound value as ADK has them; tokens and seconds never come together."""
    given_parts = [
        part.model_dump()
        for name, part in result
        if name.endswith(("token_usage_details", "duration_details")) and part is not None
    ]
    return given_parts[0] if given_parts else {}


def registry():
    """It brings in much of Google Cloud, which takes seconds: not while tests are collected."""
    module = pytest.importorskip("google.adk.evaluation.metric_evaluator_registry")
    return module.DEFAULT_METRIC_EVALUATOR_REGISTRY


def evaluator(name, **fields):
    return registry().get_evaluator(eval_metrics.EvalMetric(metric_name=name, **fields))


@pytest.mark.parametrize("name", NAMES)
@given(actual=st.lists(turns, max_size=3))
def test_values_are_those_of_adk(name, actual):
    theirs = evaluator(name).evaluate_invocations(
        [eval_case.Invocation.model_validate(each) for each in actual]
    )

    ours = run_metric(metric_input(name, actual=actual, threshold=None, as_adk=True))

    assert ours.status.value == theirs.overall_eval_status.name == "INFORMATIONAL"
    assert ours.score == pytest.approx(theirs.overall_score, abs=1e-12)
    assert ours.details == pytest.approx(details(theirs), abs=1e-12)
    assert [(each.score, each.status.value) for each in ours.per_invocation] == [
        (each.score, each.eval_status.name) for each in theirs.per_invocation_results
    ]
    split = {"token_usage_v1": token_usage, "invocation_duration_v1": duration_split}.get(name)
    if split:
        assert [split(each) for each in invocations(actual)] == [
            details(each) for each in theirs.per_invocation_results
        ]


@pytest.mark.parametrize("name", NAMES)
def test_threshold_is_refused_as_in_adk(name):
    with pytest.raises(ValueError, match="does not support a threshold"):
        evaluator(name, threshold=1.0)

    assert run_metric(metric_input(name, actual=[turn()])).status is Status.NOT_EVALUATED


def test_the_registry_knows_the_metrics_and_ranges_of_adk():
    infos = registry().get_registered_metrics()
    theirs = set()
    for info in infos:
        interval = info.metric_value_info.interval
        theirs.add(
            (
                str(getattr(info.metric_name, "value", info.metric_name)),
                (interval.min_value, interval.max_value) if interval else None,
                info.requires_threshold,
            )
        )

    ours = {(info.name, info.interval, info.gates) for info in METRICS.values() if info.source == "adk"}

    assert ours == theirs


@given(
    criteria=st.dictionaries(
        st.sampled_from([*NAMES, "response_match_score", "tool_trajectory_avg_score", "mine"]),
        st.floats(0, 1) | st.fixed_dictionaries({"threshold": st.floats(0, 1)}),
    )
)
def test_the_metrics_to_run_are_those_of_adk(criteria):
    custom = {"mine": {"code_config": {"name": "metrics.mine"}}}
    content = {"criteria": criteria, "custom_metrics": custom}
    theirs = eval_config.get_eval_metrics_from_config(eval_config.EvalConfig.model_validate(content))

    ours = metrics_to_run(EvalConfig.model_validate(content))

    assert [(m.metric_name, m.threshold, m.custom_function_path) for m in ours] == [
        (m.metric_name, m.threshold, m.custom_function_path) for m in theirs
    ]
