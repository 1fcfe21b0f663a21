"""Widgets that are drawn by line: one line, lines that scroll, lines with a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
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


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows `line(0)` to `line(line_count - 1)`; a subclass says what they are, and calls `lines_changed`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*tone_classes(), "current-line"}

    line_count = 0

    def line(self, number: int) -> Line:
        raise NotImplementedError

    def line_classes(self, number: int) -> tuple[str, ...]:
        """Component classes for the whole of a line."""
        return ()

    @property
    def line_width(self) -> int:
        return self.scrollable_content_region.width

    def lines_changed(self, count: int) -> None:
        """Draw everything anew."""
        self.line_count = count
        self.virtual_size = Size(self.line_width, count)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number = self.scroll_offset.y + y
        width = self.size.width
        if number >= self.line_count:
            return Strip.blank(width, self.visual_style.rich_style)
        return paint(self, self.line(number), width, *self.line_classes(number))

    def show_line(self, number: int) -> None:
        """Scroll as little as it takes to see a line."""
        self.scroll_to_region(Region(0, number, 1, 1), animate=False, force=True)


class ScrolledLines(LineView, can_focus=True, inherit_bindings=False):
    """Lines without a cursor: the keys that move elsewhere scroll here."""

    def action_line_down(self) -> None:
        self.scroll_relative(y=1, animate=False)

    def action_line_up(self) -> None:
        self.scroll_relative(y=-1, animate=False)

    def action_page_down(self) -> None:
        self.scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self.scroll_page_up(animate=False)

    def action_top(self) -> None:
        self.scroll_home(animate=False)

    def action_bottom(self) -> None:
        self.scroll_end(animate=False)


class CursorLines(LineView, can_focus=True, inherit_bindings=False):
    """Moves by keys and clicks. A subclass says what a double click opens."""

    cursor = 0

    def open_current(self) -> None:
        raise NotImplementedError

    def line_classes(self, number: int) -> tuple[str, ...]:
        return ("current-line",) if number == self.cursor else ()

    def move_to(self, number: int) -> None:
        self.cursor = max(0, min(number, self.line_count - 1))
        self.show_line(self.cursor)
        self.refresh()

    def action_line_down(self) -> None:
        self.move_to(self.cursor + 1)

    def action_line_up(self) -> None:
        self.move_to(self.cursor - 1)

    def action_page_down(self) -> None:
        self.move_to(self.cursor + max(1, self.size.height - 1))

    def action_page_up(self) -> None:
        self.move_to(self.cursor - max(1, self.size.height - 1))

    def action_top(self) -> None:
        self.move_to(0)

    def action_bottom(self) -> None:
        self.move_to(self.line_count - 1)

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number >= self.line_count:
            return
        self.move_to(number)
        if event.chain == 2:
            self.open_current()


class GrowingLines(CursorLines, can_focus=True, inherit_bindings=False):
    """The cursor stays at the end, once it is there."""

    def lines_changed(self, count: int) -> None:
        """Draw everything anew."""
        was_at_end = self.cursor >= self.line_count - 1
        super().lines_changed(count)
        if was_at_end or self.cursor >= count:
            self.cursor = max(0, count - 1)
            self.call_after_refresh(self._show_cursor)

    def _show_cursor(self) -> None:
        self.show_line(self.cursor)

    def start_at(self, number: int) -> None:
        """Forget where the cursor was: the lines are others."""
        self.cursor = number
        self.show_line(number)
