"""The choices for accepting the agent's behaviour as expected: from one argument to every failed case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import counted, show_number
from evaltui.text.keys import key_of
from evaltui.text.outcomes import RUNNING
from evaltui.views.cause import differences_of
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.state import CaseOutcome

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult

What = Literal["argument", "call", "calls", "text", "texts", "answer", "state", "turn", "case"]


@dataclass(frozen=True)
class Choice:
    """Whole cases, or a part of one case.

    `turn`, `row` and `path` name the part, as in `DifferenceAt`, or `row` is the index in
    `TurnResult.intermediate`. `label` is the undo label.
    """

    what: What
    title: str
    label: str
    cases: tuple[CaseId, ...]
    turn: int = 0
    row: int = 0
    path: str = ""


def choices_in_result(editing: Editing) -> list[Choice]:
    """The choices from the selected difference, or the selected turn, up to every failed case: the smallest
    first."""
    case = editing.navigation.selection.case
    scored = editing.outcomes.get(case)
    if case is None or scored is None:
        return []
    at, turn = editing.navigation.difference, editing.navigation.selection.turn
    return [
        *(_difference_choices(case, scored.shown, at) if at else ()),
        *_turn_choices(case, scored.shown, at.turn if at else turn, at),
        _case_choice(case),
        *_several_choices(editing),
    ]


def choices_in_list(editing: Editing) -> list[Choice]:
    """The choices of whole cases: the marked ones, else the selected one, and every failed case."""
    case = editing.navigation.selection.case
    if case is None or editing.navigation.marking or refuses_case(editing, case):
        return list(_several_choices(editing))
    return [_case_choice(case), *_several_choices(editing)]


def _difference_choices(case: CaseId, result: CaseResult, at: DifferenceAt) -> Iterator[Choice]:
    from evaltui.core.compare.explain import call_name

    path = at.path or ""
    if at.kind == "state":
        label = f"accept {path} of final state"
        yield Choice("state", "This value", label, (case,), path=path)
    elif at.kind == "answer" and at.turn is not None:
        yield _answer_choice(case, at.turn, "This response")
    elif at.turn is not None and at.text is not None:
        label = f"accept intermediate response of turn {at.turn + 1}"
        yield Choice("text", "This text", label, (case,), at.turn, at.text)
    elif at.turn is not None and at.row is not None:
        name = call_name(result.turns[at.turn].calls[at.row])
        if at.kind == "argument":
            label = f"accept {path or 'args'} of {name}"
            yield Choice("argument", "This argument", label, (case,), at.turn, at.row, path)
        yield Choice("call", "This call", f"accept {name}", (case,), at.turn, at.row)


def _turn_choices(
    case: CaseId, result: CaseResult, turn: int | None, at: DifferenceAt | None
) -> Iterator[Choice]:
    """The choices for the rest of a turn, besides the selected difference."""
    if turn is None or turn >= len(result.turns):
        return
    differences = [difference for difference in differences_of(result) if difference.turn == turn]
    rows = {difference.row for difference in differences if difference.row is not None}
    texts = {difference.text for difference in differences if difference.text is not None}
    answer = any(difference.kind == "answer" for difference in differences)
    if rows - {at.row if at else None}:
        label = f"accept calls of turn {turn + 1}"
        yield Choice("calls", "Calls of this turn", label, (case,), turn)
    if texts - {at.text if at else None}:
        label = f"accept intermediate responses of turn {turn + 1}"
        yield Choice("texts", "Texts of this turn", label, (case,), turn)
    if answer and (at is None or at.kind != "answer"):
        yield _answer_choice(case, turn, "Response of this turn")
    if sum(map(bool, (rows, texts, answer))) > 1:
        yield Choice("turn", "This turn", f"accept turn {turn + 1}", (case,), turn)


def _answer_choice(case: CaseId, turn: int, title: str) -> Choice:
    return Choice("answer", title, f"accept response of turn {turn + 1}", (case,), turn)


def _case_choice(case: CaseId) -> Choice:
    return Choice("case", "Whole case", f"accept {case.eval_id}", (case,))


def _several_choices(editing: Editing) -> Iterator[Choice]:
    marked = tuple(editing.navigation.marking.marked)
    if len(marked) == 1:
        yield Choice("case", "Marked case", f"accept {marked[0].eval_id}", marked)
        return
    cases = marked or tuple(editing.navigation.failing)
    if len(cases) > 1:
        which = "marked" if marked else "failing in view"
        yield Choice(
            "case", f"All {show_number(len(cases))} {which}", f"accept {counted(len(cases), 'case')}", cases
        )


# Why not


def refuses_in_result(editing: Editing) -> str | None:
    """Why nothing of the selected case can be accepted, as a sentence."""
    case = editing.navigation.selection.case
    return "No case selected" if case is None else refuses_case(editing, case)


def refuses_in_list(editing: Editing) -> str | None:
    """Why no case of the list can be accepted, as far as that is known without reading results."""
    if editing.navigation.marking or len(editing.outcomes.results.attention) > 1:
        return None
    return refuses_in_result(editing)


def refuses_case(editing: Editing, case: CaseId) -> str | None:
    if reason := refuses_unread(editing, case):
        return reason
    scored = editing.outcomes.get(case)
    return None if scored is None else refuses_outcome(scored)


def refuses_unread(editing: Editing, case: CaseId) -> str | None:
    """Why a case cannot be accepted, as far as that is known without reading its result."""
    if reason := editing.refuses_to_edit(editing.sets.file_of(case.path)):
        return reason
    if editing.outcomes.status(case) == RUNNING or editing.outcomes.is_waiting(case):
        return "Case is running"
    if editing.outcomes.get(case) is None:
        return f"Not run   {key_of('run')}  Run case"
    return None


def refuses_outcome(scored: CaseOutcome) -> str | None:
    """Why nothing of a result can be accepted."""
    result = scored.shown
    if result.error is not None:
        return f"Incomplete: run ended with an error   {key_of('run')}  Run case"
    if all(at.kind == "judgement" for at in differences_of(result)):
        return scored.problem or "No difference in calls, response or state"
    return None
