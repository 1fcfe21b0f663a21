"""The JSON reports of a run and of a matrix, for other programs.

Their keys are stable: further keys may be added, existing ones never change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, TypeAdapter, model_serializer

from evaltui.core.compare.evidence import Paired
from evaltui.core.compare.failure_groups import FailureGroup
from evaltui.core.compare.matrix import Cell, Matrix, Row
from evaltui.core.compare.run_comparison import CaseChange, Comparison
from evaltui.core.compare.totals import Rates
from evaltui.core.compare.totals import Totals as RunTotals
from evaltui.core.compare.variant_verdict import VariantVerdict
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.base_model import LEFT_OUT_IF_EMPTY, Seconds, in_order
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import KEYS_OF_CASE, WORST_FIRST, CaseResult, Outcome, Rate
from evaltui.core.model.spending import KnownCost, Spending
from evaltui.core.schemas.generating import Schema, schema_of
from evaltui.reports.matrix_report import MatrixReport
from evaltui.runs.report import RunReport
from evaltui.runs.run_header import SelectedSet
from evaltui.runs.run_tables import case_json
from evaltui.text.json_pieces import json_pieces
from evaltui.text.values import valid_json

VERSION = 1


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of cases by status."""

    cases: int
    passed: int
    failed: int
    error: int
    not_evaluated: int
    flaky: int


@dataclass(frozen=True, slots=True)
class TagTotals(Totals):
    """Numbers of cases with a tag, by status."""

    rate: Rate | None
    """The pass rate, with flaky cases by their policy; None without an evaluated case."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Numbers of model calls."""

    live: int
    replayed: int


@dataclass(frozen=True, slots=True)
class Config:
    """The config that scored a set."""

    path: str | None
    """The path of its file; None for ADK's defaults."""
    effective: dict[str, Any]
    defaulted: tuple[str, ...]
    """Metrics that come from ADK's defaults."""
    not_used: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """A config in a folder above, which is for other sets."""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """An eval set of the run."""

    eval_set_id: str
    path: str
    config: Config

    @classmethod
    def of(cls, eval_set: SelectedSet) -> EvalSet:
        effective = eval_set.config or {"criteria": {}}
        config = Config(eval_set.config_path, effective, eval_set.defaulted or (), eval_set.not_used or "")
        return cls(eval_set.eval_set_id, eval_set.file or eval_set.path, config)


@dataclass(frozen=True, slots=True)
class Report:
    """The report of `evaltui run --report json`. Keys may be added within a version; none goes or changes."""

    version: Literal[1]
    status: Outcome
    agent: str
    started: str
    """UTC, ISO 8601."""
    seconds: Seconds | None
    """Wall time in seconds; None for a run that is in progress or was killed."""
    totals: Totals
    rates: Rates | None
    """The pass rates; None without cases."""
    tags: Mapping[str, TagTotals]
    """Numbers of cases by tag."""
    record: str
    model_calls: Calls
    judge_calls: Calls
    stubbed_tool_calls: int
    spent: Spending | None
    """The spending of all cases; None where it is unknown."""
    log: str | None
    """The path of the run log."""
    notes: tuple[str, ...]
    preflight: tuple[MetricCheck, ...]
    sets: tuple[EvalSet, ...]
    failures: tuple[FailureGroup, ...] = ()
    """Cases that failed or had an error, by reason, the largest group first."""
    # A run of many cases does not fit into the memory: these are written one by one.
    comparison: Comparison | None = None
    """The comparison with `--baseline`; None without one."""
    cases: tuple[CaseResult, ...] = ()


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _data(value: Any, kind: type, **options: Any) -> Any:
    """The JSON data of a part of the report, which is not validated again."""
    return _adapter(kind).dump_python(value, by_alias=True, warnings=False, **options)


def report_schema() -> Schema:
    """The schema of the JSON report."""
    return schema_of(Report, "evaltui report", "report")


def json_report(report: RunReport) -> Iterator[str]:
    """The text of the report in pieces, one case at a time.

    It is strict JSON: null for NaN and infinities, no lone surrogates.
    """
    calls = report.calls
    head = Report(
        version=1,
        status=report.status,
        agent=report.agent,
        started=_utc(report.started),
        seconds=report.seconds,
        totals=Totals(**_by_status(report.totals)),
        rates=report.rates,
        tags={
            tag: TagTotals(**_by_status(totals), rate=totals.case_rate) for tag, totals in report.tags.items()
        },
        record=report.settings.record,
        model_calls=Calls(calls.live, calls.replayed),
        judge_calls=Calls(calls.judge_live, calls.judge_replayed),
        stubbed_tool_calls=calls.stubbed_tools,
        spent=report.spent,
        log=report.log,
        notes=report.notes,
        preflight=report.checks,
        sets=tuple(map(EvalSet.of, report.sets)),
        failures=report.failures,
    )
    compared = comparison_json(report.comparison) if report.comparison else None
    document = _data(head, Report, exclude={"comparison", "cases"})
    return json_pieces({**document, "comparison": compared, "cases": _cases(report)})


def _cases(report: RunReport) -> Iterator[Json]:
    tags = {eval_set.path: eval_set.tags for eval_set in report.sets}
    for case in report.cases.as_json:
        path, eval_id = case["path"] or case["eval_set_id"], case["eval_id"]
        yield in_order({**case, "tags": tags[path].get(eval_id, ())}, *KEYS_OF_CASE)


def _by_status(totals: RunTotals) -> dict[str, int]:
    counts = {status.value.lower(): totals.by_status.get(status, 0) for status in WORST_FIRST}
    return {"cases": totals.cases + totals.open_cases, **counts}


def case_result_json(case: CaseResult) -> Json:
    """The JSON data of a case in the report."""
    document: Json = valid_json(case_json(case))
    return document


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def comparison_json(comparison: Comparison) -> Json:
    """The JSON data of a comparison with every case; its keys are as stable as those of the report."""
    document = _data(comparison, Comparison, exclude={"cases"})
    return {**document, "cases": (_data(change, CaseChange) for change in comparison.cases)}


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
    totals: RunTotals
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
    data = valid_json(_data(document, MatrixDocument))
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
