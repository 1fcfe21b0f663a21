"""The report of a matrix for spreadsheets: a row for each case in each variant."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from evaltui.core.compare.matrix import Cell, Row
from evaltui.reports.csv_report import cell_text
from evaltui.reports.matrix_console import variant_text
from evaltui.reports.matrix_report import MatrixReport

COLUMNS = (
    "matrix",
    "variant",
    "changes",
    "eval_set_id",
    "eval_id",
    "status",
    "runs",
    "passed_runs",
    "score",
    "seconds",
    "tokens",
    "usd",
    "direction",
    "path",
    "unpriced_calls",
)


def matrix_csv(report: MatrixReport) -> str:
    """Text that a spreadsheet would run as a formula gets a leading apostrophe."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in report.matrix.rows:
        for values in _rows(report, row):
            writer.writerow({column: cell_text(value) for column, value in values.items()})
    return file.getvalue()


def _rows(report: MatrixReport, row: Row) -> Iterator[dict[str, str | float | None]]:
    matrix = report.matrix
    for place, cell in enumerate(row.cells):
        yield {
            "matrix": report.id,
            "variant": matrix.name(place),
            "changes": variant_text(matrix.columns[place].variant),
            "eval_set_id": row.eval_set_id,
            "eval_id": row.case.eval_id,
            "path": row.case.path,
            **_values(cell),
        }


def _values(cell: Cell) -> dict[str, str | float | None]:
    case = cell.case
    if case is None:
        return {}
    cost = case.costs.get("agent")
    return {
        "status": case.status.value,
        "runs": case.runs,
        "passed_runs": case.passed,
        "score": cell.score,
        "seconds": case.seconds,
        "tokens": case.tokens,
        "usd": cost.usd if cost else None,
        "unpriced_calls": cost.unpriced if cost else None,
        "direction": cell.direction,
    }
