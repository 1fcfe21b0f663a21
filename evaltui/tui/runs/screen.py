"""The screen of stored runs: they are opened, named, resumed, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from textual import events, on
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from evaltui.core.model.problems import SelectionError
from evaltui.runs.history import name_run
from evaltui.runs.listing import RunRow
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask, bindings, start_work
from evaltui.tui.compare.screen import ComparisonScreen
from evaltui.tui.dialogs.framed import RUNS, FramedScreen
from evaltui.tui.dialogs.prompt import PromptScreen
from evaltui.tui.runs.page import PLOT_ROWS, SIDE_WIDTH, RunPlot, write_plot, write_run, write_side
from evaltui.tui.widgets.lines import CursorLines, DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.views.run import ListedRun, run_line, run_table
from evaltui.workbench.actions import Scope
from evaltui.workbench.messages import RunsRead
from evaltui.workbench.runs.run_list import RunDetails, RunList, RunTarget, refuses_to_resume
from evaltui.workbench.workbench import Workbench

# The width from which on the failures of the current run stand at the right.
_MIN_WIDTH_WITH_SIDE = 140
_MAX_WIDTH = 400
# Seconds.
_TICK_SECONDS = 1.0
# Actions that need a run.
_RUN_ACTIONS = frozenset(("open", "set_base", "compare", "rename", "resume_run"))


class RunsScreen(FramedScreen[RunTarget | None], inherit_bindings=False):
    """The list of stored runs; returns the run to open. The keys of the main screen are off until it is
    closed."""

    BINDINGS = bindings(Scope.RUNS)
    SHOWS = (RunsRead,)
    AUTO_FOCUS = "#runs-rows"
    tab, scope = RUNS, Scope.RUNS

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._runs = RunList(lambda: workbench.agent.store, workbench.messages)
        self._loaded_for: object = None
        self._plot = RunPlot.RATE

    def parts(self) -> Iterator[Widget]:
        table = Vertical(
            DrawnLine(lambda width: [("   ", ""), *self.rows.table.head()], id="runs-head"),
            RunRows(self.workbench, self._runs, id="runs-rows"),
            PageLines(self._write_run, can_focus=False, id="runs-details"),
        )
        yield PageLines(self._write_plot, can_focus=False, indent=0, widest=_MAX_WIDTH, id="runs-plot")
        yield Horizontal(table, PageLines(self._write_side, can_focus=False, id="runs-side"), id="runs-body")

    def on_mount(self) -> None:
        super().on_mount()
        self.action_reload()
        self.set_interval(_TICK_SECONDS, self._read_again)

    async def on_unmount(self) -> None:
        await self._runs.close()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.set_class(event.size.width >= _MIN_WIDTH_WITH_SIDE, "-wide")

    @property
    def _state(self) -> object:
        """A value that changes with the stored runs and with the agent's files."""
        return self.workbench.runs_now, self.workbench.agent.code_version

    def _read_again(self) -> None:
        """Updates the times, the progress of runs, and the list."""
        if self._state != self._loaded_for:
            self.action_reload()
        else:
            self._runs.read_again()
        self.rows.refresh()

    def follow(self) -> None:
        self.rows.follow()
        self.draw_around()

    @on(CursorLines.Moved)
    def draw_around(self) -> None:
        self.query_one("#runs-plot").display = len(self._runs.paths or ()) > 1
        for page in self.query(PageLines):
            page.write_page()
        self.draw_frame()

    @property
    def rows(self) -> RunRows:
        return self.query_one(RunRows)

    @property
    def _base(self) -> RunRow | None:
        base = self.workbench.outcomes.base_run
        return self._runs.row(base) if base else None

    def where(self) -> Line:
        paths = self._runs.paths
        if paths is None:
            return []
        count: Line = [(counted(len(paths), "run"), "muted")]
        base = self._base
        return [("base ● ", "muted"), (visible(base.title), ""), ("   ", ""), *count] if base else count

    def other_tab(self) -> None:
        self.action_compare()

    def _write_plot(self, page: Page) -> None:
        """Writes a figure of the last runs, the newest at the right, the current one in the accent role."""
        most = max(1, (page.width - SIDE_WIDTH) // 2)
        rows = [row for path in (self._runs.paths or ())[:most] if (row := self._runs.row(path))]
        current = self.rows.current
        height = min(PLOT_ROWS + 1, self.query_one("#runs-plot").size.height)
        shown = self._runs.row(current) if current else None
        sets = {case.path for case in self.workbench.sets.every_case()}
        write_plot(page, height, rows, shown, self._base, self._plot, sets)

    def _write_side(self, page: Page) -> None:
        path = self.rows.current
        if self.size.width < _MIN_WIDTH_WITH_SIDE or path is None or (row := self._runs.row(path)) is None:
            return
        height = self.query_one("#runs-side").size.height
        write_side(page, row, self._details_of(row), height)

    def _write_run(self, page: Page) -> None:
        path = self.rows.current
        if path is not None and (row := self._runs.row(path)) is not None:
            write_run(page, row, self._details_of(row))

    def _details_of(self, row: RunRow) -> RunDetails | None:
        return None if row.problem else self._runs.details_of(row)

    # Actions

    def refusal(self, action_id: str) -> str | None:
        if reason := super().refusal(action_id):
            return reason
        if action_id == "plot_runs":
            return None if len(self._runs.paths or ()) > 1 else "A plot needs at least 2 runs"
        return self._refusal_of_run(action_id) if action_id in _RUN_ACTIONS else None

    def _refusal_of_run(self, action_id: str) -> str | None:
        path, bench = self.rows.current, self.workbench
        if path is None:
            return "Loading runs…" if self._runs.paths is None else "No runs yet"
        if (row := self._runs.row(path)) is None:
            return "Reading the run…"
        if row.problem:
            return f"Run log unreadable: {row.problem}"
        if action_id == "open":
            return bench.outcomes.refuses_to_open()
        if action_id == "compare":
            sides = self._runs.sides_of(path, bench.outcomes.base_run)
            return sides if isinstance(sides, str) else None
        return refuses_to_resume(row) or bench.runs.refuses_to_run() if action_id == "resume_run" else None

    def action_plot_runs(self) -> None:
        self._plot = self._plot.following
        self.draw_around()
        self.workbench.say(f"Plot of the {self._plot}")

    def action_reload(self) -> None:
        self._loaded_for = self._state
        start_work(self, self._runs.load, group="load")

    @on(CursorLines.Opened)
    def action_open(self) -> None:
        if not self.refuse("open") and (row := self._run) is not None:
            self.dismiss(RunTarget(row.path, row.title))

    def action_set_base(self) -> None:
        if (row := self._run) is not None:
            self.workbench.outcomes.mark_base(row.path)
            self.rows.refresh()
            self.draw_around()

    def action_compare(self) -> None:
        if self.refuse("compare") or (path := self.rows.current) is None:
            return
        sides = self._runs.sides_of(path, self.workbench.outcomes.base_run)
        if not isinstance(sides, str):
            ask(self, ComparisonScreen(self.workbench, sides), self.dismiss)

    def action_rename(self) -> None:
        if (row := self._run) is None:
            return

        def check(text: str) -> str | None:
            return None if text.strip() else "Name is empty"

        hint = "For `evaltui compare` and `--baseline`; each name belongs to one run"
        ask(
            self,
            PromptScreen(f"{key_of('rename')} Name", row.name, check, hint, row.title),
            partial(self._give_name, row),
        )

    def action_resume_run(self) -> None:
        if (row := self._run) is not None:
            self.dismiss(RunTarget(row.path, row.title, resumes=True))

    @property
    def _run(self) -> RunRow | None:
        """The selected run; None where there is none or it was not read."""
        path = self.rows.current
        return self._runs.row(path) if path else None

    def _give_name(self, row: RunRow, name: str) -> None:
        try:
            name_run(self.workbench.agent.store, row.id, name.strip())
        except (SelectionError, OSError) as error:
            self.workbench.say(str(error))
            return
        self.workbench.outcomes.runs_changed()
        self.action_reload()


class RunRows(CursorLines, can_focus=True, inherit_bindings=False):
    """A line per run, read when it is drawn; the keys are those of the screen."""

    def __init__(self, workbench: Workbench, runs: RunList, *, id: str) -> None:
        super().__init__(id=id)
        self.table = run_table((), 0)
        self.workbench = workbench
        self._runs = runs
        self._at: Path | None = None

    @property
    def current(self) -> Path | None:
        paths = self._runs.paths
        return paths[self.cursor] if paths and self.cursor < len(paths) else None

    def follow(self) -> None:
        """Shows the runs read so far; the cursor stays with its run."""
        paths = self._runs.paths or ()
        first = self.scroll_offset.y
        seen = (self._runs.row(path) for path in paths[first : first + self.size.height])
        now = datetime.now(UTC)
        self.table = run_table([ListedRun(row, now) for row in seen if row], self.line_width - 3)
        self.lines_changed(max(1, len(paths)))
        if self._at in paths:
            self.cursor = paths.index(self._at)
        self.cursor = min(self.cursor, self.line_count - 1)
        self._at = self.current

    on_mount = on_resize = follow

    def line(self, number: int) -> Line:
        paths = self._runs.paths
        if not paths:
            text = (
                "Loading runs…"
                if paths is None
                else f"No runs yet   {key_of('close')} back   {key_of('run')} run case"
            )
            return [("  ", ""), (text, "muted")]
        path, here = paths[number], number == self.cursor
        marker = ("▌" if here else " ", "bold accent")
        base = ("●" if path == self.workbench.outcomes.base_run else " ", "bold accent")
        row = self._runs.row(path)
        if row is None:
            return [marker, base, ("   Reading the run…", "muted")]
        run = ListedRun(row, datetime.now(UTC), self._runs.changed_in(path))
        return [marker, base, (" ", ""), *run_line(run, self.table)]

    def move_to(self, number: int) -> None:
        super().move_to(number)
        self._at = self.current
