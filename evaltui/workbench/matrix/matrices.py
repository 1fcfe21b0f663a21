"""The shown matrix: its ordered rows, the results of a case in two variants, and its failing cases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.runs.history import open_run
from evaltui.runs.listing import run_title
from evaltui.runs.matrices import OpenMatrix, StoredMatrix, newest_runs, open_matrix, stored_matrices
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted
from evaltui.text.lines import Line
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.runs.run_list import Side
from evaltui.workbench.workbench import Workbench

Order = Literal["set", "difference", "pass rate"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class SetTitle:
    """The row above the cases of a set."""

    path: str
    label: str
    sums: tuple[tuple[int, int, int, int], ...]
    """Passed and evaluated executions, cases that did not run, and cases not evaluated, by column."""
    folded: bool


MatrixRow = SetTitle | Row | None
"""A row of the list; None is a blank line."""


def rows_of(
    matrix: Matrix, order: Order, column: int, *, differing: bool, folded: Collection[str]
) -> list[MatrixRow]:
    """The listed rows. Sorted by pass rate, that of a column; by difference, the rows that differ most from
    the base come first."""
    if order == "set":
        return list(_rows_by_set(matrix, differing=differing, folded=folded))
    rows = [row for row in matrix.rows if row.differs or not differing]
    key: Callable[[Row], float] = (
        _spread if order == "difference" else lambda row: _pass_rate_key(row, column)
    )
    return [*sorted(rows, key=key)]


def _rows_by_set(matrix: Matrix, *, differing: bool, folded: Collection[str]) -> Iterator[MatrixRow]:
    is_first = True
    for path, rows in matrix.sets.items():
        shown = [row for row in rows if row.differs or not differing]
        if not shown:
            continue
        if not is_first:
            yield None
        is_first = False
        yield SetTitle(path, matrix.set_names[path], tuple(_sums(rows, len(matrix.columns))), path in folded)
        if path not in folded:
            yield from shown


def _sums(rows: Collection[Row], columns: int) -> Iterator[tuple[int, int, int, int]]:
    for place in range(columns):
        cells = [row.cells[place] for row in rows]
        cases = [case for cell in cells if (case := cell.case)]
        passed, evaluated = sum(case.passed for case in cases), sum(case.evaluated for case in cases)
        yield (
            passed,
            evaluated,
            sum(cell.is_open for cell in cells),
            sum(not case.evaluated for case in cases),
        )


def _spread(row: Row) -> float:
    """A sort key: the lower, the more the variants differ."""
    rates = [cell.rate for cell in row.cells if cell.rate is not None]
    return min(rates, default=0.0) - max(rates, default=0.0)


def _pass_rate_key(row: Row, column: int) -> float:
    """The pass rate in a column, as a sort key; a case without a result comes last."""
    rate = row.cells[column].rate
    return 2.0 if rate is None else rate


@dataclass(frozen=True)
class CellResult:
    """The result of a case in a variant."""

    result: CaseResult | None
    """The result; None for none."""
    problem: str = ""
    """Why it is unreadable."""


def cell_result(opened: OpenMatrix, column: int, case: CaseId) -> CellResult:
    """In a thread: the result of a case in the variant of a column."""
    run = opened.runs[column]
    if case not in run.summary.results:
        return CellResult(None)
    try:
        return CellResult(run.case(case))
    except (OSError, ValueError) as error:
        return CellResult(None, str(error))


def side_of(opened: OpenMatrix, column: int) -> Side:
    """The run of a variant, to be opened or compared."""
    log = opened.stored.logs[column]
    header = log.header
    return Side(log.path, run_title(header.number, header.started, log.name))


def read_matrix(
    store: RunStore, agent: RunKind, chosen: StoredMatrix | None, shown: OpenMatrix | None
) -> tuple[OpenMatrix | None, object]:
    """Reads the chosen matrix, else the shown one again, else the newest one of the agent; returns it with
    its extent from before the reading.

    In a thread. Raises OSError, ValueError.
    """
    matrices = [chosen] if chosen else stored_matrices(store, agent)
    matrix_id = shown.stored.id if shown and not chosen else None
    stored = next((matrix for matrix in matrices if matrix_id in (None, matrix.id)), None)
    if stored is None:
        return None, extent_of(store, None)
    extent = _extent(store, stored)
    opened = open_matrix(stored)
    return (_keep_base(shown, opened) if shown and matrix_id else opened), extent


def _keep_base(before: OpenMatrix, opened: OpenMatrix) -> OpenMatrix:
    """The matrix with the same base variant as before."""
    base = before.stored.logs[before.matrix.base].name
    place = next((place for place, log in enumerate(opened.stored.logs) if log.name == base), None)
    if place is None or place == opened.matrix.base:
        return opened
    return replace(opened, matrix=opened.matrix.with_base(place))


def extent_of(store: RunStore, opened: OpenMatrix | None) -> object:
    """In a thread: a value that changes when a run starts, or a run of the matrix continues."""
    return _extent(store, opened.stored if opened else None)


def _extent(store: RunStore, stored: StoredMatrix | None) -> object:
    files = store.files()
    shown = set(stored.paths) if stored else set()
    return [path.stat().st_mtime_ns if path in shown else None for path in files]


def title_of(stored: StoredMatrix) -> str:
    """The title of a matrix: `base, flash and pro`."""
    return ", ".join(log.name for log in stored.logs)


EMPTY_NOTE: Line = [
    ("No matrix yet. A run of several variants in a terminal makes one:\n\n", "muted"),
    ("evaltui run --variant base --variant flash:model=gemini-2.5-flash", "key"),
]


class MatrixView:
    """The view state of a matrix."""

    def __init__(self) -> None:
        self.opened: OpenMatrix | None = None
        self.column = 0
        """The variant of the current cell, by its index in the matrix."""
        self.order: Order = "set"
        self.differing = False
        """Whether only cases that differ are listed."""
        self.note: Line = [("Reading the runs…", "muted")]
        """Why no matrix is shown."""
        self.first = 0
        """The index of the first shown variant, not counting the base."""
        self.repeat: int | None = None
        """The shown repeat, from 0; None for the one that decides the result."""
        self._folded: set[str] = set()

    def show(self, opened: OpenMatrix | None) -> None:
        """Shows a matrix; the current cell stays when the same matrix was read again."""
        is_other = opened is None or self.opened is None or opened.stored.id != self.opened.stored.id
        self.opened = opened
        if opened is not None and (is_other or self.column >= len(opened.matrix.columns)):
            self.column, self.first = next(iter(others_of(opened.matrix)), opened.matrix.base), 0

    def refusal(self, *, besides_base: bool = False) -> str | None:
        """Why no action on the current variant is possible, as a sentence; None where one is."""
        if self.opened is None:
            return "No matrix yet" if self.note is EMPTY_NOTE else "".join(text for text, _ in self.note)
        if besides_base and self.column == self.opened.matrix.base:
            return "This is the base; select another variant"
        return None

    def go_to(self, column: int, fitting: int) -> None:
        """Makes a variant the current one; `fitting` is the number of variants besides the base that fit on
        the screen."""
        if self.opened is None:
            return
        self.column = column
        others = others_of(self.opened.matrix)
        if column in others:
            place = others.index(column)
            self.first = min(max(self.first, place - fitting + 1), place)

    def step(self, step: int, fitting: int) -> None:
        """Goes on by a number of variants; the base is the first."""
        if self.opened is not None:
            shown = [self.opened.matrix.base, *others_of(self.opened.matrix)]
            place = max(0, min(shown.index(self.column) + step, len(shown) - 1))
            self.go_to(shown[place], fitting)

    def set_base(self) -> None:
        """Makes the current variant the base; the old base becomes the current variant."""
        if self.opened is not None:
            before = self.opened.matrix.base
            self.opened = replace(self.opened, matrix=self.opened.matrix.with_base(self.column))
            self.column, self.first = before, 0

    def sort(self) -> None:
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]

    def fold(self, path: str) -> None:
        """Folds a set, or unfolds it."""
        self._folded ^= {path}

    def rows(self) -> list[MatrixRow]:
        if self.opened is None:
            return []
        return rows_of(
            self.opened.matrix, self.order, self.column, differing=self.differing, folded=self._folded
        )

    def cases_of(self, row: MatrixRow) -> tuple[list[CaseId], str]:
        """The cases of a row, and their label: a case, or all cases of a set."""
        if isinstance(row, Row):
            return [row.case], row.case.eval_id
        if row is None or self.opened is None:
            return [], ""
        cases = [summary.case for summary in self.opened.matrix.sets[row.path]]
        return cases, f"{row.label}, {counted(len(cases), 'case')}"

    # Repeats

    def repeat_of(self, result: CaseResult) -> int:
        """The shown repeat of a result, from 0."""
        last = len(result.repeats) - 1
        return result.deciding_repeat if self.repeat is None else min(self.repeat, last)

    def step_repeat(self, step: int, result: CaseResult) -> str:
        """Shows the next or the previous repeat; returns a sentence about it."""
        runs = len(result.repeats)
        if runs < 2:
            return "One repeat"
        self.repeat = (self.repeat_of(result) + step) % runs
        return f"Repeat {self.repeat + 1} of {runs}"


def others_of(matrix: Matrix) -> tuple[int, ...]:
    """The variants besides the base."""
    return tuple(place for place in range(len(matrix.columns)) if place != matrix.base)


async def mark_failing(workbench: Workbench) -> None:
    """Marks the cases that did not pass: in any variant where the newest run is a matrix, which includes
    those that did not run in one."""
    try:
        variants, failed, is_complete = await asyncio.to_thread(_failed_in_variants, workbench.agent)
    except (OSError, ValueError) as error:
        workbench.say(f"Run log unreadable: {error}")
        return
    cases = set(workbench.outcomes.results.attention)
    if variants:
        sets = workbench.sets
        cases = {
            case
            for case_in_run, set_id in failed
            if (case := sets.find_case(case_in_run, set_id)) is not None
        }
    count = workbench.navigation.mark(cases)
    where = f" in any of {counted(variants, 'variant')}" if variants else ""
    what = "failed" if is_complete else "failed or did not run"
    marked = f"{counted(count, 'case')} marked that {what}" if count else "No failing case"
    workbench.say(f"{marked}{where}")


def _failed_in_variants(agent: AgentState) -> tuple[int, list[tuple[CaseId, str]], bool]:
    """In a thread: the number of variants of the newest run, 0 where it is no matrix, the cases that did not
    pass in them, and whether all cases ran in all of them."""

    paths, kind = newest_runs(agent.store), RunKind.of(agent.address)
    headers = [RunFile(path).header for path in paths]
    # A run without variants may be long: its results are known already.
    if not any(header.matrix and header.kind.agent._replace(variant="") == kind for header in headers):
        return 0, [], True
    runs = [open_run(path).summary for path in paths]
    variants = {variant.name for header in headers for variant in header.variants}
    is_started = len(variants) <= len(runs)
    cases = {case.id: case for run in runs for case in run.cases.values() if not (is_started and case.passes)}
    is_complete = is_started and not any(run.unfinished for run in runs)
    return (
        max(len(variants), len(runs)),
        [(key, case.eval_set_id) for key, case in cases.items()],
        is_complete,
    )
