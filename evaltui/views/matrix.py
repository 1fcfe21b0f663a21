"""What a matrix says: what its variants change and come to, and how a case came out in each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaltui.core.compare.matrix import Cell, Matrix
from evaltui.core.model.outcome import Status
from evaltui.core.model.variants import Change
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    plural,
    show_duration,
    show_interval,
    show_money,
    show_number,
    show_p,
    show_rate,
    show_score,
    some_of,
)
from evaltui.text.lines import Line, Span
from evaltui.text.outcomes import GLYPHS, NOT_RUN, WORDS, glyph
from evaltui.text.values import show_value, visible

# Variants


def variant_changes(matrix: Matrix) -> dict[str, list[str]]:
    """What any variant changes, by key, and the model; by variant its value, `—` where it changes nothing."""
    changes = {"model": [visible(run.circumstances.model) for run in matrix.columns]}
    for place, run in enumerate(matrix.columns):
        for change in run.variant.changes if run.variant else ():
            values = changes.setdefault(visible(change.key), [UNKNOWN] * len(matrix.columns))
            values[place] = visible(change_text(change))
    return {key: values for key, values in changes.items() if any(values)}


def missing_text(matrix: Matrix) -> str:
    """`3 results, variant pro`; "" for a matrix that is complete."""
    missing = sum(totals.open_cases for totals in matrix.totals)
    results = counted(missing, "result") if missing else ""
    names = matrix.not_run
    variants = f"{plural(len(names), 'variant')} {some_of(names)}" if names else ""
    return ", ".join(filter(None, (results, variants)))


def change_text(change: Change) -> str:
    """The value of a change: a text as it is, else JSON."""
    return change.value if isinstance(change.value, str) else show_value(change.value)


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


def cost_per_passed_text(matrix: Matrix, place: int) -> str:
    cost = matrix.totals[place].cost_per_passed
    return UNKNOWN if cost is None else cost.in_words


def total_cost_text(matrix: Matrix, place: int) -> str:
    """`$0.011 + 3 unpriced calls`"""
    cost = matrix.totals[place].cost
    return UNKNOWN if cost is None else str(cost)


def tokens_text(matrix: Matrix, place: int) -> str:
    """`1,412`, of all executions."""
    tokens = matrix.totals[place].tokens
    return UNKNOWN if tokens is None else show_number(round(tokens))


SUMS: tuple[tuple[str, Callable[[Matrix, int], str]], ...] = (
    ("pass rate", rate_text),
    ("95% interval", interval_text),
    ("against base", paired_text),
    ("cost", total_cost_text),
    ("cost per passed case", cost_per_passed_text),
    ("p50", lambda matrix, place: show_duration(matrix.totals[place].p50)),
    ("p95", lambda matrix, place: show_duration(matrix.totals[place].p95)),
    ("tokens", tokens_text),
)
"""What a variant comes to, by title."""


# Cells


@dataclass(frozen=True)
class CellRow:
    """A case in a variant that has a result."""

    status: Span
    """The glyph of the case."""
    repeats: Line
    """The glyphs of its repeats."""
    figure: str
    """`4/5` of several repeats; else the score, or `error`."""
    cost: str
    """What the agent cost in a run of it: `$0.0021 + 3 unpriced calls`; "" where nobody knows of any."""
    time: str
    """`3.1 s`; "" where nobody knows."""
    direction: Line
    """How it compares with the base: ▲, ▼, or ≠ where the two cannot be compared; empty for neither."""


_DIRECTIONS = {"better": ("▲", "success"), "worse": ("▼", "error")}


def cell_row(cell: Cell) -> CellRow | None:
    """None for a case without a result."""
    case, cost = cell.case, cell.cost
    if case is None:
        return None
    figure = f"{case.passed}/{case.runs}" if case.runs > 1 else show_score(cell.score)
    if case.runs == 1 and case.status is Status.ERROR:
        figure = WORDS[case.status]
    direction = ("≠", "muted") if cell.reasons else _DIRECTIONS.get(cell.direction)
    return CellRow(
        glyph(case.status),
        [glyph(status) for status in case.outcomes or (case.status,)],
        figure,
        cost.in_words if cost is not None and (cost.usd is not None or cost.unpriced) else "",
        "" if case.seconds is None else show_duration(case.seconds),
        [direction] if direction else [],
    )


def no_result(cell: Cell) -> Span:
    """`○ not run` where a result is still to come; `—` where the case was not selected."""
    return (f"{GLYPHS[NOT_RUN]} {WORDS[NOT_RUN]}", "muted") if cell.is_open else (UNKNOWN, "muted")


# The plot


@dataclass(frozen=True)
class PlotPoint:
    """A variant in the plot."""

    x: float
    rate: float
    place: int
    """Of the variant in the matrix."""


@dataclass(frozen=True)
class Plot:
    """Pass rates against costs, or against times where no cost is known."""

    title: str
    points: list[PlotPoint]
    show: Callable[[float], str]
    """Writes a cost or a time."""


def plot_of(matrix: Matrix) -> Plot:
    """A cost that is known in part is no point."""
    costs = [totals.known_usd for totals in matrix.totals]
    has_costs = any(costs)
    against = costs if has_costs else [totals.p50 for totals in matrix.totals]
    points = [
        PlotPoint(x, totals.rate.mean, place)
        for place, (totals, x) in enumerate(zip(matrix.totals, against, strict=True))
        if totals.rate is not None and x is not None
    ]
    title = f"pass rate against {'cost' if has_costs else 'time (p50)'}"
    return Plot(title, points, show_money if has_costs else show_duration)
