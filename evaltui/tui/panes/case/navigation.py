"""Rows of the selected case, the cursor in them, and operations on them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from rich.cells import cell_len

from evaltui.core.model.arg_rule import parse_arg_path
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.text.lines import Line, cells
from evaltui.text.values import visible
from evaltui.tui.action_screen import ActionScreen, KeysInOrder
from evaltui.tui.pages.case import OpenField, Placed, write_rows
from evaltui.tui.pages.selected import write_no_sets, write_set_facts
from evaltui.tui.pages.writer import Page
from evaltui.tui.pane import PagePane
from evaltui.workbench.fields import Operation, Part, Row, RowId
from evaltui.workbench.results import expected_call, judged_row
from evaltui.workbench.selected_case import SelectedCase
from evaltui.workbench.state import DifferenceAt, Selection
from evaltui.workbench.workbench import Workbench

_PARTS: tuple[Part, ...] = ("value", "name")


class CaseRows(PagePane, can_focus=True, inherit_bindings=False):
    """Shows the selected case as rows with a cursor, or the facts of the selected set."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self.selected = SelectedCase(workbench.agent, workbench.sets, workbench.navigation, workbench.editing)
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
        names = [visible(selection.eval_id), *self._path()]
        return [*((f"{name} › ", "muted") for name in names[:-1]), (names[-1], "bold")]

    def _path(self) -> list[str]:
        """The rows that the current one is in, and itself, by their names."""
        known = {row.id: row for row in self.rows}
        at = self.row.id if self.row is not None else ()
        around = [known[at[:length]] for length in range(1, len(at) + 1) if at[:length] in known]
        return [visible(_named(row)) for row in around]

    @property
    def page_field(self) -> OpenField | None:
        """The field that the page leaves room for."""
        return None

    @property
    def is_editing(self) -> bool:
        """Whether a field is open."""
        return False

    @property
    def refusal_to_edit(self) -> str | None:
        return self._workbench.editing.refuses_to_edit(self._workbench.navigation.file)

    # The page

    def write_page(self) -> None:
        """Writes the page anew if what it shows has changed."""
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
            page.row(("reading the case …", "muted"))
        else:
            write_set_facts(page, eval_set, opened)

    def _write_rows(self, page: Page) -> None:
        if (reason := self.refusal_to_edit) is not None:
            page.text([(visible(reason), "warning")])
            page.blank()
        opened = self.page_field
        rows = [
            row if opened and opened.row == row.id else self._with_unapplied_text(row) for row in self.rows
        ]
        self.placed = write_rows(page, rows, opened)

    def _with_unapplied_text(self, row: Row) -> Row:
        """The row with texts that were typed and are not in the case yet."""
        path = self._workbench.navigation.selection.path
        if path is None:
            return row
        parts = dict.fromkeys(self.selected.place_of(row, part) for part in _PARTS if row.of(part))
        places = [*parts, self.selected.place_of(None, "raw")] if row.id == ("id",) else [*parts]
        unapplied = self._workbench.editing.unapplied
        left = [found for at, name in places if (found := unapplied.at(path, at, name))]
        problems = [Problem(Severity.ERROR, (), f"Not applied: {one}") for one in left]
        return replace(row, findings=(*problems, *row.findings)) if problems else row

    def line(self, number: int) -> Line:
        line = self.page.lines[number]
        if not self._is_current(number):
            return [(" ", ""), *line]
        marked: Line = [("▌", "bold accent" if self.is_focused else "muted"), *line]
        place = self.placed[self.current]
        if number == place.first and not self.is_editing and self.row and self.row.adds:
            hint = "o fill " if self.row.is_unset else f"o {self.row.adds[0].label} "
            gap = self.line_width - cells(marked) - cell_len(hint)
            if gap > 1 and self.is_focused:
                return [*marked, (" " * gap, ""), (hint, "muted")]
        return marked

    def row_role(self, number: int) -> str:
        return "current" if self._is_current(number) and not self.is_editing else ""

    def _is_current(self, number: int) -> bool:
        if self.current >= len(self.placed) or self.refusal_to_edit:
            return False
        place = self.placed[self.current]
        return place.first <= number < place.last

    @property
    def is_focused(self) -> bool:
        """Whether the pane or a field in it has the focus."""
        return self.has_focus_within

    # The cursor

    @property
    def row(self) -> Row | None:
        return self.rows[self.current] if self.current < len(self.rows) else None

    def read_rows(self) -> None:
        """Reads the rows after a change of the case."""
        self.selected.follow()
        self.rows = self.selected.rows

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
                self._forget_draft(before)
                self.current, self._at = 0, self.rows[0].id
                if self.selected.is_new:
                    self.move_to_id(("turn", 0, "user", 0))

    def _forget_draft(self, left: Selection | None) -> None:
        """Drops the JSON that was cancelled in a case, once the case is left."""
        unapplied = self._workbench.editing.unapplied
        if left is None or left.case is None:
            return
        for draft in unapplied.now():
            if draft.part == "raw" and draft.case == left.case:
                unapplied.drop(draft.path, draft.at, draft.part)

    def show_expected(self, at: DifferenceAt) -> None:
        """Moves to what is expected at a difference; to its turn where nothing is."""
        self.follow()
        case = self._workbench.navigation.selection.case
        if case is not None and (wanted := self._expected_row(case, at)) is not None:
            self.move_to_id(wanted)
            self.show_current()
            self.refresh()

    def _expected_row(self, case: CaseId, at: DifferenceAt) -> RowId | None:
        scored = self._workbench.outcomes.get(case)
        if scored is None:
            return None
        turn: RowId = ("final_state",) if at.turn is None else ("turn", at.turn)
        if at.kind == "answer":
            return (*turn, "answer", 0)
        if at.kind == "judgement":
            return judged_row(scored.shown, scored.case, at)
        call = expected_call(scored.shown, scored.case, at)
        if call is None:
            return turn
        if at.kind == "argument" and at.row is not None and at.turn is not None:
            expected = scored.shown.turns[at.turn].calls[at.row].expected
            names = list((expected.args if expected else None) or {})
            first = next(iter(parse_arg_path(at.path)), None) if at.path else None
            if first in names:
                return (*turn, "call", call, "arg", names.index(first))
        return (*turn, "call", call)

    def _scroll_to_selection(self) -> None:
        """After the page is written: the cursor is where it is to be."""
        if self.rows:
            self.call_after_refresh(self.show_current)
        else:
            super()._scroll_to_selection()

    def move_to_id(self, id: RowId) -> None:
        """Moves to a row, or to the nearest row around it where it is not there."""
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
            if isinstance(self.screen, ActionScreen):
                # The border says where one is.
                self.screen.draw_soon()

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

    def action_line_down(self) -> None:
        if not self.rows:
            super().action_line_down()
        elif self._has_more_below():
            self.scroll_relative(y=1, animate=False)
        else:
            self.move_by(1)

    def action_line_up(self) -> None:
        if not self.rows:
            super().action_line_up()
        elif self._has_more_above():
            self.scroll_relative(y=-1, animate=False)
        else:
            self.move_by(-1)

    def _has_more_below(self) -> bool:
        """Whether the current row is longer than what is seen of it: then it is read before it is left."""
        if self.current >= len(self.placed):
            return False
        return self.placed[self.current].last > self.scroll_offset.y + self.size.height

    def _has_more_above(self) -> bool:
        if self.current >= len(self.placed):
            return False
        return self.placed[self.current].first < self.scroll_offset.y

    def action_page_down(self) -> None:
        self._page_by(1)

    def action_page_up(self) -> None:
        self._page_by(-1)

    def _page_by(self, step: int) -> None:
        if not self.rows or not self.placed:
            (super().action_page_down if step > 0 else super().action_page_up)()
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
        """Shows the members of an object or array; once they are shown, goes to the first."""
        row = self.row
        if row is not None and row.fold == "closed":
            self._toggle_fold(row.id)
        elif row is not None and row.fold == "open" and row.value:
            self.move_by(1)

    def action_fold(self) -> None:
        """Hides the members of an object or array; at a member, goes to what it is in."""
        row = self.row
        if row is not None and row.fold == "open":
            self._toggle_fold(row.id)
        elif row is not None and row.level:
            self.move_to_id(row.id[:-2])
            self.show_soon()

    def _toggle_fold(self, row: RowId) -> None:
        self.selected.toggle_fold(row)
        self.rows = self.selected.rows
        self.find_current()
        self.show_soon()

    # Operations on rows

    def ready_row(self) -> Row | None:
        """The current row, with operations that fit the file; None where nothing can be edited."""
        file, case = self._workbench.navigation.file, self._workbench.navigation.selection.case
        if file is None or case is None:
            return None
        reason = self.refusal_to_edit
        try:
            if reason is None:
                # It may still be being read: who asks for a field need not wait for that.
                self._workbench.editing.data(file)
        except (OSError, EvalSetError) as error:
            reason = f"{file.name} cannot be edited: {error}"
        self.follow()
        row = self.row if reason is None else None
        if row is None:
            self.refuse_row(reason)
        return row

    def refuse_row(self, reason: str | None) -> None:
        """Shows why nothing can be edited, and forgets what was typed ahead for the field."""
        if reason is not None:
            self._workbench.say(reason)
        if isinstance(self.app, KeysInOrder):
            self.app.ignore_typed_ahead()

    def do(self, operation: Operation, *, typing: Hashable = None) -> bool:
        """Does an operation and moves to the row it leads to; False where it is refused."""
        file = self._workbench.navigation.file
        if file is None:
            return False
        done = True
        if operation.make is not None:
            done = self._workbench.editing.do(operation.label, file, operation.make, typing=typing)
        if done:
            self.follow()
            if operation.then is not None:
                self.move_to_id(operation.then)
            self.show_soon()
        return done


def _named(row: Row) -> str:
    """What a row is called where its path is told."""
    match row.role:
        case "turn":
            return row.label.lower()
        case "call":
            return str(row.value) or "call"
        case _:
            return row.name or row.label or ("add" if row.role == "hint" else "call")
