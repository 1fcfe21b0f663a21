"""Blocks of one or more lines with a cursor; new blocks are added at the end."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right

from textual import events

from evaltui.text.lines import Line
from evaltui.tui.widgets.lines import LineView

# What was drawn last is drawn again with every piece of a streamed text.
_MAX_CACHED = 512


class BlockLines(LineView, can_focus=True, inherit_bindings=False):
    """A list of blocks; only visible ones are written. The view follows the end while it is visible.

    A subclass writes `block(number)` for the current width, returns its `height` where that is known without
    writing it, and calls `blocks_changed`. An empty line separates blocks.
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.cursor = 0
        self._ends: list[int] = []
        self._written: dict[int, list[Line]] = {}
        self._wide = 0
        # Not the same as being at the end: what is new is laid out only later.
        self._follows = True

    @abstractmethod
    def block(self, number: int) -> list[Line]: ...

    def height(self, number: int) -> int:
        return len(self._block(number))

    @abstractmethod
    def open_current(self) -> None:
        """Opens the current block, by a double click."""

    @property
    def shows_cursor(self) -> bool:
        return True

    @property
    def block_count(self) -> int:
        return len(self._ends)

    @property
    def lines_below(self) -> int:
        """The number of lines below the visible part; 0 while the end is followed."""
        return 0 if self._follows else max(0, self.line_count - self.scroll_offset.y - self.size.height)

    @property
    def new_rows(self) -> int:
        """The number of new blocks below the visible part."""
        return 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value + self.size.height >= self.line_count:
            self._follows = True
        elif new_value < old_value:
            self._follows = False

    # Blocks and their lines

    def blocks_changed(self, first: int, count: int) -> None:
        """Notes that there are `count` blocks now; those before `first` have not changed."""
        if self.line_width != self._wide:
            self._wide, first = self.line_width, 0
        was_last = self.cursor >= self.block_count - 1
        del self._ends[first:]
        self._written = {number: block for number, block in self._written.items() if number < first}
        end = self._ends[-1] if self._ends else 0
        for number in range(first, count):
            end += self.height(number)
            self._ends.append(end)
        if was_last or self.cursor >= count:
            self.cursor = max(0, count - 1)
        self.lines_changed(end)
        if self._follows:
            # How much there is to scroll is known once it has been laid out.
            self.call_after_refresh(self.show_end)

    def show_end(self) -> None:
        self._follows = True
        self.scroll_to(y=max(0, self.line_count - self.size.height), animate=False, force=True)

    def on_resize(self) -> None:
        if self.block_count:
            self.blocks_changed(0 if self.line_width != self._wide else self.block_count, self.block_count)

    def _block(self, number: int) -> list[Line]:
        block = self._written.get(number)
        if block is None:
            if len(self._written) >= _MAX_CACHED:
                self._written.clear()
            block = self._written[number] = self.block(number)
        return block

    def top_of(self, number: int) -> int:
        return self._ends[number - 1] if number else 0

    def number_at(self, line: int) -> int:
        """The block of a line."""
        return bisect_right(self._ends, line)

    def line(self, number: int) -> Line:
        block = self.number_at(number)
        line = self._block(block)[number - self.top_of(block)]
        if not line:
            return []
        marker = "▌" if block == self.cursor and self.shows_cursor else " "
        return [(marker, "bold accent" if self.has_focus else "muted"), *line]

    def row_role(self, number: int) -> str:
        if not self.shows_cursor or not self.line(number):
            return ""
        block = self.number_at(number)
        is_pointed = 0 <= self.pointed < self.line_count and block == self.number_at(self.pointed)
        return "current" if block == self.cursor else "sel-blur" if is_pointed else ""

    def pointer_moved(self, before: int) -> None:
        self.refresh()

    # Going about

    def move_to(self, number: int) -> None:
        if not self.block_count:
            return
        upwards = number < self.cursor
        self.cursor = max(0, min(number, self.block_count - 1))
        top, last = self.top_of(self.cursor), self._ends[self.cursor] - 1
        seen = max(1, self.size.height) - 1
        # Of what is longer than the screen, the end that one comes from.
        for line in (max(top, last - seen), last) if upwards else (min(last, top + seen), top):
            self.show_line(line)
        self.refresh()

    def action_step_line(self, step: int) -> None:
        # What is longer than the screen is read before it is left.
        if self.block_count and self._has_more(step):
            self.scroll_relative(y=step, animate=False)
        else:
            self.move_to(self.cursor + step)

    def _has_more(self, step: int) -> bool:
        """Whether the current block continues above or below the visible part."""
        top = self.scroll_offset.y
        if step > 0:
            return self._ends[self.cursor] > top + self.size.height
        return self.top_of(self.cursor) < top

    def action_step_page(self, step: int) -> None:
        if not self.block_count:
            return
        line = self.top_of(self.cursor) + step * max(1, self.size.height - 1)
        number = min(self.number_at(max(0, line)), self.block_count - 1)
        self.move_to(number if number != self.cursor else self.cursor + step)

    def action_top(self) -> None:
        self.move_to(0)
        self.show_line(0)

    def action_bottom(self) -> None:
        self.move_to(self.block_count - 1)
        self.show_end()

    def on_click(self, event: events.Click) -> None:
        line = self.scroll_offset.y + event.y
        if line < self.line_count:
            if event.chain == 1:
                self.move_to(self.number_at(line))
            if event.chain == 2:
                self.open_current()
