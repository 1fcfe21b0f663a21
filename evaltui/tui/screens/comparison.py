"""Two kept runs compared, case by case."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual import on
from textual.app import ComposeResult

from evaltui.core.compare.comparison_lines import comparison_lines
from evaltui.core.compare.run_comparison import CaseChange, Kind, case_name
from evaltui.core.model.case_id import CaseId
from evaltui.text.lines import Line, draw
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.exchange import copy
from evaltui.tui.pages.runs import (
    change_line,
    kind_line,
    spent_line,
    sums_line,
    write_change,
)
from evaltui.tui.pages.writer import Page
from evaltui.tui.pane import Copied
from evaltui.tui.panes.bars import Footer, Status
from evaltui.tui.widgets.lines import CursorLines, DrawnLine, HorizontalRule, PageLines, Title
from evaltui.workbench.actions import Scope
from evaltui.workbench.kept_runs import (
    FOLDED_AT_FIRST,
    Compared,
    ComparedRow,
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
            return [(" Reading both runs…", "muted")]
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
