"""Configs that say the same in other words, and those that do not."""

import pytest

from evaltui.core.metrics.normal_config import normal_config, score_alike
from evaltui.core.model.config import EvalConfig

MATCH = {"response_match_score": 0.8}
CALLS = "tool_trajectory_avg_score"
JUDGE = "final_response_match_v2"
SENTENCES = "hallucinations_v1"
PRICES = {"m": {"input_mtok": 1.0, "output_mtok": 2.0}}
FUNCTION = {"words": {"code_config": {"name": "agent.words"}}}


def rule(arg, match="ignore", **more):
    return {"tool": "find", "arg": arg, "match": match, **more}


def mark(turn, mode="context"):
    return {"set": "s", "case": "a", "turn": turn, "mode": mode}


def block(criteria=MATCH, /, **evaltui):
    return {"criteria": criteria, "evaltui": evaltui}


def criterion(name, **more):
    return {"criteria": {name: {"threshold": 1.0, **more}}}


def judged(name=JUDGE, **options):
    return criterion(name, judge_model_options=options)


SAME = {
    "a threshold and an object": ({"criteria": MATCH}, criterion("response_match_score", threshold=0.8)),
    "a number in quotes": ({"criteria": MATCH}, {"criteria": {"response_match_score": "0.8"}}),
    "order": ({"criteria": {**MATCH, CALLS: 1}}, {"criteria": {CALLS: 1.0, **MATCH}}),
    "spelling of a key": (criterion(CALLS, match_type="IN_ORDER"), criterion(CALLS, matchType="IN_ORDER")),
    "spelling of a value": (criterion(CALLS, match_type="in order"), criterion(CALLS, match_type=1)),
    "defaults": (
        {"criteria": {CALLS: 1.0}},
        criterion(CALLS, match_type="EXACT", ignore_args=False, lower_is_better=False),
    ),
    "defaults of a judge": (
        {"criteria": {JUDGE: 1.0}},
        judged(judge_model="gemini-2.5-flash", num_samples=5),
    ),
    "no options of a judge": ({"criteria": {JUDGE: 1.0}}, criterion(JUDGE, judge_model_options=None)),
    "spelling of options": (
        judged(num_samples=3),
        criterion(JUDGE, judgeModelOptions={"numSamples": 3}),
    ),
    "default of sentences": ({"criteria": {SENTENCES: 1.0}}, judged(SENTENCES, num_samples=1)),
    "the tool": (
        criterion("trajectory_single_tool_use", tool="find"),
        criterion("trajectory_single_tool_use", toolName="find"),
    ),
    "rubrics": (
        criterion("rubric_based_tool_use_quality_v1", rubrics=[{"rubric_id": "a", "type": None}]),
        criterion("rubric_based_tool_use_quality_v1", rubrics=[{"rubricId": "a"}]),
    ),
    "a metric of ours under criteria": (
        {"criteria": {"trajectory_recall": 1.0}},
        block({}, criteria={"trajectory_recall": 1.0}),
    ),
    "prices without a cost metric": (block(), block(prices=PRICES)),
    "optional without a metric": (block(), block(optional=["safety_v1"])),
    "optional in another order": (
        block({**MATCH, CALLS: 1}, optional=[CALLS, "response_match_score"]),
        block({**MATCH, CALLS: 1}, optional=["response_match_score", CALLS, CALLS]),
    ),
    "tags": (block(), block(tags=[{"set": "s", "case": "a", "tags": ["slow"]}])),
    "an empty block": ({"criteria": MATCH}, {"criteria": MATCH, "evaltui": None}),
    "the default of repeats": (block(), block(repeats={"runs": 1, "pass_if": "all"})),
    "order of rules": (block(rules=[rule("a"), rule("b")]), block(rules=[rule("b"), rule("a")])),
    "spelling of a path": (block(rules=[rule("a.b")]), block(rules=[rule("a['b']", set=None)])),
    "marks": (block(turns=[mark(1), mark(0)]), block(turns=[mark(0, "skip"), mark(0), mark(1)])),
    "a default user": ({"criteria": MATCH}, {"criteria": MATCH, "userSimulatorConfig": {"type": None}}),
    "a written user": (
        {"criteria": MATCH},
        {
            "criteria": MATCH,
            "user_simulator_config": {
                "maxAllowedInvocations": 20,
                "modelConfiguration": {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 10240}},
            },
        },
    ),
    "a function without a criterion": ({"criteria": MATCH}, {"criteria": MATCH, "custom_metrics": FUNCTION}),
    "the description of a function": (
        {"criteria": {"words": 1.0}, "custom_metrics": FUNCTION},
        {"criteria": {"words": 1.0}, "customMetrics": {"words": {**FUNCTION["words"], "description": "x"}}},
    ),
    "live runs": ({"criteria": MATCH}, {"criteria": MATCH, "live_model_config": {"voice": "x"}}),
}

OTHER = {
    "a threshold": ({"criteria": MATCH}, {"criteria": {"response_match_score": 0.9}}),
    "an option": ({"criteria": {CALLS: 1.0}}, criterion(CALLS, ignoreArgs=True)),
    "a vote": ({"criteria": {JUDGE: 1.0}}, judged(num_samples=3)),
    "votes on sentences": ({"criteria": {SENTENCES: 1.0}}, judged(SENTENCES, num_samples=5)),
    "prices of a cost metric": (
        block(criteria={"cost_usd": 1.0}),
        block(criteria={"cost_usd": 1.0}, prices=PRICES),
    ),
    "optional": (block(), block(optional=["response_match_score"])),
    "a rule": (block(rules=[rule("a")]), block(rules=[rule("a", "type")])),
    "which of two rules counts": (
        block(rules=[rule("a[*][0]"), rule("a[0][*]", "type")]),
        block(rules=[rule("a[0][*]", "type"), rule("a[*][0]")]),
    ),
    "the last mark": (block(turns=[mark(0), mark(0, "skip")]), block(turns=[mark(0, "skip"), mark(0)])),
    "a key of a function": (
        {"criteria": {"words": {"threshold": 1.0, "maxWords": 5}}, "custom_metrics": FUNCTION},
        {"criteria": {"words": {"threshold": 1.0, "max_words": 5}}, "custom_metrics": FUNCTION},
    ),
    "a function": (
        {"criteria": {"words": 1.0}, "custom_metrics": FUNCTION},
        {"criteria": {"words": 1.0}, "custom_metrics": {"words": {"code_config": {"name": "agent.others"}}}},
    ),
    "a user": ({"criteria": MATCH}, {"criteria": MATCH, "user_simulator_config": {"model": "other"}}),
    "repeats": (block(), block(repeats={"pass_if": "majority"})),
    "thoughts": (block(), block(thoughts="score")),
}


def forms(*configs):
    """Of configs as they are written, and as a run log has them."""
    models = [EvalConfig.model_validate(config) for config in configs]
    written = [normal_config(config) for config in configs]
    assert [normal_config(model.scoring()) for model in models] == written
    return written, score_alike(*models)


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_the_same_in_other_words(one, other):
    (first, second), is_same = forms(one, other)
    assert first == second
    assert is_same


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_what_scores_otherwise(one, other):
    (first, second), is_same = forms(one, other)
    assert first != second
    assert not is_same


def test_a_config_that_cannot_be_read_is_as_it_is():
    assert normal_config({"evaltui": {"later": 1}}) == {"evaltui": {"later": 1}}
