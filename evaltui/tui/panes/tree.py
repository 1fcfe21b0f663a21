"""The tree of sets, cases and turns, drawn by line: only what is visible is made into text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from evaltui.core.show import visible
from evaltui.files.workspace import CaseInfo, SetEntry
from evaltui.reports.lines import Line, cells, cut
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.outcome import TONE_OF, glyph
from evaltui.tui.pane import Copied, Pane
from evaltui.tui.widgets.cursor_lines import CursorLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.state import CaseKey, Selection
from evaltui.workbench.verdicts import GLYPHS, NOT_RUN, WORDS, figure, turn_status
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.core.outcome import CaseResult

# Below this many cells of name, the figure at the right is left out.
_MIN_NAME = 14


class Row(NamedTuple):
    """One line of the tree: a set, one of its cases, or one turn of that; counted from 0."""

    entry: int
    case: int | None = None
    turn: int | None = None


class CaseTree(Pane, CursorLines, can_focus=True, inherit_bindings=False):
    """Shows the workbench's sets and keeps its selection; which nodes are folded is known here only."""

    BINDINGS = bindings(Scope.CASES)

    class Opened(Message):
        """The user wants to see the result of what is selected."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._folded_sets: set[Path] = set()
        self._unfolded_cases: set[CaseKey] = set()
        self._rows: list[Row] = []
        self._shown_workspace: object = None
        self._shown_kept: object = None

    def heading(self) -> Line:
        total = sum(len(entry.cases) for entry in self._workbench.sets)
        if self._workbench.filtered.filter:
            return [(f"{self._workbench.filtered.count} of {total}", "accent")]
        return [(str(total), "dim")] if total else []

    def copied(self) -> Copied | None:
        """The id of the case, or of the set."""
        selection = self._workbench.selection
        entry = self._workbench.entry(selection.path) if selection.path else None
        if entry is None:
            return None
        chosen = selection.eval_id if selection.eval_id is not None else entry.eval_set_id
        return Copied(f"the id {chosen}", chosen)

    # Following the workbench

    def follow(self) -> None:
        """Draw what the workbench knows now, and go where its selection is."""
        workspace, kept = self._workbench.workspace, self._workbench.filtered.kept
        if self._shown_workspace is not workspace or self._shown_kept is not kept:
            self._shown_workspace, self._shown_kept = workspace, kept
            self._rebuild()
        elif self._selection_at(self.cursor) != self._workbench.selection:
            self._go_to_selection()
        self.refresh()

    def _rebuild(self) -> None:
        self._rows = list(self._all_rows())
        self.lines_changed(max(1, len(self._rows)))
        self._go_to_selection()

    def _all_rows(self) -> Iterator[Row]:
        filtered = self._workbench.filtered
        for entry_number, entry in enumerate(self._workbench.sets):
            if filtered.filter and entry.path not in filtered.kept:
                continue
            yield Row(entry_number)
            if entry.path in self._folded_sets and not filtered.filter:
                continue
            for case_number in filtered.kept[entry.path] if filtered.filter else range(len(entry.cases)):
                case = entry.cases[case_number]
                yield Row(entry_number, case_number)
                if CaseKey(entry.path, case.eval_id) in self._unfolded_cases:
                    for turn in range(case.turns or 0):
                        yield Row(entry_number, case_number, turn)

    def _go_to_selection(self) -> None:
        selection = self._workbench.selection
        if selection.eval_id is not None and selection.path in self._folded_sets:
            self._folded_sets.discard(selection.path)
            self._rows = list(self._all_rows())
            self.lines_changed(len(self._rows))
        for number, _ in enumerate(self._rows):
            if self._selection_at(number) == selection:
                self.cursor = number
                self.show_line(number)
                return
        self.cursor = min(self.cursor, max(0, len(self._rows) - 1))

    def _selection_at(self, number: int) -> Selection:
        if number >= len(self._rows):
            return Selection()
        row = self._rows[number]
        entry = self._workbench.sets[row.entry]
        if row.case is None:
            return Selection(entry.path)
        return Selection(entry.path, entry.cases[row.case].eval_id, row.turn)

    def move_to(self, number: int) -> None:
        if self._rows:
            super().move_to(number)
            self._workbench.select(self._selection_at(self.cursor))

    # Drawing

    def line_classes(self, number: int) -> tuple[str, ...]:
        return super().line_classes(number) if self._rows else ()

    def line(self, number: int) -> Line:
        if not self._rows:
            return [(f" {self._why_empty()}", "dim")]
        row = self._rows[number]
        entry = self._workbench.sets[row.entry]
        marker = ("▌" if number == self.cursor else " ", "accent" if self.has_focus else "dim")
        if row.case is None:
            left, right = self._set_line(entry)
        elif row.turn is None:
            left, right = self._case_line(entry, entry.cases[row.case])
        else:
            left, right = self._turn_line(entry, entry.cases[row.case], row.turn), []
        return [marker, *_both_ends(left, right, self.line_width - 2)]

    def _why_empty(self) -> str:
        if self._workbench.workspace is None:
            return "looking for eval sets …"
        if self._workbench.filtered.filter:
            return "no case matches the filter: esc shows all"
        return "no eval sets yet"

    def _set_line(self, entry: SetEntry) -> tuple[Line, Line]:
        fold = "▸ " if entry.path in self._folded_sets else "▾ "
        name: Line = [(fold, "dim"), (visible(entry.eval_set_id), "bold")]
        if entry.origin != "agent directory":
            name.append((f"  {visible(entry.origin)}", "dim"))
        if entry.format not in (None, "eval set"):
            name.append(("  old format", "yellow"))
        if errors := self._workbench.errors(entry):
            return [("! ", "red"), *name[1:], (f"  {visible(str(errors[0]))}", "red")], []
        counts = self._workbench.results.counts(entry.path)
        if not counts:
            return name, [(str(len(entry.cases)), "dim")]
        right: Line = [(f"{counts['PASSED']}/{len(entry.cases)}", "dim")]
        for status in ("FAILED", "ERROR"):
            if counts[status]:
                right.append((f" {GLYPHS[status]}{counts[status]}", TONE_OF[status]))
        return name, right

    def _case_line(self, entry: SetEntry, case: CaseInfo) -> tuple[Line, Line]:
        key = CaseKey(entry.path, case.eval_id)
        status = self._workbench.status(key)
        scored = self._workbench.results.get(key)
        waiting = self._workbench.is_waiting(key)
        mark, tone = glyph(status)
        name = visible(case.eval_id) or "(no id)"
        left: Line = [("  ", ""), (mark, "dim" if waiting else tone), (f" {name}", "dim" if waiting else "")]
        if scored is None or waiting or status != scored.result.status:
            return left, []
        return left, self._verdict(scored.result, cells(left))

    def _verdict(self, result: CaseResult, name_width: int) -> Line:
        """The figure that says most, behind the outcome as a word where there is room."""
        number: Line = [(f"{visible(figure(result)):>5}", "dim")]
        word: Line = [(f"{WORDS[result.status]}", TONE_OF[result.status]), (" ", ""), *number]
        return word if name_width + cells(word) + 4 < self.line_width else number

    def _turn_line(self, entry: SetEntry, case: CaseInfo, turn: int) -> Line:
        scored = self._workbench.results.get(CaseKey(entry.path, case.eval_id))
        status = turn_status(scored.result, turn) if scored else NOT_RUN
        mark = glyph(status) if status else (" ", "")
        return [
            ("    ", ""),
            mark,
            (f" {turn + 1} ", "dim"),
            (visible(self._turn_text(entry, case, turn)), ""),
        ]

    def _turn_text(self, entry: SetEntry, case: CaseInfo, turn: int) -> str:
        if turn == 0:
            return case.first_text
        opened = self._workbench.opened(entry.path)
        model = opened.case(case.eval_id) if opened else None
        if model is None or turn >= len(model.conversation or []):
            return "…"
        parts = (model.conversation or [])[turn].user_content.parts or []
        return next((part.text for part in parts if part.text), "")

    # Keys and mouse

    def open_current(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        if not self._rows:
            return
        row = self._rows[self.cursor]
        if row.case is None and not self._workbench.errors(self._workbench.sets[row.entry]):
            self.action_toggle_fold()
        else:
            self.post_message(self.Opened())

    def action_toggle_fold(self) -> None:
        if self._rows:
            self._set_folded(self._is_unfolded(self.cursor))

    def action_unfold(self) -> None:
        if not self._rows:
            return
        if self._is_unfolded(self.cursor):
            below = self.cursor + 1
            if below < len(self._rows) and _depth(self._rows[below]) > _depth(self._rows[self.cursor]):
                self.move_to(below)
        else:
            self._set_folded(False)

    def action_fold(self) -> None:
        if not self._rows:
            return
        row = self._rows[self.cursor]
        if row.turn is None and self._is_unfolded(self.cursor):
            self._set_folded(True)
        elif row.case is not None:
            above = range(self.cursor - 1, -1, -1)
            self.move_to(next(number for number in above if _depth(self._rows[number]) < _depth(row)))

    def _is_unfolded(self, number: int) -> bool:
        row, selection = self._rows[number], self._selection_at(number)
        if row.turn is not None:
            return True
        if selection.case is None:
            return selection.path not in self._folded_sets
        return selection.case in self._unfolded_cases

    def _set_folded(self, folded: bool) -> None:
        selection = self._selection_at(self.cursor)
        if selection.turn is not None or selection.path is None:
            return
        if selection.case is None:
            (self._folded_sets.add if folded else self._folded_sets.discard)(selection.path)
        else:
            (self._unfolded_cases.discard if folded else self._unfolded_cases.add)(selection.case)
        self._rebuild()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()


def _depth(row: Row) -> int:
    return 0 if row.case is None else 1 if row.turn is None else 2


def _both_ends(left: Line, right: Line, width: int) -> Line:
    room = width - cells(right) - 1
    if not right or room < _MIN_NAME:
        return cut(left, width)
    kept = cut(left, room)
    return [*kept, (" " * (width - cells(kept) - cells(right)), ""), *right]
