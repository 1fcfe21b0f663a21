"""A scatter plot of named points, such as pass rates by cost, as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len

from evaltui.text.figures import show_rate
from evaltui.text.glyphs import EMPTY_BAR, THRESHOLD
from evaltui.text.lines import Line, Span, pad

_MARK = "●"
# Cells of `100% │`.
_MARGIN = 6
_MIN_HEIGHT = 3
_STEPS = 4


class Point(NamedTuple):
    """A named point of a scatter plot."""

    x: float
    y: float
    """From 0 to 1."""
    name: str
    role: str


def scatter_plot(
    points: Sequence[Point], width: int, height: int, show_x: Callable[[float], str]
) -> list[Line]:
    """A plot of points above an axis from 0 to the greatest x, in `height` lines; [] without room or points.

    Later points are drawn over earlier ones. The bottom of the plot is the highest multiple of 25% that is
    below all points. Names without room are omitted.
    """
    rows, columns = height - 2, width - _MARGIN
    if not points or rows < _MIN_HEIGHT or columns < 2 * _MARGIN:
        return []
    low = min(int(min(point.y for point in points) * _STEPS) / _STEPS, 1 - 1 / _STEPS)
    most = max(point.x for point in points) or 1.0
    drawn = [[(" ", "")] * columns for _ in range(rows)]
    for point in points:
        column = round(point.x / most * (columns - 1))
        row = round((1 - (point.y - low) / (1 - low)) * (rows - 1))
        drawn[row][column] = (_MARK, point.role)
        _write_name(drawn, row, column, point)
    labels = _axis_labels(low, rows)
    lines = [
        [(f"{labels.get(number, ''):>{_MARGIN - 2}} ", "muted"), (THRESHOLD, "line"), *_join_cells(cells)]
        for number, cells in enumerate(drawn)
    ]
    last = show_x(most)
    axis: Line = [(" " * (_MARGIN - 1), ""), ("└" + EMPTY_BAR * columns, "line")]
    return [*lines, axis, [(" " * _MARGIN, ""), (pad(show_x(0), columns - cell_len(last)) + last, "muted")]]


def _join_cells(cells: Sequence[Span]) -> Line:
    """Joins neighboring cells of one role to one text."""
    runs = groupby(cells, key=lambda cell: cell[1])
    return [("".join(text for text, _ in run), role) for role, run in runs]


def _axis_labels(low: float, rows: int) -> dict[int, str]:
    steps = round((1 - low) * _STEPS)
    return {round(step * (rows - 1) / steps): show_rate(1 - step / _STEPS) for step in range(steps + 1)}


def _write_name(drawn: list[Line], row: int, column: int, point: Point) -> None:
    """Writes the name of a point behind it; before it where there is no room behind."""
    size = cell_len(point.name)
    for start in (column + 2, column - 1 - size):
        end = start + size
        room = drawn[row][max(0, start - 1) : end + 1]
        if start >= 0 and end <= len(drawn[row]) and all(text in (" ", _MARK) for text, _ in room):
            free = drawn[row][start:end]
            if all(text == " " for text, _ in free):
                # The name is one span: the cells that it covers are empty ones.
                drawn[row][start:end] = [(point.name, point.role), *[("", "")] * (size - 1)]
                return
