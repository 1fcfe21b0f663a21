"""The tree of sets, cases and turns, drawn by line: only what is visible is made into text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message

from evaltui.core.jsondoc.chunks import Chunks
from evaltui.core.model.case_info import CaseInfo
from evaltui.files.workspace import SetEntry
from evaltui.text.lines import Line, cells, cut
from evaltui.text.outcomes import GLYPHS, NOT_RUN, TONES, WORDS, glyph
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.pane import Copied, Pane
from evaltui.tui.widgets.cursor_lines import CursorLines
from evaltui.workbench import set_editing
from evaltui.workbench.acceptable import choices_in_list
from evaltui.workbench.actions import Scope
from evaltui.workbench.marking import Marking
from evaltui.workbench.state import CaseKey, Selection
from evaltui.workbench.tree_rows import Row, TreeRows
from evaltui.workbench.verdicts import figure, turn_status
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult

# Below this many cells of name, the figure at the right is left out.
_MIN_NAME = 14


class CaseTree(Pane, CursorLines, can_focus=True, inherit_bindings=False):
    """Shows the workbench's sets and keeps its selection; which nodes are folded is known here only."""

    BINDINGS = bindings(Scope.CASES)

    class Opened(Message):
        """The user wants to see the result of what is selected."""

    class Edit(Message):
        """The user wants to edit the case that is selected."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._folded_sets: set[Path] = set()
        self._unfolded_cases: set[CaseKey] = set()
        self._rows = TreeRows((), None, (), ())
        self._shown_workspace: object = None
        self._shown_kept: object = None
        self._unsaved: dict[Path, tuple[Chunks, Chunks | None, frozenset[str]]] = {}

    @property
    def _marking(self) -> Marking:
        return self._workbench.navigation.marking

    def heading(self) -> Line:
        marked: Line = [(f"{len(self._marking)} marked", "accent"), ("  ", "")] if self._marking else []
        total = sum(len(entry.cases) for entry in self._workbench.sets.entries)
        if self._workbench.navigation.filtered.filter:
            return [*marked, (f"{self._workbench.navigation.filtered.count} of {total}", "accent")]
        return [*marked, (str(total), "dim")] if total else []

    def copied(self) -> Copied | None:
        """The id of the case, or of the set."""
        selection = self._workbench.navigation.selection
        entry = self._workbench.sets.entry(selection.path)
        if entry is None:
            return None
        chosen = selection.eval_id if selection.eval_id is not None else entry.eval_set_id
        return Copied(f"the id {chosen}", visible(chosen))

    # Following the workbench

    def follow(self) -> None:
        """Draw what the workbench knows now, and go where its selection is."""
        workspace, kept = self._workbench.sets.workspace, self._workbench.navigation.filtered.kept
        if self._shown_workspace is not workspace or self._shown_kept is not kept:
            self._shown_workspace, self._shown_kept = workspace, kept
            self._rebuild()
        elif self._selection_at(self.cursor) != self._workbench.navigation.selection:
            self._go_to_selection()
        self.refresh()

    def _rebuild(self) -> None:
        if self._marking:
            self._marking.keep_only_in(self._workbench.sets.entries)
        self._count_rows()
        self._go_to_selection()

    def _count_rows(self) -> None:
        filtered = self._workbench.navigation.filtered
        kept = filtered.kept if filtered.filter else None
        self._rows = TreeRows(self._workbench.sets.entries, kept, self._folded_sets, self._unfolded_cases)
        self.lines_changed(self._rows.count or len(self._empty_lines()))

    def _go_to_selection(self) -> None:
        selection = self._workbench.navigation.selection
        if selection.eval_id is not None and selection.path in self._folded_sets:
            self._folded_sets.discard(selection.path)
            self._count_rows()
        line = self._rows.line_of(selection)
        if line is None:
            # A turn that is selected elsewhere has no line of its own while its case is folded.
            line = self._rows.line_of(selection._replace(turn=None))
        if line is None:
            self.cursor = min(self.cursor, max(0, self._rows.count - 1))
        else:
            self.cursor = line
            self.show_line(line)

    def _selection_at(self, number: int) -> Selection:
        return self._rows.selection(number) if number < self._rows.count else Selection()

    def move_to(self, number: int) -> None:
        if self._rows.count:
            super().move_to(number)
            self._workbench.navigation.select(self._selection_at(self.cursor))

    # Drawing

    def line_classes(self, number: int) -> tuple[str, ...]:
        return super().line_classes(number) if self._rows.count else ()

    def line(self, number: int) -> Line:
        if not self._rows.count:
            lines = self._empty_lines()
            return [(" ", ""), *(lines[number] if number < len(lines) else [])]
        row = self._rows.row(number)
        entry = self._rows.entry(row)
        marker = ("▌" if number == self.cursor else " ", "accent" if self.has_focus else "dim")
        if row.case is None:
            left, right = self._set_line(entry)
        elif row.turn is None:
            left, right = self._case_line(entry, entry.cases[row.case])
        else:
            left, right = self._turn_line(entry, entry.cases[row.case], row.turn), []
        return [marker, *_both_ends(left, right, self.line_width - 2)]

    def _empty_lines(self) -> list[Line]:
        """What is said where there is no case to show."""
        if self._workbench.sets.workspace is None:
            return [[("looking for eval sets …", "dim")]]
        if self._workbench.navigation.filtered.filter:
            return [[("no case matches the filter: esc shows all", "dim")]]
        return [
            [("no eval sets yet", "dim")],
            [("o ", "bold"), (" write a case, in a new set", "dim")],
            [("O ", "bold"), (" make an eval set", "dim")],
            [("looked in: this folder, eval*/, test*/, ../eval*/, ../tests/, above too", "dim")],
        ]

    def _set_line(self, entry: SetEntry) -> tuple[Line, Line]:
        fold = "▸ " if entry.path in self._folded_sets else "▾ "
        name: Line = [(fold, "dim"), (visible(entry.eval_set_id), "bold")]
        if entry.origin != "agent directory":
            name.append((f"  {visible(entry.origin)}", "dim"))
        if entry.format not in (None, "eval set"):
            name.append(("  old format", "yellow"))
        name += self._saved_mark(entry.path)
        if errors := self._workbench.sets.errors(entry):
            return [("! ", "red"), *name[1:], (f"  {visible(str(errors[0]))}", "red")], []
        counts = self._workbench.outcomes.results.counts(entry.path)
        if not counts:
            return name, [(str(len(entry.cases)), "dim")]
        right: Line = [(f"{counts['PASSED']}/{len(entry.cases)}", "dim")]
        for status in ("FAILED", "ERROR"):
            if counts[status]:
                right.append((f" {GLYPHS[status]}{counts[status]}", TONES[status]))
        return name, right

    def _case_line(self, entry: SetEntry, case: CaseInfo) -> tuple[Line, Line]:
        key = CaseKey(entry.path, case.eval_id)
        status = self._workbench.outcomes.status(key)
        scored = self._workbench.outcomes.get(key)
        outcomes = self._workbench.outcomes
        waiting = outcomes.is_waiting(key)
        mark, tone = glyph(status)
        stale = (
            self._workbench.outcomes.is_stale(key) and scored is not None and status == scored.result.status
        )
        pale = "dim" if waiting or self._marking.is_cut(key) else ""
        chosen = ("* ", "accent") if key in self._marking else ("  ", "")
        name = visible(case.eval_id) or "(no id)"
        left: Line = [chosen, (mark, "dim" if waiting or stale else tone), (f" {name}", pale)]
        if case.eval_id in self._unsaved_cases(entry.path):
            left.append((" ●", "bold"))
        if self._marking.is_cut(key):
            left.append(("  cut", "dim"))
        if stale:
            left.append(("  old", "dim"))
        if scored is None or waiting or status != scored.result.status:
            return left, []
        return left, self._verdict(scored.result, cells(left))

    def _saved_mark(self, path: Path) -> Line:
        """What a set is that is not on disk as it is here."""
        editing = self._workbench.editing
        draft = editing.draft(path)
        if draft is None or not editing.is_dirty(path):
            return []
        return [(" ●", "bold"), *([("  new", "dim")] if draft.saved is None else [])]

    def _unsaved_cases(self, path: Path) -> frozenset[str]:
        """Looked up for every line, found out once for every edit."""
        draft = self._workbench.editing.draft(path)
        if draft is None or not draft.dirty:
            return frozenset()
        now, saved = draft.document.chunks, draft.saved.chunks if draft.saved else None
        known = self._unsaved.get(path)
        if known is None or known[0] is not now or known[1] is not saved:
            known = self._unsaved[path] = now, saved, self._workbench.editing.dirty_cases(path)
        return known[2]

    def _verdict(self, result: CaseResult, name_width: int) -> Line:
        """The figure that says most, behind the outcome as a word where there is room."""
        number: Line = [(f"{visible(figure(result)):>5}", "dim")]
        word: Line = [(f"{WORDS[result.status]}", TONES[result.status]), (" ", ""), *number]
        return word if name_width + cells(word) + 4 < self.line_width else number

    def _turn_line(self, entry: SetEntry, case: CaseInfo, turn: int) -> Line:
        scored = self._workbench.outcomes.get(CaseKey(entry.path, case.eval_id))
        status = turn_status(scored.shown, turn) if scored else NOT_RUN
        mark = glyph(status) if status else (" ", "")
        return [
            ("    ", ""),
            mark,
            (f" {turn + 1} ", "dim"),
            (visible(case.texts[turn] if turn < len(case.texts) else ""), ""),
        ]

    # Keys and mouse

    def open_current(self) -> None:
        self.action_open()

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if event.ctrl and number < self._rows.count:
            event.prevent_default()
            self.move_to(number)
            self._mark_current()

    def action_open(self) -> None:
        if not self._rows.count:
            return
        row = self._rows.row(self.cursor)
        if row.case is None and not self._workbench.sets.errors(self._rows.entry(row)):
            self.action_toggle_fold()
        else:
            self.post_message(self.Opened())

    def action_toggle_fold(self) -> None:
        if self._rows.count:
            self._set_folded(self._is_unfolded(self.cursor))

    def action_unfold(self) -> None:
        if not self._rows.count:
            return
        if self._is_unfolded(self.cursor):
            below = self.cursor + 1
            if below < self._rows.count and self._depth(below) > self._depth(self.cursor):
                self.move_to(below)
        else:
            self._set_folded(False)

    def action_fold(self) -> None:
        if not self._rows.count:
            return
        row = self._rows.row(self.cursor)
        if row.turn is None and self._is_unfolded(self.cursor):
            self._set_folded(True)
        elif row.case is not None:
            selection = self._selection_at(self.cursor)
            above = selection._replace(turn=None) if row.turn is not None else Selection(selection.path)
            self.move_to(self._rows.line_of(above) or 0)

    def _depth(self, number: int) -> int:
        return self._rows.row(number).depth

    def _is_unfolded(self, number: int) -> bool:
        selection = self._selection_at(number)
        if selection.turn is not None:
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

    # Sets and cases as a whole

    def _current(self) -> Row | None:
        return self._rows.row(self.cursor) if self._rows.count else None

    def action_edit_case(self) -> None:
        self.post_message(self.Edit())

    def action_accept_cases(self) -> None:
        choices = choices_in_list(self._workbench)
        if not choices:
            self._workbench.say("no case in view has failed")
            return
        # The first frame does not wait for what is seen only now.
        from evaltui.tui.screens.accept import AcceptScreen

        self.app.push_screen(AcceptScreen(self._workbench, choices))

    def action_new_case(self) -> None:
        if self._workbench.sets.entries:
            self._add_case()
        else:
            self._ask_for_set("There is no eval set yet: what is the first one called?", self._add_case)

    def _add_case(self) -> None:
        if set_editing.new_case(self._workbench):
            self.post_message(self.Edit())

    def action_new_set(self) -> None:
        self._ask_for_set("What is the new eval set called?", lambda: None)

    def _ask_for_set(self, question: str, then: Callable[[], None]) -> None:
        from evaltui.tui.screens.prompt import PromptScreen

        def named(wanted: str | None) -> None:
            if wanted is not None and set_editing.new_set(self._workbench, wanted):
                then()

        folder = set_editing.folder_for_new_set(self._workbench)
        self.app.push_screen(
            PromptScreen(
                question,
                check=partial(set_editing.new_set_problem, self._workbench),
                hint=f"letters from a to z, digits and _; the file will be in {folder}",
            ),
            named,
        )

    def action_rename(self) -> None:
        row = self._current()
        if row is None:
            return
        entry = self._rows.entry(row)
        if row.case is None:
            self._ask_for_set_id(entry)
        else:
            self._ask_for_eval_id(CaseKey(entry.path, entry.cases[row.case].eval_id), row.case)

    def _ask_for_set_id(self, entry: SetEntry) -> None:
        from evaltui.tui.screens.prompt import PromptScreen

        def named(wanted: str | None) -> None:
            if wanted is not None:
                set_editing.rename_set(self._workbench, entry.path, wanted)

        self.app.push_screen(
            PromptScreen(
                "Rename the eval set",
                entry.eval_set_id,
                partial(set_editing.set_id_problem, self._workbench, entry.path),
                f"its file stays {entry.path.name}",
            ),
            named,
        )

    def _ask_for_eval_id(self, key: CaseKey, number: int) -> None:
        from evaltui.tui.screens.prompt import PromptScreen

        def named(wanted: str | None) -> None:
            if wanted is not None:
                set_editing.rename_case(self._workbench, key, number, wanted)

        check = set_editing.case_id_problem(self._workbench, key.path, number)
        self.app.push_screen(PromptScreen("Rename the case", key.eval_id, check), named)

    def action_mark_case(self) -> None:
        self._mark_current()
        row = self._current()
        if row is not None and row.case is not None:
            self._move_to_next_case()

    def _mark_current(self) -> None:
        """The case of the line; of a set, every case that is shown."""
        row = self._current()
        if row is None:
            return
        entry = self._rows.entry(row)
        numbers = self._rows.shown(row.entry) if row.case is None else (row.case,)
        self._marking.toggle([CaseKey(entry.path, entry.cases[number].eval_id) for number in numbers])
        count = len(self._marking)
        cases = "1 case is" if count == 1 else f"{count or 'no'} cases are"
        self._workbench.say(f"{cases} marked{': what is done is done to all of them' if count > 1 else ''}")

    def _move_to_next_case(self) -> None:
        below = self.cursor + 1
        while below < self._rows.count and self._depth(below) == 2:
            below += 1
        if below < self._rows.count:
            self.move_to(below)

    def action_convert(self) -> None:
        row = self._current()
        if row is not None:
            path = self._rows.entry(row).path
            # The first frame does not wait for screens that are seldom seen.
            from evaltui.tui.screens.convert import ConvertScreen

            self.app.push_screen(ConvertScreen(self._workbench, path))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()


def _both_ends(left: Line, right: Line, width: int) -> Line:
    room = width - cells(right) - 1
    if not right or room < _MIN_NAME:
        return cut(left, width)
    kept = cut(left, room)
    return [*kept, (" " * (width - cells(kept) - cells(right)), ""), *right]
