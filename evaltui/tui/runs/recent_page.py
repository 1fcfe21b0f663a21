"""The last runs in a few lines: the pass rate as a plot, then a run per line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from evaltui.text.figures import counted, show_elapsed, show_moment, show_number, show_rate
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, both_ends, pad
from evaltui.text.outcomes import COUNTED, ROLES, RUNNING, glyph
from evaltui.text.plots import column_plot, sparkline, stacked_bar
from evaltui.text.values import visible
from evaltui.tui.runs.plot import pass_rate

if TYPE_CHECKING:
    from evaltui.runs.listing import RunRow

# Cells of the figures beside the plot, of a moment, of a bar.
_FIGURES, _WHEN, _BAR = 14, 8, 8
# From this many rows on, the plot is one of columns.
_WITH_COLUMNS = 6


class RecentRun(NamedTuple):
    """A run, and what is different in it from the one before."""

    row: RunRow
    changed: Sequence[str] = ()
    is_whole: bool = True
    """Whether it ran all cases."""


def recent_lines(runs: Sequence[RecentRun], width: int, height: int, now: datetime) -> tuple[list[Line], int]:
    """The lines, and the number of the first one that is a run; `runs` are the newest first."""
    if not runs:
        none: Line = [("No runs yet", "muted"), (f"   {key_of('run_all')}", "bold accent")]
        return [[*none, (" runs all cases", "muted")]], 1
    plot = _plot(runs, width, height)
    lines = [*plot, *([[]] if plot and height > _WITH_COLUMNS + 1 else [])]
    shown = runs[: max(1, height - len(lines))]
    digits = max(2, *(len(_number(run.row)) for run in shown))
    figures = max(len(_figures(run.row)) for run in shown)
    below = (_run(run, digits, figures, width, now, is_newest=run is runs[0]) for run in shown)
    return [*lines, *below], len(lines)


def _plot(runs: Sequence[RecentRun], width: int, height: int) -> list[Line]:
    """Of the runs that are over, and the pass rate of the newest one of all cases; nothing before the first
    one is over."""
    done = [run for run in runs if run.row.totals.evaluated and run.row.ending != "going on"][::-1]
    if not done:
        return []
    whole = [run for run in done if run.is_whole] or done
    newest = whole[-1]
    rate: Line = [(show_rate(pass_rate(newest.row) or 0.0), "bold accent")]
    passed: Line = [(f"{_figures(newest.row)} passed", "muted")]
    if height < _WITH_COLUMNS:
        rates = [pass_rate(run.row) for run in whole]
        line = sparkline(rates, [*["muted"] * (len(rates) - 1), "accent"])[-(width - _FIGURES - 6) :]
        return [both_ends(line, [*rate, (" ", ""), *passed], width)]
    roles = ["accent" if run is newest else "line" for run in done]
    partial = {place for place, run in enumerate(done) if not run.is_whole}
    rates = [pass_rate(run.row) for run in done]
    columns = column_plot(rates, roles, width - _FIGURES, min(4, height - 3), hollow=partial)
    which = "" if newest is done[-1] or not newest.row.number else f"run {newest.row.number}"
    beside = [rate, passed, [(which, "muted")], *[[] for _ in columns[3:]]]
    return [both_ends(column, right, width) for column, right in zip(columns, beside, strict=True)]


def _run(run: RecentRun, digits: int, figures: int, width: int, now: datetime, *, is_newest: bool) -> Line:
    """`18 12 s ago ━━━━━━━━ 7/16  agent.py`"""
    row = run.row
    left: Line = [(f"{_number(row):>{digits}} ", "bold" if is_newest else "")]
    if row.problem:
        return [*left, (pad(_short(row.started, now), _WHEN), "muted"), (" unreadable", "error")]
    if row.ending == "going on":
        elapsed = show_elapsed(max(0.0, (now - row.started).total_seconds()))
        left += [glyph(RUNNING), (f" {elapsed:<{_WHEN - 2}}", "")]
    else:
        left.append((pad(_short(row.started, now), _WHEN), "muted"))
    parts = [(row.totals.counts.get(status, 0), ROLES[status]) for status in COUNTED]
    left += [(" ", ""), *stacked_bar(parts, row.selected, _BAR), (f" {_figures(row):>{figures}}", "")]
    note: Line = [(visible(row.name), "accent")] if row.name else []
    if not row.name and not run.is_whole:
        note = [(counted(row.selected, "case"), "muted")]
    elif not row.name and run.changed:
        note = [(visible(run.changed[0]), "muted")]
    return both_ends(left, note, width, gap=1, least=digits + _WHEN + _BAR + figures)


def _number(row: RunRow) -> str:
    return str(row.number) if row.number else "adk" if row.is_of_adk else ""


def _short(at: datetime, now: datetime) -> str:
    """A moment in few cells: `12 s ago`, `27 min`, `14:05`, `22 Nov`."""
    text = show_moment(at, now)
    if len(text) <= _WHEN:
        return text
    first, second, *rest = text.split()
    return f"{first} {second}" if rest else second


def _figures(row: RunRow) -> str:
    """`7/16`: passed of all, or done of all while it goes on."""
    if row.ending == "going on":
        return f"{show_number(row.totals.cases)}/{show_number(row.selected)}"
    return f"{show_number(row.totals.passed)}/{show_number(row.totals.cases)}"
