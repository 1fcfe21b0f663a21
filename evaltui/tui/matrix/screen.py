"""The matrix of an agent's variants: cases as rows, variants as columns, and details of two cells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from textual import events, on
from textual.message import Message
from textual.widget import Widget

from evaltui.core.compare.matrix import Row
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.runs.matrices import OpenMatrix, StoredMatrix, stored_matrices
from evaltui.runs.run_kind import RunKind
from evaltui.text.figures import counted, show_moment
from evaltui.text.glyphs import EMPTY_BAR
from evaltui.text.lines import Line, cells, join_ends, wrap
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask, bindings, start_work
from evaltui.tui.compare.screen import ComparisonScreen
from evaltui.tui.dialogs.finding import SearchScreen, has_words
from evaltui.tui.dialogs.framed import MATRIX, FramedScreen
from evaltui.tui.dialogs.prompt import PromptScreen, dialog_name
from evaltui.tui.main.bars import Status
from evaltui.tui.matrix.page import (
    Columns,
    longest_name,
    row_line,
    title_line,
    verdict_line,
    where_line,
    write_cells,
    write_heads,
)
from evaltui.tui.pane import PaneFrame, Tab
from evaltui.tui.widgets.lines import CursorLines, DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import Action, Scope
from evaltui.workbench.matrix.matrices import (
    EMPTY_NOTE,
    CellResult,
    MatrixRow,
    MatrixView,
    SetTitle,
    cell_result,
    extent_of,
    read_matrix,
    side_of,
    title_of,
)
from evaltui.workbench.runs.repeats import more_problem
from evaltui.workbench.runs.run_list import RunTarget, Sides
from evaltui.workbench.workbench import Workbench


class MatrixChooser(SearchScreen[StoredMatrix, StoredMatrix]):
    """A dialog for a stored matrix; returns it."""

    box = "#pick-run"
    title_text = "Open matrix"
    placeholder = "type the name of a variant"
    take_word = "open"

    def __init__(self, workbench: Workbench, current: str) -> None:
        super().__init__()
        self.nothing = "Loading runs…"
        self._workbench = workbench
        self._shown = current
        self._matrices: list[StoredMatrix] = []

    def on_mount(self) -> None:
        super().on_mount()
        start_work(self, self._read, group="load")

    async def _read(self) -> None:
        agent = self._workbench.agent
        self._matrices = await asyncio.to_thread(stored_matrices, agent.store, RunKind.of(agent.address))
        self.nothing = "No match" if self._matrices else "No matrix yet"
        if self.is_here:
            self.search_again()

    def find(self, query: str) -> list[StoredMatrix]:
        return [matrix for matrix in self._matrices if has_words(query, title_of(matrix))]

    def match_line(self, match: StoredMatrix, width: int) -> Line:
        left: Line = [
            (f" {show_moment(match.started, datetime.now(UTC)):<14}", "muted"),
            (visible(title_of(match)), ""),
        ]
        shown = "shown  " if match.id == self._shown else ""
        return join_ends(left, [(f"{shown}{counted(len(match.logs), 'variant')} ", "muted")], width)

    def result_of(self, match: StoredMatrix) -> StoredMatrix:
        return match


_MAX_WIDTH = 400
# Rows of a screen for each head above the cases.
_HEAD_ROWS = 5
# Seconds. Who goes through the cells looks at none for longer than this: nothing is read meanwhile.
_PAUSE_SECONDS = 0.15
_TICK_SECONDS = 1.0
# Actions that need a matrix.
_VARIANT_ACTIONS = frozenset(
    (
        "open",
        "compare",
        "set_base",
        "run_more",
        "next_repeat",
        "previous_repeat",
        "next_item",
        "previous_item",
        "sort_matrix",
        "only_differing",
    )
)

CellResults = tuple[CellResult | None, CellResult | None]


class VariantClicked(Message):
    """The user clicked another variant."""


class MatrixHeads(PageLines, inherit_bindings=False):
    """The heading of the variants; a click on one makes it the current one."""

    def __init__(self, view: MatrixView, columns: Callable[[], Columns | None], *, id: str) -> None:
        super().__init__(self._write_heads, can_focus=False, indent=1, widest=_MAX_WIDTH, id=id)
        self._view = view
        self._columns = columns

    def _write_heads(self, page: Page) -> None:
        if self._view.opened is not None and (columns := self._columns()) is not None:
            most = max(2, self.screen.size.height // _HEAD_ROWS)
            page.lines += write_heads(self._view.opened.matrix, columns, self._view.column, most)

    def on_click(self, event: events.Click) -> None:
        columns = self._columns()
        if columns is not None and (place := columns.at(event.x - 1)) is not None:
            self._view.go_to(place, len(columns.places) - 1)
            self.post_message(VariantClicked())


class Verdict(Status):
    """The comparison of the current variant with the base, unless there is a message or a run in progress."""

    def __init__(self, workbench: Workbench, view: MatrixView, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._view = view

    def state(self, width: int) -> Line:
        opened = self._view.opened
        if opened is None or self._workbench.is_running:
            return super().state(width)
        left, right = verdict_line(opened.matrix, self._view.column, width - 2)
        right = right if cells(left) + cells(right) + 3 <= width - 2 else []
        return join_ends(left, right, width - 2, least=cells(left))


class MatrixRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The sets with their cases; the keys are those of the screen. A click selects a cell."""

    def __init__(self, view: MatrixView, *, id: str) -> None:
        super().__init__(id=id)
        self._view = view
        self._rows: list[MatrixRow] = []
        self._notes: list[Line] = []
        self._longest = 0

    @property
    def current(self) -> MatrixRow:
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    @property
    def columns(self) -> Columns | None:
        """The columns that fit; None without a matrix."""
        opened = self._view.opened
        if opened is None:
            return None
        return Columns.fitting(opened.matrix, self.line_width - 1, self._longest, self._view.first)

    @property
    def room(self) -> int:
        """The number of variants besides the base that fit."""
        opened, columns = self._view.opened, self.columns
        return 1 if opened is None or columns is None else columns.room(opened.matrix, self.line_width - 1)

    def show(self) -> None:
        """Shows the current rows; the cursor stays with its row."""
        before = _key(self.current)
        self._rows = self._view.rows()
        opened = self._view.opened
        self._longest = longest_name(opened.matrix) if opened else 0
        self._notes = [] if self._rows else self._note()
        self.lines_changed(len(self._rows or self._notes))
        keys = [_key(row) for row in self._rows]
        if before in keys and before is not None:
            self.cursor = keys.index(before)
        else:
            self.cursor = next((place for place, row in enumerate(self._rows) if isinstance(row, Row)), 0)
        self.show_line(self.cursor)

    def move_to(self, number: int) -> None:
        """Moves the cursor, skipping blank lines."""
        number = max(0, min(number, len(self._rows) - 1))
        if self._rows and self._rows[number] is None:
            number += -1 if number < self.cursor else 1
        super().move_to(number)

    def row_role(self, number: int) -> str:
        return "sel-blur" if number in (self.cursor, self.pointed) and self._rows else ""

    def line(self, number: int) -> Line:
        opened, columns = self._view.opened, self.columns
        if opened is None or columns is None or not self._rows:
            return [(" ", ""), *self._notes[number]] if number < len(self._notes) else []
        row, is_current = self._rows[number], number == self.cursor
        marker = ("▌" if is_current else " ", "bold accent")
        if row is None:
            return []
        if isinstance(row, SetTitle):
            return [marker, *title_line(opened.matrix, row, columns)]
        name = visible(row.case.eval_id)
        current = self._view.column if is_current else None
        return [marker, *row_line(opened.matrix, row, name, columns, current)]

    def on_click(self, event: events.Click) -> None:
        columns, place = self.columns, None
        if columns is not None and event.chain == 1:
            place = columns.at(event.x - self.margin_cells)
        super().on_click(event)
        if columns is not None and place is not None:
            self._view.go_to(place, len(columns.places) - 1)
            self.post_message(VariantClicked())

    # The note for an empty matrix is wrapped again.
    on_resize = show

    def _note(self) -> list[Line]:
        """The note for an empty matrix."""
        width = max(20, self.line_width - 2)
        if self._view.opened is not None:
            return [[("No case differs" if self._view.differing else "No cases", "muted")]]
        return wrap(self._view.note, width)


def _key(row: MatrixRow) -> object:
    """The identity of a row, stable when the matrix is read again."""
    return row.path if isinstance(row, SetTitle) else row.case if row is not None else None


class MatrixScreen(FramedScreen[RunTarget | None], inherit_bindings=False):
    """The matrix screen; returns the run and the case that the user opens."""

    BINDINGS = bindings(Scope.MATRIX)
    AUTO_FOCUS = "#matrix-rows"
    tab, scope = MATRIX, Scope.MATRIX
    tabs = ((MATRIX, "V", "Matrix"),)

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self.view = MatrixView()
        self._both: tuple[object, CellResults] = (None, (None, None))
        self._extent: object = None
        self._is_reading = False
        self._repeated = False

    def parts(self) -> Iterator[Widget]:
        yield MatrixHeads(self.view, lambda: self.rows.columns, id="matrix-heads")
        yield DrawnLine(lambda width: [(EMPTY_BAR * width, "line")], id="matrix-rule")
        yield MatrixRows(self.view, id="matrix-rows")

    def below(self) -> Iterator[Widget]:
        yield PaneFrame(
            PageLines(self._write_cells, can_focus=False, indent=0, widest=_MAX_WIDTH, id="matrix-cells"),
            id="matrix-both",
        )

    def status(self) -> Status:
        return Verdict(self.workbench, self.view, id="matrix-status")

    def on_mount(self) -> None:
        super().on_mount()
        self.action_reload()
        self.set_interval(_TICK_SECONDS, self._read_again)

    # Reading

    def action_reload(self) -> None:
        start_work(self, self._read, None, group="matrix")

    def _read_again(self) -> None:
        """Reads the matrix again when its runs continue, or others start."""
        before, self._repeated = self._repeated, self.workbench.runs.more is not None
        if before and not self._repeated:
            self.action_reload()
        elif not self._is_reading:
            start_work(self, self._read_more, group="look")

    async def _read_more(self) -> None:
        if await asyncio.to_thread(extent_of, self.workbench.agent.store, self.view.opened) != self._extent:
            self.action_reload()

    async def _read(self, stored: StoredMatrix | None) -> None:
        """Reads the chosen matrix, else the shown one again, else the newest one."""
        self._is_reading = True
        try:
            agent = self.workbench.agent
            opened, extent = await asyncio.to_thread(
                read_matrix, agent.store, RunKind.of(agent.address), stored, self.view.opened
            )
        except (OSError, ValueError) as error:
            opened, self.view.note = None, [(f"! {visible(str(error))}", "error")]
        else:
            self._extent, self.view.note = extent, [] if opened else EMPTY_NOTE
        finally:
            self._is_reading = False
        if self.is_here:
            self.view.show(opened)
            self._show_rows()

    def _show_rows(self) -> None:
        self.rows.show()
        self.follow()

    # Drawing

    @on(CursorLines.Moved)
    def follow(self) -> None:
        """Reads the current cell and that of the base."""
        row, opened = self.rows.current, self.view.opened
        if opened is not None and isinstance(row, Row):
            key = opened, row.case, self.view.column
            if self._both[0] != key:
                self.view.repeat = None
                self._both = key, (None, None)
                start_work(self, self._read_cells, opened, row.case, group="cells")
        self.draw_around()

    async def _read_cells(self, opened: OpenMatrix, case: CaseId) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        key, places = self._both[0], (opened.matrix.base, self.view.column)
        cells = [await asyncio.to_thread(cell_result, opened, place, case) for place in places]
        if self._both[0] == key and self.is_here:
            self._both = key, (cells[0], cells[1])
            self.query_one("#matrix-cells", PageLines).write_page()
            # The footer has the repeats.
            self.draw_frame()

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

    def where(self) -> Line:
        if self.view.opened is None:
            return []
        return where_line(self.view.opened.matrix, self.view.order, differing=self.view.differing)

    def other_tab(self) -> None:
        """Does nothing: there is only one tab."""

    def _write_cells(self, page: Page) -> None:
        row = self.rows.current
        if self.view.opened is not None and isinstance(row, Row):
            height = self.query_one("#matrix-cells").size.height
            write_cells(page, self.view, self._both[1], height)

    # Actions

    def action_step_item(self, step: int) -> None:
        self.view.step(step, self.rows.room)
        self.variant_changed()

    @on(VariantClicked)
    def variant_changed(self) -> None:
        """Another variant is the current one."""
        if self.view.order == "pass rate":
            self.rows.show()
        self.follow()

    def refusal(self, action_id: str) -> str | None:
        if reason := super().refusal(action_id):
            return reason
        if action_id == "choose_matrix":
            return self.view.refusal() if self.view.note is EMPTY_NOTE else None
        if action_id not in _VARIANT_ACTIONS:
            return None
        if reason := self.view.refusal(besides_base=action_id in ("compare", "set_base")):
            return reason
        return self._refusal_of_row(action_id)

    def footer_word(self, action: Action) -> str:
        if action.id == "next_repeat" and (result := self._result) is not None:
            return f"repeat {self.view.repeat_of(result) + 1}/{len(result.repeats)}"
        return super().footer_word(action)

    def _refusal_of_row(self, action_id: str) -> str | None:
        row, opened = self.rows.current, self.view.opened
        if action_id in ("next_repeat", "previous_repeat"):
            result = self._result
            if result is None:
                return "No result in this variant"
            return None if len(result.repeats) > 1 else "One repeat"
        if action_id == "run_more":
            return "No case selected" if row is None else self.workbench.runs.refuses_to_run()
        if action_id == "open" and isinstance(row, Row) and opened is not None:
            if row.cells[self.view.column].case is None:
                return f"{row.case.eval_id} has no result in {opened.matrix.name(self.view.column)}"
            return self.workbench.outcomes.refuses_to_open()
        return "No case selected" if action_id == "open" and row is None else None

    @property
    def _result(self) -> CaseResult | None:
        """The result of the current case in the current variant, else in the base, as far as it was read."""
        results = (cell.result for cell in reversed(self._both[1]) if cell is not None)
        return next((result for result in results if result is not None), None)

    def action_step_repeat(self, step: int) -> None:
        if (result := self._result) is not None:
            self.workbench.say(self.view.step_repeat(step, result))
        self.draw_around()

    def action_run_more(self) -> None:
        row, view = self.rows.current, self.view
        if (opened := view.opened) is None:
            return
        cases, named = view.cases_of(row)
        log, name = opened.stored.logs[view.column], opened.matrix.name(view.column)
        title = f"{named} in {name}"

        def run(text: str) -> None:
            self.workbench.runs.run_more(log.path, cases, int(text), title)
            self._repeated = self.workbench.runs.more is not None

        hint = "How many more runs; those that there are stay"
        ask(self, PromptScreen(dialog_name("run_more"), "5", more_problem, hint, title), run)

    def action_set_base(self) -> None:
        self.view.set_base()
        self._show_rows()

    def action_sort_matrix(self) -> None:
        self.view.sort()
        self._show_rows()

    def action_only_differing(self) -> None:
        self.view.differing = not self.view.differing
        self._show_rows()

    @on(CursorLines.Opened)
    def action_open(self) -> None:
        row = self.rows.current
        if self.refuse("open") or (opened := self.view.opened) is None:
            return
        if isinstance(row, SetTitle):
            self.view.fold(row.path)
            self._show_rows()
        elif isinstance(row, Row):
            side = side_of(opened, self.view.column)
            self.dismiss(RunTarget(side.path, side.title, row.case, row.eval_set_id))

    def action_compare(self) -> None:
        """Both runs, at the current case."""
        if (opened := self.view.opened) is None:
            return
        row, places = self.rows.current, (opened.matrix.base, self.view.column)
        sides = Sides(*(side_of(opened, place) for place in places))
        screen = ComparisonScreen(self.workbench, sides, row.case if isinstance(row, Row) else None)
        ask(self, screen, self.dismiss)

    def action_choose_matrix(self) -> None:
        def show(stored: StoredMatrix) -> None:
            start_work(self, self._read, stored, group="matrix")

        ask(self, MatrixChooser(self.workbench, self.view.opened.stored.id if self.view.opened else ""), show)
