"""Ten thousand suites that are run until each case is decided: how often that is wrong, and what it takes."""

from __future__ import annotations

import random
from collections import Counter
from heapq import heappop, heappush

import pytest

from evaltui.core.compare.repeats import RunsUntilDecided
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.outcome import RepeatResult, Status
from tests.core.test_statistics import TEST, fixed_runs

PASSED, FAILED = RepeatResult(Status.PASSED), RepeatResult(Status.FAILED)
RATES = (0.5, 0.7, 0.9, 0.95, 1.0)


def decided(rule, rate, chance):
    """The answer of a case and the number of its runs, which go on at once; those that fail take longer."""
    known, in_flight, asked, now = {}, [], set(), 0.0
    while due := rule.due(known):
        for number in due:
            if number not in asked:
                asked.add(number)
                passes = chance.random() < rate
                heappush(in_flight, (now + chance.random() + 5 * (not passes), number, passes))
        now, number, passes = heappop(in_flight)
        known[number] = PASSED if passes else FAILED
    answer = rule.decision([known[number] for number in sorted(known)]).answer
    # None was begun in vain, unless it shows that the cap will be too low.
    assert not in_flight or answer == "undecided"
    return answer, len(asked)


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("pass_if", "rates", "suites"), [("all", RATES, 10_000), ("majority", (0.1, 0.4, 0.6, 1.0), 2_000)]
)
def test_simulated_suites_are_decided_as_surely_as_stated_with_few_runs(pass_if, rates, suites):
    rule, chance = RunsUntilDecided(pass_if, Confidence(0.95)), random.Random(19)
    answers = {rate: Counter() for rate in rates}
    runs = Counter()
    for _ in range(suites):
        for rate in rates:
            answer, number = decided(rule, rate, chance)
            answers[rate][answer] += 1
            runs[rate] += number
    mean = {rate: runs[rate] / suites for rate in rates}
    for rate in rates:
        print(f"{pass_if} at {rate}: {mean[rate]:.1f} runs, {dict(answers[rate])}")
    for rate in rates:
        if rate <= rule.test.low:
            assert answers[rate]["passes"] <= 0.05 * suites
        if rate >= rule.test.high:
            assert answers[rate]["does not pass"] <= 0.05 * suites
    if pass_if == "all":
        fixed = fixed_runs(TEST)
        assert fixed == 41
        assert mean[1.0] <= fixed / 2
        assert mean[0.5] <= fixed / 2
        assert mean[0.95] <= fixed * 3 / 4
