"""Which runs of a case are to be made, and what they decide."""

from itertools import product

import pytest

from evaltui.core.compare.repeats import FixedRuns, RunsUntilDecided, case_over_repeats, repeat_rule, zone_of
from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.outcome import RepeatResult, Status

PASSED, FAILED = RepeatResult(Status.PASSED), RepeatResult(Status.FAILED)
NOT_EVALUATED = RepeatResult(Status.NOT_EVALUATED)


def error(kind):
    return RepeatResult(Status.ERROR, error=ErrorInfo("Oops", "no", kind=kind))


LETTERS = {
    "+": PASSED,
    "-": FAILED,
    "?": NOT_EVALUATED,
    "r": error(ErrorKind.RATE_LIMIT),
    "a": error(ErrorKind.AGENT),
    "t": error(ErrorKind.TIMEOUT),
}
CONFIDENT = Confidence(0.95)


def known(text):
    """`+-.+`: the runs by number; a point is one that is not over."""
    return {number: LETTERS[letter] for number, letter in enumerate(text) if letter != "."}


def case(text, pass_if="all", confidence=CONFIDENT):
    return case_over_repeats("lights", "dim", [*known(text).values()], pass_if, "", confidence)


@pytest.mark.parametrize(
    ("pass_if", "zone"),
    [
        ("all", (0.7, 0.9)),
        (1.0, (0.7, 0.9)),
        (0.9, (0.7, 0.9)),
        (0.95, (0.75, 0.95)),
        ("majority", (0.4, 0.6)),
        (0.5, (0.3, 0.5)),
        (0.2, (0.1, 0.2)),
        (0.05, (0.025, 0.05)),
    ],
)
def test_zones(pass_if, zone):
    assert zone_of(pass_if) == zone
    assert RunsUntilDecided(pass_if, Confidence(0.95, 10_000)).test.low == zone[0]


def test_fixed_runs_are_all_due_at_once():
    rule = FixedRuns(4)
    assert list(rule.due(known(".+"))) == [0, 2, 3]
    assert [rule.is_over(known(text)) for text in ("+++", "+-+-")] == [False, True]


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("", [0, 1, 2]),
        ("+++", [3, 4, 5, 6]),
        ("--", [2]),
        # In the order of their numbers: the two that are over do not count before the first one does.
        (".--", [0]),
        (".++", [0]),
        ("+.-", [1, 3]),
        # Without a verdict they say nothing.
        ("r", [1, 2, 3]),
        ("?+++", [4, 5, 6, 7]),
        ("a", [1, 2]),
        ("t", [1, 2]),
        ("+" * 12, []),
        ("---", []),
        ("???", []),
        ("+r?+++r", []),
    ],
)
def test_runs_that_are_needed_whatever_comes_of_them(text, due):
    rule = RunsUntilDecided("all", CONFIDENT)
    assert list(rule.due(known(text))) == due
    assert rule.is_over(known(text)) == (not due)


@pytest.mark.parametrize("pass_if", ["majority", 0.5])
def test_whatever_comes_a_case_ends_at_the_cap_at_the_latest(pass_if):
    rule = RunsUntilDecided(pass_if, Confidence(0.9, 9))
    for outcomes in map("".join, product("+-", repeat=9)):
        text = ""
        while due := rule.due(known(text)):
            assert due[0] == len(text)
            text = outcomes[: due[-1] + 1]
        assert len(text) <= 9


@pytest.mark.parametrize(
    ("text", "status", "met", "answer"),
    [
        ("+" * 12, Status.PASSED, True, "passes"),
        ("+" * 8 + "-" + "+" * 9, Status.FLAKY, True, "passes"),
        ("---", Status.FAILED, False, "does not pass"),
        ("aaa", Status.ERROR, False, "does not pass"),
        ("+----", Status.FLAKY, False, "does not pass"),
        ("+" * 11, Status.NOT_EVALUATED, False, "undecided"),
        ("+++-", Status.NOT_EVALUATED, False, "undecided"),
        ("++rrr", Status.NOT_EVALUATED, False, "undecided"),
        ("rrr", Status.ERROR, False, "undecided"),
        ("???", Status.NOT_EVALUATED, False, "undecided"),
    ],
)
def test_the_verdict_on_a_case(text, status, met, answer):
    result = case(text)
    assert (result.status, result.policy_met, result.decision.answer) == (status, met, answer)
    assert result.passed == (answer == "passes")
    summary = summarize(result)
    assert summary.passes == result.passed
    assert list(summary.outcomes) == [one.status for one in result.repeats]


def test_decisions_in_words():
    assert case("+" * 12).decision.in_words == "pass rate above 0.7 (95% confidence)"
    assert case("---").decision.in_words == "pass rate below 0.9 (95% confidence)"
    undecided = case("+" * 11).decision.in_words
    assert undecided == "undecided between pass rates 0.7 and 0.9 (95% confidence)"


def test_the_most_open_case_is_the_most_urgent():
    rule = RunsUntilDecided("all", CONFIDENT)
    assert rule.urgency(known("++++-")) < rule.urgency(known("+")) < rule.urgency(known("-"))
    assert rule.urgency(known("---")) == 1.0


@pytest.mark.parametrize("confidence", [(0.5, 50), (1.0, 50), (0.95, 0)])
def test_a_confidence_that_makes_no_sense_is_refused(confidence):
    with pytest.raises(ValueError):
        Confidence(*confidence)


def test_a_cap_under_which_no_case_could_pass_is_refused():
    assert repeat_rule(1, "all", Confidence(0.95, 12)).most == 12
    with pytest.raises(ValueError, match=r"max-runs 11 is too low.* no case passes in fewer than 12 runs"):
        repeat_rule(1, "all", Confidence(0.95, 11))
    assert case("+" * 11, confidence=Confidence(0.95, 11)).decision.answer == "undecided"
