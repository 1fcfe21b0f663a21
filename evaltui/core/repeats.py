"""Several runs of one case to one verdict."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.config import PassIf
from evaltui.core.outcome import GRAVEST_FIRST, CaseResult, RepeatResult, Status


def case_over_repeats(
    eval_set_id: str, eval_id: str, repeats: Sequence[RepeatResult], pass_if: PassIf
) -> CaseResult:
    """Runs that differ make a case FLAKY, which its policy lets pass or not; a mean is never the verdict."""
    worst = min(repeats, key=lambda repeat: GRAVEST_FIRST.index(repeat.status))
    passed = sum(repeat.status is Status.PASSED for repeat in repeats)
    status = Status.FLAKY if 0 < passed < len(repeats) else worst.status
    return CaseResult(
        eval_id=eval_id,
        status=status,
        metrics=worst.metrics,
        error=worst.error,
        eval_set_id=eval_set_id,
        turns=worst.turns,
        state=worst.state,
        repeats=tuple(repeats),
        policy=str(pass_if),
        policy_met=passed >= _needed(pass_if, len(repeats)),
    )


def _needed(pass_if: PassIf, runs: int) -> float:
    if pass_if == "all":
        return runs
    if pass_if == "majority":
        return runs // 2 + 1
    # A rate such as 0.6 of 5 must not become 3.0000000000000004.
    return round(float(pass_if) * runs, 9)
