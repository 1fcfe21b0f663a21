"""What a result says in a list and of its turns.

Statuses are compared by their text, so that nothing heavy is imported to draw a case that has not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaltui.core.compare.judged import over_conversation

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult, MetricResult


def needs_attention(result: CaseResult) -> bool:
    """Whether a result is one to stop at: everything but a pass, and but what the flaky policy lets pass."""
    if result.status == "FLAKY":
        return not result.policy_met
    return result.status != "PASSED"


def figure(result: CaseResult) -> str:
    """What says most of a case in a few cells: `0.50`, `3/5`, `TimeoutError`; "" for one that passed."""
    if len(result.repeats) > 1 and result.status != "PASSED":
        return f"{result.passed_repeats}/{len(result.repeats)}"
    if result.error is not None:
        return result.error.type
    deciding = next((metric for metric in result.metrics if metric.status == result.status), None)
    if result.status == "PASSED" or deciding is None or deciding.score is None:
        return ""
    return f"{deciding.score:.2f}"


def turn_status(result: CaseResult, turn: int) -> str | None:
    """The gravest verdict on one turn, counted from 0; None where no metric says anything of it."""
    if turn < len(result.turns) and result.turns[turn].expectation == "context":
        return None
    said = {
        metric.per_invocation[turn].status
        for metric in result.metrics
        if _speaks_of_turns(metric, len(result.turns)) and turn < len(metric.per_invocation)
    }
    return next((status for status in ("FAILED", "ERROR", "NOT_EVALUATED", "PASSED") if status in said), None)


def _speaks_of_turns(metric: MetricResult, turns: int) -> bool:
    return (
        metric.status != "INFORMATIONAL"
        and len(metric.per_invocation) == turns
        and not over_conversation(metric.name)
    )


def deciding_repeat(result: CaseResult) -> int:
    """Which run of a case gave it its metrics and turns: the first one that is as bad as the worst."""
    from evaltui.core.model.outcome import WORST_FIRST

    ranks = [WORST_FIRST.index(repeat.status) for repeat in result.repeats]
    return ranks.index(min(ranks)) if ranks else 0
