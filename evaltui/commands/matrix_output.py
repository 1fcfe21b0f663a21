"""The output of the reports of a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    layout_of,
    write_rendered,
)
from evaltui.reports.matrix_report import MatrixReport
from evaltui.reports.writers import WRITERS, render_report

FORMATS = tuple(name for name, writer in WRITERS.items() if writer.matrix_function)


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

    def render(target: ReportTarget) -> str | Iterable[str]:
        return render_report(WRITERS[target.format].matrix_function, report, **layout_of(target))

    return write_rendered(render, targets, command)
