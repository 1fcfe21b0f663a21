"""A list as a table: its columns are values, fitted to the cells of a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from evaltui.text.lines import Line, Span, cells, cut

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a list; all widths are in cells."""

    head: str
    """"" for a column below the head of the one before it."""
    cell: Callable[[Row], str | Line]
    """Returns the cell of a row."""
    least: int
    most: int = 0
    """Largest width: a column is as wide as its longest text, up to this; 0 for `least`."""
    grows: int = 0
    """Largest width, of its longest text or its head, where there is still room once all others fit."""
    order: int = 0
    """0 for a column that is always there; of the others, those with a smaller one are left out last."""
    role: str = ""
    short: str = ""
    """Its head where that does not fit."""
    head_role: str = "muted"
    gap: int = 2
    """Spaces before it."""
    right: bool = False
    """Whether its texts end below each other."""

    def line(self, row: Row) -> Line:
        """Its text of a row, as long as it is."""
        text = self.cell(row)
        return [(text, self.role)] if isinstance(text, str) else text

    def longest(self, rows: Sequence[Row]) -> int:
        """Cells of its longest text or its head."""
        return max((len(self.head), *(cells(self.line(row)) for row in rows)))


class Table(Generic[Row]):
    """The columns that there is room for in lines of `width` cells, such that `rows` are cut little."""

    def __init__(self, columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> None:
        sizes: dict[int, int] = {}
        places = sorted(range(len(columns)), key=lambda place: columns[place].order)
        for place in places:
            column = columns[place]
            size = max(column.least, min(column.longest(rows), column.most))
            if not column.order or size + column.gap <= width:
                sizes[place] = size
                width -= size + column.gap
        for place in places:
            column = columns[place]
            if place in sizes and column.grows:
                more = min(column.longest(rows), column.grows) - sizes[place]
                more = max(0, min(width, more))
                sizes[place] += more
                width -= more
        self._columns = [(columns[place], size) for place, size in sorted(sizes.items())]

    def head(self) -> Line:
        """The heads of the columns."""
        line: Line = []
        room = 0
        for column, size in reversed(self._columns):
            room += size
            if not column.head and line:
                room += column.gap
                continue
            head = column.head if len(column.head) <= room else column.short
            text = head.rjust(room) if column.right else head.ljust(room)
            line = [(" " * column.gap, ""), (text, column.head_role), *line]
            room = 0
        return [(" " * room, ""), *line]

    def line(self, row: Row, first: int | None = None, *rest: Span) -> Line:
        """A row in the columns, or in the `first` ones of them and behind those the `rest`."""
        line: Line = []
        space = 0
        for column, size in self._columns[:first]:
            text = cut(column.line(row), size)
            free = size - cells(text)
            line += [(" " * (space + column.gap + (free if column.right else 0)), ""), *text]
            space = 0 if column.right else free
        return [*line, (" " * (space + 2), ""), *rest] if rest else line
