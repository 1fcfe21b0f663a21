"""Kept runs: opened, named, resumed, and compared."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from evaltui.core.compare.explain import summary
from evaltui.core.model import outcome
from evaltui.core.model.case_id import CaseId
from evaltui.files.workspace import SelectionError
from evaltui.runs.history import name_run, open_run
from evaltui.runs.listing import RunRow
from evaltui.text.figures import counted
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, ask, bindings
from evaltui.tui.pages.runs import FailedCase, rates_plot, run_line, runs_head, write_failures, write_run
from evaltui.tui.pages.writer import Page
from evaltui.tui.panes.bars import Footer, Status
from evaltui.tui.screens.comparison import ComparisonScreen
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.tui.widgets.lines import CursorLines, DrawnLine, HorizontalRule, PageLines, Title
from evaltui.workbench.actions import Scope
from evaltui.workbench.kept_runs import KeptRuns
from evaltui.workbench.workbench import Workbench

# Every one of them is read.
_MOST_PLOTTED = 48
# From here on the failures of the current run stand at the right.
_WITH_FAILURES = 140
_MOST_FAILURES = 40


class Wanted(NamedTuple):
    """A run to be shown, and in it a case; or a run to go on with."""

    path: Path
    """File of the run."""
    title: str
    case: CaseId | None = None
    """The case to show; None for the run as a whole."""
    eval_set_id: str = ""
    """Set of the case."""
    resumes: bool = False
    """Whether the run is resumed."""


class RunsScreen(DialogScreen[Wanted | None], inherit_bindings=False):
    """Returns what the user wants to see; no key of the main screen works until then."""

    BINDINGS = bindings(Scope.RUNS)
    AUTO_FOCUS = "#runs-rows"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._runs = KeptRuns(workbench.agent.dir, lambda: self.follow() if self.is_here else None)
        self.base: Path | None = None
        self._cases: dict[Path, tuple[FailedCase, ...]] = {}

    def compose(self) -> ComposeResult:
        yield Title(lambda: [("Runs", "bold")], self._count)
        yield PageLines(self._write_plot, can_focus=False, id="runs-plot")
        with Horizontal(id="runs-body"):
            with Vertical():
                yield DrawnLine(lambda width: [("  ", ""), *runs_head(width - 3)])
                yield RunRows(self, self._runs, id="runs-rows")
            yield PageLines(self._write_failures, can_focus=False, id="runs-failures")
        yield HorizontalRule()
        yield PageLines(self._write_run, can_focus=False, indent=0, id="runs-details")
        yield Status(self._workbench, id="runs-status")
        yield Footer(self._workbench, id="runs-footer")

    def on_mount(self) -> None:
        self.query_one(Footer).scope = Scope.RUNS
        self.action_reload_runs()

    async def on_unmount(self) -> None:
        await self._runs.close()

    def on_resize(self) -> None:
        self.set_class(self.size.width >= _WITH_FAILURES, "-wide")
        # The plot is as high as its room, which is known once it has been laid out.
        self.call_after_refresh(self.draw_around)

    def follow(self) -> None:
        self.rows.follow()
        self.draw_around()

    @on(CursorLines.Moved)
    def draw_around(self) -> None:
        self.query_one("#runs-plot").display = len(self._runs.paths or ()) > 1
        for page in self.query(PageLines):
            page.write_page()
        self.query("OneLine").refresh()

    @property
    def rows(self) -> RunRows:
        return self.query_one(RunRows)

    def _count(self) -> Line:
        paths = self._runs.paths
        count = "" if paths is None else counted(len(paths), "run")
        base = self._runs.row(self.base) if self.base else None
        return [(f"base ●: {base.title} · {count}" if base else count, "muted")]

    def _write_plot(self, page: Page) -> None:
        """The pass rate of the last runs, the newest at the right, the current one in the accent."""
        height = self.query_one("#runs-plot").size.height - 1
        rows = [row for path in (self._runs.paths or ())[:_MOST_PLOTTED] if (row := self._runs.row(path))]
        page.lines += rates_plot(rows, self.rows.current, page.width, height)

    def _write_failures(self, page: Page) -> None:
        """Of the current run, read when it is first current."""
        path = self.rows.current
        if path is None or self.size.width < _WITH_FAILURES:
            return
        if path in self._cases:
            write_failures(page, self._cases[path])
        elif (row := self._runs.row(path)) is not None and not row.problem:
            self._cases[path] = ()
            self.run_worker(self._read_cases(path))

    async def _read_cases(self, path: Path) -> None:
        with suppress(OSError, ValueError):
            self._cases[path] = await asyncio.to_thread(_failed_in, path)
        if self.is_here:
            self.draw_around()

    def _write_run(self, page: Page) -> None:
        path = self.rows.current
        if path is not None and (row := self._runs.row(path)) is not None:
            write_run(page, row)

    # Actions

    def action_close_runs(self) -> None:
        self.dismiss(None)

    def action_reload_runs(self) -> None:
        self.run_worker(self._runs.load(), group="load", exclusive=True)

    @on(CursorLines.Opened)
    def action_open_run(self) -> None:
        if (row := self._readable_run()) is None:
            return
        if reason := self._workbench.outcomes.refuses_to_open():
            self._workbench.say(reason)
        else:
            self.dismiss(Wanted(row.path, row.title))

    def action_mark_base(self) -> None:
        if (row := self._readable_run()) is not None:
            self.base = None if self.base == row.path else row.path
            self.rows.refresh()
            self.draw_around()

    def action_compare_runs(self) -> None:
        if (row := self._readable_run()) is None:
            return
        paths = list(self._runs.paths or ())
        # The newest run is the first one.
        before = paths[paths.index(row.path) + 1 :]
        base = self.base if self.base in paths else before[0] if before else None
        if base is None:
            self._workbench.say("No earlier run; space sets a base")
        elif base == row.path:
            self._workbench.say("This is the base; select another run")
        else:
            known = self._runs.row(base)
            sides = (base, known.title if known else base.name), (row.path, row.title)

            def show(chosen: tuple[Path, str, CaseId, str]) -> None:
                self.dismiss(Wanted(*chosen))

            ask(self, ComparisonScreen(self._workbench, *sides), show)

    def action_name_run(self) -> None:
        if (row := self._readable_run()) is None:
            return

        def check(text: str) -> str | None:
            return None if text.strip() else "Name is empty"

        hint = "`evaltui compare` and `--baseline` take it; another run loses the same name"
        ask(self, PromptScreen(f"Name {row.title}", row.name, check, hint), partial(self._give_name, row))

    def action_resume_run(self) -> None:
        if (row := self._readable_run()) is None:
            return
        if row.is_of_adk:
            self._workbench.say("ADK result files cannot be resumed")
        elif row.ending == "going on":
            self._workbench.say("Run in progress")
        elif reason := self._workbench.runs.refuses_to_run():
            self._workbench.say(reason)
        else:
            self.dismiss(Wanted(row.path, row.title, resumes=True))

    def _readable_run(self) -> RunRow | None:
        """The selected run; None with a notice where there is none or it cannot be read."""
        path = self.rows.current
        row = self._runs.row(path) if path else None
        if row is None:
            self._workbench.say("No runs yet" if path is None else "Reading the run…")
        elif row.problem:
            self._workbench.say(f"Run log unreadable: {row.problem}")
        else:
            return row
        return None

    def _give_name(self, row: RunRow, name: str) -> None:
        try:
            name_run(self._workbench.agent.dir, row.id, name.strip())
        except (SelectionError, OSError) as error:
            self._workbench.say(str(error))
            return
        self._workbench.outcomes.runs_changed()
        self.action_reload_runs()


def _failed_in(path: Path) -> tuple[FailedCase, ...]:
    """In a thread. Raises OSError, ValueError."""
    run = open_run(path)
    failed = [case for case, one in run.summary.cases.items() if one.status is not outcome.Status.PASSED]
    return tuple(
        FailedCase(case.eval_id, run.summary.cases[case].status, summary(run.case(case)))
        for case in failed[:_MOST_FAILURES]
    )


class RunRows(CursorLines, can_focus=True, inherit_bindings=False):
    """A line per run, read when it is drawn; the keys are those of the screen."""

    def __init__(self, screen: RunsScreen, runs: KeptRuns, *, id: str) -> None:
        super().__init__(id=id)
        self._screen = screen
        self._runs = runs
        self._at: Path | None = None

    @property
    def current(self) -> Path | None:
        paths = self._runs.paths
        return paths[self.cursor] if paths and self.cursor < len(paths) else None

    def follow(self) -> None:
        """Show what is known by now; the cursor stays with its run."""
        paths = self._runs.paths or ()
        self.lines_changed(max(1, len(paths)))
        if self._at in paths:
            self.cursor = paths.index(self._at)
        self.cursor = min(self.cursor, self.line_count - 1)
        self._at = self.current

    def on_mount(self) -> None:
        self.follow()

    on_resize = on_mount

    def line(self, number: int) -> Line:
        paths = self._runs.paths
        if not paths:
            text = "Loading runs…" if paths is None else "No runs yet   esc back   r run case"
            return [("  ", ""), (text, "muted")]
        path, here = paths[number], number == self.cursor
        marker = ("▌" if here else " ", "bold accent")
        base = ("●" if path == self._screen.base else " ", "bold accent")
        row = self._runs.row(path)
        if row is None:
            return [marker, base, ("…  ", "muted"), (visible(path.name), "muted")]
        return [marker, base, *run_line(row, self.line_width - 2)]

    def move_to(self, number: int) -> None:
        super().move_to(number)
        self._at = self.current
