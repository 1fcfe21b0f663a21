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


RATED = Judgement("", "", 2.0, "Hard to follow.", votes=(Vote(2.0, "Hard to follow."),))
SIMULATED = judged("", "Where is my bag?", 2, 3)
SILENT = judged_metric(RATINGS, [], [Judgement("", "the answer", 5.0)], threshold=4.0, status=Status.FAILED)
NO_TEXT = (InvocationScore(1.0, Status.FAILED, "no response text"), SILENT.per_invocation[1])
BAD_KEY = ErrorInfo("ClientError", "401 UNAUTHENTICATED: the key is not valid", kind=None)
IMPOLITE = "rubric polite: no (4 of 5 votes): It shouts\\x1b[2J at the user"
WHY_UNJUDGED = "turn 1: on_topic was not judged"
SENTENCE_OF = {
    "a rubric": ([judged_metric(RUBRICS, [SHORT], [POLITE, SHORT])], f"turn 2: {IMPOLITE}"),
    "a sentence": (
        [judged_metric(SENTENCES, [SUPPORTED], [SUPPORTED, INVENTED])],
        'turn 2: not supported (contradictory): "It is 30 °C there.": The thermostat says 19',
    ),
    "an answer": (
        [judged_metric(ANSWERS, [DISAGREES], [AGREES], threshold=1.0)],
        "turn 1: response does not match the expected one (3 of 4 votes, 1 without a verdict): 19 is not 21",
    ),
    "a simulated user": (
        [judged_metric("per_turn_user_simulator_quality_v1", [], [SIMULATED])],
        'turn 2: simulated user leaves its scenario: "Where is my bag?" (3 of 5 votes): It is not',
    ),
    "a rating": (
        [judged_metric(RATINGS, [], [RATED], threshold=4.0)],
        "turn 2: response_evaluation_score 2.00 < 4.00: Hard to follow",
    ),
    "the whole conversation comes last": (
        [
            judged_metric(WHOLE, [], [judged("", "", 0, 5, against="Never booked.")]),
            judged_metric(RUBRICS, [], [POLITE]),
        ],
        f"turn 2: {IMPOLITE}; multi_turn_task_success_v1 0.00 < 0.80: Never booked",
    ),
    "a turn that failed without a question": (
        [replace(SILENT, per_invocation=NO_TEXT)],
        "turn 1: response_evaluation_score failed: no response text",
    ),
    "turns that passed": (
        [judged_metric(RUBRICS, [POLITE, *[SHORT] * 9], [POLITE], threshold=0.8)],
        f"turn 2: {IMPOLITE}",
    ),
    "no verdict": (
        [judged_metric(RUBRICS, [SHORT, LEFT_OUT], status=Status.NOT_EVALUATED, reason=WHY_UNJUDGED)],
        f"{RUBRICS} not evaluated: {WHY_UNJUDGED}",
    ),
    "a judge that did not answer": (
        [
            MetricResult(
                ANSWERS,
                None,
                0.8,
                Status.ERROR,
                error=BAD_KEY,
                judge=JudgedBy("gemini-2.5-flash", "p/1", 5),
            )
        ],
        f"{ANSWERS} not judged by gemini-2.5-flash: ClientError: 401 UNAUTHENTICATED: the key is not valid",
    ),
}
SUMMARY_OF = {
    "a rubric": "turn 2: rubric polite: no",
    "a turn that failed without a question": "turn 1: response_evaluation_score: no response text",
    "a judge that did not answer": f"{ANSWERS}: ClientError: 401 UNAUTHENTICATED: the key is not valid",
}


@pytest.mark.parametrize("name", SENTENCE_OF)
def test_a_judged_result_in_one_sentence(name):
    metrics, said = SENTENCE_OF[name]
    assert sentence(case(*metrics)) == said
    if name in SUMMARY_OF:
        assert summary(case(*metrics)) == SUMMARY_OF[name]


def test_a_single_turn_needs_no_number():
    assert sentence(case(judged_metric(RUBRICS, [POLITE]), turns=1)) == IMPOLITE


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
