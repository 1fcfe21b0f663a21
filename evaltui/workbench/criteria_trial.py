"""A threshold tried on what was scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import PassIf
from evaltui.core.model.outcome import RepeatResult, Status

Scores = Mapping[CaseId, Sequence[float | None]]
"""Those of the runs of each case; None where a run has none."""


@dataclass(frozen=True)
class Trial:
    """What a threshold makes of the scores of the last run."""

    mean: float | None = None
    """Of all scores; None where there are none."""
    scored: int = 0
    """How many cases have a score."""
    passing: int = 0
    """How many of them pass."""
    now_pass: tuple[CaseId, ...] = ()
    """The cases that pass, and do not with the threshold that is saved."""
    now_fail: tuple[CaseId, ...] = ()
    """The cases that fail, and do not with the threshold that is saved."""
    scores: tuple[float, ...] = ()
    """Every score of the last run, repeats apart."""
    cases: tuple[tuple[CaseId, float], ...] = ()
    """Every case with its worst score, the worst case first."""


class CaseScores:
    """What a metric says of cases.

    Of a hundred thousand it takes its time to look at them, and rows are asked for after every key.
    """

    def __init__(self) -> None:
        self._scores: dict[CaseId, Sequence[float | None]] = {}
        self._of_all: dict[bool, Trial] = {}
        self._last: tuple[object, Trial] = None, Trial()

    def add(self, case: CaseId, runs: Sequence[float | None]) -> None:
        """A case has these scores; before the first trial."""
        if any(score is not None for score in runs):
            self._scores[case] = runs

    def trial(
        self, threshold: float | None, saved: float | None, pass_if: PassIf, *, lower_is_better: bool
    ) -> Trial:
        """What a threshold makes of them, `saved` being that on disk."""
        if not self._scores:
            return Trial()
        tried = threshold, saved, pass_if, lower_is_better
        if tried != self._last[0]:
            self._last = tried, self._trial(*tried)
        return self._last[1]

    def _trial(
        self, threshold: float | None, saved: float | None, pass_if: PassIf, lower_is_better: bool
    ) -> Trial:
        if lower_is_better not in self._of_all:
            self._of_all[lower_is_better] = _of_all(self._scores, max if lower_is_better else min)
        known = self._of_all[lower_is_better]
        if threshold is None:
            return known

        def passing(limit: float) -> set[CaseId]:
            runs_of = self._scores.items()
            return {case for case, runs in runs_of if _passes(runs, limit, pass_if, lower_is_better)}

        now = passing(threshold)
        before = now if saved is None or saved == threshold else passing(saved)
        return replace(
            known,
            passing=len(now),
            now_pass=tuple(case for case in self._scores if case in now and case not in before),
            now_fail=tuple(case for case in self._scores if case in before and case not in now),
        )


NO_SCORES = CaseScores()


def _of_all(scores: Scores, worst: Callable[[Iterable[float]], float]) -> Trial:
    every = [score for runs in scores.values() for score in runs if score is not None]
    cases = [(case, worst(score for score in runs if score is not None)) for case, runs in scores.items()]
    cases.sort(key=lambda one: one[1], reverse=worst is max)
    return Trial(math.fsum(every) / len(every), len(scores), scores=tuple(every), cases=tuple(cases))


def _passes(runs: Sequence[float | None], limit: float, pass_if: PassIf, lower_is_better: bool) -> bool:
    passed = [score is not None and (score <= limit if lower_is_better else score >= limit) for score in runs]
    if len(passed) == 1:
        return passed[0]
    repeats = [RepeatResult(Status.PASSED if one else Status.FAILED) for one in passed]
    return case_over_repeats("", "", repeats, pass_if).policy_met
