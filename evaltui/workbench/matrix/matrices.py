"""The matrix that is looked at: its rows in an order, and what a case did in two of its variants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.runs.listing import run_title
from evaltui.runs.matrices import OpenMatrix, StoredMatrix, open_matrix, stored_matrices
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore
from evaltui.workbench.runs.run_list import Side

Order = Literal["set", "difference", "pass rate"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class SetTitle:
    """The row above the cases of a set."""

    path: str
    label: str
    sums: tuple[tuple[int, int], ...]
    """Passed executions and all of them, by column."""
    folded: bool


MatrixRow = SetTitle | Row | None
"""None is a blank line."""


def rows_of(
    matrix: Matrix, order: Order, column: int, *, differing: bool, folded: Collection[str]
) -> list[MatrixRow]:
    """The rows as they are listed; by pass rate it is that of a column, what differs most from the base comes
    first by difference."""
    if order == "set":
        return list(_by_set(matrix, differing=differing, folded=folded))
    rows = [row for row in matrix.rows if row.differs or not differing]
    key: Callable[[Row], float] = _spread if order == "difference" else lambda row: _rate_in(row, column)
    return [*sorted(rows, key=key)]


def _by_set(matrix: Matrix, *, differing: bool, folded: Collection[str]) -> Iterator[MatrixRow]:
    is_first = True
    for path, rows in matrix.sets.items():
        shown = [row for row in rows if row.differs or not differing]
        if not shown:
            continue
        if not is_first:
            yield None
        is_first = False
        yield SetTitle(path, rows[0].eval_set_id, tuple(_sums(rows, len(matrix.columns))), path in folded)
        if path not in folded:
            yield from shown


def _sums(rows: Collection[Row], columns: int) -> Iterator[tuple[int, int]]:
    for place in range(columns):
        cases = [case for row in rows if (case := row.cells[place].case)]
        yield sum(case.passed for case in cases), sum(case.runs for case in cases)


def _spread(row: Row) -> float:
    """The more the variants differ, the less."""
    rates = [cell.rate for cell in row.cells if cell.rate is not None]
    return min(rates, default=0.0) - max(rates, default=0.0)


def _rate_in(row: Row, column: int) -> float:
    """What has no result comes last."""
    rate = row.cells[column].rate
    return 2.0 if rate is None else rate


@dataclass(frozen=True)
class CellResult:
    """What a case did in a variant."""

    result: CaseResult | None
    """None where there is none."""
    problem: str = ""
    """Why it cannot be read."""


def cell_result(opened: OpenMatrix, column: int, case: CaseId) -> CellResult:
    """In a thread."""
    run = opened.runs[column]
    if case not in run.summary.results:
        return CellResult(None)
    try:
        return CellResult(run.case(case))
    except (OSError, ValueError) as error:
        return CellResult(None, str(error))


def side_of(opened: OpenMatrix, column: int) -> Side:
    """The run of a variant, as it is opened or compared."""
    log = opened.stored.logs[column]
    header = log.header
    return Side(log.path, run_title(header.number, header.started, log.name))


def read_matrix(
    store: RunStore, agent: RunKind, chosen: StoredMatrix | None, shown: OpenMatrix | None
) -> tuple[OpenMatrix | None, object]:
    """The matrix that was chosen, else what is shown with what it has by now, else the newest one of the
    agent; and its extent, as it was before it was read.

    In a thread. Raises OSError, ValueError.
    """
    found = [chosen] if chosen else stored_matrices(store, agent)
    wanted = shown.stored.id if shown and not chosen else None
    stored = next((one for one in found if wanted in (None, one.id)), None)
    if stored is None:
        return None, extent_of(store, None)
    extent = _extent(store, stored)
    opened = open_matrix(stored)
    return (_with_base_of(shown, opened) if shown and wanted else opened), extent


def _with_base_of(before: OpenMatrix, opened: OpenMatrix) -> OpenMatrix:
    """Compared with the same variant as before."""
    base = before.stored.logs[before.matrix.base].name
    place = next((place for place, log in enumerate(opened.stored.logs) if log.name == base), None)
    if place is None or place == opened.matrix.base:
        return opened
    return replace(opened, matrix=opened.matrix.with_base(place))


def extent_of(store: RunStore, opened: OpenMatrix | None) -> object:
    """Something else as soon as a run was begun, or one of the matrix has gone on. In a thread."""
    return _extent(store, opened.stored if opened else None)


def _extent(store: RunStore, stored: StoredMatrix | None) -> object:
    files = store.files()
    shown = set(stored.paths) if stored else set()
    return [path.stat().st_mtime_ns if path in shown else None for path in files]


def title_of(stored: StoredMatrix) -> str:
    """`base, flash and pro`"""
    return ", ".join(log.name for log in stored.logs)
