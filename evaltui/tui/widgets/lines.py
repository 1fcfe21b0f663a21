"""Lines of `(text, role)`, and the widgets that draw them.

A role is the meaning of a text, which the theme turns into a style. Texts are drawn literally: they have no
markup.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from evaltui.text.glyphs import line_for_terminal
from evaltui.text.lines import Line, Span, cells, cut, with_role
from evaltui.text.syntax import color_json
from evaltui.text.values import cut as cut_text
from evaltui.tui.theme import palette

# Letters; more would cover the screen.
_MAX_TOOLTIP = 600


def paint(widget: Widget, line: Sequence[Span], width: int, row: str = "") -> Strip:
    """A line as a strip of exactly `width` cells, cut with `…` where it is longer.

    `row` is the role of the whole line, below the roles of its texts; `current` is that of the row with the
    cursor.
    """
    if row == "current":
        row = "sel" if widget.has_focus else "sel-blur"
    styles = palette(widget.app)
    base = widget.visual_style + styles.style(row)
    segments = [
        Segment(text, _rich_style(base, styles.style(role, row)))
        for text, role in line_for_terminal(color_json(cut(list(line), width)))
        if text
    ]
    return Strip(segments).adjust_cell_length(width, base.rich_style)


@lru_cache(maxsize=4096)
def _rich_style(base: Style, style: Style) -> RichStyle:
    return (base + style).rich_style


def content(widget: Widget, line: Sequence[Span], action: str = "") -> Content:
    """A line as content for Textual's widgets; a click on it runs `action`."""
    styles = palette(widget.app)
    click = Style.from_meta({"@click": action}) if action else Style()
    return Content.assemble(*((text, styles.style(role) + click) for text, role in line_for_terminal(line)))


class OneLine(Widget):
    """A line that a subclass draws."""

    ALLOW_SELECT = False
    _drawn: Line | None = None

    @abstractmethod
    def line(self, width: int) -> Line:
        """The line for a width; it is cut where it is longer."""

    def refresh_changed(self) -> None:
        """Draws the line if it has changed. Textual paints everything between two changes, which is the whole
        screen for changes at the top and the bottom."""
        if self.is_attached and self.line(self.size.width) != self._drawn:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y:
            return Strip.blank(width)
        self._drawn = self.line(width)
        return paint(self, self._drawn, width)


class DrawnLine(OneLine):
    """A line that `draw` returns for a width in cells."""

    def __init__(self, draw: Callable[[int], Line], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._draw_line = draw

    def line(self, width: int) -> Line:
        return self._draw_line(width)


class ActionLine(OneLine):
    """Keys with their actions; a click runs one."""

    @abstractmethod
    def parts(self, width: int) -> Iterable[tuple[str, Line]]:
        """The id of each action with its text; "" for the text between actions."""

    def line(self, width: int) -> Line:
        return [span for _, part in self.parts(width) for span in part]

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        left = event.x
        for action, part in self.parts(self.size.width):
            if left < cells(part):
                if action:
                    await self.screen.run_action(action)
                return
            left -= cells(part)


def rule(left: Sequence[Span], right: Sequence[Span], width: int, *, heavy: bool) -> Line:
    """A rule: `── left ──────── right ──`; heavy and in the accent role for the focused part."""
    stroke, role = ("━", "accent") if heavy else ("─", "line")
    ends = 8 + (2 if right else 0)
    shown_left = cut(list(left), max(4, width - ends))
    shown = list(right) if cells(shown_left) + cells(right) + ends + 2 <= width else []
    tail: Line = [(" ", ""), *shown, (" ", ""), (stroke * 2, role)] if shown else []
    fill = width - 4 - cells(shown_left) - cells(tail)
    return [(stroke * 2, role), (" ", ""), *shown_left, (" ", ""), (stroke * max(0, fill), role), *tail]


def plain_text(line: Sequence[Span]) -> str:
    """The texts of a line without their roles."""
    return "".join(text for text, _ in line)


_EMPTY_DRAWING: tuple[int, Line, str] = (-1, [], "")


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines that a subclass draws one by one; invisible lines are not built."""

    line_count = 0
    """Number of lines; set by `lines_changed`."""
    pointed = -1
    """Number of the line under the pointer, 0-based; -1 while there is none."""
    margin_cells = 1
    """Cells at the left for the cursor mark. They cannot be selected."""

    @cached_property
    def _rows_drawn(self) -> dict[int, tuple[int, Line, str]]:
        """The last drawn content of each row of the screen."""
        return {}

    @abstractmethod
    def line(self, number: int) -> Line:
        """A line, by its number from 0."""

    def row_role(self, number: int) -> str:
        """The role of the whole of a line."""
        return ""

    @property
    def line_width(self) -> int:
        return self.scrollable_content_region.width

    def lines_changed(self, count: int) -> None:
        """Draws the changes, after the lines or their number have changed."""
        self.line_count = count
        self.virtual_size = Size(self.line_width, count)
        self.refresh_changed()

    def refresh_changed(self) -> None:
        """Draws the visible lines that have changed."""
        for y in range(self.size.height):
            if self._rows_drawn.get(y) != self._drawing(y):
                self.refresh_line(self.scroll_offset.y + y)

    def _drawing(self, y: int) -> tuple[int, Line, str]:
        """The content of a row: the number of its line, its texts, and its role."""
        number = self.scroll_offset.y + y
        # A copy: a line may be changed in place.
        return (
            (number, [*self.line(number)], self.row_role(number))
            if number < self.line_count
            else _EMPTY_DRAWING
        )

    def on_resize(self) -> None:
        self.lines_changed(self.line_count)

    def full_text(self, number: int) -> str:
        """The text of a line that is cut; "" where it is fully visible."""
        line = self.line(number)
        return plain_text(line).strip(" ▌") if cells(line) > self.line_width else ""

    def on_mouse_move(self, event: events.MouseMove) -> None:
        number = self.scroll_offset.y + event.y
        self._point_at(number if number < self.line_count else -1)

    def on_leave(self) -> None:
        self._point_at(-1)

    def _point_at(self, number: int) -> None:
        if number != self.pointed:
            before, self.pointed = self.pointed, number
            full = cut_text(self.full_text(number), _MAX_TOOLTIP) if number >= 0 else ""
            self.tooltip = Content(full) if full else None
            self.pointer_moved(before)

    def pointer_moved(self, before: int) -> None:
        """The pointer has moved to another line; -1 for none."""

    def on_focus(self) -> None:
        self.refresh()

    on_blur = on_focus

    def render_line(self, y: int) -> Strip:
        self._rows_drawn[y] = number, line, role = self._drawing(y)
        width = self.size.width
        if number < 0:
            return Strip.blank(width, self.visual_style.rich_style)
        if selected := self._selected(number):
            line = with_role("selection", line, *selected)
        return paint(self, line, width, role).apply_offsets(0, number)

    def _selected(self, number: int) -> tuple[int, int] | None:
        """The selected characters of a line, from the first to before the last."""
        span = self.text_selection.get_span(number) if self.text_selection else None
        return span and self.selectable(number, *span)

    def selectable(self, number: int, start: int, end: int) -> tuple[int, int]:
        """The part of a line between two characters that can be selected; an `end` of -1 is that of the
        line."""
        return max(start, self.margin_cells), len(plain_text(self.line(number))) if end < 0 else end

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, without colours and gutter."""
        first = selection.start.y if selection.start else 0
        last = min(selection.end.y if selection.end else self.line_count, self.line_count - 1)
        parts = []
        for number in range(first, last + 1):
            if span := selection.get_span(number):
                start, end = self.selectable(number, *span)
                parts.append(plain_text(self.line(number))[start:end].rstrip())
        return "\n".join(parts), "\n"

    def scroll_page(self, step: int) -> None:
        (self.scroll_page_down if step > 0 else self.scroll_page_up)(animate=False)

    action_step_page = scroll_page

    def show_line(self, number: int) -> None:
        """Scrolls by the smallest distance that shows a line."""
        self.scroll_to_region(Region(0, number, 1, 1), animate=False, force=True)


class ScrolledLines(LineView, can_focus=True, inherit_bindings=False):
    """Lines without a cursor: the keys for moving scroll instead."""

    def action_step_line(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False)

    def action_top(self) -> None:
        self.scroll_home(animate=False)

    def action_bottom(self) -> None:
        self.scroll_end(animate=False)


class CursorLines(LineView, can_focus=True, inherit_bindings=False):
    """Lines with a cursor: keys and clicks move it, a double click opens its line."""

    class Moved(Message):
        """The cursor has moved to another line."""

    class Opened(Message):
        """The user opens the current line."""

    cursor = 0
    """Number of the current line, 0-based."""
    clicks_to_open = 2
    """How many clicks in a row open a line."""

    def open_current(self) -> None:
        self.post_message(self.Opened())

    def marker(self, number: int) -> Span:
        """The first cell of a line: a bar in the current one."""
        return "▌" if number == self.cursor else " ", "bold accent" if self.has_focus else "muted"

    def row_role(self, number: int) -> str:
        return "current" if number == self.cursor else "sel-blur" if number == self.pointed else ""

    def pointer_moved(self, before: int) -> None:
        for line in {before, self.pointed} - {-1}:
            self.refresh_line(line)

    def move_to(self, number: int) -> None:
        self.cursor = max(0, min(number, self.line_count - 1))
        self.show_line(self.cursor)
        self.refresh_changed()
        self.post_message(self.Moved())

    def action_step_line(self, step: int) -> None:
        self.move_to(self.cursor + step)

    def action_step_page(self, step: int) -> None:
        self.move_to(self.cursor + step * max(1, self.size.height - 1))

    def action_top(self) -> None:
        self.move_to(0)

    def action_bottom(self) -> None:
        self.move_to(self.line_count - 1)

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number >= self.line_count:
            return
        # What is under the pointer by the second click may have moved because of the first one.
        if event.chain == 1:
            self.move_to(number)
        if event.chain == self.clicks_to_open:
            self.open_current()


class GrowingLines(CursorLines, can_focus=True, inherit_bindings=False):
    """Lines whose cursor stays at the end once it is there."""

    def lines_changed(self, count: int) -> None:
        """Draws all lines again."""
        was_at_end = self.cursor >= self.line_count - 1
        super().lines_changed(count)
        if was_at_end or self.cursor >= count:
            self.cursor = max(0, count - 1)
            self.call_after_refresh(lambda: self.show_line(self.cursor))

    def start_at(self, number: int) -> None:
        """Resets the cursor, because the lines are others."""
        self.cursor = number
        self.show_line(number)
