"""google-adk itself reads what the edits make, and has the options that are offered."""

import json

import pytest

pytest.importorskip("google.adk")

from google.adk.evaluation import eval_metrics
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_set import EvalSet

from evaltui.core.editing import calls, cases, criteria, expectation, session, turns
from evaltui.core.jsondoc.edits import apply_to_data
from evaltui.core.metrics.options import options_of

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
    for option in options_of(metric):
        if (metric, option.name) == ("hallucinations_v1", "num_samples"):
            continue  # ADK does not read it there.
        default = CRITERIA[metric](threshold=1.0)
        if option.path[0] == "judge_model_options":
            default = default.judge_model_options
        found = getattr(default, option.name)
        assert getattr(found, "name", found) == option.default


def test_a_case_built_from_nothing_is_one_for_adk():
    data, config = json.loads(cases.new_set_text("orders", 1.0)), json.loads(criteria.new_config_text())
    data = apply_to_data(data, cases.add_case(data, text="where is my order?"))
    data = apply_to_data(data, turns.add_turn(data, 0, "thanks"))
    data = apply_to_data(data, calls.add_call(data, 0, 0, "find_order", {"id": 7}))
    data = apply_to_data(data, calls.add_response(data, 0, 0, 0, {"status": "late"}))
    data = apply_to_data(data, turns.set_answer_text(data, 0, 0, "It is late."))
    data = apply_to_data(data, expectation.switch(data, config, 0, 1, "none").of_set)
    data = apply_to_data(data, session.put_state(data, 0, "city", "Bonn"))
    data = apply_to_data(data, session.add_rubric(data, 0, "is polite"))
    config = apply_to_data(config, expectation.set_context(data, config, 0, 1, on=True).of_config)
    config = apply_to_data(config, criteria.add_metric(config, "trajectory_recall", 0.5))
    config = apply_to_data(
        config, criteria.set_option(config, "tool_trajectory_avg_score", ("match_type",), "ANY_ORDER")
    )
    case = EvalSet.model_validate_json(json.dumps(data)).eval_cases[0]
    assert case.conversation[0].intermediate_data.tool_uses[0].args == {"id": 7}
    assert case.conversation[1].intermediate_data.tool_uses == []
    assert list(EvalConfig.model_validate_json(json.dumps(config)).criteria) == [
        "tool_trajectory_avg_score",
        "response_match_score",
    ]
