"""Figures of a matrix that its reports share."""

from __future__ import annotations

from collections.abc import Callable

from evaltui.core.compare.matrix import Cell, Matrix
from evaltui.text.figures import UNKNOWN, show_duration, show_interval, show_number, show_p, show_rate


def rate_text(matrix: Matrix, place: int) -> str:
    """`84%`"""
    rate = matrix.totals[place].rate
    return show_rate(rate.mean) if rate else UNKNOWN


def interval_text(matrix: Matrix, place: int) -> str:
    """`74–90%`"""
    rate = matrix.totals[place].rate
    return show_interval(*rate.interval) if rate and rate.interval else UNKNOWN


def paired_text(matrix: Matrix, place: int) -> str:
    """`+7 −1, p = 0.07`: cases that pass here only, and in the base only."""
    paired = matrix.paired[place]
    if paired is None:
        return "base"
    return f"+{paired.better} −{paired.worse}, {show_p(paired.p)}" if paired.cases else UNKNOWN


def cost_text(cell: Cell) -> str:
    """What the agent cost in a run of a case, `$0.0021 + 3 unpriced calls`; "" where nobody knows of any."""
    cost = cell.cost
    return cost.in_words if cost is not None and (cost.usd is not None or cost.unpriced) else ""


def cost_per_passed_text(matrix: Matrix, place: int) -> str:
    cost = matrix.totals[place].cost_per_passed
    return UNKNOWN if cost is None else cost.in_words


def total_cost_text(matrix: Matrix, place: int) -> str:
    """`$0.011 + 3 unpriced calls`"""
    cost = matrix.totals[place].cost
    return UNKNOWN if cost is None else str(cost)


SUMS: tuple[tuple[str, Callable[[Matrix, int], str]], ...] = (
    ("pass rate", rate_text),
    ("95% interval", interval_text),
    ("against base", paired_text),
    ("cost", total_cost_text),
    ("cost per passed case", cost_per_passed_text),
    ("p50", lambda matrix, place: show_duration(matrix.totals[place].p50)),
    ("p95", lambda matrix, place: show_duration(matrix.totals[place].p95)),
    ("tokens", lambda matrix, place: show_number(matrix.totals[place].tokens)),
)
"""What a variant comes to, by title."""
