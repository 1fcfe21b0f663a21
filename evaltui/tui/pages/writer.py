"""Puts a page together: lines for a given width, and where in them each turn begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evaltui.reports.lines import Line, Span, cells, cut, pad, wrap

# Longer lines are hard to read, and their end is far from what it belongs to.
MAX_WIDTH = 110
MIN_WIDTH = 24
# The column that holds labels such as `user` and `answer 0.92`.
LABEL = 12


@dataclass
class Page:
    """`turns` maps a turn, from 0, to the number of the line that it begins in."""

    width: int
    lines: list[Line] = field(default_factory=list)
    turns: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.width = max(MIN_WIDTH, min(self.width, MAX_WIDTH))

    def blank(self) -> None:
        """An empty line, unless there is one or nothing is above it."""
        if self.lines and self.lines[-1]:
            self.lines.append([])

    def row(self, *spans: Span) -> None:
        """One line, cut where it is too long."""
        self.lines.append(cut(list(spans), self.width))

    def text(self, spans: Sequence[Span], first: Sequence[Span] = ()) -> None:
        """Text of any length, wrapped behind `first`, or below it where that leaves too little room."""
        margin = cells(first)
        if margin > self.width // 2:
            self.hanging([*first, *spans], 4)
            return
        for number, line in enumerate(wrap(spans, max(8, self.width - margin))):
            self.lines.append([*(first if number == 0 else [(" " * margin, "")]), *line])

    def hanging(self, spans: Sequence[Span], indent: int) -> None:
        """Text of any length; what does not fit in its first line goes on behind `indent` cells."""
        for number, line in enumerate(wrap(spans, max(8, self.width - indent))):
            self.lines.append(line if number == 0 else [(" " * indent, ""), *line])

    def block(self, spans: Sequence[Span], indent: int) -> None:
        """Text of any length, all of it behind `indent` cells."""
        self.text(spans, [(" " * indent, "")])

    def labelled(self, label: str, spans: Sequence[Span], tone: str = "dim") -> None:
        """Text behind a label in the column that all labels share."""
        self.text(spans, [("  " + pad(label, LABEL), tone)])
