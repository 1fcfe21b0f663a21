"""Rows of the selected case, the cursor in them, and operations on them."""

from __future__ import annotations

from evaltui.core.model.problems import EvalSetError
from evaltui.text.keys import key_of
from evaltui.tui.action_screen import KeysInOrder, draw_screen_of
from evaltui.tui.case.page import CasePage
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.case.fields import Operation, Row, RowId
from evaltui.workbench.case.rows.expected import expected_row
from evaltui.workbench.case.steps import Step
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Members of an object or array that `tab` goes through.
_MOST_MEMBERS = 100


class CaseRows(CasePage, can_focus=True, inherit_bindings=False):
    """Goes from row to row of the selected case, and does what can be done there."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._at: RowId = ()
        self._went_to: Selection | None = None

    # The cursor

    def find_current(self) -> None:
        """Keeps the cursor on its row, or at its index where the row is gone."""
        for number, row in enumerate(self.rows):
            if row.id == self._at:
                self.current = number
                return
        self.current = max(0, min(self.current, len(self.rows) - 1))
        if self.rows:
            self._at = self.rows[self.current].id

    def go_to_selection(self) -> None:
        """Moves to the case, or to the turn, that was selected elsewhere."""
        selection = self._workbench.navigation.selection
        if selection == self._went_to or (selection.case and not self.rows):
            return
        before, self._went_to = self._went_to, selection
        if not self.rows:
            return
        if selection.turn is not None:
            self.move_to_id(("turn", selection.turn))
        elif before is None or before.case != selection.case:
            renamed_from = self.selected.renamed_from
            if renamed_from is None or before is None or before.case != renamed_from:
                self.current, self._at = 0, self.rows[0].id
                if self.selected.is_new:
                    self.move_to_id(("turn", 0, "user", 0))

    def show_expected(self, at: DifferenceAt) -> None:
        """Moves to what is expected at a difference; to its turn where nothing is."""
        self.follow()
        case = self._workbench.navigation.selection.case
        scored = self._workbench.outcomes.get(case)
        if scored is not None and self.rows:
            self.move_to_id(expected_row(scored, at, self.selected.source.editor))
            self.show_soon()

    def _scroll_to_selection(self) -> None:
        """After the page is written: the cursor is where it is to be."""
        if self.rows:
            self.call_after_refresh(self.show_current)
        else:
            super()._scroll_to_selection()

    def move_to_id(self, id: RowId) -> None:
        """Moves to a row, or to the nearest row around it where it is not there."""
        self.selected.reveal(id)
        self.rows = self.selected.rows
        known = {row.id: number for number, row in enumerate(self.rows)}
        wanted = id
        while wanted and wanted not in known:
            wanted = wanted[:-1]
        if wanted:
            self.current, self._at = known[wanted], wanted

    def move_by(self, step: int) -> None:
        if self.rows:
            self.current = max(0, min(self.current + step, len(self.rows) - 1))
            self._at = self.rows[self.current].id
            self.show_current()
            self.refresh()
            self._show_path()

    def next_field(self, step: int) -> RowId | None:
        """The next row with a field (1), or the previous one (-1); None behind the last one.

        The fields of an object or an array are those of its members, unless there are too many.
        """
        number = self.current + step
        while 0 <= number < len(self.rows):
            row, count = self.rows[number], len(self.rows)
            has_members = row.fold is not None and row.value_path is not None
            if has_members and (row.fold == "open" or len(row.value) <= _MOST_MEMBERS):
                if row.fold == "closed":
                    self.selected.toggle_fold(row.id)
                    self.rows = self.selected.rows
                    number += len(self.rows) - count if step < 0 else 1
                    continue
            elif row.field is not None:
                return row.id
            number += step
        return None

    def _show_path(self) -> None:
        """In the border."""
        draw_screen_of(self)

    def row_at(self, line: int) -> int | None:
        """Index of the row that has a line, or of the next one below it."""
        return next((number for number, place in enumerate(self.placed) if line < place.last), None)

    def show_current(self) -> None:
        if self.current < len(self.placed):
            place = self.placed[self.current]
            top = 0 if self.current == 0 else place.first
            self.show_line(min(place.last - 1, top + max(0, self.size.height - 1)))
            self.show_line(top)

    def show_soon(self) -> None:
        """Draws what has changed, and scrolls to the cursor once that is laid out."""
        self.follow()
        self.call_after_refresh(self.show_current)
        self.refresh()
        self._show_path()

    def action_step_line(self, step: int) -> None:
        if not self.rows:
            super().action_step_line(step)
        elif self._has_more(step):
            self.scroll_relative(y=step, animate=False)
        else:
            self.move_by(step)

    def _has_more(self, step: int) -> bool:
        """Whether the current row goes on above or below what is seen: then it is read before it is left."""
        if self.current >= len(self.placed):
            return False
        row, top = self.placed[self.current], self.scroll_offset.y
        return row.last > top + self.size.height if step > 0 else row.first < top

    def action_step_page(self, step: int) -> None:
        if not self.rows or not self.placed:
            super().action_step_page(step)
            return
        wanted = self.placed[self.current].first + step * max(1, self.size.height - 1)
        number = self.row_at(max(0, wanted))
        self.move_by((number if number is not None else len(self.rows) - 1) - self.current)

    def action_top(self) -> None:
        if self.rows:
            self.move_by(-len(self.rows))
        else:
            super().action_top()

    def action_bottom(self) -> None:
        if self.rows:
            self.move_by(len(self.rows))
        else:
            super().action_bottom()

    # Folding

    def action_unfold(self) -> None:
        """Opens what is closed; once it is open, goes to the first row in it."""
        row = self.row
        if row is not None and row.fold == "closed":
            self._toggle_fold(row.id)
        elif row is not None and row.fold == "open":
            self.move_by(1)

    def action_fold(self) -> None:
        """Closes what is open; inside of it, goes to what it is in."""
        row = self.row
        if row is not None and row.fold == "open":
            self._toggle_fold(row.id)
        elif row is not None:
            known = {one.id for one in self.rows if one.fold}
            around = [row.id[:length] for length in range(len(row.id) - 1, 0, -1) if row.id[:length] in known]
            if around:
                self.move_to_id(around[0])
                self.show_soon()

    def _toggle_fold(self, row: RowId) -> None:
        self.selected.toggle_fold(row)
        self.rows = self.selected.rows
        self._at = row
        self.find_current()
        self.show_soon()

    # Operations on rows

    def is_ready(self) -> bool:
        """Whether the selected case can be edited, and its rows are of now; says why not."""
        file, case = self._workbench.navigation.file, self._workbench.navigation.selection.case
        if file is None or case is None:
            return False
        reason = self.refusal_to_edit
        try:
            if reason is None:
                # It may still be being read: who asks for a field need not wait for that.
                self._workbench.editing.data(file)
        except (OSError, EvalSetError) as error:
            reason = f"{file.name} cannot be edited: {error}"
        self.follow()
        if reason is not None:
            self.refuse_row(reason)
        return reason is None

    def ready_row(self) -> Row | None:
        """The current row, with operations that fit the file; None where nothing can be edited."""
        if not self.is_ready():
            return None
        if self.row is None:
            self.refuse_row(f"The case is malformed   {key_of('edit_json')}  Edit JSON")
        return self.row

    def refuse_row(self, reason: str | None) -> None:
        """Shows why nothing can be edited, and forgets what was typed ahead for the field."""
        if reason is not None:
            self._workbench.say(reason)
        if isinstance(self.app, KeysInOrder):
            self.app.ignore_typed_ahead()

    def do(self, operation: Operation, extends: Step | None = None) -> bool:
        """Does an operation and moves to the row it leads to; False where it is refused."""
        file = self._workbench.navigation.file
        if file is None:
            return False
        done = True
        if operation.make is not None:
            done = self._workbench.editing.do(operation.label, file, operation.make, extends=extends)
        if done:
            self.follow()
            if operation.then is not None:
                self.move_to_id(operation.then)
            self.show_soon()
        return done
