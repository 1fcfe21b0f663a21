"""Configs: metrics, thresholds, options and the block; ADK's own part stays what ADK reads."""

import json

import pytest

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.config import EvalConfig
from evaltui.documents.editing.config import ConfigEditor, new_config_text
from evaltui.documents.edits import EditError
from tests.changed_values import changed

TRAJECTORY = "tool_trajectory_avg_score"


def edited(config, change):
    after = changed(config, change, ConfigEditor)
    EvalConfig.model_validate(after)
    return after


def test_a_new_config_asks_for_what_applies_without_one():
    assert validate_config(json.loads(new_config_text()))[0] == EvalConfig.default()


def test_metrics_that_adk_lacks_go_to_the_block():
    config = edited({}, lambda one: one.add_metric(TRAJECTORY, 1.0))
    config = edited(config, lambda one: one.add_metric("trajectory_recall", 0.9))
    config = edited(config, lambda one: one.add_metric("trajectory_single_tool_use", 1.0))
    config = edited(config, lambda one: one.set_option("trajectory_single_tool_use", ("tool",), "pay"))
    config = edited(config, lambda one: one.add_metric("my_own", 0.5))
    assert config == {
        "criteria": {TRAJECTORY: 1.0, "my_own": 0.5},
        "evaltui": {
            "criteria": {
                "trajectory_recall": 0.9,
                "trajectory_single_tool_use": {"threshold": 1.0, "tool": "pay"},
            }
        },
    }
    config = edited(config, lambda one: one.remove_metric("trajectory_recall"))
    assert list(config["evaltui"]["criteria"]) == ["trajectory_single_tool_use"]
    with pytest.raises(EditError, match="already"):
        ConfigEditor(config).add_metric(TRAJECTORY, 1.0)
    with pytest.raises(EditError, match="always reported"):
        ConfigEditor(config).add_metric("token_usage_v1", 1.0)
    with pytest.raises(EditError, match="add it first"):
        ConfigEditor(config).set_threshold("response_match_score", 1.0)


def test_a_threshold_keeps_the_form_of_its_criterion():
    config = {"criteria": {"response_match_score": 0.8, TRAJECTORY: {"threshold": 1.0, "mine": 1}}}
    config = edited(config, lambda one: one.set_threshold("response_match_score", 0.5))
    config = edited(config, lambda one: one.set_threshold(TRAJECTORY, 0.5))
    assert config == {"criteria": {"response_match_score": 0.5, TRAJECTORY: {"threshold": 0.5, "mine": 1}}}
    assert edited(config, lambda one: one.set_threshold(TRAJECTORY, 0.5)) == config


def test_options_are_set_in_the_spelling_of_their_criterion():
    config = {
        "criteria": {TRAJECTORY: 1.0, "final_response_match_v2": {"threshold": 1, "judgeModelOptions": {}}}
    }
    config = edited(config, lambda one: one.set_option(TRAJECTORY, ("match_type",), "IN_ORDER"))
    assert config["criteria"][TRAJECTORY] == {"threshold": 1.0, "match_type": "IN_ORDER"}
    judge = ("judge_model_options", "num_samples")
    config = edited(config, lambda one: one.set_option("final_response_match_v2", judge, 3))
    assert config["criteria"]["final_response_match_v2"]["judgeModelOptions"] == {"numSamples": 3}
    config = edited(config, lambda one: one.set_option("final_response_match_v2", judge, None))
    assert config["criteria"]["final_response_match_v2"] == {"threshold": 1}
    config = edited(config, lambda one: one.set_option(TRAJECTORY, judge, 3))
    assert config["criteria"][TRAJECTORY]["judge_model_options"] == {"num_samples": 3}
    config = edited(config, lambda one: one.set_option(TRAJECTORY, ("match_type",), None))
    assert "match_type" not in config["criteria"][TRAJECTORY]
    assert edited(config, lambda one: one.set_option(TRAJECTORY, ("match_type",), None)) == config


@pytest.mark.parametrize("key", ["tool", "tool_name", "toolName"])
def test_the_tool_is_changed_under_the_name_it_has(key):
    config = {
        "criteria": {},
        "evaltui": {"criteria": {"trajectory_single_tool_use": {"threshold": 1, key: "a"}}},
    }
    after = edited(config, lambda one: one.set_option("trajectory_single_tool_use", ("tool",), "b"))
    assert after["evaltui"]["criteria"]["trajectory_single_tool_use"] == {"threshold": 1, key: "b"}


@pytest.mark.parametrize("config", [{}, {"evaltui": None}, {"evaltui": {"turns": []}}])
@pytest.mark.parametrize("name", ["thoughts", "outputs"])
def test_repeats_and_what_is_scored(config, name):
    config = {"criteria": {TRAJECTORY: 1.0}, **config}
    config = edited(config, lambda one: one.set_repeats(runs=5))
    config = edited(config, lambda one: one.set_repeats(pass_if=0.6))
    config = edited(config, lambda one: one.set_scored(name, "score"))
    assert config["evaltui"]["repeats"] == {"runs": 5, "pass_if": 0.6}
    assert config["evaltui"][name] == "score"
    assert edited(config, lambda one: one.set_repeats(runs=5)) == config
    assert edited(config, lambda one: one.set_scored(name, "score")) == config


@pytest.mark.parametrize("metric", METRICS)
def test_options_of_every_metric_can_be_set(metric):
    for option in METRICS[metric].options:
        value = option.default if option.default is not None else "pay"
        config = edited({}, lambda one: one.add_metric(metric, 1.0))
        config = edited(config, lambda one, at=option.path, value=value: one.set_option(metric, at, value))
        back = edited(config, lambda one, path=option.path: one.set_option(metric, path, None))
        found = back["criteria" if METRICS[metric].source == "adk" else "evaltui"]
        assert found.get("criteria", found)[metric] == {"threshold": 1.0}
        assert option.meaning.endswith(".")
        assert not option.choices or option.default in option.choices
