"""The runs pane: the last runs below the cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual import events, on
from textual.message import Message

from evaltui.core.model.outcome import Status
from evaltui.text.figures import counted, show_elapsed, show_moment, show_number, show_rate
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells, join_ends, pad
from evaltui.text.outcomes import COUNTED_STATUSES, ROLES, RUNNING, counts_line, glyph
from evaltui.text.plots import column_plot, sparkline, stacked_bar
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings, start_work
from evaltui.tui.pane import Pane
from evaltui.tui.runs.page import pass_rate
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.messages import FilesChanged, ResultsChanged, RunProgressed, RunsRead
from evaltui.workbench.runs.run_list import RunList, Sides
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.runs.listing import RunRow

# Cells of the figures beside the plot, of a moment, of a bar.
_FIGURES_WIDTH, _WHEN_WIDTH, _BAR_WIDTH = 14, 8, 8
# From this many rows on, the plot is one of columns.
_MIN_PLOT_COLUMNS = 6


class RecentRun(NamedTuple):
    """A run, and its differences from the one before."""

    row: RunRow
    changed: Sequence[str] = ()
    is_whole: bool = True
    """Whether it ran all cases."""


def recent_lines(runs: Sequence[RecentRun], width: int, height: int, now: datetime) -> tuple[list[Line], int]:
    """The lines, and the number of the first one with a run; `runs` are the newest first."""
    if not runs:
        none: Line = [("No runs yet", "muted"), (f"   {key_of('run_all')}", "bold accent")]
        return [[*none, (" runs all cases", "muted")]], 1
    plot = _plot(runs, width, height)
    lines = [*plot, *([[]] if plot and height > _MIN_PLOT_COLUMNS + 1 else [])]
    shown = runs[: max(1, height - len(lines))]
    digits = max(2, *(len(_number(run.row)) for run in shown))
    figures = max(len(_figures(run.row)) for run in shown)
    below = (_run(run, digits, figures, width, now, is_newest=run is runs[0]) for run in shown)
    return [*lines, *below], len(lines)


def _plot(runs: Sequence[RecentRun], width: int, height: int) -> list[Line]:
    """The plot of the finished runs, and the pass rate of the newest one of all cases; empty before the first
    one has finished."""
    done = [run for run in runs if run.row.totals.evaluated and run.row.ending != "going on"][::-1]
    if not done:
        return []
    whole = [run for run in done if run.is_whole] or done
    newest = whole[-1]
    totals = newest.row.totals
    rate: Line = [(show_rate(pass_rate(newest.row) or 0.0), "bold accent")]
    passed: Line = [(f"{show_number(totals.passed)}/{show_number(totals.evaluated)} passed", "muted")]
    if newest.row.not_run:
        # The rate is of the cases that ran, and would look like one of all.
        rate, passed = [], [(f"{_figures(newest.row)} passed", "muted")]
    # The rate is of the cases with a verdict.
    others = counts_line({Status.NOT_EVALUATED: totals.counts.get(Status.NOT_EVALUATED, 0)})
    if height < _MIN_PLOT_COLUMNS:
        rates = [pass_rate(run.row) for run in whole]
        right: Line = [*rate, (" ", ""), *passed, *([(" ", ""), *others] if others else [])]
        room = width - max(_FIGURES_WIDTH + 6, cells(right) + 1)
        line = sparkline(rates, [*["muted"] * (len(rates) - 1), "accent"])[-room:]
        return [join_ends(line, right, width)]
    roles = ["accent" if run is newest else "line" for run in done]
    partial = {place for place, run in enumerate(done) if not run.is_whole}
    rates = [pass_rate(run.row) for run in done]
    columns = column_plot(rates, roles, width - _FIGURES_WIDTH, min(4, height - 3), hollow=partial)
    which = "" if newest is done[-1] or not newest.row.number else f"run {newest.row.number}"
    third: Line = [(which, "muted"), ("  " if which and others else "", ""), *others]
    beside = [rate, passed, third, *[[] for _ in columns[3:]]]
    return [join_ends(column, right, width) for column, right in zip(columns, beside, strict=True)]


def _run(run: RecentRun, digits: int, figures: int, width: int, now: datetime, *, is_newest: bool) -> Line:
    """A run: `18 12 s ago ━━━━━━━━ 7/16  agent.py`."""
    row = run.row
    left: Line = [(f"{_number(row):>{digits}} ", "bold" if is_newest else "")]
    if row.problem:
        return [*left, (pad(_short_moment(row.started, now), _WHEN_WIDTH), "muted"), (" unreadable", "error")]
    if row.ending == "going on":
        elapsed = show_elapsed(max(0.0, (now - row.started).total_seconds()))
        left += [glyph(RUNNING), (f" {elapsed:<{_WHEN_WIDTH - 2}}", "")]
    else:
        left.append((pad(_short_moment(row.started, now), _WHEN_WIDTH), "muted"))
    parts = [(row.totals.counts.get(status, 0), ROLES[status]) for status in COUNTED_STATUSES]
    left += [(" ", ""), *stacked_bar(parts, row.selected, _BAR_WIDTH), (f" {_figures(row):>{figures}}", "")]
    note: Line = [(visible(row.name), "accent")] if row.name else []
    if not row.name and not run.is_whole:
        note = [(counted(row.selected, "case"), "muted")]
    elif not row.name and run.changed:
        note = [(visible(run.changed[0]), "muted")]
    return join_ends(left, note, width, gap=1, least=cells(left))


def _number(row: RunRow) -> str:
    return str(row.number) if row.number else "adk" if row.is_of_adk else ""


def _short_moment(at: datetime, now: datetime) -> str:
    """A moment in few cells: `12 s ago`, `27 min`, `14:05`, `22 Nov`."""
    text = show_moment(at, now)
    if len(text) <= _WHEN_WIDTH:
        return text
    first, second, *rest = text.split()
    return f"{first} {second}" if rest else second


def _figures(row: RunRow) -> str:
    """The counts: `7/16`, passed of all, or done of all while it is in progress."""
    if row.ending == "going on":
        return f"{show_number(row.totals.cases)}/{show_number(row.selected)}"
    return f"{show_number(row.totals.passed)}/{show_number(row.selected)}"


_MAX_RUNS = 24
# Seconds between two looks at the clock.
_TICK_SECONDS = 1.0


class RecentRuns(Pane, CursorLines, can_focus=True, inherit_bindings=False):
    """The pass rate over the last runs, and a line for each, which opens it."""

    BINDINGS = bindings(Scope.RECENT_RUNS)
    SHOWS = (FilesChanged, ResultsChanged, RunsRead, RunProgressed)

    class CompareRuns(Message):
        """The user opens the comparison of a run with its base."""

        def __init__(self, sides: Sides) -> None:
            super().__init__()
            self.sides = sides

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._runs = RunList(lambda: workbench.agent.store, workbench.messages)
        self._shown: list[RunRow] = []
        self._lines: list[Line] = []
        self._first = 0
        self._loaded_for: object = None

    def heading(self) -> Line:
        count = len(self._runs.paths or ())
        return [(counted(count, "run"), "muted")] if count else []

    def on_mount(self) -> None:
        self.set_interval(_TICK_SECONDS, self._read_again)

    def follow(self) -> None:
        """Lists the runs again when one has started or ended."""
        runs_now = self._workbench.runs_now
        if runs_now != self._loaded_for:
            self._loaded_for = runs_now
            start_work(self, self._runs.load, group="recent runs")
        self._show()

    def _read_again(self) -> None:
        """Updates the times, and the progress of runs of other processes."""
        if self._shown and self.display:
            self._runs.read_again()
            self._show()

    def _show(self) -> None:
        rows = [self._runs.row(path) for path in (self._runs.paths or ())[:_MAX_RUNS]]
        self._shown = [self._of_now(row) for row in rows if row is not None]
        sets = {case.path for case in self._workbench.sets.every_case()}
        runs = [RecentRun(row, self._runs.changed_in(row.path), row.is_whole(sets)) for row in self._shown]
        before = self._lines
        self._lines, self._first = recent_lines(
            runs, self.line_width - 1, self.size.height, datetime.now(UTC)
        )
        if self._lines != before or self.line_count != len(self._lines):
            self.lines_changed(len(self._lines))
            self.cursor = max(self._first, min(self.cursor, self.line_count - 1))

    def _of_now(self, row: RunRow) -> RunRow:
        """The run in progress here, instead of its row from the log, which is older."""
        run = self._workbench.runs.current
        if run is None or run.over or run.log != row.path:
            return row
        return replace(row, totals=replace(row.totals, counts=dict(run.counts)), selected=len(run.selected))

    on_resize = _show

    @on(events.Unmount)
    async def close(self) -> None:
        await self._runs.close()

    def line(self, number: int) -> Line:
        current = number == self.cursor and self.has_focus and number >= self._first
        is_base = (run := self._run_at(number)) is not None and run.path == self._base
        return [("▌" if current else "●" if is_base else " ", "bold accent"), *self._lines[number]]

    def row_role(self, number: int) -> str:
        return super().row_role(number) if self.has_focus and number >= self._first else ""

    def move_to(self, number: int) -> None:
        super().move_to(max(self._first, number))

    @property
    def _base(self) -> Path | None:
        return self._workbench.outcomes.base_run

    def _run_at(self, number: int) -> RunRow | None:
        place = number - self._first
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def open_current(self) -> None:
        if (run := self._run_at(self.cursor)) is not None:
            open_run = self._workbench.outcomes.open_run
            start_work(self.screen, open_run, run.path, run.title, group="runs")

    action_open = open_current

    def action_set_base(self) -> None:
        if (run := self._run_at(self.cursor)) is not None:
            self._workbench.outcomes.mark_base(run.path)
            self.refresh()

    def action_compare(self) -> None:
        if (run := self._run_at(self.cursor)) is None:
            return
        sides = self._runs.sides_of(run.path, self._base)
        if isinstance(sides, str):
            self._workbench.say(sides)
        else:
            self.post_message(self.CompareRuns(sides))
