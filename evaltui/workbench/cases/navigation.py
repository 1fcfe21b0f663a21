"""The position of the user: the selection, the filter, the difference, the marked cases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.keys import key_of
from evaltui.views.cause import actual_call_index, differences_of
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.cases.case_list import Filtered, Reaching, Scores, scores_by_case
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import Messages, SelectionChanged
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.state import CaseOutcome, Selection

if TYPE_CHECKING:
    from evaltui.documents.editing.set import SetEditor


class CaseOrder(StrEnum):
    """The sort key of cases; cases without a result come last, equal ones in file order."""

    FILE = "file"
    OUTCOME = "outcome"
    TIME = "time"
    COST = "cost"


# The worst first.
_OUTCOMES = ("FAILED", "ERROR", "FLAKY", "NOT_EVALUATED", "PASSED")


def sort_cases(
    eval_set: EvalSetFile,
    numbers: Sequence[int],
    order: CaseOrder,
    outcome: Callable[[CaseId], CaseOutcome | None],
) -> Sequence[int]:
    """The numbers of cases of a set, from 0, in an order."""
    if order is CaseOrder.FILE:
        return numbers

    def key(number: int) -> float:
        scored = outcome(CaseId(eval_set.case_path, eval_set.cases[number].eval_id))
        return float("inf") if scored is None else _rank(scored, order)

    return sorted(numbers, key=key)


def _rank(scored: CaseOutcome, order: CaseOrder) -> float:
    if order is CaseOrder.OUTCOME:
        return _OUTCOMES.index(scored.status)
    figures = scored.figures
    of_a_run = figures.seconds if order is CaseOrder.TIME else figures.tokens
    return -(of_a_run or 0.0) * figures.runs


@dataclass(frozen=True)
class CaseClipboard:
    """Cases that were copied, or that the next paste moves (`cut`).

    `sources` are copies of their sets and configs from that moment, so that a copied case can be pasted after
    it has been changed or deleted.
    """

    cases: tuple[CaseId, ...]
    cut: bool
    sources: Mapping[Path, SetEditor]

    @cached_property
    def members(self) -> frozenset[CaseId]:
        """The cases as a set, for a fast look-up per drawn line."""
        return frozenset(self.cases)


class Marking:
    """The marked cases, in the order of marking."""

    def __init__(self) -> None:
        self._marked: dict[CaseId, None] = {}
        self.clipboard: CaseClipboard | None = None

    def __contains__(self, case: CaseId) -> bool:
        return case in self._marked

    def __len__(self) -> int:
        return len(self._marked)

    @property
    def marked(self) -> Collection[CaseId]:
        return self._marked.keys()

    def toggle(self, cases: Collection[CaseId]) -> None:
        """Marks cases; unmarks them where all of them are marked."""
        if all(case in self._marked for case in cases):
            self._marked = {case: None for case in self._marked if case not in cases}
        else:
            self._marked.update(dict.fromkeys(cases))

    def clear(self) -> None:
        self._marked.clear()

    def keep_existing(self, sets: Iterable[EvalSetFile]) -> None:
        """Unmarks cases that are deleted."""
        paths = {case.path for case in self._marked}
        ids = {
            eval_set.case_path: {case.eval_id for case in eval_set.cases}
            for eval_set in sets
            if eval_set.case_path in paths
        }
        self._marked = {case: None for case in self._marked if case.eval_id in ids.get(case.path, ())}

    def is_cut(self, case: CaseId) -> bool:
        """Whether the next paste moves a case."""
        return self.clipboard is not None and self.clipboard.cut and case in self.clipboard.members


class Navigation:
    """The position of the user: the selection, the filter, the marks and the order of the cases."""

    def __init__(
        self,
        sets: OpenSets,
        outcomes: Outcomes,
        messages: Messages,
    ) -> None:
        self.selection = Selection()
        """The selected set, case or turn."""
        self.marking = Marking()
        """The cases that are marked, and those that are to be pasted."""
        self.trace_search = ""
        """The search text in traces: only matching spans are shown; "" for all."""
        self.folded_sets: set[str] = set()
        """The sets whose cases are not listed, by path."""
        self.trace_of_chat = False
        """Whether the trace is that of the chat, not of the selected case."""
        self.order = CaseOrder.FILE
        """The sort key of the cases of a set."""
        self.leave: Callable[[], bool] = lambda: True
        """Applies the draft in an open field; False where it cannot be applied, and the field shows a
        question."""
        self.shows_equal_calls = False
        """Whether calls that are as expected are shown one by one; else many are one line."""
        self.reaching: Reaching | None = None
        """The cases that reach cells of coverage, by the last search for gaps; None before one."""
        self.toggled = frozenset[str]()
        """The parts of the result of the selected case that were folded or opened by the user."""
        self._sets = sets
        self._outcomes = outcomes
        self._messages = messages
        self._filtered = Filtered()
        self._filtered_from: object = None
        self._difference: tuple[CaseId | None, DifferenceAt | None] = (None, None)

    # Selection

    @property
    def file(self) -> Path | None:
        """The file of the selected set."""
        return None if self.selection.path is None else self._sets.file_of(self.selection.path)

    @property
    def chosen(self) -> tuple[CaseId, ...]:
        """The cases of an action: the marked ones, else the selected one."""
        selected = self.selection.case
        return tuple(self.marking.marked) or ((selected,) if selected else ())

    def select(self, selection: Selection) -> None:
        if selection != self.selection and (selection.case == self.selection.case or self.leave()):
            if selection.case != self.selection.case:
                self.trace_of_chat = False
                self.toggled = frozenset()
            self.selection = selection
            self._messages.publish(SelectionChanged())

    def is_hidden(self, selection: Selection) -> bool:
        """Whether the filter hides a selection."""
        return bool(self.filtered.filter) and selection.path is not None and not self._keeps(selection.case)

    def show(self, selection: Selection) -> None:
        """Selects something; a filter that hides it is cleared."""
        if self.is_hidden(selection):
            self.set_filter("")
        self.select(selection)

    def select_nearest(self, selection: Selection) -> None:
        """Selects a case or set, or the nearest existing one; the caller notifies."""
        eval_set = self._sets.by_case_path(selection.path)
        if eval_set is None:
            self.selection = self._first()
        elif selection.eval_id is None or eval_set.number(selection.eval_id) is not None:
            self.selection = selection
        else:
            self.selection = Selection(selection.path)

    def _first(self) -> Selection:
        first = next(self._sets.every_case(), None)
        if first is not None:
            return Selection(*first)
        return Selection(self._sets.listed[0].case_path) if self._sets.listed else Selection()

    def select_failing(self, step: int) -> None:
        """Selects the next (1) or the previous (-1) case that did not pass; wraps at the end."""
        selected, shown = self.selection, [*self._shown_cases()]
        # A set is before its cases.
        here = next((at for at, case in enumerate(shown) if case.path == selected.path), 0) - 0.5
        if selected.case in shown:
            here = shown.index(selected.case)
        attention = self._outcomes.results.attention
        failing = [at for at, case in enumerate(shown) if case in attention]
        if not failing:
            self._messages.say(f"All failing cases are filtered out   {key_of('step_back')} clear filter")
            return
        beyond = [at for at in failing if (at - here) * step > 0]
        if not beyond:
            self._messages.say("Wrapped to the first" if step > 0 else "Wrapped to the last")
        at = (beyond or failing)[0 if step > 0 else -1]
        self.select(Selection(*shown[at]))

    @property
    def failing(self) -> list[CaseId]:
        """The cases in view that did not pass, in the order in which they are listed."""
        return [case for case in self._shown_cases() if case in self._outcomes.results.attention]

    def _shown_cases(self) -> Iterator[CaseId]:
        """The cases that match the filter, in the order in which they are listed."""
        filtered = self.filtered
        for eval_set in self._sets.listed:
            numbers: Sequence[int] = range(len(eval_set.cases))
            if filtered.filter:
                numbers = filtered.matching.get(eval_set.case_path, ())
            for number in self.in_order(eval_set, numbers):
                yield CaseId(eval_set.case_path, eval_set.cases[number].eval_id)

    def in_order(self, eval_set: EvalSetFile, numbers: Sequence[int]) -> Sequence[int]:
        """The numbers of cases of a set in the order of the list."""
        return sort_cases(eval_set, numbers, self.order, self._outcomes.get)

    def order_by(self, order: CaseOrder) -> None:
        self.order = order
        self._messages.publish(SelectionChanged())

    # Difference

    @property
    def difference(self) -> DifferenceAt | None:
        """The selected difference in the result of the selected case; None once the result has it no
        longer."""
        case, at = self._difference
        if at is None or case is None or case != self.selection.case:
            return None
        scored = self._outcomes.get(case)
        return at if scored and at in differences_of(scored.shown) else None

    def select_difference(self, at: DifferenceAt | None) -> None:
        self._difference = self.selection.case, at
        self._messages.publish(SelectionChanged())

    def actual_call_index(self, at: DifferenceAt) -> int | None:
        """The index, among the actual calls of its turn, of the selected case's call with a difference.

        None without a call or a result.
        """
        case = self.selection.case
        scored = self._outcomes.get(case)
        return actual_call_index(scored.shown, at) if scored else None

    # Filter

    @property
    def filtered(self) -> Filtered:
        """The cases that match the filter; the selected one stays when its outcome changes."""
        if self._filtered.filter and self._filtered_from != self._filter_source():
            self._filter(self._filtered.text, self.selection.case)
        return self._filtered

    def set_filter(self, text: str) -> None:
        """Shows only some of the cases; "" shows all."""
        self._filter(text)
        if self._filtered.count and not self._keeps(self.selection.case):
            self.selection = Selection(*next(self._shown_cases()))
        self._messages.publish(SelectionChanged())

    def _filter(self, text: str, also: CaseId | None = None) -> None:
        self._filtered_from = self._filter_source()
        self._filtered.update(
            text, self._sets.listed, self._outcomes.last_status, also, self._last_scores, self.reaching
        )

    def _filter_source(self) -> object:
        """A value that changes when the filter may match other cases than before."""
        return self._sets.listed, self._outcomes.version, self.reaching

    def _keeps(self, case: CaseId | None) -> bool:
        """Whether the filter shows a case; true without a filter."""
        return not self.filtered.filter or (case is not None and case.eval_id in self.filtered.ids(case.path))

    def _last_scores(self, cases: Sequence[CaseId]) -> Mapping[CaseId, Scores]:
        scored = ((case, self._outcomes.get(case)) for case in cases)
        return scores_by_case({case: outcome.ref for case, outcome in scored if outcome is not None})

    @property
    def is_narrowed(self) -> bool:
        """Whether cases are marked, or a filter or a search is set."""
        return bool(self.marking) or bool(self.trace_search) or bool(self.filtered.filter)

    # How results and traces are shown

    def toggle_equal_calls(self) -> None:
        """Shows calls that are as expected one by one in results, or many as one line."""
        self.shows_equal_calls = not self.shows_equal_calls
        self._messages.publish(SelectionChanged())

    def trace_chat(self, on: bool) -> None:
        """Shows the trace of the chat, or that of the selected case."""
        if on != self.trace_of_chat:
            self.trace_of_chat = on
            self._messages.publish(SelectionChanged())

    def search_trace(self, text: str) -> None:
        """Shows only the spans of traces with this text; "" shows all."""
        self.trace_search = text
        self._messages.publish(SelectionChanged())

    def show_repeat(self, repeat: int) -> None:
        """Shows one of the runs of the selected case, counted from 0."""
        if (case := self.selection.case) is not None:
            self._outcomes.show_repeat(case, repeat)

    def step_repeat(self, step: int) -> None:
        """Shows the next (1) or the previous (-1) run of a case that was run several times."""
        case = self.selection.case
        scored = self._outcomes.get(case)
        if scored is not None and (repeats := len(scored.result.repeats)) > 1:
            self.show_repeat((scored.repeat + step) % repeats)

    def mark(self, cases: Collection[CaseId]) -> int:
        """Marks exactly these cases, as far as they match the filter; returns their number."""
        self.marking.clear()
        self.marking.toggle([case for case in self._shown_cases() if case in cases])
        self._messages.publish(SelectionChanged())
        return len(self.marking)

    def clear_marks(self) -> None:
        self.marking.clear()
        self._messages.publish(SelectionChanged())
