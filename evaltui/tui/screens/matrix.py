"""The matrix of an agent's variants: cases as rows, variants as columns, and what two of its cells did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from textual import events, on
from textual.widget import Widget

from evaltui.core.compare.matrix import Row
from evaltui.core.model.case_id import CaseId
from evaltui.runs.matrices import OpenMatrix, StoredMatrix
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, both_ends, cells, wrap
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.pages.matrix import (
    Columns,
    longest_name,
    others_of,
    room_for,
    row_line,
    title_line,
    verdict_line,
    where_line,
    write_heads,
)
from evaltui.tui.pages.matrix_cells import write_cells
from evaltui.tui.pages.writer import Page
from evaltui.tui.pane import PaneFrame, Tab
from evaltui.tui.panes.bars import Status
from evaltui.tui.screens.comparison import ComparisonScreen
from evaltui.tui.screens.framed import MATRIX, FramedScreen
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.tui.screens.runs import Wanted
from evaltui.tui.widgets.lines import CursorLines, HorizontalRule, PageLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.kept_runs import Sides
from evaltui.workbench.matrices import (
    ORDERS,
    CellResult,
    MatrixRow,
    Order,
    SetTitle,
    cell_result,
    extent_of,
    read_matrix,
    rows_of,
    side_of,
)
from evaltui.workbench.matrix_export import export_matrix, refuses_file
from evaltui.workbench.workbench import Workbench

_WIDEST = 400
# Seconds. Who goes through the cells looks at none for longer than this: nothing is read meanwhile.
_PAUSE = 0.15
_TICK = 1.0
# Rows of a screen for each head above the cases.
_ROWS_OF_HEAD = 5

Both = tuple[CellResult | None, CellResult | None]


class MatrixScreen(FramedScreen[Wanted | None], inherit_bindings=False):
    """Returns the run and the case that the user wants to see."""

    BINDINGS = bindings(Scope.MATRIX)
    AUTO_FOCUS = "#matrix-rows"
    tab, scope = MATRIX, Scope.MATRIX
    tabs = ((MATRIX, "V", "Matrix"),)

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self.opened: OpenMatrix | None = None
        self.column = 0
        """The variant of the current cell, by its place in the matrix."""
        self.order: Order = "set"
        self.differing = False
        self.note = "Reading the runs…"
        """Why there is no matrix."""
        self._first = 0
        self._folded: set[str] = set()
        self._both: tuple[object, Both] = (None, (None, None))
        self._extent: object = None
        self._is_reading = False

    def parts(self) -> Iterator[Widget]:
        yield PageLines(self._write_heads, can_focus=False, indent=1, widest=_WIDEST, id="matrix-heads")
        yield HorizontalRule(id="matrix-rule")
        yield MatrixRows(self, id="matrix-rows")

    def below(self) -> Iterator[Widget]:
        yield PaneFrame(
            PageLines(self._write_cells, can_focus=False, indent=0, widest=_WIDEST, id="matrix-cells"),
            id="matrix-both",
        )

    def status(self) -> Status:
        return Verdict(self, id="matrix-status")

    def on_mount(self) -> None:
        super().on_mount()
        self.action_reload_matrix()
        self.set_interval(_TICK, self._look_again)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self.draw_around)

    # Reading

    def action_reload_matrix(self) -> None:
        self.run_worker(self._read(None), group="matrix", exclusive=True)

    def _look_again(self) -> None:
        """The runs of a matrix may go on, and others may begin."""
        if not self._is_reading:
            self.run_worker(self._read_more(), group="look", exclusive=True)

    async def _read_more(self) -> None:
        if await asyncio.to_thread(extent_of, self.workbench.agent.store, self.opened) != self._extent:
            self.action_reload_matrix()

    async def _read(self, stored: StoredMatrix | None) -> None:
        """The matrix that was chosen, else what is shown with what it has by now, else the newest one."""
        self._is_reading = True
        try:
            opened, extent = await asyncio.to_thread(
                read_matrix, self.workbench.agent.store, stored, self.opened
            )
        except (OSError, ValueError) as error:
            opened, self.note = None, f"! {visible(str(error))}"
        else:
            self._extent, self.note = extent, "" if opened else _HOW
        finally:
            self._is_reading = False
        if self.is_here:
            self._show(opened)

    def _show(self, opened: OpenMatrix | None) -> None:
        is_other = opened is None or self.opened is None or opened.stored.id != self.opened.stored.id
        self.opened = opened
        if opened is not None and (is_other or self.column >= len(opened.matrix.columns)):
            self.column, self._first = next(iter(others_of(opened.matrix)), opened.matrix.base), 0
        self._show_rows()

    def _show_rows(self) -> None:
        self.rows.show()
        self.follow()

    # Drawing

    @on(CursorLines.Moved)
    def follow(self) -> None:
        """Reads the current cell and that of the base, once somebody looks at it."""
        row, opened = self.rows.current, self.opened
        if opened is not None and isinstance(row, Row):
            key = opened, row.case, self.column
            if self._both[0] != key:
                self._both = key, (None, None)
                self.run_worker(self._read_cells(opened, row.case), group="cells", exclusive=True)
        self.draw_around()

    async def _read_cells(self, opened: OpenMatrix, case: CaseId) -> None:
        await asyncio.sleep(_PAUSE)
        key, places = self._both[0], (opened.matrix.base, self.column)
        found = [await asyncio.to_thread(cell_result, opened, place, case) for place in places]
        if self._both[0] == key and self.is_here:
            self._both = key, (found[0], found[1])
            self.query_one("#matrix-cells", PageLines).write_page()

    def draw_around(self) -> None:
        for page in self.query(PageLines):
            page.write_page()
        self.rows.refresh()
        self.draw_frame()

    def draw_frame(self) -> None:
        super().draw_frame()
        row = self.rows.current
        name = f"{visible(row.eval_set_id)} › {visible(row.case.eval_id)}" if isinstance(row, Row) else "Case"
        tab = Tab("cells", "", name, None, active=True)
        self.query_one("#matrix-both", PaneFrame).show((tab,), [], focused=False)

    @property
    def rows(self) -> MatrixRows:
        return self.query_one(MatrixRows)

    @property
    def columns(self) -> Columns | None:
        """The columns that there is room for; None without a matrix."""
        if self.opened is None:
            return None
        return Columns.fitting(self.opened.matrix, self.rows.line_width - 1, self.rows.longest, self._first)

    def where(self) -> Line:
        if self.opened is None:
            return []
        return where_line(self.opened.matrix, self.order, differing=self.differing)

    def other_tab(self) -> None:
        """There is one tab."""

    def _write_heads(self, page: Page) -> None:
        if self.opened is not None and (columns := self.columns) is not None:
            most = max(2, self.size.height // _ROWS_OF_HEAD)
            page.lines += write_heads(self.opened.matrix, columns, self.column, most)

    def _write_cells(self, page: Page) -> None:
        row = self.rows.current
        if self.opened is not None and isinstance(row, Row):
            matrix = self.opened.matrix
            height = self.query_one("#matrix-cells").size.height
            write_cells(page, matrix, (matrix.base, self.column), self._both[1], height)

    # Actions

    def action_close_matrix(self) -> None:
        self.dismiss(None)

    def action_next_variant(self) -> None:
        self._step_column(1)

    def action_previous_variant(self) -> None:
        self._step_column(-1)

    def _step_column(self, step: int) -> None:
        if self.opened is None:
            return
        matrix = self.opened.matrix
        shown = [matrix.base, *others_of(matrix)]
        place = max(0, min(shown.index(self.column) + step, len(shown) - 1))
        self.column = shown[place]
        if (columns := self.columns) is not None and place:
            room = room_for(matrix, self.rows.line_width - 1, columns.names) - 1
            self._first = min(max(self._first, place - room), place - 1)
        if self.order == "pass rate":
            self.rows.show()
        self.follow()

    def action_set_matrix_base(self) -> None:
        if (opened := self.opened) is None:
            self.workbench.say(self.note)
        elif self.column == opened.matrix.base:
            self.workbench.say("This is the base; select another variant")
        else:
            before = opened.matrix.base
            self.opened = OpenMatrix(opened.stored, opened.runs, opened.matrix.with_base(self.column))
            self.column, self._first = before, 0
            self._step_column(0)
            self._show_rows()

    def action_sort_matrix(self) -> None:
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._show_rows()

    def action_only_differing(self) -> None:
        self.differing = not self.differing
        self._show_rows()

    @on(CursorLines.Opened)
    def action_open_cell(self) -> None:
        row = self.rows.current
        if self.opened is None:
            self.workbench.say(self.note)
        elif isinstance(row, SetTitle):
            self._folded ^= {row.path}
            self._show_rows()
        elif isinstance(row, Row) and row.cells[self.column].case is None:
            self.workbench.say(f"{row.case.eval_id} has no result in {self.opened.matrix.name(self.column)}")
        elif reason := self.workbench.outcomes.refuses_to_open():
            self.workbench.say(reason)
        elif isinstance(row, Row):
            side = side_of(self.opened, self.column)
            self.dismiss(Wanted(side.path, side.title, row.case, row.eval_set_id))

    def action_compare_cells(self) -> None:
        """Both runs, at the current case."""
        if self.opened is None:
            self.workbench.say(self.note)
        elif self.column == self.opened.matrix.base:
            self.workbench.say("This is the base; select another variant")
        else:
            row, places = self.rows.current, (self.opened.matrix.base, self.column)
            sides = Sides(*(side_of(self.opened, place) for place in places))
            screen = ComparisonScreen(self.workbench, sides, row.case if isinstance(row, Row) else None)
            ask(self, screen, lambda chosen: self.dismiss(Wanted(*chosen)))

    def action_choose_matrix(self) -> None:
        from evaltui.tui.screens.choose_matrix import MatrixChooser

        def show(stored: StoredMatrix) -> None:
            self.run_worker(self._read(stored), group="matrix", exclusive=True)

        ask(self, MatrixChooser(self.workbench, self.opened.stored.id if self.opened else ""), show)

    def action_export_matrix(self) -> None:
        if (opened := self.opened) is None:
            self.workbench.say(self.note)
            return
        hint = "A name that ends in .html, .md, .json or .csv"
        name = f"{key_of('export_matrix')} Export"
        ask(
            self,
            PromptScreen(name, "matrix.html", refuses_file, hint, "matrix"),
            lambda file: self.run_worker(self._export(opened, file), group="export", exclusive=True),
        )

    async def _export(self, opened: OpenMatrix, file: str) -> None:
        self.workbench.say(await asyncio.to_thread(export_matrix, opened, file, self.workbench.agent.dir))

    def rows_now(self) -> list[MatrixRow]:
        if self.opened is None:
            return []
        return rows_of(
            self.opened.matrix, self.order, self.column, differing=self.differing, folded=self._folded
        )


_HOW = "No matrix yet: `evaltui run --variant base --variant flash:model=gemini-2.5-flash` runs one"


class Verdict(Status):
    """How the current variant compares with the base, unless there is a message or a run goes on."""

    def __init__(self, screen: MatrixScreen, *, id: str) -> None:
        super().__init__(screen.workbench, id=id)
        self._matrix = screen

    def state(self, width: int) -> Line:
        opened = self._matrix.opened
        if opened is None or self._workbench.runs.is_running:
            return super().state(width)
        left, right = verdict_line(opened.matrix, self._matrix.column)
        return both_ends(left, right, width - 2, least=cells(left))


class MatrixRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The sets, each with its cases; the keys are those of the screen."""

    def __init__(self, screen: MatrixScreen, *, id: str) -> None:
        super().__init__(id=id)
        self._matrix = screen
        self._rows: list[MatrixRow] = []
        self.longest = 0
        """Cells of the longest name."""

    @property
    def current(self) -> MatrixRow:
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def show(self) -> None:
        """Shows the rows of now; the cursor stays with its row."""
        before = _key(self.current)
        self._rows = self._matrix.rows_now()
        opened = self._matrix.opened
        self.longest = longest_name(opened.matrix) if opened else 0
        self.lines_changed(max(1, len(self._rows)))
        keys = [_key(row) for row in self._rows]
        if before in keys and before is not None:
            self.cursor = keys.index(before)
        else:
            self.cursor = next((place for place, row in enumerate(self._rows) if isinstance(row, Row)), 0)
        self.show_line(self.cursor)

    def move_to(self, number: int) -> None:
        """The cursor goes past blank lines."""
        number = max(0, min(number, len(self._rows) - 1))
        if self._rows and self._rows[number] is None:
            number += -1 if number < self.cursor else 1
        super().move_to(number)

    def row_role(self, number: int) -> str:
        return "sel-blur" if number in (self.cursor, self.pointed) and self._rows else ""

    def line(self, number: int) -> Line:
        opened, columns = self._matrix.opened, self._matrix.columns
        if opened is None or columns is None or not self._rows:
            return self._note(number)
        row, is_current = self._rows[number], number == self.cursor
        marker = ("▌" if is_current else " ", "bold accent")
        if row is None:
            return []
        if isinstance(row, SetTitle):
            return [marker, *title_line(opened.matrix, row, columns)]
        name = visible(row.case.eval_id)
        current = self._matrix.column if is_current else None
        return [marker, *row_line(opened.matrix, row, name, columns, current)]

    def _note(self, number: int) -> Line:
        if self._matrix.opened is not None:
            return [(" No case differs" if self._matrix.differing else " No cases", "muted")]
        lines = wrap([(self._matrix.note, "muted")], max(20, self.line_width - 2))
        return [(" ", ""), *(lines[number] if number < len(lines) else [])]


def _key(row: MatrixRow) -> object:
    """The same for a row after the matrix was read again."""
    return row.path if isinstance(row, SetTitle) else row.case if row is not None else None
