"""Thresholds tried on what was scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import PassIf
from evaltui.core.model.outcome import RepeatResult, Status

# The scores of the runs of a case; None where a run has none.
Scores = Mapping[CaseId, Sequence[float | None]]


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


def trial(
    scores: Scores, threshold: float | None, saved: float | None, pass_if: PassIf, *, lower_is_better: bool
) -> Trial:
    scored = {key: runs for key, runs in scores.items() if any(score is not None for score in runs)}
    if not scored:
        return Trial()
    every = [score for runs in scored.values() for score in runs if score is not None]
    mean = math.fsum(every) / len(every)
    if threshold is None:
        return Trial(mean, len(scored))

    def passing(limit: float) -> set[CaseId]:
        return {key for key, runs in scored.items() if _passes(runs, limit, pass_if, lower_is_better)}

    now = passing(threshold)
    before = now if saved is None or saved == threshold else passing(saved)
    return Trial(
        mean,
        len(scored),
        len(now),
        tuple(key for key in scored if key in now and key not in before),
        tuple(key for key in scored if key in before and key not in now),
    )


def _passes(runs: Sequence[float | None], limit: float, pass_if: PassIf, lower_is_better: bool) -> bool:
    passed = [score is not None and (score <= limit if lower_is_better else score >= limit) for score in runs]
    if len(passed) == 1:
        return passed[0]
    repeats = [RepeatResult(Status.PASSED if one else Status.FAILED) for one in passed]
    return case_over_repeats("", "", repeats, pass_if).policy_met
