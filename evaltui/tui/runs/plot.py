"""Plots over runs: pass rate, cost, and time per case."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from enum import StrEnum

from evaltui.core.statistics import wilson
from evaltui.runs.listing import RunRow
from evaltui.text.figures import UNKNOWN, show_duration, show_interval, show_money, show_points, show_rate
from evaltui.text.lines import Line, Span, filled
from evaltui.text.plots import column_plot
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Page


class RunPlot(StrEnum):
    """The figure of a plot over runs."""

    RATE = "pass rate"
    COST = "cost"
    LATENCY = "time of a case"

    @property
    def following(self) -> RunPlot:
        every = list(RunPlot)
        return every[(every.index(self) + 1) % len(every)]


def plotted(plot: RunPlot, row: RunRow) -> float | None:
    """The figure of a run; None where it is unknown, or incomplete."""
    match plot:
        case RunPlot.RATE:
            return pass_rate(row)
        case RunPlot.COST:
            cost = row.totals.total_cost
            return cost.usd if cost is not None and cost.is_exact else None
        case RunPlot.LATENCY:
            return row.totals.p50


def write_figures(
    page: Page,
    height: int,
    rows: Sequence[RunRow],
    current: RunRow | None,
    base: RunRow | None,
    plot: RunPlot,
) -> None:
    """Writes a plot of costs or times; a run without the figure is a gap."""
    show = show_money if plot is RunPlot.COST else show_duration
    shown = [(row, plotted(plot, row)) for row in reversed(rows)]
    most = max((value for _, value in shown if value is not None), default=None)
    if most is None:
        page.row((f"{plot.value[0].upper()}{plot.value[1:]} of no run is known", "muted"))
        return
    roles = ["accent" if row is current else "line" for row, _ in shown]
    marks: list[Span] = [("●", "accent") if row is base else ("", "") for row, _ in shown]
    beside: list[Line] = []
    if page.width >= _WITH_FACTS and current is not None:
        value = plotted(plot, current)
        beside = [
            [(visible(current.title), "bold")],
            [(UNKNOWN if value is None else show(value), "bold accent"), (f"   {plot}", "muted")],
        ]
        if base is not None and base is not current:
            base_value = show(plotted(plot, base))
            beside += [[], [("base ● ", "muted"), (visible(base.title), ""), (f"  {base_value}", "muted")]]
    shares = [None if value is None else value / most if most else 0.0 for _, value in shown]
    _write_columns(page, shares, roles, marks, height, beside, show(most))


def _write_columns(
    page: Page,
    values: Sequence[float | None],
    roles: Sequence[str],
    marks: Sequence[Span],
    height: int,
    beside: Sequence[Line],
    top: str = "",
    hollow: Container[int] = (),
) -> None:
    room = page.width - (SIDE if beside else 0)
    for number, line in enumerate(column_plot(values, roles, room, height - 1, marks, top, hollow)):
        fact = beside[number] if number < len(beside) else []
        page.lines.append([*filled(line, room), *fact])


def write_plot(
    page: Page,
    height: int,
    rows: Sequence[RunRow],
    current: RunRow | None,
    base: RunRow | None,
    sets: Collection[str] = (),
) -> None:
    """Writes the pass rates of runs, the newest first in `rows`, in a number of lines, and at the right the
    figures of the current one.

    Runs without cases are left out; a run of some cases only is hollow; `sets` are the paths of all sets.
    """
    rates = [(row, rate) for row in reversed(rows) if (rate := pass_rate(row)) is not None]
    if not rates:
        return
    beside = _beside_plot(rows, current, base) if page.width >= _WITH_FACTS else []
    roles = ["accent" if row is current else "line" for row, _ in rates]
    marks: list[Span] = [("●", "accent") if row is base else ("", "") for row, _ in rates]
    partial = {place for place, (row, _) in enumerate(rates) if not row.is_whole(sets)}
    _write_columns(page, [rate for _, rate in rates], roles, marks, height, beside, hollow=partial)


PLOT_ROWS = 8
# Cells of what stands beside the plot and the table, and the width from which on it does.
SIDE, _WITH_FACTS = 44, 100


def pass_rate(row: RunRow) -> float | None:
    """The pass rate of the evaluated cases; None without one."""
    return row.totals.passed / row.totals.evaluated if row.totals.evaluated else None


def _beside_plot(rows: Sequence[RunRow], current: RunRow | None, base: RunRow | None) -> list[Line]:
    if current is None or (rate := pass_rate(current)) is None:
        return []
    passed, done = current.totals.passed, current.totals.evaluated
    lines: list[Line] = [
        [(visible(current.title), "bold")],
        [
            (show_rate(rate), "bold accent"),
            (f" ({show_interval(*wilson(passed, done))})   {passed}/{done} passed", "muted"),
        ],
    ]
    if base is not None and base is not current and (before := pass_rate(base)) is not None:
        lines += [[], [("base ● ", "muted"), (visible(base.title), ""), (f"  {show_rate(before)}", "muted")]]
        if _same_cases(current, base):
            points = round((rate - before) * 100)
            role = "success" if points > 0 else "error" if points < 0 else "muted"
            change = show_points(before, rate) if points else "no change"
            lines.append([(change, f"bold {role}"), (" to the base", "muted")])
        else:
            lines.append([("other cases than the base", "muted")])
    over = [row for row in rows if row.ending == "over" and _same_cases(row, current)]
    alike = [(own_rate, row) for row in over if (own_rate := pass_rate(row))]
    if alike:
        best, of = max(alike, key=lambda rated: rated[0])
        lines += [[], [("best ", "muted"), (show_rate(best), ""), (f"  {visible(of.title)}", "muted")]]
    return lines


def _same_cases(first: RunRow, second: RunRow) -> bool:
    mine, theirs = ({(run.path, *run.eval_ids) for run in row.sets} for row in (first, second))
    return mine == theirs
