"""A matrix: several variants of an agent with the same cases, their outcomes and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import fsum
from typing import Literal, TypeGuard

from evaltui.core.compare.evidence import Paired
from evaltui.core.compare.run_comparison import CaseChange, compare
from evaltui.core.compare.run_summary import CaseSummary, RunSummary, different_files
from evaltui.core.compare.totals import Totals, totals_of
from evaltui.core.compare.variant_verdict import VariantVerdict, verdict_on
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.spending import Cost

Direction = Literal["better", "worse", "same", ""]


@dataclass(frozen=True)
class Cell:
    """A case in one variant."""

    case: CaseSummary | None
    """The summary of the case; None without a result."""
    is_open: bool = False
    """Whether the case was selected and has no result yet."""
    direction: Direction = ""
    """The change of the pass rate from the base; "" in the base, and for incomparable results."""
    reasons: tuple[str, ...] = ()
    """Reasons why the results are incomparable."""

    @property
    def rate(self) -> float | None:
        """The share of evaluated runs that passed; None without an evaluated run."""
        return self.case.passed / self.case.evaluated if self.case and self.case.evaluated else None

    @property
    def cost(self) -> Cost | None:
        """Cost of the agent in one run of the case; None where it is unknown."""
        cost = self.case.costs.get("agent") if self.case else None
        return cost.shared_by(self.case.runs) if cost and self.case else None

    @property
    def score(self) -> float | None:
        """Mean of the scores; None without a score."""
        scores = list(self.case.scores.values()) if self.case else []
        return fsum(scores) / len(scores) if scores else None


@dataclass(frozen=True)
class Row:
    """A case in every variant, in the order of the columns."""

    case: CaseId
    eval_set_id: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether the results differ between variants."""
        return len({(cell.rate, cell.case and cell.case.verdict) for cell in self.cells}) > 1


@dataclass(frozen=True)
class Matrix:
    """Variants as columns and cases as rows; the rows of a set are together."""

    columns: tuple[RunSummary, ...]
    """The run of each variant."""
    rows: tuple[Row, ...]
    totals: tuple[Totals, ...]
    """Totals by column."""
    paired: tuple[Paired | None, ...]
    """Paired comparisons with the base by column; None for the base."""
    base: int
    """Index of the base column."""
    not_run: tuple[str, ...] = ()
    """Names of the variants without a run."""
    verdicts: tuple[VariantVerdict | None, ...] = ()
    """Verdicts against the base, by column; None for the base."""

    @cached_property
    def sets(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows by path of their set."""
        rows_by_path: dict[str, list[Row]] = {}
        for row in self.rows:
            rows_by_path.setdefault(row.case.path, []).append(row)
        return {path: tuple(rows) for path, rows in rows_by_path.items()}

    @cached_property
    def set_names(self) -> Mapping[str, str]:
        """The ids of the sets by their path, with the file where several sets have an id."""
        labels = {path: rows[0].eval_set_id for path, rows in self.sets.items()}
        shared = Counter(labels.values())
        return {path: label if shared[label] == 1 else f"{label} ({path})" for path, label in labels.items()}

    @property
    def is_complete(self) -> bool:
        """Whether every selected case has a result in every variant."""
        return not (self.not_run or any(totals.open_cases for totals in self.totals))

    @property
    def changed_files(self) -> tuple[str, ...]:
        """The agent's files that changed between the runs of variants with the same code."""
        files = [
            run.circumstances.files
            for run in self.columns
            if not (run.variant and run.variant.has_other_code)
        ]
        # Data that the agent wrote itself counts: a variant may have read what an earlier one left.
        pairs = (different_files(first, other, own_data=()) for first, other in pairwise(files))
        return tuple(sorted({name for names in pairs for name in names}))

    def name(self, place: int) -> str:
        """The name of a variant, else the id of its run."""
        run = self.columns[place]
        return run.variant.name if run.variant else run.id

    def with_base(self, base: int) -> Matrix:
        """The matrix compared with another base column."""
        return matrix_of(self.columns, base, self.not_run)


def matrix_of(columns: Sequence[RunSummary], base: int = 0, not_run: Sequence[str] = ()) -> Matrix:
    """The matrix of the runs of variants.

    `base` is the index of the base column, `not_run` are the names of variants without a run.
    """
    columns = tuple(columns)
    compared = [
        None if place == base else compare(columns[base], column) for place, column in enumerate(columns)
    ]
    changes: list[dict[CaseId, CaseChange] | None] = [
        None if comparison is None else {change.case: change for change in comparison.cases}
        for comparison in compared
    ]
    rows = tuple(_row(case, columns, changes) for case in _cases(columns))
    paired = tuple(None if comparison is None else comparison.paired for comparison in compared)
    totals = tuple(totals_of(column.cases.values()) for column in columns)
    verdicts = tuple(None if comparison is None else verdict_on(comparison) for comparison in compared)
    return Matrix(columns, rows, totals, paired, base, (*not_run,), verdicts)


def _cases(runs: Sequence[RunSummary]) -> list[CaseId]:
    """The cases of all variants; those of a set are together."""
    cases = dict.fromkeys(case for run in runs for case in run.cases)
    places = {path: place for place, path in enumerate(dict.fromkeys(case.path for case in cases))}
    return sorted(cases, key=lambda case: places[case.path])


def _row(
    case: CaseId, columns: Sequence[RunSummary], changes: Sequence[Mapping[CaseId, CaseChange] | None]
) -> Row:
    cells = tuple(
        _cell(case, column, None if of is None else of.get(case))
        for column, of in zip(columns, changes, strict=True)
    )
    label = next(run.cases[case].eval_set_id for run in columns if case in run.cases)
    return Row(case, label, cells)


def _cell(case: CaseId, run: RunSummary, change: CaseChange | None) -> Cell:
    direction, reasons = _direction(change) if change else ("", ())
    result = run.results.get(case)
    return Cell(result, case in run.cases and result is None, direction, reasons)


def _direction(change: CaseChange) -> tuple[Direction, tuple[str, ...]]:
    before, after = change.base, change.candidate
    if change.reasons or not _is_judged(before) or not _is_judged(after):
        return "", change.reasons
    difference = after.passed / after.evaluated - before.passed / before.evaluated
    if difference and change.served:
        return "", tuple(served.in_words for served in change.served)
    return ("better" if difference > 0 else "worse" if difference < 0 else "same"), ()


def _is_judged(case: CaseSummary | None) -> TypeGuard[CaseSummary]:
    return case is not None and case.is_judged and case.evaluated > 0
