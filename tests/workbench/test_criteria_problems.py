"""What is wrong with a config as it is edited: each with its path, and what to do."""

import pytest

from evaltui.workbench.criteria.criteria import config_problems


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"criteria": {"response_match_scor": 0.7}},
            "criteria.response_match_scor: unknown metric response_match_scor. "
            "Did you mean response_match_score?",
        ),
        (
            {"criteria": {"response_match_score": 7}},
            "criteria.response_match_score: its threshold, 7, is outside of its range, 0 to 1",
        ),
        (
            {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "IN_ORDR"}}},
            "criteria.tool_trajectory_avg_score: match_type must be EXACT, "
            "IN_ORDER or ANY_ORDER, not 'IN_ORDR'",
        ),
        (
            {
                "criteria": {
                    "safety_v1": {
                        "threshold": 1,
                        "judge_model_options": {"judge_model": "google/gemini-2.5-flash"},
                    }
                }
            },
            "criteria.safety_v1: the judge google/gemini-2.5-flash is not a Gemini model. "
            "Did you mean gemini-2.5-flash? Gemini models have no provider prefix",
        ),
        (
            {"evaltui": {"criteria": {"trajectory_single_tool_use": 1}}},
            "evaltui.criteria.trajectory_single_tool_use: needs the name of the tool: "
            'give the criterion a "tool" key',
        ),
        (
            {
                "criteria": {
                    "tool_trajectory_avg_score": {"threshold": 1, "matchType": "EXACT", "match_type": "EXACT"}
                }
            },
            "criteria.tool_trajectory_avg_score.match_type: given twice, also as matchType; remove one",
        ),
        (
            {"criteria": {"response_match_score": 1}, "custom_metrics": {}, "customMetrics": {}},
            "custom_metrics: given twice, also as customMetrics; remove one",
        ),
        (
            {"criteria": {"trajectory_recall": 1}, "evaltui": {"criteria": {"trajectory_recall": 0.5}}},
            "criteria.trajectory_recall: ignored: evaltui.criteria has it, too. Remove one",
        ),
    ],
)
def test_a_problem_names_the_place_and_what_to_do(config, problem):
    assert [str(one) for one in config_problems(config)] == [problem]


def test_an_error_elsewhere_hides_no_other():
    criteria = {"response_match_scor": 0.7, "safety_v1": {"threshold": "high"}}
    found = [str(one) for one in config_problems({"criteria": criteria, "evaltui": {"repeats": {"runs": 0}}})]
    assert [one.partition(":")[0] for one in found] == [
        "criteria.safety_v1.threshold",
        "evaltui.repeats.runs",
        "criteria.response_match_scor",
    ]


@pytest.mark.parametrize("data", [{}, {"criteria": []}, {"criteria": {"a": None}}, {"evaltui": 3}])
def test_any_object_can_be_checked(data):
    assert config_problems(data)
