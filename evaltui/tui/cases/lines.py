"""The lines of the tree: a set, a case, a turn."""

from __future__ import annotations

from pathlib import Path

from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CaseFile
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.figures import counted, show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, both_ends, cells, cut, fit
from evaltui.text.outcomes import COUNTED, NOT_RUN, ROLES, RUNNING, glyph
from evaltui.text.plots import stacked_bar
from evaltui.text.values import visible
from evaltui.views.cause import why
from evaltui.workbench.cases.case_list import Row
from evaltui.workbench.workbench import Workbench

# Below this many cells of name, the figure at the right is left out.
_MIN_NAME = 14
# Cells of the cause of an outcome, and the least of them beside an id in a list that is not `_WIDE`.
_WHY, _LEAST_WHY, _WIDE = 14, 5, 32
# The least cells of a tag with its gap: `  #a…`.
_LEAST_TAG = 5
# Cells of the bar of outcomes.
_BAR = 8


class TreeLines:
    """Draws the rows of the tree with the current state of the workbench."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._unsaved: dict[Path, tuple[CaseFile, CaseFile | None, frozenset[str]]] = {}

    def empty(self, width: int) -> list[Line]:
        """The lines of an empty list."""
        if self._workbench.sets.workspace is None:
            return [[("Loading eval sets…", "muted")]]
        if self._workbench.navigation.filtered.filter:
            text = visible(self._workbench.navigation.filtered.text)
            no_match: Line = [(f"No match for {text}", "muted")]
            clear: Line = [(key_of("clear_filter"), "bold accent"), (" clear filter", "muted")]
            one_line: Line = [*no_match, ("   ", ""), *clear]
            return [one_line] if cells(one_line) <= width else [cut(no_match, width), clear]
        skipped = sum(skipped_file.is_set for skipped_file in self._workbench.sets.workspace.skipped)
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

    def name(self, eval_set: EvalSetFile, row: Row) -> str:
        """The name of a row, or the user's text in it; in full where the row may be cut."""
        if row.case is None:
            return visible(eval_set.eval_set_id)
        case = eval_set.cases[row.case]
        texts = case.outline.texts
        return visible(case.eval_id if row.turn is None else "".join(texts[row.turn : row.turn + 1]))

    def of_set(self, eval_set: EvalSetFile, width: int, *, folded: bool) -> Line:
        left, right = self._set_line(eval_set, folded=folded)
        # The figure stays where the bar has no room.
        right = right if cells(left) + 1 + cells(right) <= width else right[:1]
        return both_ends(left, right, width, gap=1, least=min(_MIN_NAME, cells(left)))

    def _set_line(self, eval_set: EvalSetFile, *, folded: bool) -> tuple[Line, Line]:
        fold = "▸ " if folded else "▾ "
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
        bar = stacked_bar([(counts[status], ROLES[status]) for status in COUNTED], total, _BAR)
        return name, [(f"{passed}/{show_number(total)}", "muted"), (" ", ""), *bar]

    def of_case(self, eval_set: EvalSetFile, case: StoredCase, width: int) -> Line:
        left, right = self._case_line(eval_set, case, width)
        room = width - cells(left) - 1 - cells(right)
        for tag in (eval_set.tags or {}).get(case.eval_id, ()):
            if room < _LEAST_TAG:
                break
            shown = cut([(f"  #{visible(tag)}", "muted")], room)
            room -= cells(shown)
            left = [*left, *shown]
        # In a narrow list the cause is cut, not the id.
        room = width - cells(left) - 1
        right = cut(right, room) if _LEAST_WHY <= room < cells(right) and width < _WIDE else right
        return both_ends(left, right, width, gap=1, least=min(_MIN_NAME, cells(left)))

    def _case_line(self, eval_set: EvalSetFile, case: StoredCase, width: int) -> tuple[Line, Line]:
        case_id = CaseId(eval_set.case_path, case.eval_id)
        outcomes, marking = self._workbench.outcomes, self._workbench.navigation.marking
        # Of the case as it is, whatever is typed.
        status, scored = outcomes.status(case_id), outcomes.results.get(case_id)
        waiting = outcomes.is_waiting(case_id)
        mark, role = glyph(status)
        stale = outcomes.is_stale(case_id) and scored is not None and status == scored.status
        pale = "muted" if waiting or marking.is_cut(case_id) else ""
        chosen = ("◆ ", "bold accent") if case_id in marking else ("  ", "")
        name = visible(case.eval_id) or "(no id)"
        left: Line = [chosen, (mark, "faint" if waiting or stale else role), (f" {name}", pale)]
        if case.eval_id in self._unsaved_cases(eval_set.path):
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
        reason = visible(why(scored.result)) if scored.status != "PASSED" else ""
        return left, [
            (fit(reason, _WHY), "error" if self._is_selected(case_id) else "muted")
        ] if reason else []

    def _is_selected(self, case: CaseId) -> bool:
        return self._workbench.navigation.selection.case == case

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

    def _unsaved_cases(self, path: Path) -> frozenset[str]:
        """The ids of unsaved cases, cached because every line needs them."""
        file = self._workbench.editing.open_file(path)
        if file is None or not file.dirty:
            return frozenset()
        now, saved = file.document, file.saved
        cached = self._unsaved.get(path)
        if cached is None or cached[0] is not now or cached[1] is not saved:
            cached = self._unsaved[path] = now, saved, self._workbench.editing.dirty_cases(path)
        return cached[2]

    def of_turn(self, eval_set: EvalSetFile, case: StoredCase, turn: int, width: int) -> Line:
        # As its case above, whatever is typed.
        scored = self._workbench.outcomes.results.get(CaseId(eval_set.case_path, case.eval_id))
        status = turn_status(scored.shown, turn) if scored else NOT_RUN
        mark = glyph(status) if status else (" ", "")
        texts = case.outline.texts
        text = visible(texts[turn] if turn < len(texts) else "")
        return cut([("     ", ""), mark, (f" {turn + 1}  ", "faint"), (text, "muted")], width)
