"""The last runs in a few lines: the pass rate as a plot, then a run per line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from evaltui.text.figures import show_moment, show_rate
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, both_ends, pad
from evaltui.text.outcomes import COUNTED, ROLES
from evaltui.text.plots import column_plot, sparkline, stacked_bar
from evaltui.text.values import visible

if TYPE_CHECKING:
    from evaltui.runs.listing import RunRow

# Cells of the figures beside the plot, of a bar, of `16/16`.
_FIGURES, _BAR, _PASSED = 14, 8, 6
# From this many rows on, the plot is one of columns.
_WITH_COLUMNS = 6


def recent_lines(runs: Sequence[RunRow], width: int, height: int, now: datetime) -> tuple[list[Line], int]:
    """The lines, and the number of the first one that is a run; `runs` are the newest first."""
    if not runs:
        return [
            [
                ("No runs yet", "muted"),
                (f"   {key_of('run_all')}", "bold accent"),
                (" runs all cases", "muted"),
            ]
        ], 1
    plot = _plot(runs, width, height)
    lines = [*plot, *([[]] if height > _WITH_COLUMNS + 1 else [])]
    shown = runs[: max(1, height - len(lines))]
    moments = [show_moment(run.started, now) for run in shown]
    column = max(map(len, moments)) + 1
    return [
        *lines,
        *(_run(run, pad(when, column), width) for run, when in zip(shown, moments, strict=True)),
    ], len(lines)


def _plot(runs: Sequence[RunRow], width: int, height: int) -> list[Line]:
    rates = [_passed(run) / max(1, run.selected) for run in reversed(runs)]
    # The newest one is the one that is spoken of.
    roles = [*["line"] * (len(rates) - 1), "accent"]
    newest = runs[0]
    rate: Line = [(show_rate(rates[-1]), "bold accent")]
    passed: Line = [(f"{_passed(newest)}/{newest.selected} passed", "muted")]
    if height < _WITH_COLUMNS:
        line = sparkline(rates, [*["muted"] * (len(rates) - 1), "accent"])[-(width - _FIGURES - 6) :]
        return [both_ends(line, [*rate, (" ", ""), *passed], width)]
    columns = column_plot(rates, roles, width - _FIGURES, min(4, height - 3))
    beside = [rate, passed, *[[] for _ in columns[2:]]]
    return [both_ends(column, right, width) for column, right in zip(columns, beside, strict=True)]


def _run(run: RunRow, moment: str, width: int) -> Line:
    """`12 s ago   ━━━━━━━━   7/16  agent.py`"""
    when: Line = [(" ", ""), (moment, "")]
    if run.problem:
        return [*when, ("cannot be read", "error")]
    bar = stacked_bar([(run.counts.get(status, 0), ROLES[status]) for status in COUNTED], run.selected, _BAR)
    left: Line = [*when, *bar, (f"{f'{_passed(run)}/{run.selected}':>{_PASSED}}", "")]
    changed = run.changed[0] if run.changed else ""
    note: Line = [(visible(run.name), "accent")] if run.name else [(visible(changed), "muted")]
    return both_ends(left, note if note[0][0] else [], width, least=len(moment) + _BAR + _PASSED)


def _passed(run: RunRow) -> int:
    return run.counts.get("PASSED", 0)
