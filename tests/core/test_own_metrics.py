"""What a config says of the user's own metrics and cannot mean."""

import pytest

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.metrics.metric import MetricInput
from evaltui.core.metrics.registry import run_metric
from evaltui.core.model.config import EvalConfig

CODE = {"code_config": {"name": "my_agent.metrics.kind"}}
SHORT = {"threshold": 0.5, "function": "my_agent.metrics.brief"}


def info(name="kind", **more):
    interval = {"min_value": -1.0, "max_value": 1.0, **more}
    return {"metric_name": name, "metric_value_info": {"interval": interval}}


def problems(config):
    return [f"{problem.severity} {problem}" for problem in validate_config(config)[1]]


def test_nothing_is_wrong_with_what_is_documented():
    custom = {"kind": {**CODE, "metric_info": info()}}
    own = {
        "brief": {**SHORT, "limit": 100, "lower_is_better": True, "interval": {"minValue": 0, "maxValue": 9}}
    }
    config = {"criteria": {"kind": 0.5}, "custom_metrics": custom, "evaltui": {"criteria": own}}
    assert problems(config) == []
    kind, brief = validate_config(config)[0].metrics()
    assert (kind.custom_function_path, kind.scores_turns, kind.lower_is_better) == (
        "my_agent.metrics.kind",
        False,
        False,
    )
    assert (brief.custom_function_path, brief.scores_turns, brief.lower_is_better) == (
        "my_agent.metrics.brief",
        True,
        True,
    )
    assert (str(kind.interval), str(brief.interval)) == ("-1 to 1", "0 to 9")
    assert brief.criterion.limit == 100


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"criteria": {"brief": SHORT}},
            "error criteria.brief: a metric in short form belongs under "
            "evaltui.criteria; under criteria google-adk cannot find the metric",
        ),
        (
            {"criteria": {"safety_v1": 1}, "custom_metrics": {"kind": CODE}},
            "warning custom_metrics.kind: is not a criterion, so it is not computed; "
            "add it to criteria with a threshold",
        ),
        (
            {"criteria": {"kind": 1}, "customMetrics": {"kind": {"codeConfig": {"name": "kind"}}}},
            "error customMetrics.kind.codeConfig.name: 'kind' is not the path of a function, such as "
            "my_agent.metrics.kind",
        ),
        (
            {"criteria": {"kind": 1}, "custom_metrics": {"kind": {**CODE, "metric_info": info("kin")}}},
            "warning custom_metrics.kind.metric_info.metric_name: is 'kin', but the metric is called 'kind'",
        ),
        (
            {
                "criteria": {"kind": {"threshold": 2}},
                "custom_metrics": {"kind": {**CODE, "metric_info": info()}},
            },
            "error criteria.kind: its threshold, 2, is outside of its range, -1 to 1",
        ),
        (
            {
                "criteria": {"kind": 0},
                "custom_metrics": {"kind": {**CODE, "metric_info": info(max_value=-5)}},
            },
            "warning custom_metrics.kind.metric_info.metric_value_info.interval: no score is -1 to -5: "
            "min_value is greater than max_value",
        ),
        (
            {
                "criteria": {"kind": 0},
                "custom_metrics": {"kind": {**CODE, "metric_info": {**info(), "lower_is_better": True}}},
            },
            "error custom_metrics.kind.metric_info.lower_is_better: google-adk refuses it here; write it "
            "beside the threshold of kind, under criteria",
        ),
        (
            {
                "criteria": {"kind": 0},
                "custom_metrics": {"kind": {**CODE, "metric_info": {"metric_name": "kind"}}},
            },
            "error custom_metrics.kind.metric_info.metric_value_info: missing",
        ),
        (
            {"criteria": {"response_match_score": {"threshold": 0.5, "lower_is_better": True}}},
            "warning criteria.response_match_score.lower_is_better: allowed for "
            "custom metrics only; higher is better for this metric",
        ),
        (
            {"evaltui": {"criteria": {"trajectory_recall": {"threshold": 0.5, "lower_is_better": True}}}},
            "error evaltui.criteria.trajectory_recall.lower_is_better: allowed for "
            "custom metrics only; higher is better for this metric",
        ),
        (
            {"evaltui": {"criteria": {"brief": {**SHORT, "function": "brief"}}}},
            "error evaltui.criteria.brief.function: 'brief' is not the path of a function, such as "
            "my_agent.metrics.my_metric",
        ),
        (
            {"custom_metrics": {"brief": CODE}, "evaltui": {"criteria": {"brief": SHORT}}},
            "warning evaltui.criteria.brief.function: custom_metrics has a brief too; this one counts",
        ),
        (
            {"evaltui": {"criteria": {"brief": {**SHORT, "interval": {"min_value": 1, "max_value": 2}}}}},
            "error evaltui.criteria.brief: its threshold, 0.5, is outside of its range, 1 to 2",
        ),
        (
            {
                "evaltui": {
                    "criteria": {
                        "trajectory_recall": {"threshold": 1, "interval": {"min_value": 0, "max_value": 1}}
                    }
                }
            },
            "warning evaltui.criteria.trajectory_recall.interval: is for metrics that name their function "
            "here, and this one does not",
        ),
    ],
)
def test_what_cannot_be_meant_is_told(config, said):
    assert problems(config) == [said]


def test_a_misplaced_function_says_so_in_the_result():
    config = EvalConfig.model_validate({"criteria": {"brief": SHORT}})
    result = run_metric(MetricInput(expected=(), actual=(), metric=config.metrics()[0]))
    assert result.status == "NOT_EVALUATED"
    assert result.reason.startswith("a metric in short form belongs under evaltui.criteria")


@pytest.mark.compat
@pytest.mark.parametrize(
    "custom",
    [
        CODE,
        {**CODE, "lower_is_better": True},
        {**CODE, "metric_info": None},
        {**CODE, "metric_info": info()},
        {**CODE, "metric_info": info(open_at_max=True)},
        {**CODE, "metric_info": info(open=True)},
        {**CODE, "metric_info": {**info(), "lower_is_better": True}},
        {**CODE, "metric_info": {"metric_name": "kind"}},
        {**CODE, "metric_info": {"metric_name": "kind", "metric_value_info": {}}},
        {"code_config": {"name": "a.b", "args": []}},
    ],
)
def test_google_adk_reads_the_same_configs(custom):
    adk = pytest.importorskip("google.adk.evaluation.eval_config")
    own = {"brief": {**SHORT, "lower_is_better": True}}
    data = {
        "criteria": {"kind": {"threshold": 0.5, "lower_is_better": True}},
        "custom_metrics": {"kind": custom},
        "evaltui": {"criteria": own},
    }
    ours, found = validate_config(data)
    try:
        theirs = adk.EvalConfig.model_validate(data)
    except ValueError:
        theirs = None
    assert (ours is None) == (theirs is None), found
    if theirs is not None:
        assert [one.metric_name for one in adk.get_eval_metrics_from_config(theirs)][:1] == ["kind"]
        assert theirs.criteria["kind"].lower_is_better is True
