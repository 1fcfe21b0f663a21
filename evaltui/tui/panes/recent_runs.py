"""The runs pane: the last runs below the cases."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from evaltui.text.lines import Line
from evaltui.tui.action_screen import ActionScreen, bindings
from evaltui.tui.pages.recent_runs import recent_lines
from evaltui.tui.pane import Pane
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.kept_runs import KeptRuns
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.runs.listing import RunRow

_MOST = 24


class RecentRuns(Pane, CursorLines, can_focus=True, inherit_bindings=False):
    """The pass rate over the last runs, and a line for each, which opens it."""

    BINDINGS = bindings(Scope.RECENT_RUNS)

    class OpenRun(Message):
        """The user wants to see the results of a run."""

        def __init__(self, path: Path, title: str) -> None:
            super().__init__()
            self.path = path
            self.title = title

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._runs = KeptRuns(workbench.agent.dir, self._show_loaded)
        self._shown: list[RunRow] = []
        self._lines: list[Line] = []
        self._first = 0
        self._loaded_for: object = None

    def heading(self) -> Line:
        count = len(self._runs.paths or ())
        return [(f"{count} runs" if count != 1 else "1 run", "muted")] if count else []

    def follow(self) -> None:
        """Looks again which runs there are, once one has ended."""
        run = self._workbench.runs.current
        ended = (run.number, run.over) if run is not None else True
        if ended != self._loaded_for and (run is None or run.over):
            self._loaded_for = ended
            self.run_worker(self._runs.load(), group="recent runs", exclusive=True)
        self._show()

    def _show_loaded(self) -> None:
        self._show()
        # The border says how many there are.
        if isinstance(self.screen, ActionScreen):
            self.screen.draw_soon()

    def _show(self) -> None:
        rows = [self._runs.row(path) for path in (self._runs.paths or ())[:_MOST]]
        self._shown = [row for row in rows if row is not None and row.ending != "going on"]
        size = self.size
        self._lines, self._first = recent_lines(
            self._shown, self.line_width - 1, size.height, datetime.now(UTC)
        )
        self.lines_changed(len(self._lines))
        self.cursor = max(self._first, min(self.cursor, self.line_count - 1))

    def on_resize(self) -> None:
        self._show()

    async def on_unmount(self) -> None:
        await self._runs.close()

    def line(self, number: int) -> Line:
        current = number == self.cursor and self.has_focus and number >= self._first
        return [("▌", "bold accent") if current else (" ", ""), *self._lines[number]]

    def row_role(self, number: int) -> str:
        return super().row_role(number) if self.has_focus and number >= self._first else ""

    def move_to(self, number: int) -> None:
        super().move_to(max(self._first, number))

    def open_current(self) -> None:
        if 0 <= self.cursor - self._first < len(self._shown):
            run = self._shown[self.cursor - self._first]
            self.post_message(self.OpenRun(run.path, run.title))

    def action_open_recent_run(self) -> None:
        self.open_current()
