"""Several runs of one case to one verdict, and what they say of how far it can be relied on."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.compare.explain import args_in_words
from evaltui.core.compare.repeat_rules import RunsUntilDecided, has_passed
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.config import PassIf
from evaltui.core.model.errors import NOT_RECORDED
from evaltui.core.model.outcome import WORST_FIRST, Call, CaseResult, RepeatResult, Status, Trajectory
from evaltui.text.values import visible


def in_words(trajectory: Trajectory) -> str:
    """`turn 1: get_mode; turn 2: set_temperature (degrees 19), notify_user`"""
    turns = [
        (number, ", ".join(map(_call, calls))) for number, calls in enumerate(trajectory, start=1) if calls
    ]
    if len(trajectory) > 1:
        return "; ".join(f"turn {number}: {calls}" for number, calls in turns)
    return turns[0][1] if turns else "no calls"


def _call(call: Call) -> str:
    args = args_in_words(call.args)
    return f"{visible(call.name)} ({args})" if args else visible(call.name)


def case_over_repeats(
    eval_set_id: str,
    eval_id: str,
    repeats: Sequence[RepeatResult],
    pass_if: PassIf,
    path: str = "",
    confidence: Confidence | None = None,
) -> CaseResult:
    """`path` is the case's file as in `CaseId`. With a confidence, a sequential test says whether it passes.

    Runs that differ make a case FLAKY, which its policy lets pass or not; a mean is never the verdict. A run
    that is not in the recording is none. What the test leaves open is NOT_EVALUATED, however many runs
    passed."""
    worst = min(repeats, key=lambda repeat: WORST_FIRST.index(repeat.status))
    passed = sum(repeat.status is Status.PASSED for repeat in repeats)
    missing = sum(repeat.error is not None and repeat.error.type == NOT_RECORDED for repeat in repeats)
    status = Status.FLAKY if 0 < passed < len(repeats) - missing else worst.status
    decision = RunsUntilDecided(pass_if, confidence).decision(repeats) if confidence else None
    if decision is None:
        is_met = passed >= passes_needed(pass_if, len(repeats))
    else:
        is_met = decision.answer == "passes"
        if decision.answer == "undecided" and any(has_passed(repeat) is not None for repeat in repeats):
            status = Status.NOT_EVALUATED
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
        policy_met=is_met,
        stopped=worst.stopped,
        path=path,
        decision=decision,
    )


def passes_needed(pass_if: PassIf, runs: int) -> float:
    """How many of so many runs a policy wants to pass; of a rate that need not be a whole number."""
    if pass_if == "all":
        return runs
    if pass_if == "majority":
        return runs // 2 + 1
    # A rate such as 0.6 of 5 must not become 3.0000000000000004.
    return round(float(pass_if) * runs, 9)


def pass_if_of(policy: str) -> PassIf:
    """The policy that a result names. Raises ValueError for what is none."""
    match policy:
        case "all":
            return "all"
        case "majority":
            return "majority"
        case _:
            return float(policy)
