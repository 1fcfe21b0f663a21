"""A single line of text, and the rule that titles sit on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.strip import Strip
from textual.widget import Widget

from evaltui.text.lines import Line, Span, cells, cut
from evaltui.tui.widgets.painting import paint, tone_classes


class OneLine(Widget):
    """Shows `line(width)`, which a subclass says."""

    COMPONENT_CLASSES: ClassVar[set[str]] = tone_classes()

    def line(self, width: int) -> Line:
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        return paint(self, self.line(width), width) if y == 0 else Strip.blank(width)


def both_ends(left: Sequence[Span], right: Sequence[Span], width: int) -> Line:
    """One text on the left, one on the right; the left one is cut where they would meet."""
    room = width - cells(right)
    if room < 4:
        return cut(list(left), width)
    kept = cut(list(left), max(0, room - 2))
    return [*kept, (" " * (room - cells(kept)), ""), *right]


def rule(left: Sequence[Span], right: Sequence[Span], width: int, *, heavy: bool) -> Line:
    """`── left ──────── right ──`; heavy lines in the accent tone for what has the focus."""
    stroke, tone = ("━", "accent") if heavy else ("─", "dim")
    ends = 8 + (2 if right else 0)
    kept = cut(list(left), max(4, width - ends))
    shown = list(right) if cells(kept) + cells(right) + ends + 2 <= width else []
    tail: Line = [(" ", ""), *shown, (" ", ""), (stroke * 2, tone)] if shown else []
    fill = width - 4 - cells(kept) - cells(tail)
    return [(stroke * 2, tone), (" ", ""), *kept, (" ", ""), (stroke * max(0, fill), tone), *tail]
