"""The order of cases in their set: as in the file, or by outcome, time or cost of their last results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from evaltui.core.model.case_id import CaseId
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.workbench.state import CaseOutcome


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
        return float("inf") if scored is None else _rank(scored, order)

    return sorted(numbers, key=key)


def _rank(scored: CaseOutcome, order: CaseOrder) -> float:
    if order is CaseOrder.OUTCOME:
        return _OUTCOMES.index(scored.status)
    known = scored.figures
    of_a_run = known.seconds if order is CaseOrder.TIME else known.tokens
    return -(of_a_run or 0.0) * known.runs
