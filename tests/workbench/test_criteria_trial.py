"""A threshold tried on scores says what each case on its own would say."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.workbench.criteria_trial import CaseScores

SCORES = st.one_of(st.none(), st.sampled_from((0.0, 0.25, 0.5, 0.8, 1.0, 3.0)))
LIMITS = st.sampled_from((0.0, 0.25, 0.3, 0.5, 0.8, 1.0, 4.0))


def case_at(number):
    return CaseId("set", f"case {number}")


def passes(runs, limit, pass_if, lower):
    passed = [one is not None and (one <= limit if lower else one >= limit) for one in runs]
    repeats = [RepeatResult(Status.PASSED if one else Status.FAILED) for one in passed]
    return case_over_repeats("set", "case", repeats, pass_if).policy_met


def put(runs_of, known=None):
    known = known or CaseScores(len(runs_of), case_at)
    for number, runs in enumerate(runs_of):
        known.put(number, runs)
    return known


@given(
    runs_of=st.lists(st.lists(SCORES, max_size=4), max_size=6),
    limits=st.tuples(LIMITS, LIMITS),
    pass_if=st.sampled_from(("all", "majority", 0.3, 0.6)),
    lower=st.booleans(),
)
def test_a_trial_says_what_each_case_says(runs_of, limits, pass_if, lower):
    trial = put(runs_of).trial(*limits, pass_if, lower_is_better=lower)
    scored = {number: runs for number, runs in enumerate(runs_of) if any(one is not None for one in runs)}
    now, before = (
        {number for number, runs in scored.items() if passes(runs, limit, pass_if, lower)} for limit in limits
    )
    every = sorted(one for runs in scored.values() for one in runs if one is not None)
    assert (trial.scored, trial.passing, list(trial.scores)) == (len(scored), len(now), every)
    assert trial.now_pass == tuple(case_at(number) for number in sorted(now - before))
    assert trial.now_fail == tuple(case_at(number) for number in sorted(before - now))
    assert trial.mean == (pytest.approx(math.fsum(every) / len(every)) if every else None)
    worst = [
        (case_at(number), (max if lower else min)(one for one in runs if one is not None))
        for number, runs in scored.items()
    ]
    assert trial.cases == tuple(sorted(worst, key=lambda one: one[1], reverse=lower))


def test_other_scores_of_a_case_are_tried_from_then_on():
    known = put([[0.5], [0.9, 0.1], [None]])
    assert known.trial(0.5, None, "majority", lower_is_better=False).passing == 1
    put([[], [0.9, 0.8], [1.0]], known)
    assert known.trial(0.5, None, "majority", lower_is_better=False).passing == 2
    assert known.trial(0.5, None, "all", lower_is_better=False).passing == 2
    put([[], [], []], known)
    assert known.trial(0.5, None, "all", lower_is_better=False).scored == 0
