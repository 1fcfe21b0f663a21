"""Answers and conversations that a judge gives a number."""

import json

import pytest
from scripted_judge import (
    OUT_OF_QUOTA,
    ScriptedJudge,
    agent_details,
    called,
    event,
    judged,
    nobody,
    returned,
    samples,
    turn,
)

from evaltui.core.metrics.judges.quality import (
    Scale,
    multi_turn_task_success_v1,
    multi_turn_tool_use_quality_v1,
    multi_turn_trajectory_quality_v1,
    read_rating,
    response_evaluation_score,
    safety_v1,
)
from evaltui.core.metrics.metric import CriterionError
from evaltui.core.model.judgement import Evidence
from evaltui.core.model.outcome import Status

QUALITY, SAFETY = "response_evaluation_score", "safety_v1"
MULTI_TURN = {
    "multi_turn_task_success_v1": multi_turn_task_success_v1,
    "multi_turn_trajectory_quality_v1": multi_turn_trajectory_quality_v1,
    "multi_turn_tool_use_quality_v1": multi_turn_tool_use_quality_v1,
}
ONE_TO_FIVE = Scale(1, 5)
ASKED = turn(
    "Where is A1?",
    event(called("look_up", order="A1")),
    event(returned("look_up", status="shipped")),
    answer="It shipped.",
    app_details=agent_details(),
)
THANKS = turn("Thanks", answer="You are welcome.")


def rated(score, reason="so it is", **more):
    return json.dumps({"reason": reason, "score": score, **more})


async def test_the_middle_rating_counts_and_the_mean_over_turns():
    judge = ScriptedJudge(
        rated(1), rated(5), rated(4, "clear", **{"for": ["It shipped."], "against": "no date"}),
        rated(2), rated(2), rated(3),
    )  # fmt: skip
    given = judged(QUALITY, ASKED, THANKS, threshold=3, criterion=samples(3))
    result = await response_evaluation_score(given, judge)

    assert (result.score, result.status) == (3.0, Status.PASSED)
    first, second = result.per_invocation
    assert (first.score, first.status) == (4.0, Status.PASSED)
    (judgement,) = first.judgements
    assert (judgement.subject, judgement.rationale) == ("the response", "clear")
    assert judgement.evidence == (
        Evidence("speaks for", "It shipped."),
        Evidence("speaks against", "no date"),
    )
    assert [vote.score for vote in judgement.votes] == [1.0, 5.0, 4.0]
    assert (second.status, second.reason) == (Status.FAILED, "rated 2 on a scale from 1 to 5: so it is")
    assert (result.judge.prompt, result.judge.asked) == ("response_evaluation/1", 6)


async def test_the_judge_sees_what_happened_and_the_expected_answer_where_there_is_one():
    expected = [turn("Where is A1?", answer="Shipped on May 1."), turn("Thanks")]
    judge = ScriptedJudge(lambda question: rated(5))
    await response_evaluation_score(judged(QUALITY, ASKED, THANKS, threshold=3, expected=expected), judge)
    first, second = judge.questions[0].prompt, judge.questions[5].prompt
    assert "Shipped on May 1." in first
    assert "Shipped on May 1." not in second
    assert "(none is given)" in second
    assert '"response": {"status": "shipped"}' in first
    assert "Thanks" not in first
    assert '{"turn": 1, "answer": "It shipped."}' in second
    without = ScriptedJudge(lambda question: rated(5))
    result = await response_evaluation_score(judged(QUALITY, ASKED, threshold=3), without)
    assert result.status is Status.PASSED

    as_adk = await response_evaluation_score(judged(QUALITY, ASKED, threshold=3, as_adk=True), nobody)
    assert as_adk.status is Status.NOT_EVALUATED


@pytest.mark.parametrize("threshold", [0.8, 0, 5.5])
async def test_a_threshold_that_is_off_the_scale_is_refused(threshold):
    with pytest.raises(CriterionError, match="has scores from 1 to 5; a threshold of"):
        await response_evaluation_score(judged(QUALITY, ASKED, threshold=threshold), nobody)
    judge = ScriptedJudge(lambda question: rated(1))
    given = judged(QUALITY, ASKED, expected=[ASKED], threshold=threshold, as_adk=True)
    assert (await response_evaluation_score(given, judge)).score == 1.0


async def test_no_answer_is_the_worst_answer_and_harms_nobody():
    result = await response_evaluation_score(judged(QUALITY, turn("Hi"), threshold=1.5), nobody)
    assert (result.score, result.status, result.reason) == (
        1.0,
        Status.FAILED,
        "turn 1: no response text",
    )
    result = await safety_v1(judged(SAFETY, turn("Hi")), nobody)
    assert (result.score, result.status, result.judge) == (None, Status.NOT_EVALUATED, None)


async def test_failed_questions_and_unreadable_answers_are_passed_over_while_others_count():
    judge = ScriptedJudge(OUT_OF_QUOTA, rated(0.5), rated(7), rated(0.5), rated(1))
    result = await safety_v1(judged(SAFETY, THANKS), judge)
    assert (result.score, result.status) == (0.5, Status.PASSED)
    assert result.per_invocation[0].reason == "3 of 5 votes counted"
    assert (result.judge.asked, result.judge.answered) == (5, 4)
    problems = [vote.problem for vote in result.per_invocation[0].judgements[0].votes]
    assert problems == [
        "ClientError: 429 quota exceeded",
        "",
        "7 is not a score from 0 to 1",
        "",
        "",
    ]


@pytest.mark.parametrize("answer", [OUT_OF_QUOTA, "nonsense", rated(None)])
async def test_nothing_that_counts_is_an_error(answer):
    result = await safety_v1(judged(SAFETY, THANKS), ScriptedJudge(lambda question: answer))
    assert (result.score, result.status) == (None, Status.ERROR)
    assert result.error.type == ("ClientError" if answer is OUT_OF_QUOTA else "UnreadableAnswerError")
    assert result.reason.startswith("turn 1: ")
    as_adk = await safety_v1(judged(SAFETY, THANKS, as_adk=True), ScriptedJudge(lambda question: answer))
    assert as_adk.status is Status.NOT_EVALUATED
    assert (as_adk.error is not None) == (answer is OUT_OF_QUOTA)


@pytest.mark.parametrize("name", MULTI_TURN)
async def test_a_conversation_is_rated_once_on_its_last_turn(name):
    judge = ScriptedJudge(lambda question: rated(0.75))
    result = await MULTI_TURN[name](judged(name, ASKED, THANKS, threshold=0.7), judge)
    assert (result.score, result.status) == (0.75, Status.PASSED)
    first, last = result.per_invocation
    assert (first.status, first.reason) == (
        Status.NOT_EVALUATED,
        "judged with the whole conversation, on turn 2",
    )
    assert (last.score, last.judgements[0].subject) == (0.75, "the conversation")
    assert {(question.turn, question.prompt) for question in judge.questions} == {
        (1, judge.questions[0].prompt)
    }
    assert len(judge.questions) == 5
    for told in ("Be kind.", "Where is A1?", '"tool_call": "look_up"', "It shipped.", "You are welcome."):
        assert told in judge.questions[0].prompt
    assert result.judge.prompt == name.replace("_v1", "/1")


@pytest.mark.parametrize("name", [QUALITY, SAFETY, *MULTI_TURN])
async def test_turns_that_cannot_be_paired_are_not_judged(name):
    metric = {QUALITY: response_evaluation_score, SAFETY: safety_v1, **MULTI_TURN}[name]
    result = await metric(judged(name, ASKED, expected=[ASKED, THANKS], threshold=1), nobody)
    assert (result.status, result.reason) == (
        Status.NOT_EVALUATED,
        "cannot be paired: 2 turns expected, 1 turn run",
    )


@pytest.mark.parametrize("name", MULTI_TURN)
async def test_a_context_turn_at_the_end_is_not_judged(name):
    judge = ScriptedJudge(lambda question: rated(1))
    result = await MULTI_TURN[name](judged(name, ASKED, THANKS, context=frozenset({1})), judge)
    assert [one.status for one in result.per_invocation] == [Status.PASSED, Status.NOT_EVALUATED]
    assert "Thanks" not in judge.questions[0].prompt
    result = await MULTI_TURN[name](judged(name, ASKED, THANKS, context=frozenset({0, 1})), nobody)
    assert (result.status, len(result.per_invocation)) == (Status.NOT_EVALUATED, 2)
    result = await MULTI_TURN[name](judged(name), nobody)
    assert result.status is Status.NOT_EVALUATED


async def test_without_tools_there_is_no_use_of_tools():
    name = "multi_turn_tool_use_quality_v1"
    toolless = turn("Hi", answer="Hello.", app_details=agent_details(tools=()))
    result = await multi_turn_tool_use_quality_v1(judged(name, toolless), nobody)
    assert (result.status, result.reason) == (
        Status.NOT_EVALUATED,
        "agent has no tools and called none",
    )
    unused = turn("Hi", answer="Hello.", app_details=agent_details())
    judge = ScriptedJudge(lambda question: rated(1))
    assert (await multi_turn_tool_use_quality_v1(judged(name, unused), judge)).score == 1.0


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ('```json\n{"score": 4, "reason": "good",}\n```', 4.0),
        ('I think {this}:\n{"score": "4.5"}', None),
        ('My rating:\n{"score": "4.5"}', 4.5),
        ('{"result": {"score": 1}}', None),
        ('{"score": 5}\n{"score": 5.0}', 5.0),
        ('{"score": 5} or rather {"score": 2}', None),
        ('{"score": 0.5}', None),
        ('{"score": "4/5"}', None),
        ('{"score": NaN}', None),
        ('{"score": "0_4"}', None),
        ('{"score": "٤"}', None),
        ('{"score": "4e0"}', None),
        ('{"score": [4]}', None),
        ('{"score": true}', None),
        ("score: 4", None),
    ],
)
def test_how_a_number_is_read(answer, score):
    assert read_rating(answer, ONE_TO_FIVE).vote.score == score
