"""The page of the selected case: its rows as lines, with the cursor and the open field among them."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.documents.edits import alike
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells
from evaltui.text.outcomes import glyph
from evaltui.text.values import visible
from evaltui.tui.case.rows import OpenField, Placed, write_rows
from evaltui.tui.page_pane import PagePane
from evaltui.tui.result.selected import write_no_sets, write_set_facts
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.case.fields import Row
from evaltui.workbench.workbench import Workbench


class CasePage(PagePane, can_focus=True, inherit_bindings=False):
    """Shows the selected case as rows with a cursor, or the facts of the selected set."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self.selected = workbench.selected
        self.rows: list[Row] = []
        self.current = 0
        """Index of the row that the cursor is on."""
        self.placed: Sequence[Placed] = ()
        """Lines of each row on the page."""

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
        """The rows that the current one is in, and itself, by their names."""
        known = {row.id: row for row in self.rows}
        at = self.row.id if self.row is not None else ()
        around = [known[at[:length]] for length in range(1, len(at) + 1) if at[:length] in known]
        return [visible(_named(row)) for row in around]

    def mark(self) -> Span | None:
        """Whether the case has unsaved changes."""
        file = self._workbench.navigation.file
        if file is None or not self.rows or not self._workbench.editing.is_dirty(file):
            return None
        source = self.selected.source
        return None if alike(source.saved, source.editor.value) else ("●", "warning")

    @property
    def row(self) -> Row | None:
        """The row with the cursor; None where there are no rows."""
        return self.rows[self.current] if self.current < len(self.rows) else None

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
        """The glyphs of the turns that were run, as long as their result is that of now."""
        case = self._workbench.navigation.selection.case
        now = self._workbench.outcomes.freshness(case) if case else None
        if now is None or now.is_stale:
            return {}
        scored = self._workbench.outcomes.get(case)
        statuses = (
            [turn_status(scored.shown, turn) for turn in range(len(scored.shown.turns))] if scored else []
        )
        return {turn: glyph(status) for turn, status in enumerate(statuses) if status}

    def line(self, number: int) -> Line:
        line = self._with_key(number)
        if not self._is_current(number):
            return [(" ", ""), *line]
        marked: Line = [("▌", "bold accent" if self.is_focused else "muted"), *line]
        place = self.placed[self.current]
        if number == place.first and not self.is_editing and self.row and self.row.adds:
            word = "fill" if self.row.is_unset else self.row.adds[0].label
            hint: Line = [(key_of("add_below"), "bold accent"), (f" {word} ", "muted")]
            # It ends where the expectation of a turn does.
            gap = min(self.line_width, self.page.width + 2) - cells(marked) - cells(hint)
            if gap > 1 and self.is_focused:
                return [*marked, (" " * gap, ""), *hint]
        return marked

    def _with_key(self, number: int) -> Line:
        """A line of the page; that of the turn with the cursor has the key that changes what it expects."""
        line, row = self.page.lines[number], self.row
        turn = row.turn if row is not None and self.is_focused else None
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

    @property
    def is_focused(self) -> bool:
        """Whether the pane or a field in it has the focus."""
        return self.has_focus_within


def _named(row: Row) -> str:
    """What a row is called where its path is told."""
    match row.role:
        case "turn":
            return row.label.lower()
        case "call":
            return str(row.value) or "call"
        case _:
            return row.name or row.label or ("add" if row.role == "hint" else "call")
