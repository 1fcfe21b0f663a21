"""google-adk itself reads what the edits make, and has the options that are offered."""

import json

import pytest

pytest.importorskip("google.adk")

from google.adk.evaluation import eval_metrics
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_set import EvalSet

from evaltui.core.metrics.registry import METRICS
from evaltui.documents.editing.config import ConfigEditor, new_config_text
from evaltui.documents.editing.set import SetEditor, new_set_text
from tests.changed_values import changed, changed_case, changed_set

pytestmark = pytest.mark.compat

CRITERIA = {
    "tool_trajectory_avg_score": eval_metrics.ToolTrajectoryCriterion,
    "final_response_match_v2": eval_metrics.LlmAsAJudgeCriterion,
    "rubric_based_final_response_quality_v1": eval_metrics.RubricsBasedCriterion,
    "rubric_based_tool_use_quality_v1": eval_metrics.RubricsBasedCriterion,
    "rubric_based_multi_turn_trajectory_quality_v1": eval_metrics.RubricsBasedCriterion,
    "hallucinations_v1": eval_metrics.HallucinationsCriterion,
    "per_turn_user_simulator_quality_v1": eval_metrics.LlmBackedUserSimulatorCriterion,
}


@pytest.mark.parametrize("metric", CRITERIA)
def test_options_and_their_defaults_are_those_of_adk(metric):
    for option in METRICS[metric].options:
        if (metric, option.name) == ("hallucinations_v1", "num_samples"):
            continue  # ADK does not read it there.
        default = CRITERIA[metric](threshold=1.0)
        if option.path[0] == "judge_model_options":
            default = default.judge_model_options
        found = getattr(default, option.name)
        assert getattr(found, "name", found) == option.default


def test_a_case_built_from_nothing_is_one_for_adk():
    data, config = json.loads(new_set_text("orders", 1.0)), json.loads(new_config_text())
    data = changed(data, lambda eval_set: eval_set.add_case(text="where is my order?"), SetEditor)
    data = changed_case(data, lambda case: case.insert_turn(1, "thanks"))
    data = changed_case(data, lambda case: case.turn(0).insert_call(0, "find_order", {"id": 7}))
    data = changed_case(data, lambda case: case.turn(0).call(0).add_response({"status": "late"}))
    data = changed_case(data, lambda case: case.turn(0).answer.set_text("It is late."))
    data, _ = changed_set(data, config, lambda eval_set: eval_set.case(0).turn(1).set_expectation("none"))
    data = changed_case(data, lambda case: case.session.state.put("city", "Bonn"))
    data = changed_case(data, lambda case: case.rubrics.add("is polite"))
    _, config = changed_set(data, config, lambda eval_set: eval_set.case(0).turn(1).set_context(on=True))
    config = changed(config, lambda one: one.add_metric("trajectory_recall", 0.5), ConfigEditor)
    config = changed(
        config,
        lambda one: one.set_option("tool_trajectory_avg_score", ("match_type",), "ANY_ORDER"),
        ConfigEditor,
    )
    case = EvalSet.model_validate_json(json.dumps(data)).eval_cases[0]
    assert case.conversation[0].intermediate_data.tool_uses[0].args == {"id": 7}
    assert case.conversation[1].intermediate_data.tool_uses == []
    assert list(EvalConfig.model_validate_json(json.dumps(config)).criteria) == [
        "tool_trajectory_avg_score",
        "response_match_score",
    ]
