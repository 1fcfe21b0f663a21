"""Widgets of the matrix screen: the heading of its variants, the rows of its cases, and its status line."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.message import Message

from evaltui.core.compare.matrix import Row
from evaltui.text.lines import Line, both_ends, cells, wrap
from evaltui.text.values import visible
from evaltui.tui.main.bars import Status
from evaltui.tui.matrix.page import (
    Columns,
    longest_name,
    row_line,
    title_line,
    verdict_line,
    write_heads,
)
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.matrix.matrices import MatrixRow, MatrixView, SetTitle
from evaltui.workbench.workbench import Workbench

_WIDEST = 400
# Rows of a screen for each head above the cases.
_ROWS_OF_HEAD = 5


class VariantClicked(Message):
    """The user clicked another variant."""


class MatrixHeads(PageLines, inherit_bindings=False):
    """The heading of the variants; a click on one makes it the current one."""

    def __init__(self, view: MatrixView, columns: Callable[[], Columns | None], *, id: str) -> None:
        super().__init__(self._write_heads, can_focus=False, indent=1, widest=_WIDEST, id=id)
        self._view = view
        self._columns = columns

    def _write_heads(self, page: Page) -> None:
        if self._view.opened is not None and (columns := self._columns()) is not None:
            most = max(2, self.screen.size.height // _ROWS_OF_HEAD)
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
        return both_ends(left, right, width - 2, least=cells(left))


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

    def on_resize(self) -> None:
        """Wraps the note for an empty matrix again."""
        self.show()

    def _note(self) -> list[Line]:
        """The note for an empty matrix."""
        width = max(20, self.line_width - 2)
        if self._view.opened is not None:
            return [[("No case differs" if self._view.differing else "No cases", "muted")]]
        return wrap(self._view.note, width)


def _key(row: MatrixRow) -> object:
    """The identity of a row, stable when the matrix is read again."""
    return row.path if isinstance(row, SetTitle) else row.case if row is not None else None
