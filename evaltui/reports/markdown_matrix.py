"""The matrix for step summaries and comments, as Markdown: the sums of its variants, the cases that differ.

Texts of others are code there, as in the report of a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.compare.matrix import Matrix, Row
from evaltui.reports.markdown_report import MARKER, MOST_BYTES, code
from evaltui.reports.matrix_report import MatrixReport
from evaltui.text.figures import counted
from evaltui.text.lines import draw
from evaltui.views.matrix import cell_line, matrix_facts, sum_rows

# For the sentence about what is left out.
_RESERVE = 400


def markdown_matrix(report: MatrixReport) -> str:
    """A table of the sums and one of the cases that differ, at most 64,000 bytes; the end says what is left
    out."""
    matrix = report.matrix
    text = (
        f"{MARKER}\n{_head(report)}{_table(matrix, '', [_line(*row) for row in sum_rows(matrix).items()])}\n"
    )
    rows = [row for row in matrix.rows if row.differs]
    if not rows:
        where = "every variant" if matrix.is_complete else "these variants"
        return f"{text}All cases came out the same in {where}.\n"
    shown: list[str] = []
    room = MOST_BYTES - _RESERVE - len(text.encode())
    for row in rows:
        line = _case(row)
        room -= len(line.encode())
        if room < 0:
            break
        shown.append(line)
    text += f"### {counted(len(rows), 'case differs', 'cases differ')}\n\n{_table(matrix, 'case', shown)}"
    left = len(rows) - len(shown)
    return f"{text}\n… {counted(left, 'more case')}: the page is full. The CSV has all.\n" if left else text


def _head(report: MatrixReport) -> str:
    matrix = report.matrix
    facts = matrix_facts(matrix, report.seconds)
    took = f" · in {facts['took']}" if "took" in facts else ""
    notes = "".join(f"> {code(note)}\n\n" for note in report.notes)
    if missing := facts.get("missing"):
        notes += f"> {code(missing) if matrix.not_run else missing} missing\n\n"
    return f"## Matrix · {code(report.agent)}\n\n{facts['size']}{took}\n\n{notes}"


def _table(matrix: Matrix, first: str, rows: Sequence[str]) -> str:
    places = range(len(matrix.columns))
    names = "".join(f" {code(matrix.name(place))} |" for place in places)
    return f"| {first} |{names}\n|---|{'---|' * len(places)}\n{''.join(rows)}"


def _case(row: Row) -> str:
    texts = [draw(cell_line(cell), color=False) for cell in row.cells]
    return _line(code(f"{row.eval_set_id}:{row.case.eval_id}"), texts)


def _line(title: str, texts: Sequence[str]) -> str:
    return f"| {title} |{''.join(f' {text} |' for text in texts)}\n"
