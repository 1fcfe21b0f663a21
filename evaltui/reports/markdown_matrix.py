"""The matrix for step summaries and comments, as Markdown: the sums of its variants, the cases that differ.

Texts of others are code there, as in the report of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaltui.core.compare.matrix import Cell, Matrix, Row
from evaltui.reports.markdown_report import MARKER, MOST_BYTES, code
from evaltui.reports.matrix_report import MatrixReport
from evaltui.text.figures import counted, show_duration
from evaltui.views.matrix import SUMS, cell_row, missing_text, no_result

# For the sentence about what is left out.
_RESERVE = 400


def markdown_matrix(report: MatrixReport) -> str:
    """A table of the sums and one of the cases that differ, at most 64,000 bytes; the end says what is left
    out."""
    matrix = report.matrix
    text = f"{MARKER}\n{_head(report)}{_table(matrix, '', [_sum(matrix, *one) for one in SUMS])}\n"
    rows = [row for row in matrix.rows if row.differs]
    if not rows:
        where = "every variant" if matrix.is_complete else "these variants"
        return f"{text}All cases came out the same in {where}.\n"
    shown: list[str] = []
    room = MOST_BYTES - _RESERVE - len(text.encode())
    for row in rows:
        line = _case(matrix, row)
        room -= len(line.encode())
        if room < 0:
            break
        shown.append(line)
    text += f"### {counted(len(rows), 'case differs', 'cases differ')}\n\n{_table(matrix, 'case', shown)}"
    left = len(rows) - len(shown)
    return f"{text}\n… {counted(left, 'more case')}: the page is full. The CSV has all.\n" if left else text


def _head(report: MatrixReport) -> str:
    matrix = report.matrix
    counts = f"{counted(len(matrix.rows), 'case')}, {counted(len(matrix.columns), 'variant')}"
    took = f" · in {show_duration(report.seconds)}" if report.seconds is not None else ""
    notes = "".join(f"> {code(note)}\n\n" for note in report.notes)
    if missing := missing_text(matrix):
        notes += f"> {code(missing) if matrix.not_run else missing} missing\n\n"
    return f"## Matrix · {code(report.agent)}\n\n{counts}{took}\n\n{notes}"


def _table(matrix: Matrix, first: str, rows: Sequence[str]) -> str:
    places = range(len(matrix.columns))
    names = "".join(f" {code(matrix.name(place))} |" for place in places)
    return f"| {first} |{names}\n|---|{'---|' * len(places)}\n{''.join(rows)}"


def _sum(matrix: Matrix, title: str, text: Callable[[Matrix, int], str]) -> str:
    return f"| {title} |{''.join(f' {text(matrix, place)} |' for place in range(len(matrix.columns)))}\n"


def _case(matrix: Matrix, row: Row) -> str:
    name = code(f"{row.eval_set_id}:{row.case.eval_id}")
    return f"| {name} |{''.join(f' {_cell(cell)} |' for cell in row.cells)}\n"


def _cell(cell: Cell) -> str:
    """`✗ 2/5 $0.0021 1.2 s ▼`"""
    row = cell_row(cell)
    if row is None:
        return no_result(cell)[0]
    direction = "".join(mark for mark, _ in row.direction)
    return " ".join(filter(None, (row.status[0], row.figure, row.cost, row.time, direction)))
