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
    SPLIT,
    SUPPORTED,
    WHOLE,
    judged,
    judged_metric,
)

from evaltui.core.compare.judged import (
    conversation_metrics,
    findings,
    findings_in,
    judged_metrics,
    was_judged,
)
from evaltui.core.model.judgement import JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.views.judged import answers_text


def only(judgement, name=RUBRICS, threshold=0.8):
    (finding,) = findings(judged_metric(name, [judgement], threshold=threshold))
    return finding


@pytest.mark.parametrize(
    ("name", "judgement", "word", "tally", "good"),
    [
        (RUBRICS, POLITE, "no", "1/5", False),
        (RUBRICS, SHORT, "yes", "5/5", True),
        (RUBRICS, LEFT_OUT, "not judged", "", None),
        (ANSWERS, DISAGREES, "invalid", "1/5", False),
        (ANSWERS, AGREES, "valid", "5/5", True),
        (SENTENCES, INVENTED, "contradictory", "", False),
        (SENTENCES, SUPPORTED, "supported", "", True),
        (RUBRICS, Judgement("polite", "", 0.0, "It shouts."), "no", "", False),
    ],
)
def test_what_came_out_by_which_votes(name, judgement, word, tally, good):
    finding = only(judgement, name)
    assert (finding.word, finding.tally, finding.good) == (word, tally, good)


def test_ratings_are_good_from_the_threshold_on():
    ratings = Judgement("", "", 3.5, votes=(Vote(3.0), Vote(4.0), Vote(None, problem="no answer")))
    finding = only(ratings, RATINGS, threshold=3.5)
    assert (finding.word, finding.tally, finding.good) == ("3.5", "3 4 of 3", True)
    assert finding.is_contradictory
    assert finding.votes_in_words == ""
    worst = only(Judgement("", "", 1.0, votes=(Vote(1.0), Vote(1.0))), RATINGS, threshold=4.0)
    assert (worst.word, worst.good, worst.is_contradictory) == ("1", False, False)


@pytest.mark.parametrize(
    ("threshold", "lower_is_better", "good", "attention"),
    [
        (2.0, False, True, True),
        (2.0, True, False, True),
        (4.0, True, True, False),
        (None, False, None, False),
    ],
)
def test_ratings_are_good_by_the_threshold_of_their_metric_alone(threshold, lower_is_better, good, attention):
    rated = judged_metric("mine", [Judgement("", "", 3.0, votes=(Vote(4.0), Vote(1.0)))])
    metric = replace(rated, threshold=threshold, lower_is_better=lower_is_better)
    (finding,) = findings(metric)
    assert (finding.good, finding.word, finding.needs_attention) == (good, "3", attention)


@pytest.mark.parametrize(
    ("judgement", "words"),
    [
        (POLITE, "4 of 5 votes"),
        (DISAGREES, "3 of 4 votes, 1 without a verdict"),
        (judged("tie", "", 2, 2), "2 of 4 votes, a tie"),
        (LEFT_OUT, ""),
        (Judgement("one", "", 1.0, votes=(Vote(1.0),)), ""),
    ],
)
def test_votes_in_words(judgement, words):
    assert only(judgement).votes_in_words == words


def test_what_is_to_be_looked_at():
    assert [only(one).needs_attention for one in (POLITE, LEFT_OUT, SPLIT, SHORT)] == [
        True,
        True,
        True,
        False,
    ]


def test_the_reason_is_that_of_the_vote_that_decided():
    votes = (Vote(1.0, "Fine."), Vote(0.0, "Rude."), Vote(0.0, "Curt."))
    assert only(Judgement("polite", "", 0.0, votes=votes)).why == "Rude."
    assert only(Judgement("polite", "", 0.0, "In short: rude.", votes=votes)).why == "In short: rude."
    assert only(LEFT_OUT).why == "TimeoutError: no response within 60 s"


def test_a_long_or_hostile_id_is_a_short_name():
    assert only(Judgement("a\x1b[2J\nb", "", 1.0)).name == "a\\x1b[2J b"
    assert len(only(Judgement("x" * 500, "", 1.0)).name) == 60


def test_findings_are_turn_by_turn():
    metric = judged_metric(RUBRICS, [SHORT], [], [POLITE, SHORT])
    assert [(one.turn, one.number) for one in findings(metric)] == [(0, 0), (2, 0), (2, 1)]
    assert [one.number for one in findings_in(metric, 2)] == [0, 1]
    assert findings_in(metric, 1) == findings_in(metric, 3) == []


def test_metrics_of_a_turn_and_of_the_whole_conversation():
    whole = judged_metric(WHOLE, [], [judged("", "", 5, 0)])
    rubrics = judged_metric(RUBRICS, [SHORT], [POLITE])
    plain = MetricResult("response_match_score", 1.0, 0.8, Status.PASSED)
    assert judged_metrics((plain, whole, rubrics), 1) == [rubrics]
    assert conversation_metrics((plain, whole, rubrics)) == [whole]
    assert not was_judged(plain)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (JudgedBy("m", "p/1", 5, 4), "4 of 5 answered"),
        (JudgedBy("m", "p/1", 5, 5, 2), "5 of 5 answered, 2 replayed"),
        (JudgedBy("m", "p/1", 5, 3, 3, 2), "3 of 5 answered, all replayed, 2 not in the recording"),
    ],
)
def test_how_many_answered(judge, words):
    assert answers_text(judge) == words
