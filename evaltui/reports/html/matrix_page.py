"""The HTML page of a matrix: totals of the variants, a plot, the cases, and failures; without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.reports.html.bodies import MAX_CASES
from evaltui.reports.html.case_view import case_view
from evaltui.reports.html.templates import environment, markup, own_text, policy
from evaltui.reports.matrix_report import MatrixReport, baseline_lines
from evaltui.runs.history import StoredRun, open_run
from evaltui.text.figures import show_rate
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.views.matrix import cell_line, matrix_facts, plot_of, sum_rows, variant_changes
from evaltui.views.variant_verdict import verdict_lines

_MAX_CHARACTERS = 1_450_000
# Glyphs of repeats that are shown one by one.
_MAX_REPEATS = 10
# Of the plot, in its own units.
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 240, 48, 28
# Of a name in the plot: a letter and a line.
_CELL, _NAME_HEIGHT = 7.3, 14


@dataclass(frozen=True)
class PointView:
    """A variant in the plot."""

    x: float
    y: float
    name: str
    name_y: float


def html_matrix(report: MatrixReport) -> str:
    """The HTML text of a matrix in one file, with its styles and a policy that forbids everything else."""
    matrix, style = report.matrix, own_text("report.css")
    bodies, left_out = _bodies(report)
    started = report.started.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    rows = {
        matrix.set_names[path]: [
            (row.case.eval_id, row.differs, _cells(row, bodies)) for row in matrix.sets[path]
        ]
        for path in matrix.sets
    }
    page: str = (
        environment()
        .get_template("matrix.html.j2")
        .render(
            title=f"matrix of {len(matrix.columns)} variants · {report.agent}",
            agent=report.agent,
            facts={"started": started, **matrix_facts(matrix, report.seconds)},
            notes=report.notes,
            names=[matrix.name(place) for place in range(len(matrix.columns))],
            base=matrix.base,
            changes=variant_changes(matrix).items(),
            sums=sum_rows(matrix).items(),
            verdicts=[*baseline_lines(report), *verdict_lines(matrix)],
            plot=_plot(matrix),
            sets=rows,
            bodies=[
                (anchor, matrix.name(place), case.eval_id, markup(body))
                for (place, case), (anchor, body) in bodies.items()
            ],
            left_out=left_out,
            style=markup(style),
            policy=policy(style),
        )
    )
    return page


# Cases

_Bodies = Mapping[tuple[int, CaseId], tuple[str, str]]


def _cells(row: Row, bodies: _Bodies) -> Iterator[tuple[Line, str]]:
    """The cells of a row, each with the anchor of its details; "" for none."""
    for place, cell in enumerate(row.cells):
        yield cell_line(cell, _MAX_REPEATS), bodies.get((place, row.case), ("", ""))[0]


def _bodies(report: MatrixReport) -> tuple[_Bodies, int]:
    """The details of the cells that did not pass, as many as fit, and the number of omitted ones."""
    matrix, template = report.matrix, environment().get_template("case.html.j2")
    runs, set_names = [_open_log(log) for log in report.logs], matrix.set_names
    bodies: dict[tuple[int, CaseId], tuple[str, str]] = {}
    written = left_out = 0
    for row in matrix.rows:
        for place, cell in enumerate(row.cells):
            if cell.case is None or cell.case.status is Status.PASSED:
                continue
            result = _result(runs[place], row.case)
            if result is None or len(bodies) >= MAX_CASES or written > _MAX_CHARACTERS:
                left_out += 1
                continue
            body: str = template.render(case=case_view(result, {}, ""))
            anchor = visible(f"{matrix.name(place)}:{set_names[row.case.path]}:{row.case.eval_id}")
            bodies[place, row.case] = (anchor, body)
            written += len(body)
    return bodies, left_out


def _open_log(log: str | None) -> StoredRun | None:
    try:
        return open_run(Path(log)) if log else None
    except (OSError, ValueError):
        return None


def _result(run: StoredRun | None, case: CaseId) -> CaseResult | None:
    if run is None or case not in run.summary.results:
        return None
    try:
        return run.case(case)
    except (OSError, ValueError):
        return None


# The plot


def _plot(matrix: Matrix) -> dict[str, Any]:
    """The data of the plot for the template; {} without points."""
    plot = plot_of(matrix)
    if not plot.points:
        return {}
    most = max(point.x for point in plot.points) or 1.0
    room, height = _WIDTH - _LEFT - 120, _HEIGHT - _BOTTOM - 10
    points: list[PointView] = []
    for point in sorted(plot.points, key=lambda point: -point.rate):
        name, x = matrix.name(point.place), round(_LEFT + point.x / most * room, 1)
        y = name_y = round(10 + (1 - point.rate) * height, 1)
        for other in points:
            is_beside = other.x < x + _CELL * len(name) and x < other.x + _CELL * len(other.name)
            if is_beside and name_y < other.name_y + _NAME_HEIGHT:
                name_y = other.name_y + _NAME_HEIGHT
        points.append(PointView(x, y, name, name_y))
    lines = [(round(10 + (1 - share) * height, 1), show_rate(share)) for share in (0, 0.25, 0.5, 0.75, 1)]
    return {
        "points": points,
        "lines": lines,
        "title": plot.title,
        "scale": [(_LEFT, plot.show(0.0)), (_LEFT + room, plot.show(most))],
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _LEFT + room,
    }
