"""The output of the reports of a matrix."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    colored,
    report_width,
    write_rendered,
)
from evaltui.reports.matrix_report import MatrixReport

if TYPE_CHECKING:
    from evaltui.commands.output import Format

FORMATS: tuple[Format, ...] = ("console", "json", "csv", "html", "markdown")


def matrix_targets(targets: Sequence[ReportTarget]) -> Sequence[ReportTarget]:
    """Raises UsageError for a report that a matrix does not have."""
    for target in targets:
        if target.format not in FORMATS:
            raise UsageError(
                f"--report {target.format}: a matrix has {', '.join(FORMATS)}. "
                f"`evaltui report RUN --report {target.format}` reports one of its runs"
            )
    return targets


def write_matrix(report: MatrixReport, targets: Sequence[ReportTarget], command: str) -> bool:
    """Writes the reports, and reasons of failures to stderr; returns whether all are written."""
    return write_rendered(lambda target: _render(report, target), targets, command)


def _render(report: MatrixReport, target: ReportTarget) -> str:
    if target.format == "json":
        from evaltui.reports.matrix_json import matrix_json

        return json.dumps(matrix_json(report), indent=2, ensure_ascii=False) + "\n"
    if target.format == "csv":
        from evaltui.reports.csv_report import matrix_csv

        return matrix_csv(report)
    if target.format == "markdown":
        from evaltui.reports.markdown_report import markdown_matrix

        return markdown_matrix(report)
    if target.format == "html":
        from evaltui.reports.html.matrix_page import html_matrix

        return html_matrix(report)
    from evaltui.reports.matrix_console import render_matrix

    return render_matrix(report, color=target.path is None and colored(), width=report_width(target))
