"""Turns, calls and the session of a case folded to one row each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from evaltui.core.model.problems import Problem
from evaltui.text.figures import counted
from evaltui.workbench.case.fields import Row, RowId

SESSION: RowId = ("session",)


def folded(rows: Iterable[Row], toggled: frozenset[RowId]) -> Iterator[Row]:
    """The rows without those inside of what is closed.

    Turns and calls are open and the session is closed, but for those that are `toggled`.
    """
    closed: Row | None = None
    hidden: list[Row] = []
    for row in rows:
        if closed is not None:
            if row.id[: len(closed.id)] == closed.id:
                hidden.append(row)
                continue
            yield _closed(closed, hidden)
            closed, hidden = None, []
        if row.role not in ("turn", "call") and row.id != SESSION:
            yield row
        elif (row.id in toggled) == (row.id == SESSION):
            yield replace(row, fold="open")
        else:
            closed = row
    if closed is not None:
        yield _closed(closed, hidden)


def _closed(row: Row, hidden: list[Row]) -> Row:
    """A heading that says in short what is inside, and what is wrong there."""
    found = tuple(_at(one, problem) for one in hidden for problem in one.findings)
    row = replace(row, fold="closed", findings=(*row.findings, *found))
    if row.role == "turn":
        text = next((one.value for one in hidden if one.id[2:3] == ("user",) and one.value), "")
        calls = counted(sum(one.role == "call" for one in hidden), "call")
        return replace(row, preview=str(text).partition("\n")[0], shown=calls)
    if row.role == "call":
        arguments = {one.name: one.value for one in hidden if one.name and not one.level}
        return replace(row, preview=arguments)
    return row


def _at(row: Row, problem: Problem) -> Problem:
    """A problem of a row with its whole path."""
    if row.path is None or problem.path[: len(row.path)] == row.path:
        return problem
    return replace(problem, path=(*row.path, *problem.path))
