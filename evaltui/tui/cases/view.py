"""The tree of sets, cases and turns; only visible lines are written."""

from __future__ import annotations

from pathlib import Path

from textual import events
from textual.message import Message

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.figures import counted, show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells, cut, fit, join_ends
from evaltui.text.outcomes import COUNTED_STATUSES, NOT_RUN, ROLES, RUNNING, glyph
from evaltui.text.plots import stacked_bar
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.pane import CopiedText, Pane
from evaltui.tui.textual_private import call_later_once
from evaltui.tui.widgets.lines import CursorLines, plain_text
from evaltui.views.cause import cause_text
from evaltui.workbench.actions import Scope
from evaltui.workbench.cases.case_list import Row, line_of, tree_rows
from evaltui.workbench.cases.navigation import CaseOrder, Marking
from evaltui.workbench.messages import SelectionChanged
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Below this many cells of name, the figure at the right is left out.
_MIN_NAME = 14
# Cells of the cause of an outcome, and the least of them beside an id in a list that is not `_WIDE_LIST`.
_WHY_WIDTH, _MIN_WHY, _WIDE_LIST = 14, 5, 32
# The least cells of a tag with its gap: `  #a…`.
_MIN_TAG = 5
# Cells of the bar of outcomes.
_BAR_WIDTH = 8
# A case of more turns than this is unfolded by the user alone.
_MAX_TURNS = 12

# Seconds that a case is tinted which fails since the last run.
_FLASH_SECONDS = 0.6


class CaseTree(Pane, CursorLines, can_focus=True, inherit_bindings=False):
    """Shows the sets of the workbench and keeps its selection; it also stores which rows are folded."""

    BINDINGS = bindings(Scope.CASES)

    class Opened(Message):
        """The user opens the result of the selection."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._folded_sets = workbench.navigation.folded_sets
        self._unfolded_cases: set[CaseId] = set()
        # Their turns are not shown although they fail and are selected.
        self._folded_cases: set[CaseId] = set()
        self._failing: CaseId | None = None
        self._rows: list[Row | None] = []
        self._shown_workspace: object = None
        self._shown_matching: object = None
        self._shown_order: object = None
        self._flashes = False
        # The ids of unsaved cases, by the path of their set.
        self._unsaved: dict[Path, frozenset[str]] = {}

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
        count = self._not_read
        not_read: Line = [("  ", ""), (f"{counted(count, 'file')} not read", "warning")] if count else []
        return [*by, (f"{counted(total, 'case')} in {sets}", "muted"), *not_read] if total else []

    @property
    def _not_read(self) -> int:
        """The number of files that are meant as eval sets and have another name."""
        workspace = self._workbench.sets.workspace
        return sum(skipped.is_set for skipped in workspace.skipped) if workspace is not None else 0

    def copied(self) -> CopiedText | None:
        """The id of the case, or of the set."""
        selection = self._workbench.navigation.selection
        eval_set = self._workbench.sets.by_case_path(selection.path)
        if eval_set is None:
            return None
        chosen = selection.eval_id if selection.eval_id is not None else eval_set.eval_set_id
        return CopiedText(f"the id {chosen}", visible(chosen))

    # Following the workbench

    def follow(self) -> None:
        """Draws the current state of the workbench, and moves to its selection."""
        editing = self._workbench.editing
        self._unsaved = {path: editing.dirty_cases(path) for path in editing.unsaved()}
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
        return case if (eval_set.cases[number].outline.turns or 0) <= _MAX_TURNS else None

    def _flash(self) -> None:
        """Tints the cases that newly fail, once and briefly."""
        newly = self._workbench.outcomes.newly_failing
        if newly and not self._flashes:
            self._flashes = True
            call_later_once(self, _FLASH_SECONDS, self._end_flash)

    def _end_flash(self) -> None:
        self._flashes = False
        self._workbench.outcomes.newly_failing.clear()
        self.refresh()

    def _rebuild(self) -> None:
        if self._marking:
            self._marking.keep_existing(self._workbench.sets.listed)
        self._count_rows()
        self._go_to_selection()

    def _count_rows(self) -> None:
        filtered = self._workbench.navigation.filtered
        matching = filtered.matching if filtered.filter else None
        unfolded = self._unfolded_cases | ({self._failing} if self._failing else set())
        order = self._workbench.navigation.in_order
        self._rows = tree_rows(self._workbench.sets.listed, matching, self._folded_sets, unfolded, order)
        self.lines_changed(len(self._rows or self._empty(self.line_width - 1)))

    def _go_to_selection(self) -> None:
        selection = self._workbench.navigation.selection
        if selection.eval_id is not None and selection.path in self._folded_sets:
            self._folded_sets.discard(selection.path)
            self._count_rows()
        line = line_of(self._rows, selection)
        if line is None:
            # A turn that is selected elsewhere has no line of its own while its case is folded.
            line = line_of(self._rows, selection._replace(turn=None))
        if line is None:
            self.cursor = min(self.cursor, max(0, len(self._rows) - 1))
        else:
            self.cursor = line
            self.show_line(line)

    def _row(self, number: int) -> Row | None:
        return self._rows[number] if number < len(self._rows) else None

    @property
    def current(self) -> Row | None:
        """The row with the cursor; None for an empty list."""
        return self._row(self.cursor)

    def _selection_at(self, number: int) -> Selection:
        row = self._row(number)
        return row.selection if row else Selection()

    def move_to(self, number: int) -> None:
        if self._rows:
            number = max(0, min(number, len(self._rows) - 1))
            if self._rows[number] is None:
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
        if (row := self._row(number)) is None:
            return ""
        is_new = row.depth == 1 and row.selection.case in self._workbench.outcomes.newly_failing
        return "act" if is_new else super().row_role(number)

    def line(self, number: int) -> Line:
        width = self.line_width - 1
        if not self._rows:
            lines = self._empty(width)
            return [(" ", ""), *(lines[number] if number < len(lines) else [])]
        if (row := self._row(number)) is None:
            return []
        if row.case is None:
            return [self.marker(number), *self._set_row(row.eval_set, width)]
        case = row.eval_set.cases[row.case]
        if row.turn is None:
            return [self.marker(number), *self._case_row(row.eval_set, case, width)]
        return [self.marker(number), *self._turn_row(row.eval_set, case, row.turn, width)]

    def full_text(self, number: int) -> str:
        if (row := self._row(number)) is None:
            return ""
        full = row.eval_set.eval_set_id
        if row.case is not None:
            case = row.eval_set.cases[row.case]
            full = case.eval_id if row.turn is None else "".join(case.outline.texts[row.turn : row.turn + 1])
        full = visible(full)
        return "" if full in plain_text(self.line(number)) else full

    # Keys and mouse

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if event.ctrl and number < len(self._rows):
            event.prevent_default()
            self.move_to(number)
            self._mark_current()

    def action_open(self) -> None:
        if (row := self.current) is None:
            return
        if row.case is None and not self._workbench.sets.errors(row.eval_set):
            self.action_toggle_fold()
        else:
            self.post_message(self.Opened())

    open_current = action_open

    def action_toggle_fold(self) -> None:
        if self.current:
            self._set_folded(self._is_unfolded(self.cursor))

    def action_unfold(self) -> None:
        if (row := self.current) is None:
            return
        if self._is_unfolded(self.cursor):
            below = self._row(self.cursor + 1)
            if below and below.depth > row.depth:
                self.move_to(self.cursor + 1)
        else:
            self._set_folded(False)

    def action_fold(self) -> None:
        if (row := self.current) is None:
            return
        if row.turn is None and self._is_unfolded(self.cursor):
            self._set_folded(True)
        elif row.case is not None:
            case = row.case if row.turn is not None else None
            self.move_to(line_of(self._rows, Row(row.eval_set, case).selection) or 0)

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

    # Marks

    def action_mark_case(self) -> None:
        self._mark_current()
        if self.current and self.current.case is not None:
            self._move_to_next_case()

    def _mark_current(self) -> None:
        """Marks the case of the line; for a set, all of its shown cases."""
        if (row := self.current) is None:
            return
        cases = [row.selection.case]
        if row.case is None:
            in_set = (other for other in self._rows if other and other.eval_set is row.eval_set)
            cases = [other.selection.case for other in in_set if other.depth == 1]
        self._marking.toggle([case for case in cases if case])
        self._workbench.messages.publish(SelectionChanged())
        self._workbench.say(f"{counted(len(self._marking), 'case')} marked")

    def _move_to_next_case(self) -> None:
        below = range(self.cursor + 1, len(self._rows))
        if (
            line := next((line for line in below if (row := self._rows[line]) and row.depth < 2), None)
        ) is not None:
            self.move_to(line)

    # The texts of lines

    def _empty(self, width: int) -> list[Line]:
        """The lines of an empty list."""
        if self._workbench.sets.workspace is None:
            return [[("Loading eval sets…", "muted")]]
        if self._workbench.navigation.filtered.filter:
            text = visible(self._workbench.navigation.filtered.text)
            no_match: Line = [(f"No match for {text}", "muted")]
            clear: Line = [(key_of("clear_filter"), "bold accent"), (" clear filter", "muted")]
            one_line: Line = [*no_match, ("   ", ""), *clear]
            return [one_line] if cells(one_line) <= width else [cut(no_match, width), clear]
        skipped = self._not_read
        other_names: list[Line] = [[(f"{counted(skipped, 'file')} under other names", "warning")]]
        return [
            [("No eval sets yet", "bold")],
            *(other_names if skipped else []),
            [],
            [(f"{key_of('new_case'):4}", "bold accent"), ("New case", "")],
            [(f"{key_of('new_set'):4}", "bold accent"), ("New eval set", "")],
            [(f"{key_of('reload'):4}", "bold accent"), ("Search again", "")],
            [],
            [("Searched for", "muted")],
            [("  *.evalset.json", "key")],
            [("  *.test.json", "key")],
            [("in", "muted")],
            [("  .   eval*/   test*/", "key")],
            [("  ../eval*/   ../tests/", "key")],
            [("and in the folders above, up", "muted")],
            [("to the root of the project", "muted")],
        ]

    def _set_row(self, eval_set: EvalSetFile, width: int) -> Line:
        left, right = self._set_line(eval_set)
        # The figure stays where the bar has no room.
        right = right if cells(left) + 1 + cells(right) <= width else right[:1]
        return join_ends(left, right, width, gap=1, least=min(_MIN_NAME, cells(left)))

    def _set_line(self, eval_set: EvalSetFile) -> tuple[Line, Line]:
        fold = "▸ " if eval_set.case_path in self._folded_sets else "▾ "
        name: Line = [(fold, "muted"), (visible(eval_set.eval_set_id), "bold")]
        if eval_set.origin != "agent directory":
            name.append((f"  {visible(eval_set.origin)}", "muted"))
        if eval_set.format not in (None, "eval set"):
            is_dataset = eval_set.format == "dataset"
            name.append(("  dataset", "muted") if is_dataset else ("  old format", "warning"))
        name += self._saved_mark(eval_set.path)
        sets = self._workbench.sets
        errors, is_refused = sets.errors(eval_set), "config" in sets.broken(eval_set.case_path)
        if errors or is_refused:
            is_own = bool(errors) and not errors[0].is_elsewhere(eval_set.path)
            why = visible(str(errors[0])) if is_own else "config invalid"
            return [("! ", "error"), *name[1:], (f"  {why}", "error")], []
        outcomes = self._workbench.outcomes
        counts = outcomes.counts_of(eval_set.case_path)
        if not counts:
            return name, [(show_number(len(eval_set.cases)), "muted")]
        total, passed = len(eval_set.cases), show_number(outcomes.passed(eval_set.case_path))
        bar = stacked_bar([(counts[status], ROLES[status]) for status in COUNTED_STATUSES], total, _BAR_WIDTH)
        return name, [(f"{passed}/{show_number(total)}", "muted"), (" ", ""), *bar]

    def _case_row(self, eval_set: EvalSetFile, case: StoredCase, width: int) -> Line:
        left, right = self._case_line(eval_set, case)
        room = width - cells(left) - 1 - cells(right)
        for tag in (eval_set.tags or {}).get(case.eval_id, ()):
            if room < _MIN_TAG:
                break
            shown = cut([(f"  #{visible(tag)}", "muted")], room)
            room -= cells(shown)
            left = [*left, *shown]
        # In a narrow list the cause is cut, not the id.
        room = width - cells(left) - 1
        right = cut(right, room) if _MIN_WHY <= room < cells(right) and width < _WIDE_LIST else right
        return join_ends(left, right, width, gap=1, least=min(_MIN_NAME, cells(left)))

    def _case_line(self, eval_set: EvalSetFile, case: StoredCase) -> tuple[Line, Line]:
        case_id = CaseId(eval_set.case_path, case.eval_id)
        outcomes, marking = self._workbench.outcomes, self._marking
        # Of the case as it is, whatever is typed.
        status, scored = outcomes.status(case_id), outcomes.results.get(case_id)
        waiting = outcomes.is_waiting(case_id)
        mark, role = glyph(status)
        stale = outcomes.is_stale(case_id) and scored is not None and status == scored.status
        pale = "muted" if waiting or marking.is_cut(case_id) else ""
        chosen = ("◆ ", "bold accent") if case_id in marking else ("  ", "")
        name = visible(case.eval_id) or "(no id)"
        left: Line = [chosen, (mark, "faint" if waiting or stale else role), (f" {name}", pale)]
        if case.eval_id in self._unsaved.get(eval_set.path, ()):
            left.append((" ●", "warning"))
        if marking.is_cut(case_id):
            left.append(("  cut", "muted"))
        if waiting:
            return left, [("queued", "faint")]
        if status == RUNNING:
            return left, [(self._progress(case_id, case), "accent")]
        if stale:
            return left, [("stale", "faint")]
        if scored is None:
            return left, []
        reason = visible(cause_text(scored.result)) if scored.status != "PASSED" else ""
        return left, [
            (
                fit(reason, _WHY_WIDTH),
                "error" if self._workbench.navigation.selection.case == case_id else "muted",
            )
        ] if reason else []

    def _progress(self, case_id: CaseId, case: StoredCase) -> str:
        """The progress of a running case: `turn 2 of 3`, as far as its events have arrived; `judging`."""
        run = self._workbench.runs.current
        if run is not None and case_id in run.judging:
            return "judging"
        trace = self._workbench.outcomes.trace(case_id)
        if trace is None or not trace.events:
            return "starting"
        turns = (event.turn for event in reversed(trace.events) if event.turn is not None)
        turn = next(turns, 0)
        return f"turn {turn + 1} of {case.outline.turns}"

    def _saved_mark(self, path: Path) -> Line:
        """The mark of a set with unsaved changes."""
        editing = self._workbench.editing
        file = editing.open_file(path)
        if file is None or not editing.is_dirty(path):
            return []
        return [(" ●", "warning"), *([("  new", "muted")] if file.saved is None else [])]

    def _turn_row(self, eval_set: EvalSetFile, case: StoredCase, turn: int, width: int) -> Line:
        # As its case above, whatever is typed.
        outcomes, case_id = self._workbench.outcomes, CaseId(eval_set.case_path, case.eval_id)
        scored = outcomes.results.get(case_id)
        statuses = outcomes.turn_statuses(case_id, scored) if scored else [NOT_RUN] * (turn + 1)
        status = statuses[turn] if turn < len(statuses) else None
        mark = glyph(status) if status else (" ", "")
        texts = case.outline.texts
        text = visible(texts[turn] if turn < len(texts) else "")
        return cut([("     ", ""), mark, (f" {turn + 1}  ", "faint"), (text, "muted")], width)
