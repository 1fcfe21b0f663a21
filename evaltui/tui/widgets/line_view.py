"""Lines that scroll, drawn one by one: what is not visible costs nothing."""

from __future__ import annotations

from typing import ClassVar

from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from evaltui.text.lines import Line
from evaltui.tui.widgets.painting import paint, tone_classes


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
