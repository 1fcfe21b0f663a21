"""Figures of a matrix that its reports share."""

from __future__ import annotations

from evaltui.core.compare.matrix import Matrix
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.statistics.differences import mcnemar_exact
from evaltui.core.statistics.estimates import Interval, clustered_rate
from evaltui.text.figures import UNKNOWN


def interval_of(matrix: Matrix, place: int) -> Interval | None:
    """Of the pass rate of a variant, clustered by case; None without a result."""
    cases = matrix.columns[place].cases.values()
    return clustered_rate([(case.passed, case.runs) for case in cases]).interval if cases else None


def interval_text(matrix: Matrix, place: int) -> str:
    """`74–90%`"""
    found = interval_of(matrix, place)
    return UNKNOWN if found is None else f"{found.low * 100:.0f}–{found.high * 100:.0f}%"


def p_of(matrix: Matrix, place: int) -> float | None:
    """Of the exact McNemar test against the base; None for the base itself."""
    paired = matrix.paired[place]
    return None if paired is None else mcnemar_exact(paired.better, paired.worse)


def paired_text(matrix: Matrix, place: int) -> str:
    """`+7 −1 p = 0.07`: cases that pass here only, and in the base only."""
    paired, p = matrix.paired[place], p_of(matrix, place)
    if paired is None or p is None:
        return "base"
    return f"+{paired.better} −{paired.worse} p = {p:.2g}" if paired.cases else UNKNOWN


def cost_of(case: CaseSummary) -> tuple[str, ...]:
    """What all runs of a case cost; nothing where no price is known."""
    return ()


def cost_per_passed(matrix: Matrix, place: int) -> str:
    return UNKNOWN
