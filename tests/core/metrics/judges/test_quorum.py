"""A metric whose judge gives a verdict in fewer than half of its answers is not evaluated."""

import json

import pytest
from judge_cases import JUDGED, rubric, verdicts
from judge_cases import judged as result_by
from judged_votes import NAMES, TEMPLATE, Expected, judged_repeat
from scripted_judge import MISSED, OUT_OF_QUOTA, ScriptedJudge, agent_details, judged, samples, turn

from evaltui import EvalCase, EvalConfig, Invocation
from evaltui.core.model.outcome import Status

TURN = turn("Hi", answer="Hello.", app_details=agent_details())
SCENARIO = {"starting_prompt": "Hi", "conversation_plan": "Say hi."}
# A judge that finds everything good, by a word in the metric's name.
GOOD = {
    "final_response_match": {"is_the_agent_response_valid": "valid"},
    "rubric": {"id": "short", "verdict": "yes"},
    "hallucinations": {"sentence": 1, "label": "supported"},
    "per_turn": {"is_valid": True},
    "response_evaluation": {"score": 5},
    "safety": {"score": 1},
    "multi_turn": {"score": 1},
}
UNREADABLE = "I cannot judge."


async def result_of(name, *answers, **marks):
    good = next(json.dumps(answer) for word, answer in GOOD.items() if word in name)
    script = [good if answer == "good" else answer for answer in answers]
    criterion = samples(len(answers)) | ({"rubrics": [rubric("short")]} if "rubric" in name else {})
    given = judged(
        name, TURN, expected=[TURN], scenario=SCENARIO, threshold=1.0, criterion=criterion, **marks
    )
    return await result_by(given, ScriptedJudge(*script))


@pytest.mark.parametrize("name", JUDGED)
async def test_fewer_than_half_of_the_votes_decide_nothing(name):
    result = await result_of(name, UNREADABLE, "good", OUT_OF_QUOTA, "good", UNREADABLE)
    assert (result.status, result.score) == (Status.NOT_EVALUATED, None)
    assert "3 of 5 votes without a verdict: unreadable judge response: 'I cannot judge.'" in result.reason
    assert [one.score for one in result.per_invocation] == [None]
    assert result.error.type == "UnreadableAnswerError"
    failed = await result_of(name, OUT_OF_QUOTA, UNREADABLE, "good")
    assert str(failed.error) == f"ClientError: {failed.reason}"

    enough = await result_of(name, UNREADABLE, "good", OUT_OF_QUOTA, "good", "good")
    assert enough.status is Status.PASSED
    assert "3 of 5 votes counted" in enough.per_invocation[0].reason
    half = await result_of(name, UNREADABLE, "good")
    assert half.status is Status.PASSED


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("as_adk", [False, True])
async def test_a_vote_that_a_replay_lacks_is_no_vote_without_a_verdict(name, as_adk):
    # google-adk gives no verdict on a simulated user where any request failed.
    status = Status.NOT_EVALUATED if as_adk and name.startswith("per_turn") else Status.ERROR
    for answers in ([MISSED, "good"], [MISSED, OUT_OF_QUOTA, "good", "good"], [MISSED]):
        result = await result_of(name, *answers, as_adk=as_adk)
        assert (result.status, result.score, result.error) == (status, None, MISSED.error)
        assert "not in recordings/s.jsonl" in result.reason


async def test_a_rubric_with_enough_votes_keeps_its_verdict_beside_one_with_too_few():
    answers = [verdicts(short="yes", polite="no"), *[verdicts(short="yes")] * 2]
    name = "rubric_based_final_response_quality_v1"
    criterion = samples(3) | {"rubrics": [rubric("short"), rubric("polite")]}
    inputs = judged(name, TURN, expected=[TURN], criterion=criterion)
    result = await result_by(inputs, ScriptedJudge(*answers))
    (turn_score,) = result.per_invocation
    assert (result.status, turn_score.score) == (Status.NOT_EVALUATED, None)
    assert result.reason == "turn 1: polite: 2 of 3 votes without a verdict: no vote on it"
    assert [one.score for one in turn_score.judgements] == [1.0, None]


TOO_FEW = "polite: 2 of 3 votes without a verdict: no vote on it"


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ({}, "not judged by the judge: polite"),
        ({"polite": "unknown"}, "no verdict of the judge on polite"),
        ({"polite": "yes"}, TOO_FEW),
        ({"polite": "no"}, TOO_FEW),
    ],
)
async def test_a_rubric_without_a_verdict_saves_no_turn_that_fails_without_it(first, reason):
    answers = [verdicts(short="no", **first), *[verdicts(short="no")] * 2]
    name = "rubric_based_final_response_quality_v1"
    criterion = samples(3) | {"rubrics": [rubric("short"), rubric("polite")]}
    for threshold, status in ((0.5, Status.NOT_EVALUATED), (0.6, Status.FAILED)):
        inputs = judged(name, TURN, expected=[TURN], criterion=criterion, threshold=threshold)
        result = await result_by(inputs, ScriptedJudge(*answers))
        (turn_score,) = result.per_invocation
        assert [(one.status, one.score) for one in (result, turn_score)] == [(status, None)] * 2
        assert result.reason == f"turn 1: not fulfilled: short; {reason}"
        assert [one.score for one in turn_score.judgements] == [0.0, None]


@pytest.mark.parametrize("answers", [["unknown"] * 3, ["yes", UNREADABLE, UNREADABLE]])
async def test_a_turn_without_a_verdict_saves_no_conversation_that_fails_without_it(answers):
    answers = [verdicts(short=word) if len(word) < 8 else word for word in (*["no"] * 3, *answers)]
    name = "rubric_based_final_response_quality_v1"
    criterion = samples(3) | {"rubrics": [rubric("short")]}
    inputs = judged(name, TURN, TURN, expected=[TURN, TURN], criterion=criterion, threshold=0.6)
    result = await result_by(inputs, ScriptedJudge(*answers))
    assert (result.status, result.score, result.reason) == (
        Status.FAILED,
        None,
        "turn 1: not fulfilled: short",
    )
    assert [one.status for one in result.per_invocation] == [Status.FAILED, Status.NOT_EVALUATED]


@pytest.mark.parametrize(
    ("word", "status"), [("no", Status.INFORMATIONAL), ("unknown", Status.NOT_EVALUATED)]
)
async def test_rubrics_without_a_threshold_are_measured_only_if_all_of_them_are(word, status):
    name = "rubric_based_final_response_quality_v1"
    block = {"metrics_to_run": {name: {"judge_model_options": {"num_samples": 1}}}}
    case = {"eval_id": "a", "conversation": [TURN], "rubrics": [rubric("short"), rubric("polite")]}
    expected = Expected("s", EvalCase.model_validate(case), EvalConfig.model_validate({"evaltui": block}))
    actual = [Invocation.model_validate(TURN)]
    repeat = await judged_repeat(expected, actual, lambda _: verdicts(short="no", polite=word))
    result = repeat.metrics[0]
    assert (result.status, result.per_invocation[0].status) == (status, status)


def test_each_judged_metric_has_generated_votes():
    assert {*NAMES} - {TEMPLATE} == {*JUDGED}


AS_ADK = [name for name in JUDGED if not name.startswith(("hallucinations", "rubric"))]


@pytest.mark.parametrize("name", AS_ADK)
async def test_as_adk_one_vote_of_five_decides(name):
    result = await result_of(name, *[UNREADABLE] * 4, "good", as_adk=True)
    assert (result.status, result.per_invocation[0].status) == (Status.PASSED, Status.PASSED)
