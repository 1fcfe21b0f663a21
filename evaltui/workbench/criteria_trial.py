"""A threshold tried on what was scored."""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from evaltui.core.compare.repeats import passes_needed
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import PassIf

Runs = Sequence[float | None]
"""What the runs of a case have scored; None where one has no score."""

# Worst cases that somebody looks at.
_MOST_WORST = 200


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
    scores: Sequence[float] = ()
    """Every score of the last run, repeats apart, the lowest first."""
    cases: tuple[tuple[CaseId, float], ...] = ()
    """The worst cases with their worst score, the worst one first."""


class CaseScores:
    """What a metric says of cases, which have numbers; `case_at` says which case has a number.

    There may be a hundred thousand: a score takes eight bytes, and a threshold is looked for in their order.
    """

    def __init__(self, count: int = 0, case_at: Callable[[int], CaseId] | None = None) -> None:
        self._case_at = case_at
        # NaN where there is none; of cases that were run several times, too.
        self._scores = array("d", [math.nan]) * count
        self._runs: dict[int, Runs] = {}
        self._of_all: dict[bool, Trial] = {}
        self._deciding: dict[tuple[PassIf, bool], tuple[array[float], Sequence[float]]] = {}
        self._last: tuple[object, Trial] | None = None

    def put(self, number: int, runs: Runs) -> None:
        """A case has these scores now; without any it has none."""
        score = runs[0] if len(runs) == 1 else None
        self._scores[number] = math.nan if score is None else score
        if len(runs) > 1 and any(score is not None for score in runs):
            self._runs[number] = runs
        elif self._runs:
            self._runs.pop(number, None)
        if self._last is not None:
            self._of_all, self._deciding, self._last = {}, {}, None

    def put_one(self, numbers: Iterable[int], score: float) -> None:
        """Cases that were run once have this score, before the first trial."""
        for number in numbers:
            self._scores[number] = score

    def trial(
        self, threshold: float | None, saved: float | None, pass_if: PassIf, *, lower_is_better: bool
    ) -> Trial:
        """What a threshold makes of them, `saved` being that on disk."""
        tried = threshold, saved, pass_if, lower_is_better
        if self._last is None or tried != self._last[0]:
            self._last = tried, self._trial(*tried)
        return self._last[1]

    def _trial(
        self, threshold: float | None, saved: float | None, pass_if: PassIf, lower_is_better: bool
    ) -> Trial:
        if lower_is_better not in self._of_all:
            self._of_all[lower_is_better] = self._look_at_all(lower_is_better)
        known = self._of_all[lower_is_better]
        if threshold is None or not known.scored:
            return known
        if (pass_if, lower_is_better) not in self._deciding:
            found = self._where_several(lambda runs: _deciding(runs, pass_if, lower_is_better))
            self._deciding[pass_if, lower_is_better] = found, _in_order(found)
        scores, ordered = self._deciding[pass_if, lower_is_better]
        at = bisect_right(ordered, threshold) if lower_is_better else bisect_left(ordered, threshold)
        passing = at if lower_is_better else len(ordered) - at
        if saved is None or saved == threshold:
            return replace(known, passing=passing)
        between = self._between(scores, threshold, saved, lower_is_better)
        more_pass = (threshold > saved) == lower_is_better
        return replace(
            known,
            passing=passing,
            now_pass=between if more_pass else (),
            now_fail=() if more_pass else between,
        )

    def _between(
        self, scores: array[float], threshold: float, saved: float, lower_is_better: bool
    ) -> tuple[CaseId, ...]:
        """The cases that pass with one of the thresholds only."""
        low, high = sorted((threshold, saved))
        if lower_is_better:
            return self._cases(number for number, score in enumerate(scores) if low < score <= high)
        return self._cases(number for number, score in enumerate(scores) if low <= score < high)

    def _cases(self, numbers: Iterable[int]) -> tuple[CaseId, ...]:
        case_at = self._case_at
        return () if case_at is None else tuple(case_at(number) for number in numbers)

    def _look_at_all(self, lower_is_better: bool) -> Trial:
        """What is true of the scores whatever the threshold is."""
        worst = self._where_several(lambda runs: (max if lower_is_better else min)(_known(runs)))
        every = _in_order(self._scores)
        if self._runs:
            every = sorted([*every, *(score for runs in self._runs.values() for score in _known(runs))])
        if not every:
            return Trial()
        numbers = [number for number, score in enumerate(worst) if score == score]
        find = heapq.nlargest if lower_is_better else heapq.nsmallest
        first = find(_MOST_WORST, numbers, key=worst.__getitem__)
        cases = zip(self._cases(first), [worst[number] for number in first], strict=True)
        return Trial(math.fsum(every) / len(every), len(numbers), scores=every, cases=tuple(cases))

    def _where_several(self, one_of: Callable[[Runs], float]) -> array[float]:
        """A score for each case: of one that was run several times that which `one_of` makes of its runs."""
        if not self._runs:
            return self._scores
        found = array("d", self._scores)
        for number, runs in self._runs.items():
            found[number] = one_of(runs)
        return found


NO_SCORES = CaseScores()


def _in_order(scores: array[float]) -> Sequence[float]:
    return array("d", sorted([score for score in scores if score == score]))


def _known(runs: Runs) -> list[float]:
    return [score for score in runs if score is not None]


def _deciding(runs: Runs, pass_if: PassIf, lower_is_better: bool) -> float:
    """The score by which a case passes that was run several times: it passes where this one does. NaN, which
    never passes, where too few of its runs have a score."""
    best_first = sorted(_known(runs), reverse=not lower_is_better)
    needed = max(1, math.ceil(passes_needed(pass_if, len(runs))))
    return best_first[needed - 1] if needed <= len(best_first) else math.nan
