"""Kept runs: opened, named, resumed, and two of them compared case by case."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult

from evaltui.core.compare.comparison_lines import comparison_lines
from evaltui.core.compare.run_comparison import CaseChange, Kind, case_name
from evaltui.core.model.case_id import CaseId
from evaltui.files.workspace import SelectionError
from evaltui.runs.history import name_run
from evaltui.runs.listing import RunRow
from evaltui.text.lines import Line, draw
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, ask, bindings
from evaltui.tui.exchange import copy
from evaltui.tui.pages.runs import (
    change_line,
    kind_line,
    run_line,
    spent_line,
    sums_line,
    write_change,
    write_run,
)
from evaltui.tui.pages.writer import Page
from evaltui.tui.pane import Copied
from evaltui.tui.panes.bars import Footer, Status
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.tui.widgets.lines import CursorLines, DrawnLine, HorizontalRule, PageLines, Title
from evaltui.workbench.actions import Scope
from evaltui.workbench.kept_runs import (
    FOLDED_AT_FIRST,
    Compared,
    ComparedRow,
    KeptRuns,
    KindTitle,
    compare_kept,
    rows_of,
)
from evaltui.workbench.workbench import Workbench

_COPIED_WIDTH = 110
# The file of a run, and what it is called.
Side = tuple[Path, str]


class ComparisonScreen(DialogScreen[tuple[Path, str, CaseId, str] | None], inherit_bindings=False):
    """Returns the run and the case that the user wants to see."""

    BINDINGS = bindings(Scope.COMPARISON)
    AUTO_FOCUS = "#comparison-rows"

    def __init__(self, workbench: Workbench, base: Side, candidate: Side) -> None:
        super().__init__()
        self._workbench = workbench
        self._base = base
        self._candidate = candidate
        self._compared: Compared | None = None
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield Title(self._title)
        yield DrawnLine(self._sums)
        yield DrawnLine(self._spent)
        yield ComparedRows(id="comparison-rows")
        yield HorizontalRule()
        yield PageLines(self._write_change, can_focus=False, id="comparison-details")
        yield Status(self._workbench, id="comparison-status")
        yield Footer(self._workbench, id="comparison-footer")

    def on_mount(self) -> None:
        self.query_one(Footer).scope = Scope.COMPARISON
        self._compare()

    def _compare(self) -> None:
        self._compared = None
        self.rows.show(None)
        self.run_worker(self._read(), group="compare", exclusive=True)

    async def _read(self) -> None:
        try:
            self._compared = await asyncio.to_thread(compare_kept, self._base[0], self._candidate[0])
        except (OSError, ValueError) as error:
            self._problem = str(error)
        if self.is_here:
            self.rows.show(self._compared)
            self.follow()

    @on(CursorLines.Moved)
    def follow(self) -> None:
        self.query_one(PageLines).write_page()
        self.query("OneLine").refresh()

    @property
    def rows(self) -> ComparedRows:
        return self.query_one(ComparedRows)

    def _title(self) -> Line:
        base, candidate = visible(self._base[1]), visible(self._candidate[1])
        return [("Compare", "bold"), ("  ", ""), (base, ""), (" → ", "muted"), (candidate, "bold")]

    def _write_change(self, page: Page) -> None:
        if isinstance(row := self.rows.current, CaseChange):
            write_change(page, row)

    def _sums(self, width: int) -> Line:
        if self._problem:
            return [(f" ! {visible(self._problem)}", "error")]
        if self._compared is None:
            return [(" reading both runs …", "muted")]
        return [(" ", ""), *sums_line(self._compared.comparison)]

    def _spent(self, width: int) -> Line:
        return [(" ", ""), *spent_line(self._compared)] if self._compared else []

    def action_close_comparison(self) -> None:
        self.dismiss(None)

    def action_fold_kind(self) -> None:
        self.rows.toggle_fold()
        self.follow()

    def action_swap_runs(self) -> None:
        self._base, self._candidate = self._candidate, self._base
        self._compare()

    @on(CursorLines.Opened)
    def action_open_changed(self) -> None:
        row = self.rows.current
        if not isinstance(row, CaseChange):
            self.action_fold_kind()
        elif reason := self._workbench.outcomes.refuses_to_open():
            self._workbench.say(reason)
        else:
            path, title = self._candidate if row.candidate is not None else self._base
            self.dismiss((path, title, row.case, row.eval_set_id))

    def action_copy_comparison(self) -> None:
        if self._compared is None:
            return
        lines = comparison_lines(self._compared.comparison, _COPIED_WIDTH)
        text = "".join(f"{draw(line, color=False)}\n" for line in lines)
        self._workbench.say(copy(self.app, self._workbench.agent.dir, Copied("the comparison", text)))


class ComparedRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The kinds, each with its cases; the keys are those of the screen."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._compared: Compared | None = None
        self._folded: set[Kind] = set(FOLDED_AT_FIRST)
        self._rows: list[ComparedRow] = []
        self._names = 0

    def show(self, compared: Compared | None) -> None:
        self._compared = compared
        changes = compared.comparison.cases if compared else ()
        self._names = max((len(self._id_of(change)) for change in changes), default=0)
        self._write()
        # Whoever compares wants to see a case first, not the title above it.
        self.cursor = 1 if len(self._rows) > 1 and isinstance(self._rows[1], CaseChange) else 0
        self.scroll_to(y=0, animate=False)

    def _write(self) -> None:
        self._rows = list(rows_of(self._compared.comparison, self._folded)) if self._compared else []
        self.lines_changed(len(self._rows))

    @property
    def current(self) -> ComparedRow | None:
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def toggle_fold(self) -> None:
        """Of the kind that the cursor is in, and go to its title."""
        row = self.current
        if row is None:
            return
        self._folded ^= {row.kind}
        self._write()
        # The first row of a kind is its title.
        self.move_to(next(number for number, one in enumerate(self._rows) if one.kind == row.kind))

    def _id_of(self, change: CaseChange) -> str:
        return visible(case_name(change, self._compared.comparison)) if self._compared else ""

    def line(self, number: int) -> Line:
        row = self._rows[number]
        marker = ("▌ " if number == self.cursor else "  ", "bold accent")
        if isinstance(row, KindTitle):
            return [marker, *kind_line(row)]
        width = self.line_width - 4
        names = max(8, min(self._names, width * 2 // 5))
        return [marker, ("  ", ""), *change_line(row, self._id_of(row), names, width)]


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

    def compose(self) -> ComposeResult:
        yield Title(lambda: [("Runs", "bold")], self._count)
        yield RunRows(self, self._runs, id="runs-rows")
        yield HorizontalRule()
        yield PageLines(self._write_run, can_focus=False, indent=0, id="runs-details")
        yield Status(self._workbench, id="runs-status")
        yield Footer(self._workbench, id="runs-footer")

    def on_mount(self) -> None:
        self.query_one(Footer).scope = Scope.RUNS
        self.action_reload_runs()

    async def on_unmount(self) -> None:
        await self._runs.close()

    def follow(self) -> None:
        self.rows.follow()
        self.draw_around()

    @on(CursorLines.Moved)
    def draw_around(self) -> None:
        self.query_one(PageLines).write_page()
        self.query("OneLine").refresh()

    @property
    def rows(self) -> RunRows:
        return self.query_one(RunRows)

    def _count(self) -> Line:
        paths = self._runs.paths
        count = "" if paths is None else "1 run" if len(paths) == 1 else f"{len(paths)} runs"
        base = self._runs.row(self.base) if self.base else None
        return [(f"base ●: {base.title} · {count}" if base else count, "muted")]

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
            self._workbench.say("there is no run before this one: space on another one makes it the base")
        elif base == row.path:
            self._workbench.say("this is the base: go to the run that is to be held against it")
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
            return None if text.strip() else "it needs a name"

        hint = "a name that `evaltui compare` and `--baseline` know as well; another run that has it loses it"
        ask(self, PromptScreen(f"Name the {row.title}", row.name, check, hint), partial(self._give_name, row))

    def action_resume_run(self) -> None:
        if (row := self._readable_run()) is None:
            return
        if row.is_of_adk:
            self._workbench.say("a result file of google-adk does not say what is missing")
        elif row.ending == "going on":
            self._workbench.say("this run is still going on")
        elif reason := self._workbench.runs.refuses_to_run():
            self._workbench.say(reason)
        else:
            self.dismiss(Wanted(row.path, row.title, resumes=True))

    def _readable_run(self) -> RunRow | None:
        """The selected run; None with a notice where there is none or it cannot be read."""
        path = self.rows.current
        row = self._runs.row(path) if path else None
        if row is None:
            self._workbench.say("no run was kept yet" if path is None else "this run is still being read")
        elif row.problem:
            self._workbench.say(f"this run cannot be read: {row.problem}")
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
            text = "looking for runs …" if paths is None else "No run was kept yet: esc, then r runs a case."
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
