"""The rows of the selected case, their cursor, and operations on them."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.model.problems import EvalSetError
from evaltui.documents.edits import alike
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells
from evaltui.text.outcomes import glyph
from evaltui.text.values import visible
from evaltui.tui.action_screen import KeysInOrder, draw_around
from evaltui.tui.case.rows import OpenField, Placed, write_rows
from evaltui.tui.pane import PagePane
from evaltui.tui.result.selected import write_no_sets, write_set_facts
from evaltui.tui.widgets.writer import Page
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.case.fields import Operation, Row, RowId
from evaltui.workbench.case.rows.turns import expected_row
from evaltui.workbench.case.steps import Step
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Members of an object or array that `tab` goes through.
_MAX_MEMBERS = 100


class CaseRows(PagePane, can_focus=True, inherit_bindings=False):
    """Shows the selected case as rows with a cursor and does their operations; or the facts of the selected
    set."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self.selected = workbench.selected
        self.rows: list[Row] = []
        self.current = 0
        """Index of the row that the cursor is on."""
        self.placed: Sequence[Placed] = ()
        """Lines of each row on the page."""
        self._at: RowId = ()
        self._went_to: Selection | None = None

    def heading(self) -> Line:
        selection = self._workbench.navigation.selection
        if selection.path is None:
            return []
        if selection.eval_id is None:
            sets = self._workbench.sets
            eval_set = sets.by_case_path(selection.path)
            return [(visible(eval_set.eval_set_id if eval_set else sets.file_of(selection.path).name), "")]
        path = self._path()
        # The turn says enough where it is known which case it is of.
        names = path if len(path) > 1 else [visible(selection.eval_id), *path]
        return [*((f"{name} › ", "muted") for name in names[:-1]), (names[-1], "bold")]

    def _path(self) -> list[str]:
        """The rows around the current one, and itself, by their names."""
        by_id = {row.id: row for row in self.rows}
        at = self.row.id if self.row is not None else ()
        around = [by_id[at[:length]] for length in range(1, len(at) + 1) if at[:length] in by_id]
        return [visible(_path_name(row)) for row in around]

    def mark(self) -> Span | None:
        """Whether the case has unsaved changes."""
        file = self._workbench.navigation.file
        if file is None or not self.rows or not self._workbench.editing.is_dirty(file):
            return None
        source = self.selected.source
        return None if alike(source.saved, source.editor.value) else ("●", "warning")

    @property
    def row(self) -> Row | None:
        """The row at the cursor; None without rows."""
        return self.rows[self.current] if self.current < len(self.rows) else None

    @property
    def page_field(self) -> OpenField | None:
        """The open field, for which the page leaves space."""
        return None

    @property
    def is_editing(self) -> bool:
        """Whether a field is open."""
        return False

    @property
    def refusal_to_edit(self) -> str | None:
        return self._workbench.editing.refuses_to_edit(self._workbench.navigation.file)

    # The page

    def write_changes(self) -> None:
        """Writes the page again if its contents have changed."""
        super().follow()

    def write(self, page: Page) -> None:
        workbench = self._workbench
        self.placed = ()
        if workbench.sets.workspace is None:
            page.row(("Loading eval sets…", "muted"))
            return
        path, case = workbench.navigation.selection.path, workbench.navigation.selection.case
        eval_set = workbench.sets.by_case_path(path)
        opened = workbench.sets.opened(eval_set.path) if eval_set else None
        if eval_set is None:
            write_no_sets(page, workbench.sets.workspace)
        elif case is not None and self.rows:
            self._write_rows(page)
        elif case is not None and opened is None:
            page.row(("Loading case…", "muted"))
        else:
            editing = workbench.editing
            refuses = editing.refuses_whole if case is None else editing.refuses_to_edit
            write_set_facts(page, eval_set, opened, can_edit_text=refuses(eval_set.path) is None)

    def _write_rows(self, page: Page) -> None:
        if (reason := self.refusal_to_edit) is not None:
            page.text([(visible(reason), "warning")])
            page.blank()
        opened = self.page_field
        self.placed = write_rows(page, self.rows, opened, self._outcomes())

    def _outcomes(self) -> dict[int, Span]:
        """The glyphs of the turns that ran, if their result is current."""
        case, outcomes = self._workbench.navigation.selection.case, self._workbench.outcomes
        statuses = outcomes.turn_statuses(case, outcomes.get(case)) if case else ()
        return {turn: glyph(status) for turn, status in enumerate(statuses) if status}

    def line(self, number: int) -> Line:
        line = self._with_key(number)
        if not self._is_current(number):
            return [(" ", ""), *line]
        marked: Line = [("▌", "bold accent" if self.has_focus_within else "muted"), *line]
        place = self.placed[self.current]
        if number == place.first and not self.is_editing and self.row and self.row.adds:
            word = "fill" if self.row.is_unset else self.row.adds[0].label
            hint: Line = [(key_of("add_below"), "bold accent"), (f" {word} ", "muted")]
            # It ends where the expectation of a turn does.
            gap = min(self.line_width, self.page.width + 2) - cells(marked) - cells(hint)
            if gap > 1 and self.has_focus_within:
                return [*marked, (" " * gap, ""), *hint]
        return marked

    def _with_key(self, number: int) -> Line:
        """A line of the page; for the current turn, with the key that changes its expectation."""
        line, row = self.page.lines[number], self.row
        turn = row.turn if row is not None and self.has_focus_within else None
        is_closed = row is not None and row.role == "turn" and row.fold == "closed"
        if turn is None or is_closed or self.page.turns.get(turn) != number or len(line) < 3:
            return line
        name = key_of("next_kind")
        gap = len(line[-3][0]) - len(name) - 1
        if line[-3][0].strip() or gap < 1:
            return line
        return [*line[:-3], (" " * gap, ""), (name, "bold accent"), (" ", ""), *line[-2:]]

    def row_role(self, number: int) -> str:
        return "current" if self._is_current(number) and not self.is_editing else ""

    def _is_current(self, number: int) -> bool:
        if self.current >= len(self.placed) or self.refusal_to_edit:
            return False
        place = self.placed[self.current]
        return place.first <= number < place.last

    # The cursor

    def find_current(self) -> None:
        """Keeps the cursor on its row, or at its index where the row is deleted."""
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
        """Moves to the expected value of a difference; to its turn where there is none."""
        self.follow()
        case = self._workbench.navigation.selection.case
        scored = self._workbench.outcomes.get(case)
        if scored is not None and self.rows:
            self.move_to_id(expected_row(scored, at, self.selected.source.editor))
            self.show_soon()

    def _scroll_to_selection(self) -> None:
        """Scrolls to the cursor after the page is written."""
        if self.rows:
            self.call_after_refresh(self.show_current)
        else:
            super()._scroll_to_selection()

    def move_to_id(self, id: RowId) -> None:
        """Moves to a row, or to the nearest existing row around it."""
        self.selected.reveal(id)
        self.rows = self.selected.rows
        numbers = {row.id: number for number, row in enumerate(self.rows)}
        target = id
        while target and target not in numbers:
            target = target[:-1]
        if target:
            self.current, self._at = numbers[target], target

    def move_by(self, step: int) -> None:
        if self.rows:
            self.current = max(0, min(self.current + step, len(self.rows) - 1))
            self._at = self.rows[self.current].id
            self.show_current()
            self.refresh()
            # The border has the path of the row.
            draw_around(self)

    def next_field(self, step: int) -> RowId | None:
        """The next (1) or previous (-1) row with a field; None after the last one.

        An object or array is edited by the fields of its members, unless there are too many.
        """
        number = self.current + step
        while 0 <= number < len(self.rows):
            row, count = self.rows[number], len(self.rows)
            has_members = row.fold is not None and row.value_path is not None
            if has_members and (row.fold == "open" or len(row.value) <= _MAX_MEMBERS):
                if row.fold == "closed":
                    self.selected.toggle_fold(row.id)
                    self.rows = self.selected.rows
                    number += len(self.rows) - count if step < 0 else 1
                    continue
            elif row.field is not None:
                return row.id
            number += step
        return None

    def row_at(self, line: int) -> int | None:
        """Index of the row on a line, or of the next one below it."""
        return next((number for number, place in enumerate(self.placed) if line < place.last), None)

    def show_current(self) -> None:
        if self.current < len(self.placed):
            place = self.placed[self.current]
            top = 0 if self.current == 0 else place.first
            self.show_line(min(place.last - 1, top + max(0, self.size.height - 1)))
            self.show_line(top)

    def show_soon(self) -> None:
        """Draws the changes, and scrolls to the cursor after the layout."""
        self.follow()
        self.call_after_refresh(self.show_current)
        self.refresh()
        draw_around(self)

    def action_step_line(self, step: int) -> None:
        if not self.rows:
            super().action_step_line(step)
        elif self._has_more(step):
            self.scroll_relative(y=step, animate=False)
        else:
            self.move_by(step)

    def _has_more(self, step: int) -> bool:
        """Whether the current row continues above or below the visible part: a key scrolls then before the
        cursor moves."""
        if self.current >= len(self.placed):
            return False
        row, top = self.placed[self.current], self.scroll_offset.y
        return row.last > top + self.size.height if step > 0 else row.first < top

    def action_step_page(self, step: int) -> None:
        if not self.rows or not self.placed:
            super().action_step_page(step)
            return
        line = self.placed[self.current].first + step * max(1, self.size.height - 1)
        number = self.row_at(max(0, line))
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
        """Opens a closed row; in an open one, goes to the first row inside."""
        row = self.row
        if row is not None and row.fold == "closed":
            self._toggle_fold(row.id)
        elif row is not None and row.fold == "open":
            self.move_by(1)

    def action_fold(self) -> None:
        """Closes an open row; inside of one, goes to the row around it."""
        row = self.row
        if row is not None and row.fold == "open":
            self._toggle_fold(row.id)
        elif row is not None:
            foldable = {foldable_row.id for foldable_row in self.rows if foldable_row.fold}
            around = [
                row.id[:length] for length in range(len(row.id) - 1, 0, -1) if row.id[:length] in foldable
            ]
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
        """Whether the selected case can be edited, and its rows are current; shows why not."""
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
        """The current row, with operations for the current file; None where it cannot be edited."""
        if not self.is_ready():
            return None
        if self.row is None:
            self.refuse_row(f"The case is malformed   {key_of('edit_json')}  Edit JSON")
        return self.row

    def refuse_row(self, reason: str | None) -> None:
        """Shows why a row cannot be edited, and drops the keys typed ahead for its field."""
        if reason is not None:
            self._workbench.say(reason)
        if isinstance(self.app, KeysInOrder):
            self.app.ignore_typed_ahead()

    def do(self, operation: Operation, extends: Step | None = None) -> bool:
        """Does an operation and moves to its next row; False where it is refused."""
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


def _path_name(row: Row) -> str:
    """The name of a row in a path."""
    match row.role:
        case "turn":
            return row.label.lower()
        case "call":
            return str(row.value) or "call"
        case _:
            return row.name or row.label or ("add" if row.role == "hint" else "call")
