"""The runs pane: the last runs below the cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from evaltui.text.figures import counted
from evaltui.text.lines import Line
from evaltui.tui.action_screen import bindings, draw_screen_of
from evaltui.tui.pane import Pane
from evaltui.tui.runs.recent_page import RecentRun, recent_lines
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.runs.run_list import RunList, Sides
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.runs.listing import RunRow

_MOST = 24
# Seconds between two looks at the clock.
_TICK = 1.0


class RecentRuns(Pane, CursorLines, can_focus=True, inherit_bindings=False):
    """The pass rate over the last runs, and a line for each, which opens it."""

    BINDINGS = bindings(Scope.RECENT_RUNS)

    class OpenRun(Message):
        """The user wants to see the results of a run."""

        def __init__(self, path: Path, title: str) -> None:
            super().__init__()
            self.path = path
            self.title = title

    class CompareRuns(Message):
        """The user wants to see a run beside its base."""

        def __init__(self, sides: Sides) -> None:
            super().__init__()
            self.sides = sides

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._runs = RunList(lambda: workbench.agent.store, self._show_loaded)
        self._shown: list[RunRow] = []
        self._lines: list[Line] = []
        self._first = 0
        self._loaded_for: object = None

    def heading(self) -> Line:
        count = len(self._runs.paths or ())
        return [(counted(count, "run"), "muted")] if count else []

    def on_mount(self) -> None:
        self.set_interval(_TICK, self._look_again)

    def follow(self) -> None:
        """Looks again which runs there are, once one has begun or ended."""
        known = self._workbench.runs_now
        if known != self._loaded_for:
            self._loaded_for = known
            self.run_worker(self._runs.load(), group="recent runs", exclusive=True)
        self._show()

    def _look_again(self) -> None:
        """Moments pass, and runs of other processes go on."""
        if self._shown and self.display:
            self._runs.read_again()
            self._show()

    def _show_loaded(self) -> None:
        self._show()
        # The border says how many there are.
        draw_screen_of(self)

    def _show(self) -> None:
        rows = [self._runs.row(path) for path in (self._runs.paths or ())[:_MOST]]
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
        """The run that goes on here is known better than its log says."""
        run = self._workbench.runs.current
        if run is None or run.over or run.log != row.path:
            return row
        return replace(row, totals=replace(row.totals, counts=dict(run.counts)), selected=len(run.selected))

    def on_resize(self) -> None:
        self._show()

    async def on_unmount(self) -> None:
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
            self.post_message(self.OpenRun(run.path, run.title))

    def action_open(self) -> None:
        self.open_current()

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
