"""The order of cases in their set: as in the file, or by outcome, time or cost of their last results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.workbench.state import CaseOutcome

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult


class CaseOrder(StrEnum):
    """What cases are ordered by; cases without a result come last, equal ones as in the file."""

    FILE = "file"
    OUTCOME = "outcome"
    TIME = "time"
    COST = "cost"


# The worst first.
_OUTCOMES = ("FAILED", "ERROR", "FLAKY", "NOT_EVALUATED", "PASSED")


def in_order(
    eval_set: EvalSetFile,
    numbers: Sequence[int],
    order: CaseOrder,
    outcome: Callable[[CaseId], CaseOutcome | None],
) -> Sequence[int]:
    """The numbers of cases of a set, from 0, in an order."""
    if order is CaseOrder.FILE:
        return numbers

    def key(number: int) -> float:
        scored = outcome(CaseId(eval_set.case_path, eval_set.cases[number].eval_id))
        return float("inf") if scored is None else _rank(scored.result, order)

    return sorted(numbers, key=key)


def _rank(result: CaseResult, order: CaseOrder) -> float:
    if order is CaseOrder.OUTCOME:
        return _OUTCOMES.index(result.status)
    if order is CaseOrder.TIME:
        return -sum(repeat.seconds for repeat in result.repeats)
    return -tokens_of(result)


def tokens_of(result: CaseResult) -> float:
    """The tokens of a case in all of its repeats; 0 where none are known."""
    return sum(
        (metric.score or 0.0) * len(metric.per_invocation)
        for repeat in result.repeats
        for metric in repeat.metrics
        if metric.name == "token_usage_v1"
    )
