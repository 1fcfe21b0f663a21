"""Lines of which one is the current one."""

from __future__ import annotations

from textual import events

from evaltui.tui.widgets.line_view import LineView


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
