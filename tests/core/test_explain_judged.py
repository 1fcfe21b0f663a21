from dataclasses import replace

import pytest
from judged_metrics import (
    AGREES,
    ANSWERS,
    DISAGREES,
    INVENTED,
    LEFT_OUT,
    POLITE,
    RATINGS,
    RUBRICS,
    SENTENCES,
    SHORT,
    SUPPORTED,
    WHOLE,
    judged,
    judged_metric,
)

from evaltui.core.compare.explain import sentence, summary
from evaltui.core.model.judgement import JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import (
    CaseResult,
    ErrorInfo,
    InvocationScore,
    MetricResult,
    Status,
    TurnResult,
    worst_status,
)
from evaltui.core.model.text_diff import ResponseDiff

TURN = TurnResult("unspecified", (), ResponseDiff(None, "fine"))


def case(*metrics, turns=2):
    return CaseResult("c", worst_status(one.status for one in metrics), metrics, turns=(TURN,) * turns)


def test_a_rubric():
    result = case(judged_metric(RUBRICS, [SHORT], [POLITE, SHORT]))
    assert sentence(result) == "turn 2: rubric polite: no (4 of 5 votes): It shouts\\x1b[2J at the user"
    assert summary(result) == "turn 2: rubric polite: no"


def test_a_single_turn_needs_no_number():
    result = case(judged_metric(RUBRICS, [POLITE]), turns=1)
    assert sentence(result) == "rubric polite: no (4 of 5 votes): It shouts\\x1b[2J at the user"


def test_a_sentence():
    result = case(judged_metric(SENTENCES, [SUPPORTED], [SUPPORTED, INVENTED]))
    assert sentence(result) == (
        'turn 2: not supported (contradictory): "It is 30 °C there.": The thermostat says 19'
    )


def test_an_answer():
    result = case(judged_metric(ANSWERS, [DISAGREES], [AGREES], threshold=1.0))
    assert sentence(result) == (
        "turn 1: response does not match the expected one (3 of 4 votes, 1 without a verdict): 19 is not 21"
    )


def test_a_simulated_user():
    metric = judged_metric("per_turn_user_simulator_quality_v1", [], [judged("", "Where is my bag?", 2, 3)])
    assert sentence(case(metric)) == (
        'turn 2: simulated user leaves its scenario: "Where is my bag?" (3 of 5 votes): It is not'
    )


def test_a_rating():
    rated = Judgement("", "", 2.0, "Hard to follow.", votes=(Vote(2.0, "Hard to follow."),))
    assert sentence(case(judged_metric(RATINGS, [], [rated], threshold=4.0))) == (
        "turn 2: response_evaluation_score 2.00 < 4.00: Hard to follow"
    )


def test_the_whole_conversation_has_no_turn_and_comes_last():
    whole = judged_metric(WHOLE, [], [judged("", "", 0, 5, against="Never booked.")])
    rubrics = judged_metric(RUBRICS, [], [POLITE])
    assert sentence(case(whole, rubrics)) == (
        "turn 2: rubric polite: no (4 of 5 votes): It shouts\\x1b[2J at the user; "
        "multi_turn_task_success_v1 0.00 < 0.80: Never booked"
    )


def test_a_turn_that_failed_without_a_question():
    silent = judged_metric(
        RATINGS, [], [Judgement("", "the answer", 5.0)], threshold=4.0, status=Status.FAILED
    )
    first = InvocationScore(1.0, Status.FAILED, "no response text")
    result = case(replace(silent, per_invocation=(first, silent.per_invocation[1])))
    assert sentence(result) == "turn 1: response_evaluation_score failed: no response text"
    assert summary(result) == "turn 1: response_evaluation_score: no response text"


def test_turns_that_passed_are_not_blamed():
    mostly = [POLITE, *[SHORT] * 9]
    result = case(judged_metric(RUBRICS, mostly, [POLITE], threshold=0.8))
    assert sentence(result).startswith("turn 2: rubric polite: no")
    assert "turn 1" not in sentence(result)


def test_what_was_left_out_is_why_there_is_no_verdict():
    unjudged = judged_metric(
        RUBRICS, [SHORT, LEFT_OUT], status=Status.NOT_EVALUATED, reason="turn 1: on_topic was not judged"
    )
    assert sentence(case(unjudged)) == (
        "rubric_based_final_response_quality_v1 not evaluated: turn 1: on_topic was not judged"
    )


def test_a_judge_that_did_not_answer():
    error = ErrorInfo("ClientError", "401 UNAUTHENTICATED: the key is not valid", kind=None)
    failed = MetricResult(
        ANSWERS, None, 0.8, Status.ERROR, error=error, judge=JudgedBy("gemini-2.5-flash", "p/1", 5)
    )
    assert sentence(case(failed)) == (
        "final_response_match_v2 not judged by gemini-2.5-flash: "
        "ClientError: 401 UNAUTHENTICATED: the key is not valid"
    )
    assert summary(case(failed)).startswith("final_response_match_v2: ClientError: 401")


def test_what_keeps_several_metrics_from_being_judged_is_told_once():
    error = ErrorInfo("TimeoutError", "no response within 60 s", kind=None)
    turn = InvocationScore(None, Status.ERROR, "the judge is not there")
    judge = JudgedBy("gemini", "p/1", 5)
    failed = [
        MetricResult(
            name,
            None,
            0.8,
            Status.ERROR,
            per_invocation=(turn, turn),
            reason="turn 1: …",
            error=error,
            judge=judge,
        )
        for name in (ANSWERS, RUBRICS, SENTENCES)
    ]
    assert sentence(case(*failed)) == (
        "final_response_match_v2 and 2 more metrics not judged by gemini: the judge is not there"
    )
    assert sentence(case(*failed[:1])) == (
        "final_response_match_v2 not judged by gemini: the judge is not there"
    )


@pytest.mark.parametrize("text", ["a\nb", "x" * 1000, "\x1b[2J\u202e"])
def test_what_a_judge_writes_stays_on_a_short_line(text):
    shouts = judged("polite", text, 0, 5, against=text)
    said = sentence(case(judged_metric(RUBRICS, [shouts]), turns=1))
    assert len(said) < 300
    assert not {"\n", "\x1b", "\u202e"} & set(said)
