"""The console report of a matrix: a row for each case, a column for each variant, and totals below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from rich.cells import cell_len

from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.model.variants import Variant
from evaltui.reports.matrix_report import MatrixReport, baseline_lines
from evaltui.text.columns import Column, Table
from evaltui.text.figures import counted
from evaltui.text.lines import Line, cells, draw, pad, wrap
from evaltui.text.values import cut as limited
from evaltui.text.values import visible
from evaltui.views.matrix import cell_line, change_text, matrix_facts, sum_rows
from evaltui.views.variant_verdict import verdict_lines

_MIN_WIDTH = 40
# From so many cases on, only those are shown that differ.
_MANY_CASES = 40
_GAP = 2
_MIN_CELLS = 12
_MAX_TITLE = 32


def render_matrix(report: MatrixReport, *, color: bool, width: int) -> str:
    """The text of the report for `width` cells, at least 40; variants that do not fit are in further
    tables."""
    width = max(width, _MIN_WIDTH)
    return "".join(f"{draw(line, color=color)}\n" for line in _report(report, width))


def _report(report: MatrixReport, width: int) -> Iterator[Line]:
    matrix = report.matrix
    head: Line = [(f"matrix {visible(report.id)}", "bold")]
    facts = matrix_facts(matrix, report.seconds)
    yield [*head, (f" ({facts['size']})", "")]
    yield from _variants(report, width)
    yield []
    rows, alike = _shown_rows(matrix)
    for columns in _blocks(matrix, rows, width):
        yield from _table(matrix, rows, columns)
        yield []
    if alike:
        yield [(f"{counted(alike, 'case')} alike in all variants not shown; csv and json have all", "muted")]
    for line in baseline_lines(report):
        yield from wrap(line, width)
    for note in report.notes:
        yield from wrap([("note  ", "warning"), (visible(note), "")], width)
    if "missing" in facts:
        yield from wrap([(f"{visible(facts['missing'])} missing", "warning")], width)
    for verdict in verdict_lines(matrix):
        yield from wrap(verdict, width)
    if "took" in facts:
        yield [(f"in {facts['took']}", "muted")]


def _variants(report: MatrixReport, width: int) -> Iterator[Line]:
    """The changes of each variant, as reported by its host, else as configured."""
    names = [visible(report.matrix.name(place)) for place in range(len(report.matrix.columns))]
    longest = max(map(cell_len, names))
    for name, run, done, log in zip(names, report.matrix.columns, report.changes, report.logs, strict=True):
        changes = ", ".join(_change(**change) for change in done) or variant_text(run.variant)
        lines = [*wrap([(visible(changes), "")], width - longest - _GAP)]
        if log is not None:
            lines += wrap([(f"log {visible(log)}", "muted")], width - longest - _GAP)
        for number, line in enumerate(lines):
            yield [(pad("" if number else name, longest + _GAP), "bold"), *line]


def _change(what: str, old: str, new: str) -> str:
    return f"{what} {limited(old, _MAX_TITLE)} → {limited(new, _MAX_TITLE)}" if old else f"{what} {new}"


def variant_text(variant: Variant | None) -> str:
    """The changes of a variant: `model=gemini-2.5-pro, config.temperature=0`; a note for a variant without
    changes."""
    if variant is None or not variant.changes:
        return "the agent as it is"
    return ", ".join(f"{change.key}={change_text(change)}" for change in variant.changes)


def _shown_rows(matrix: Matrix) -> tuple[list[Row], int]:
    """The rows of the table, and the number of omitted rows without differences."""
    if len(matrix.rows) <= _MANY_CASES:
        return list(matrix.rows), 0
    rows = [row for row in matrix.rows if row.differs]
    return rows, len(matrix.rows) - len(rows)


# The cells of a line of the table: of its title, then of each variant.
_Cells = Sequence[Line]


def _blocks(matrix: Matrix, rows: Sequence[Row], width: int) -> Iterator[list[Column[_Cells]]]:
    """The columns of each table, as many as fit in the width; the titles come first."""
    names = [cell_len(visible(row.case.eval_id)) + 2 for row in rows]
    first = min(max([*names, *map(len, sum_rows(matrix))]), width // 3)
    titles: Column[_Cells] = Column("", itemgetter(0), first, gap=0)
    left, block = width - first, [titles]
    for place in range(len(matrix.columns)):
        texts = [visible(matrix.name(place)), *(texts[place] for texts in sum_rows(matrix).values())]
        widths = [*map(cell_len, texts), *(cells(cell_line(row.cells[place])) for row in rows)]
        needed = min(max(_MIN_CELLS, *widths), width - first - _GAP)
        if len(block) > 1 and needed + _GAP > left:
            yield block
            left, block = width - first, [titles]
        block.append(Column("", itemgetter(place + 1), needed))
        left -= needed + _GAP
    yield block


def _table(matrix: Matrix, rows: Sequence[Row], columns: Sequence[Column[_Cells]]) -> Iterator[Line]:
    table = Table(columns, (), 0)
    places = range(len(matrix.columns))
    yield table.line([[], *([(visible(matrix.name(place)), "bold")] for place in places)])
    label = ""
    for row in rows:
        if row.case.path != label:
            label = row.case.path
            yield [(visible(matrix.set_names[label]), "bold")]
        title: Line = [(f"  {visible(row.case.eval_id)}", "")]
        yield table.line([title, *map(cell_line, row.cells)])
    yield [("─" * sum(column.min_width + column.gap for column in columns), "muted")]
    for text, texts in sum_rows(matrix).items():
        yield table.line([[(text, "muted")], *([(figure, "")] for figure in texts)])
