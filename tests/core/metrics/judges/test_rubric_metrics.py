"""The rubric metrics with a judge whose answers are known."""

import pytest
from judge_cases import (
    ANSWERS,
    CALLS,
    FAILURE,
    WHOLE,
    failed,
    given,
    judged,
    rubric,
    turn,
    verdicts,
)
from scripted_judge import ScriptedJudge

from evaltui.core.model.outcome import Status

TWO = [rubric("short", "The answer is short."), rubric("polite", "The answer is polite.")]


def scores(invocation):
    return {one.id: one.score for one in invocation.judgements}


async def test_each_rubric_is_voted_on_and_the_score_is_their_mean():
    judge = ScriptedJudge(
        verdicts(short="yes", polite="no"),
        verdicts(short="no", polite="no"),
        verdicts(short="yes", polite="yes"),
    )

    result = await judged(given(ANSWERS, [turn()], samples=3, case_rubrics=TWO), judge)
    (only,) = result.per_invocation

    assert (result.status, result.score) == (Status.PASSED, 0.5)
    assert scores(only) == {"short": 1.0, "polite": 0.0}
    assert only.judgements[0].subject == "The answer is short."
    assert only.judgements[1].rationale == "polite: so it is"
    assert [vote.score for vote in only.judgements[0].votes] == [1.0, 0.0, 1.0]
    assert only.reason == "not fulfilled: polite"
    assert result.judge.prompt == "rubric_final_response/1, rubric_answer_json/1"
    assert (result.judge.asked, result.judge.answered) == (3, 3)


async def test_each_turn_is_judged_by_its_own_rubrics():
    turns = [turn(rubrics=[rubric("first")]), turn(rubrics=[rubric("second")])]
    judge = ScriptedJudge(verdicts(first="no", second="yes"), verdicts(first="no", second="yes"))

    result = await judged(given(ANSWERS, turns), judge)

    assert [scores(one) for one in result.per_invocation] == [{"first": 0.0}, {"second": 1.0}]
    assert "text of second" not in judge.prompts[0]
    assert "text of first" not in judge.prompts[1]


async def test_a_rubric_that_the_judge_leaves_out_is_not_judged_and_keeps_the_turn_from_passing():
    judge = ScriptedJudge(verdicts(short="yes"), verdicts(short="yes"))

    result = await judged(given(ANSWERS, [turn()], samples=2, case_rubrics=TWO), judge)
    (only,) = result.per_invocation

    assert scores(only) == {"short": 1.0, "polite": None}
    assert [vote.problem for vote in only.judgements[1].votes] == ["no vote on it"] * 2
    assert (only.score, only.status) == (None, Status.NOT_EVALUATED)
    assert (result.score, result.status) == (None, Status.NOT_EVALUATED)
    assert result.reason == "turn 1: not judged by the judge: polite"


async def test_a_turn_that_fails_in_part_unjudged_keeps_open_what_the_others_would_pass():
    turns = [turn(rubrics=[rubric("a"), rubric("b")]), turn(rubrics=[rubric("c"), rubric("d")])]
    judge = ScriptedJudge(verdicts(a="no"), verdicts(c="yes", d="yes"))

    result = await judged(given(ANSWERS, turns, threshold=0.6), judge)

    assert [one.status for one in result.per_invocation] == [Status.FAILED, Status.PASSED]
    assert (result.status, result.score) == (Status.NOT_EVALUATED, None)
    assert result.reason == "turn 1: not fulfilled: a; not judged by the judge: b"


@pytest.mark.parametrize(
    ("threshold", "status"), [(0.5, Status.NOT_EVALUATED), (0.6, Status.FAILED), (0.0, Status.NOT_EVALUATED)]
)
async def test_a_metric_fails_only_where_the_rubrics_that_were_not_judged_could_not_change_it(
    threshold, status
):
    asked = given(ANSWERS, [turn()], case_rubrics=TWO, threshold=threshold)

    result = await judged(asked, ScriptedJudge(verdicts(short="no", polite="unknown")))

    assert (result.status, result.score) == (status, None)
    assert [one.status for one in result.per_invocation] == [status]


async def test_a_judge_that_cannot_tell_of_any_rubric_is_no_error():
    judge = ScriptedJudge(verdicts(short="unknown", polite="unknown"))

    result = await judged(given(ANSWERS, [turn()], case_rubrics=TWO), judge)

    assert (result.status, result.score, result.error) == (Status.NOT_EVALUATED, None, None)
    assert "no verdict from the judge" in result.reason


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        ([failed(), failed()], FAILURE.type, FAILURE.message),
        (["Fine.", failed()], "ServerError", "503"),
        (["Fine.", ""], "UnreadableAnswerError", "'Fine.'"),
        ([verdicts(other="yes"), "[]"], "UnreadableAnswerError", "unreadable judge response"),
    ],
)
async def test_where_no_answer_says_anything_the_metric_is_an_error(answers, error, message):
    asked = given(ANSWERS, [turn(), turn()], samples=2, case_rubrics=TWO)
    judge = ScriptedJudge(*[verdicts(short="yes", polite="yes")] * 2, *answers)

    result = await judged(asked, judge)

    assert (result.status, result.score, result.error.type) == (Status.ERROR, None, error)
    assert message in result.error.message
    assert [one.status for one in result.per_invocation] == [Status.PASSED, Status.ERROR]


async def test_context_turns_are_shown_and_not_judged():
    turns = [turn("My name is Ann."), turn("Who am I?", rubrics=[rubric("own")])]
    judge = ScriptedJudge(verdicts(own="yes"))

    result = await judged(given(ANSWERS, turns, context=frozenset([0])), judge)

    assert result.status is Status.PASSED
    assert "My name is Ann." in judge.prompts[0]


async def test_turns_whose_calls_are_not_checked_are_judged_by_their_answers_only():
    fields = {"case_rubrics": [rubric("own")], "skip_calls": frozenset([0])}
    answers, calls = ScriptedJudge(verdicts(own="yes")), ScriptedJudge()

    assert (await judged(given(ANSWERS, [turn()], **fields), answers)).status is Status.PASSED
    assert (await judged(given(CALLS, [turn()], **fields), calls)).status is Status.NOT_EVALUATED
    assert not calls.questions


def happened():
    details = {"agent_details": {"guide": {"name": "guide", "instructions": "Be a guide."}}}
    details["agent_details"]["guide"]["tool_declarations"] = [
        {"function_declarations": [{"name": "find_weather"}]}
    ]
    call = {"parts": [{"function_call": {"name": "find_weather", "args": {"town": "Rome"}}}]}
    back = {"parts": [{"function_response": {"name": "find_weather", "response": {"sky": "blue"}}}]}
    events = [{"author": "guide", "content": call}, {"author": "guide", "content": back}]
    return [
        turn("Good day", "Hello."),
        turn("Weather?", "Sunny.", intermediate_data={"invocation_events": events}, app_details=details),
    ]


@pytest.mark.parametrize("metric", [ANSWERS, CALLS, WHOLE])
async def test_the_judge_sees_the_evidence(metric):
    judge = ScriptedJudge(*[verdicts(own="yes")] * 2)

    await judged(given(metric, happened(), case_rubrics=[rubric("own", "Looks it up.")]), judge)
    prompt = judge.prompts[-1]

    for text in (
        "Be a guide.",
        '"function_declarations"',
        "Good day",
        "Hello.",
        "Weather?",
        '"tool_call": "find_weather", "args": {"town": "Rome"}',
        '"response": {"sky": "blue"}',
        "Sunny.",
        '"id": "own"',
        '"rubric": "Looks it up."',
        '{"rubrics": [{"id": "...", "rationale": "...", "verdict": "yes"}]}',
    ):
        assert text in prompt


async def test_a_conversation_is_judged_once_at_its_last_turn():
    turns = [turn("one", rubrics=[rubric("first")]), turn("two", rubrics=[rubric("second")])]
    judge = ScriptedJudge(verdicts(first="yes", second="no", case="yes"))

    result = await judged(given(WHOLE, turns, case_rubrics=[rubric("case")]), judge)

    assert [question.turn for question in judge.questions] == [1]
    assert result.per_invocation[0].status is Status.NOT_EVALUATED
    assert result.per_invocation[0].reason == "judged with the whole conversation, at turn 2"
    assert scores(result.per_invocation[1]) == {"case": 1.0, "first": 1.0, "second": 0.0}
    assert (result.status, result.score) == (Status.PASSED, pytest.approx(2 / 3))


async def test_a_conversation_ends_where_the_turns_that_count_end():
    turns = [turn("Good day"), turn("Weather?"), turn("Goodbye")]
    judge = ScriptedJudge(verdicts(case="yes"))

    result = await judged(given(WHOLE, turns, case_rubrics=[rubric("case")], context=frozenset([2])), judge)

    assert [question.turn for question in judge.questions] == [1]
    assert "Weather?" in judge.prompts[0]
    assert "Goodbye" not in judge.prompts[0]
    assert result.status is Status.PASSED


async def test_a_simulated_conversation_is_judged_by_the_shared_rubrics():
    judge = ScriptedJudge(*[verdicts(case="yes")] * 2)

    result = await judged(given(ANSWERS, None, [turn(), turn()], case_rubrics=[rubric("case")]), judge)

    assert (result.status, result.score) == (Status.PASSED, 1.0)


async def test_thoughts_are_shown_to_the_judge_where_they_count():
    parts = {"role": "model", "parts": [{"text": "Hm, a greeting.", "thought": True}, {"text": "Hi."}]}
    for thoughts in (False, True):
        judge = ScriptedJudge(verdicts(own="yes"))
        asked = given(
            ANSWERS, [turn() | {"final_response": parts}], case_rubrics=[rubric("own")], thoughts=thoughts
        )
        await judged(asked, judge)

        assert ("Hm, a greeting." in judge.prompts[0]) is thoughts
