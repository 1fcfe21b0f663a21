"""The JSON report of a matrix, for other programs.

Its keys are as stable as those of a run's report.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC
from functools import cache
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, TypeAdapter, model_serializer

from evaltui.core.compare.evidence import Paired
from evaltui.core.compare.matrix import Cell, Matrix, Row
from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.compare.totals import Totals
from evaltui.core.compare.variant_verdict import VariantVerdict
from evaltui.core.model.base_model import Seconds
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Outcome
from evaltui.core.model.spending import KnownCost
from evaltui.core.schemas.generating import Schema, schema_of
from evaltui.reports.matrix_report import MatrixReport
from evaltui.text.values import valid_json

Json = dict[str, Any]

# A key that is absent by `MatrixCell.write`: `exclude_if` sees a value alone.
_ONLY_WITH_RESULT = {"exclude_if": lambda _: False}


@dataclass(frozen=True, slots=True)
class AgainstBase:
    """A variant compared with the base, case by case."""

    better: int
    """Number of cases that pass in the variant but not in the base."""
    worse: int
    cases: int
    """Number of cases with a comparable result in both."""
    p: float | None
    """The p-value of McNemar's exact test; None without cases."""

    @classmethod
    def of(cls, paired: Paired) -> AgainstBase:
        return cls(paired.better, paired.worse, paired.cases, paired.p if paired.cases else None)


@dataclass(frozen=True, slots=True)
class Applied:
    """A change that the host has made for a variant."""

    what: str
    new: str
    old: str


@dataclass(frozen=True, slots=True)
class MatrixVariant:
    """A variant with its run."""

    name: str
    changes: Json
    """The configured changes, by key: `model`, `model.AGENT`, `instruction`, `config.FIELD`, `env.NAME`,
    `git`, `agent`."""
    commit: str | None
    """The commit of `git`."""
    applied: tuple[Applied, ...]
    run: str
    """The id of its run."""
    log: str | None
    totals: Totals
    against_base: AgainstBase | None
    """The comparison with the base; None for the base."""
    verdict: VariantVerdict | None
    """Better, worse or undecided against the base, by case and by metric; None for the base."""
    regressions: int | None
    """Number of regressions from the run of `--baseline`; None without one, and if nothing was compared."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A case in one variant."""

    variant: str
    status: Outcome | None
    """The status; NOT_EVALUATED for a case that did not run, None for a case that was not selected, which has
    no other values."""
    runs: int | None = field(default=None, metadata=_ONLY_WITH_RESULT)
    passed_runs: int | None = field(default=None, metadata=_ONLY_WITH_RESULT)
    score: float | None = field(default=None, metadata=_ONLY_WITH_RESULT)
    """Mean of the scores."""
    scores: dict[str, float] = field(default_factory=dict, metadata=_ONLY_WITH_RESULT)
    """Mean scores over repeats, by metric."""
    seconds: float | None = field(default=None, metadata=_ONLY_WITH_RESULT)
    tokens: float | None = field(default=None, metadata=_ONLY_WITH_RESULT)
    cost: KnownCost | None = field(default=None, metadata=_ONLY_WITH_RESULT)
    """The agent's cost in all repeats of the case."""
    direction: Literal["better", "worse", "same"] | None = field(default=None, metadata=_ONLY_WITH_RESULT)
    """The comparison with the base."""

    @model_serializer(mode="wrap")
    def write(self, write: SerializerFunctionWrapHandler) -> Json:
        return {"variant": self.variant, "status": None} if self.status is None else write(self)


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """A case in every variant."""

    eval_set_id: str
    eval_id: str
    path: str
    """The path of the set."""
    differs: bool
    """Whether the results differ between variants."""
    results: tuple[MatrixCell, ...]


@dataclass(frozen=True, slots=True)
class MatrixDocument:
    """The report of a matrix: variants of an agent with the same cases."""

    version: Literal[1]
    matrix: str
    """The id of the matrix, which is in the logs of its runs."""
    agent: str
    started: str
    """Start, ISO 8601 in UTC."""
    seconds: Seconds | None
    """Wall time of all runs, in seconds."""
    base: str
    """The name of the base variant."""
    complete: bool
    """Whether every selected case has a result in every variant."""
    notes: tuple[str, ...]
    variants: tuple[MatrixVariant, ...]
    cases: tuple[MatrixCase, ...]


@cache
def _adapter() -> TypeAdapter[MatrixDocument]:
    return TypeAdapter(MatrixDocument)


def matrix_schema() -> Schema:
    """The schema of the JSON report of a matrix."""
    return schema_of(MatrixDocument, "Report of an evaltui matrix", "report")


def matrix_json(report: MatrixReport) -> str:
    """The text of the report."""
    matrix = report.matrix
    document = MatrixDocument(
        version=1,
        matrix=report.id,
        agent=report.agent,
        started=report.started.astimezone(UTC).isoformat(timespec="milliseconds"),
        seconds=report.seconds,
        base=matrix.name(matrix.base),
        complete=matrix.is_complete,
        notes=report.notes,
        variants=tuple(_variant(report, place) for place in range(len(matrix.columns))),
        cases=tuple(_row(matrix, row) for row in matrix.rows),
    )
    data = valid_json(_adapter().dump_python(document, by_alias=True, warnings=False))
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _variant(report: MatrixReport, place: int) -> MatrixVariant:
    matrix, comparison = report.matrix, report.comparisons[place] if report.comparisons else None
    run, variant = matrix.columns[place], matrix.columns[place].variant
    paired = matrix.paired[place]
    return MatrixVariant(
        name=matrix.name(place),
        changes=variant.to_json()["changes"] if variant else {},
        commit=variant.commit if variant and variant.commit else None,
        applied=tuple(Applied(**change) for change in report.changes[place]),
        run=run.id,
        log=report.logs[place],
        totals=matrix.totals[place],
        against_base=None if paired is None else AgainstBase.of(paired),
        verdict=matrix.verdicts[place],
        regressions=_regressions(comparison),
    )


def _regressions(comparison: Comparison | None) -> int | None:
    if comparison is None or (comparison.compares_nothing and not comparison.regressions):
        return None
    return comparison.regression_count


def _row(matrix: Matrix, row: Row) -> MatrixCase:
    cells = tuple(_cell(matrix, place, row.case, cell) for place, cell in enumerate(row.cells))
    return MatrixCase(row.eval_set_id, row.case.eval_id, row.case.path, row.differs, cells)


def _cell(matrix: Matrix, place: int, case_id: CaseId, cell: Cell) -> MatrixCell:
    variant, case = matrix.name(place), matrix.columns[place].cases.get(case_id)
    if case is None:
        return MatrixCell(variant, None)
    return MatrixCell(
        variant,
        case.status,
        case.runs,
        case.passed,
        cell.score,
        dict(case.scores),
        case.seconds,
        case.tokens,
        KnownCost.of(case.costs.get("agent")),
        cell.direction or None,
    )
