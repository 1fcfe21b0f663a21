"""Several variants of an agent over the same cases: a table of outcomes, and what each variant comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import Literal, TypeGuard

from pydantic import computed_field

from evaltui.core.compare.evidence import Paired
from evaltui.core.compare.run_comparison import CaseChange, compare
from evaltui.core.compare.run_summary import CaseSummary, RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.json_fields import NOT_REPORTED, keys_first
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost, KnownCost
from evaltui.core.statistics.estimates import RunsRate, clustered_rate, quantile

Direction = Literal["better", "worse", "same", ""]


@dataclass(frozen=True)
class Cell:
    """A case in one variant."""

    case: CaseSummary | None
    """None where it has no result."""
    is_open: bool = False
    """Whether it was selected and has no result yet."""
    direction: Direction = ""
    """How often it passes compared with the base; "" in the base, and where the two cannot be compared."""
    reasons: tuple[str, ...] = ()
    """Why they cannot."""

    @property
    def rate(self) -> float | None:
        """The share of its evaluated runs that passed; None without one."""
        return self.case.passed / self.case.evaluated if self.case and self.case.evaluated else None

    @property
    def cost(self) -> Cost | None:
        """What the agent costs in one run of it; None where nobody knows."""
        cost = self.case.costs.get("agent") if self.case else None
        return cost.shared_by(self.case.runs) if cost and self.case else None

    @property
    def score(self) -> float | None:
        """Mean of its scores; None without one."""
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
        """Whether its results are not the same in all variants."""
        return len({(cell.rate, cell.case and cell.case.verdict) for cell in self.cells}) > 1


@dataclass(frozen=True)
class Totals:
    """What a variant comes to."""

    cases: int
    """Cases with a result."""
    passed_cases: int
    """Cases that passed, flaky ones by their policy."""
    open_cases: int = field(metadata={"serialization_alias": "unfinished_cases"})
    """Selected cases without a result."""
    runs: int
    """Executions of cases."""
    passed: int = field(metadata={"serialization_alias": "passed_runs"})
    """Executions that passed."""
    rate: RunsRate | None = field(metadata=NOT_REPORTED)
    """The share of executions that passes, with its interval; None where there is none."""
    p50: float | None = field(metadata={"serialization_alias": "p50_seconds"})
    """Median of the seconds of an execution; None where nobody knows."""
    p95: float | None = field(metadata={"serialization_alias": "p95_seconds"})
    tokens: float | None
    """Of all executions; None where they are not known of every case."""
    cost: Cost | None = field(metadata=NOT_REPORTED)
    """What the agent cost in all of them, judges left out; None where nobody knows of any."""

    @computed_field(alias="cost")
    @property
    def known_cost(self) -> KnownCost | None:
        """What the agent cost in all of them, judges left out; None where nobody knows of any."""
        return KnownCost.of(self.cost)

    @computed_field
    @property
    def pass_rate(self) -> float | None:
        """The share of executions that passes; None where there is none."""
        return self.rate.mean if self.rate else None

    @computed_field
    @property
    def interval(self) -> list[float] | None:
        """In which the pass rate is with 95 % confidence, clustered by case: from, to."""
        return list(self.rate.interval) if self.rate else None

    @computed_field
    @property
    def usd_per_passed_case(self) -> float | None:
        """The cost of all cases divided by those that passed; None where none did, or nobody knows."""
        cost = self.cost_per_passed
        return None if cost is None else cost.usd

    _keys = keys_first(
        "cases",
        "passed_cases",
        "unfinished_cases",
        "runs",
        "passed_runs",
        "pass_rate",
        "interval",
        "p50_seconds",
        "p95_seconds",
        "tokens",
        "cost",
    )

    @property
    def known_usd(self) -> float | None:
        """US dollars of all of them; None where a part of it is not known."""
        return self.cost.usd if self.cost is not None and self.cost.is_exact else None

    @property
    def cost_per_passed(self) -> Cost | None:
        """The cost of all cases divided by those that passed; None where none did, or nobody knows."""
        known = self.cost is not None and self.cost.usd is not None and self.passed_cases
        return self.cost.shared_by(self.passed_cases) if known and self.cost else None


@dataclass(frozen=True)
class Matrix:
    """Variants as columns, cases as rows, those of a set together."""

    columns: tuple[RunSummary, ...]
    """The run of each variant."""
    rows: tuple[Row, ...]
    totals: tuple[Totals, ...]
    """By column."""
    paired: tuple[Paired | None, ...]
    """By column; None for the base."""
    base: int
    """Place of the base column, from 0."""
    not_run: tuple[str, ...] = ()
    """Names of the variants that have no run."""

    @cached_property
    def sets(self) -> Mapping[str, tuple[Row, ...]]:
        """The rows by the path of their set."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.case.path, []).append(row)
        return {path: tuple(rows) for path, rows in found.items()}

    @property
    def is_complete(self) -> bool:
        """Whether every selected case has a result in every variant."""
        return not (self.not_run or any(totals.open_cases for totals in self.totals))

    def name(self, place: int) -> str:
        """The name of a variant, else the id of its run."""
        run = self.columns[place]
        return run.variant.name if run.variant else run.id

    def with_base(self, base: int) -> Matrix:
        """The same matrix, compared with another column."""
        return matrix_of(self.columns, base, self.not_run)


def matrix_of(columns: Sequence[RunSummary], base: int = 0, not_run: Sequence[str] = ()) -> Matrix:
    """Puts the runs of variants side by side; `base` is the place of the column that others are compared
    with, `not_run` are the names of variants without a run."""
    columns = tuple(columns)
    compared = [
        None if place == base else compare(columns[base], column) for place, column in enumerate(columns)
    ]
    changes: list[dict[CaseId, CaseChange] | None] = [
        None if one is None else {change.case: change for change in one.cases} for one in compared
    ]
    rows = tuple(_row(case, columns, changes) for case in _cases(columns))
    paired = tuple(None if one is None else one.paired for one in compared)
    return Matrix(columns, rows, tuple(_totals(column) for column in columns), paired, base, (*not_run,))


def _cases(runs: Sequence[RunSummary]) -> list[CaseId]:
    """Every case of any variant, those of a set together."""
    found = dict.fromkeys(case for run in runs for case in run.cases)
    places = {path: place for place, path in enumerate(dict.fromkeys(case.path for case in found))}
    return sorted(found, key=lambda case: places[case.path])


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
    return ("better" if difference > 0 else "worse" if difference < 0 else "same"), ()


def _is_judged(case: CaseSummary | None) -> TypeGuard[CaseSummary]:
    return case is not None and case.verdict is not Status.NOT_EVALUATED and case.evaluated > 0


def _totals(run: RunSummary) -> Totals:
    cases = list(run.results.values())
    times = list(_times(cases))
    tokens = [case.tokens * case.runs for case in cases if case.tokens is not None]
    return Totals(
        cases=len(cases),
        passed_cases=sum(case.passes for case in cases),
        open_cases=len(run.unfinished),
        runs=sum(case.runs for case in cases),
        passed=sum(case.passed for case in cases),
        rate=clustered_rate([(case.passed, case.evaluated) for case in cases])
        if any(case.evaluated for case in cases)
        else None,
        p50=quantile(times, 0.5) if times else None,
        p95=quantile(times, 0.95) if times else None,
        tokens=fsum(tokens) if tokens and len(tokens) == len(cases) else None,
        cost=_cost(cases),
    )


def _cost(cases: Sequence[CaseSummary]) -> Cost | None:
    costs = [case.costs.get("agent") for case in cases]
    if not any(costs):
        return None
    return sum((cost or Cost(unseen=case.runs) for cost, case in zip(costs, cases, strict=True)), Cost())


def _times(cases: Iterable[CaseSummary]) -> Iterator[float]:
    """Of each execution; their mean where only that is known."""
    for case in cases:
        if case.times:
            yield from case.times
        elif case.seconds is not None:
            yield from [case.seconds] * case.runs
