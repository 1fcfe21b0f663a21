"""The report of a matrix for other programs, as JSON. Its keys are a promise, see `matrix_shape`."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from evaltui.core.compare.matrix import Cell, Matrix, Row
from evaltui.reports.matrix_report import MatrixReport
from evaltui.text.values import valid_json

VERSION = 1

Json = dict[str, Any]


def matrix_json(report: MatrixReport) -> Json:
    """The report as data that any JSON writer takes."""
    matrix = report.matrix
    seconds = report.seconds
    document: Json = valid_json(
        {
            "version": VERSION,
            "matrix": report.id,
            "agent": report.agent,
            "started": report.started.astimezone(UTC).isoformat(timespec="milliseconds"),
            "seconds": None if seconds is None else round(seconds, 3),
            "base": matrix.name(matrix.base),
            "complete": matrix.is_complete,
            "notes": report.notes,
            "variants": [_variant(report, place) for place in range(len(matrix.columns))],
            "cases": [_row(matrix, row) for row in matrix.rows],
        }
    )
    return document


def _variant(report: MatrixReport, place: int) -> Json:
    matrix, comparison = report.matrix, report.comparisons[place] if report.comparisons else None
    run, variant = matrix.columns[place], matrix.columns[place].variant
    return {
        "name": matrix.name(place),
        "changes": variant.to_json()["changes"] if variant else {},
        "commit": variant.commit if variant and variant.commit else None,
        "applied": [dict(one) for one in report.changes[place]],
        "run": run.id,
        "log": report.logs[place],
        "totals": _totals(matrix, place),
        "against_base": _paired(matrix, place),
        "regressions": None if comparison is None else len(comparison.regressions),
    }


def _totals(matrix: Matrix, place: int) -> Json:
    totals = matrix.totals[place]
    rate, cost, per_passed = totals.rate, totals.cost, totals.cost_per_passed
    return {
        "cases": totals.cases,
        "passed_cases": totals.passed_cases,
        "unfinished_cases": totals.open_cases,
        "runs": totals.runs,
        "passed_runs": totals.passed,
        "pass_rate": rate.mean if rate else None,
        "interval": list(rate.interval) if rate and rate.interval else None,
        "p50_seconds": totals.p50,
        "p95_seconds": totals.p95,
        "tokens": totals.tokens,
        "cost": None if cost is None else cost.to_json(),
        "usd_per_passed_case": None if per_passed is None else per_passed.usd,
    }


def _paired(matrix: Matrix, place: int) -> Json | None:
    paired = matrix.paired[place]
    if paired is None:
        return None
    return {
        "better": paired.better,
        "worse": paired.worse,
        "cases": paired.cases,
        "p": paired.p if paired.cases else None,
    }


def _row(matrix: Matrix, row: Row) -> Json:
    return {
        "eval_set_id": row.eval_set_id,
        "eval_id": row.case.eval_id,
        "path": row.case.path,
        "differs": row.differs,
        "results": [_cell(matrix.name(place), cell) for place, cell in enumerate(row.cells)],
    }


def _cell(variant: str, cell: Cell) -> Json:
    case = cell.case
    if case is None:
        return {"variant": variant, "status": None}
    return {
        "variant": variant,
        "status": case.status.value,
        "runs": case.runs,
        "passed_runs": case.passed,
        "score": cell.score,
        "scores": dict(case.scores),
        "seconds": case.seconds,
        "tokens": case.tokens,
        "cost": None if (cost := case.costs.get("agent")) is None else cost.to_json(),
        "direction": cell.direction or None,
    }
