"""The tree of sets, cases and turns; only visible lines are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual import events
from textual.message import Message

from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import counted, show_number
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.cases.lines import TreeLines
from evaltui.tui.pane import Copied, Pane
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.cases.case_list import Row, TreeRows
from evaltui.workbench.cases.navigation import CaseOrder, Marking
from evaltui.workbench.messages import SelectionChanged
from evaltui.workbench.result.acceptable import choices_in_list
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# A case of more turns than this is unfolded by the user alone.
_MOST_TURNS = 12

# Seconds that a case is tinted which fails since the last run.
_FLASH = 0.6


class CaseTree(Pane, CursorLines, can_focus=True, inherit_bindings=False):
    """Shows the sets of the workbench and keeps its selection; it also stores which rows are folded."""

    BINDINGS = bindings(Scope.CASES)

    class Opened(Message):
        """The user opens the result of the selection."""

    class Added(Message):
        """The selected case was just added: its first text is edited next."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._folded_sets = workbench.navigation.folded_sets
        self._unfolded_cases: set[CaseId] = set()
        # Their turns are not shown although they fail and are selected.
        self._folded_cases: set[CaseId] = set()
        self._failing: CaseId | None = None
        self._rows = TreeRows((), None, (), ())
        self._shown_workspace: object = None
        self._shown_matching: object = None
        self._shown_order: object = None
        self._flashes = False
        self._lines = TreeLines(workbench)

    @property
    def _marking(self) -> Marking:
        return self._workbench.navigation.marking

    def heading(self) -> Line:
        marked: Line = []
        if self._marking:
            marked = [(f"{show_number(len(self._marking))} marked", "bold accent"), ("  ", "")]
        total = sum(len(eval_set.cases) for eval_set in self._workbench.sets.listed)
        if self._workbench.navigation.filtered.filter:
            matching = show_number(self._workbench.navigation.filtered.count)
            return [*marked, (f"{matching} of {show_number(total)}", "bold accent")]
        if marked:
            return [*marked, (show_number(total), "muted")]
        order = self._workbench.navigation.order
        by: Line = [] if order is CaseOrder.FILE else [(f"by {order}", "muted"), ("   ", "")]
        sets = counted(len(self._workbench.sets.listed), "set")
        return [*by, (f"{counted(total, 'case')} in {sets}", "muted")] if total else []

    def copied(self) -> Copied | None:
        """The id of the case, or of the set."""
        selection = self._workbench.navigation.selection
        eval_set = self._workbench.sets.by_case_path(selection.path)
        if eval_set is None:
            return None
        chosen = selection.eval_id if selection.eval_id is not None else eval_set.eval_set_id
        return Copied(f"the id {chosen}", visible(chosen))

    # Following the workbench

    def follow(self) -> None:
        """Draws the current state of the workbench, and moves to its selection."""
        workspace, matching = self._workbench.sets.workspace, self._workbench.navigation.filtered.matching
        order, failing = self._order(), self._failing_case()
        is_other = self._shown_workspace is not workspace or self._shown_matching is not matching
        if is_other or (order, failing) != (self._shown_order, self._failing):
            self._shown_workspace, self._shown_matching = workspace, matching
            self._shown_order, self._failing = order, failing
            self._rebuild()
        elif self._selection_at(self.cursor) != self._workbench.navigation.selection:
            self._go_to_selection()
        self._flash()
        self.refresh_changed()

    def _order(self) -> object:
        """A value that changes when the order of cases may; no row moves while cases run."""
        order = self._workbench.navigation.order
        if order is CaseOrder.FILE or self._workbench.runs.is_running:
            return order
        return order, self._workbench.outcomes.version

    def _failing_case(self) -> CaseId | None:
        """The selected case, if it fails: its turns are shown below it."""
        case = self._workbench.navigation.selection.case
        if case is None or case not in self._workbench.outcomes.results.attention:
            return None
        eval_set = self._workbench.sets.by_case_path(case.path)
        number = eval_set.number(case.eval_id) if eval_set else None
        if eval_set is None or number is None or case in self._folded_cases:
            return None
        return case if (eval_set.cases[number].outline.turns or 0) <= _MOST_TURNS else None

    def _flash(self) -> None:
        """Tints the cases that newly fail, once and briefly."""
        newly = self._workbench.outcomes.newly_failing
        if newly and not self._flashes:
            self._flashes = True
            once(self, _FLASH, self._end_flash)

    def _end_flash(self) -> None:
        self._flashes = False
        self._workbench.outcomes.newly_failing.clear()
        self.refresh()

    def _rebuild(self) -> None:
        if self._marking:
            self._marking.keep_only_in(self._workbench.sets.listed)
        self._count_rows()
        self._go_to_selection()

    def _count_rows(self) -> None:
        filtered = self._workbench.navigation.filtered
        matching = filtered.matching if filtered.filter else None
        unfolded = self._unfolded_cases | ({self._failing} if self._failing else set())
        order = self._workbench.navigation.in_order
        self._rows = TreeRows(self._workbench.sets.listed, matching, self._folded_sets, unfolded, order)
        self.lines_changed(self._rows.count or len(self._empty()))

    def _empty(self) -> list[Line]:
        return self._lines.empty(self.line_width - 1)

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
        has_row = number < self._rows.count and not self._rows.is_gap(number)
        return self._rows.selection(number) if has_row else Selection()

    def move_to(self, number: int) -> None:
        if self._rows.count:
            number = max(0, min(number, self._rows.count - 1))
            if self._rows.is_gap(number):
                number += 1 if number > self.cursor else -1
            super().move_to(number)
            self._workbench.navigation.select(self._selection_at(self.cursor))

    def action_step_line(self, step: int) -> None:
        """Skips the turns that are shown only while their case is selected."""
        selection = self._selection_at(self.cursor)
        is_shown_for_now = selection.turn is None and selection.case == self._failing is not None
        if step > 0 and is_shown_for_now and self._failing not in self._unfolded_cases:
            self._move_to_next_case()
        else:
            super().action_step_line(step)

    # Drawing

    def row_role(self, number: int) -> str:
        if number >= self._rows.count or self._rows.is_gap(number):
            return ""
        selection = self._rows.selection(number)
        if selection.turn is None and selection.case in self._workbench.outcomes.newly_failing:
            return "act"
        return super().row_role(number)

    def line(self, number: int) -> Line:
        if not self._rows.count:
            lines = self._empty()
            return [(" ", ""), *(lines[number] if number < len(lines) else [])]
        if number >= self._rows.count or self._rows.is_gap(number):
            return []
        row = self._rows.row(number)
        eval_set = self._rows.eval_set(row)
        marker = self.marker(number)
        width = self.line_width - 1
        if row.case is None:
            folded = eval_set.case_path in self._folded_sets
            return [marker, *self._lines.of_set(eval_set, width, folded=folded)]
        case = eval_set.cases[row.case]
        if row.turn is None:
            return [marker, *self._lines.of_case(eval_set, case, width)]
        return [marker, *self._lines.of_turn(eval_set, case, row.turn, width)]

    def full_text(self, number: int) -> str:
        if number >= self._rows.count or self._rows.is_gap(number):
            return ""
        row = self._rows.row(number)
        full = self._lines.name(self._rows.eval_set(row), row)
        return "" if full in "".join(text for text, _ in self.line(number)) else full

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
        if row.case is None and not self._workbench.sets.errors(self._rows.eval_set(row)):
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
        return -1 if self._rows.is_gap(number) else self._rows.row(number).depth

    def _is_unfolded(self, number: int) -> bool:
        selection = self._selection_at(number)
        if selection.turn is not None:
            return True
        if selection.case is None:
            return selection.path not in self._folded_sets
        return selection.case in self._unfolded_cases or selection.case == self._failing

    def _set_folded(self, folded: bool) -> None:
        selection = self._selection_at(self.cursor)
        if selection.turn is not None or selection.path is None:
            return
        if selection.case is None:
            (self._folded_sets.add if folded else self._folded_sets.discard)(selection.path)
        else:
            shown, hidden = self._unfolded_cases, self._folded_cases
            (shown.discard if folded else shown.add)(selection.case)
            (hidden.add if folded else hidden.discard)(selection.case)
            self._failing = self._failing_case()
        self._rebuild()

    # Sets and cases as a whole

    def _current(self) -> Row | None:
        return self._rows.row(self.cursor) if self._rows.count else None

    def action_accept(self) -> None:
        choices = choices_in_list(self._workbench.editing)
        if not choices:
            self._workbench.say("No failing case")
            return
        # The first frame does not wait for what is seen only now.
        from evaltui.tui.dialogs.accept import AcceptScreen

        self.app.push_screen(AcceptScreen(self._workbench, choices))

    def action_new_case(self) -> None:
        if self._workbench.sets.listed:
            self._add_case()
        else:
            self._ask_for_set(self._add_case, about="for the first case")

    def _add_case(self) -> None:
        from evaltui.workbench.cases import set_editing

        if set_editing.new_case(self._workbench.editing):
            self.post_message(self.Added())

    def action_new_set(self) -> None:
        self._ask_for_set(lambda: None)

    def _ask_for_set(self, then: Callable[[], None], *, about: str = "") -> None:
        from evaltui.tui.dialogs.prompt import PromptScreen, dialog_name
        from evaltui.workbench.cases import set_editing

        def named(set_id: str) -> None:
            if set_editing.new_set(self._workbench.editing, set_id):
                then()

        folder = set_editing.folder_for_new_set(self._workbench.editing)
        check = partial(set_editing.new_set_problem, self._workbench.editing)
        hint = f"a–z, 0–9, _   in {folder}"
        name = dialog_name("new_set")
        ask(self, PromptScreen(name, check=check, hint=hint, about=about), named)

    def action_rename(self) -> None:
        from evaltui.tui.dialogs.prompt import PromptScreen, dialog_name
        from evaltui.workbench.cases import set_editing

        row, editing = self._current(), self._workbench.editing
        if row is None:
            return
        name = dialog_name("rename")
        eval_set = self._rows.eval_set(row)
        path = eval_set.path
        if row.case is None:
            check = partial(set_editing.set_id_problem, editing, path)
            hint = f"The file name stays {path.name}"
            question = PromptScreen(name, eval_set.eval_set_id, check, hint, eval_set.eval_set_id)
            ask(self, question, partial(set_editing.rename_set, editing, path))
        else:
            case = CaseId(eval_set.case_path, eval_set.cases[row.case].eval_id)
            problem_of = set_editing.case_id_problem(editing, path, row.case)
            question = PromptScreen(name, case.eval_id, problem_of, about=case.eval_id)
            ask(self, question, partial(set_editing.rename_case, editing, case, row.case))

    def action_mark_case(self) -> None:
        self._mark_current()
        row = self._current()
        if row is not None and row.case is not None:
            self._move_to_next_case()

    def _mark_current(self) -> None:
        """Marks the case of the line; for a set, all of its shown cases."""
        row = self._current()
        if row is None:
            return
        eval_set = self._rows.eval_set(row)
        numbers = self._rows.shown(row.set_number) if row.case is None else (row.case,)
        self._marking.toggle([CaseId(eval_set.case_path, eval_set.cases[at].eval_id) for at in numbers])
        self._workbench.messages.publish(SelectionChanged())
        self._workbench.say(f"{counted(len(self._marking), 'case')} marked")

    def _move_to_next_case(self) -> None:
        below = range(self.cursor + 1, self._rows.count)
        if (line := next((line for line in below if self._depth(line) in (0, 1)), None)) is not None:
            self.move_to(line)

    def action_convert(self) -> None:
        row = self._current()
        if row is not None:
            path = self._rows.eval_set(row).path
            # The first frame does not wait for screens that are seldom seen.
            from evaltui.tui.dialogs.details import ConvertScreen

            self.app.push_screen(ConvertScreen(self._workbench, path))
