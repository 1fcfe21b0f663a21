"""The row of a case that a difference in its last result is of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaltui.core.model.arg_rule import parse_arg_path
from evaltui.core.model.text_diff import IntermediateDiff
from evaltui.documents.editing.set import CaseEditor
from evaltui.documents.edits import EditError
from evaltui.views.cause import expected_call, judged_row
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.case.fields import RowId
from evaltui.workbench.state import CaseOutcome


def expected_row(scored: CaseOutcome, at: DifferenceAt, case: CaseEditor) -> RowId:
    """The row that says what is expected there, down to a member of a nested value of the case as it is now.

    What has no row, an unexpected call among it, leads to its turn.
    """
    if at.kind == "judgement":
        return judged_row(scored.shown, scored.case, at)
    if at.turn is None:
        return _member(("final_state",), (), case.final_state.value, at.path)
    turn: RowId = ("turn", at.turn)
    if at.kind == "answer":
        return (*turn, "answer", 0)
    if at.text is not None:
        return _text(turn, scored.shown.turns[at.turn].intermediate[: at.text + 1])
    call = expected_call(scored.shown, scored.case, at)
    if call is None:
        return turn
    row = (*turn, "call", call)
    if at.kind != "argument":
        return row
    try:
        return _member(row, ("arg",), case.turn(at.turn).call(call).arguments or {}, at.path)
    except EditError:
        return row


def _text(turn: RowId, rows: Sequence[IntermediateDiff]) -> RowId:
    """The row of the last of these texts; that of the turn for one that is not expected."""
    if rows[-1].expected is None:
        return turn
    return (*turn, "intermediate", sum(row.expected is not None for row in rows) - 1)


def _member(holder: RowId, between: RowId, value: Any, path: str | None) -> RowId:
    """The row of a path in an object whose members are rows; as much of it as there is."""
    row = holder
    try:
        steps = parse_arg_path(path) if path else ()
    except ValueError:
        # A key of a state that no argument could have.
        steps = (path or "",)
    for step in steps:
        names: list[Any] = [*value] if isinstance(value, dict) else [*range(len(value))]
        if step not in names:
            break
        row = (*row, *(between if row == holder else ("in",)), names.index(step))
        value = value[step]
        if not isinstance(value, dict | list):
            break
    return row
