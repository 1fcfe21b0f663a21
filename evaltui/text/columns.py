"""Tables: columns of values, fitted to the width of a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from evaltui.text.lines import Line, Span, cells, cut

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table; all widths are in cells."""

    head: str
    """Heading of the column; "" for a column below the heading of the column before it."""
    cell: Callable[[Row], str | Line]
    """Returns the cell of a row."""
    min_width: int
    """Smallest width."""
    max_width: int = 0
    """Largest width: the column is as wide as its longest text, but at most this wide; 0 for `min_width`."""
    spare_max: int = 0
    """Largest width where there is room left after all other columns; 0 for no growth."""
    drop_rank: int = 0
    """Rank for leaving out columns in a narrow line, the highest first; 0 for a column that always stays."""
    role: str = ""
    short_head: str = ""
    """Shorter heading, for a column that is narrower than `head`."""
    head_role: str = "muted"
    gap: int = 2
    """Number of spaces before the column."""
    align_right: bool = False
    """Whether texts are aligned at the right."""

    def line(self, row: Row) -> Line:
        """The whole text of a row in this column."""
        text = self.cell(row)
        return [(text, self.role)] if isinstance(text, str) else text

    def widest_text(self, rows: Sequence[Row]) -> int:
        """Width of the longest text or of the heading, in cells."""
        return max((len(self.head), *(cells(self.line(row)) for row in rows)))


class Table(Generic[Row]):
    """The columns that fit in lines of `width` cells, with widths that cut the texts of `rows` as little as
    possible."""

    def __init__(self, columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> None:
        sizes: dict[int, int] = {}
        places = sorted(range(len(columns)), key=lambda place: columns[place].drop_rank)
        for place in places:
            column = columns[place]
            size = max(column.min_width, min(column.widest_text(rows), column.max_width))
            if not column.drop_rank or size + column.gap <= width:
                sizes[place] = size
                width -= size + column.gap
        for place in places:
            column = columns[place]
            if place in sizes and column.spare_max:
                more = min(column.widest_text(rows), column.spare_max) - sizes[place]
                more = max(0, min(width, more))
                sizes[place] += more
                width -= more
        self._columns = [(columns[place], size) for place, size in sorted(sizes.items())]

    def head(self) -> Line:
        """The line of headings."""
        line: Line = []
        room = 0
        for column, size in reversed(self._columns):
            room += size
            if not column.head and line:
                room += column.gap
                continue
            head = column.head if len(column.head) <= room else column.short_head
            text = head.rjust(room) if column.align_right else head.ljust(room)
            line = [(" " * column.gap, ""), (text, column.head_role), *line]
            room = 0
        return [(" " * room, ""), *line]

    def line(self, row: Row, first: int | None = None, *rest: Span) -> Line:
        """The line of a row; with `first`, only so many columns, followed by `rest`."""
        line: Line = []
        space = 0
        for column, size in self._columns[:first]:
            text = cut(column.line(row), size)
            free = size - cells(text)
            line += [(" " * (space + column.gap + (free if column.align_right else 0)), ""), *text]
            space = 0 if column.align_right else free
        return [*line, (" " * (space + 2), ""), *rest] if rest else line
