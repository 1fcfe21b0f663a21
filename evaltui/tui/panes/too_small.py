"""What is said where the terminal has no room for the screen."""

from __future__ import annotations

from textual.geometry import Size

from evaltui.text.lines import Line, wrap
from evaltui.tui.widgets.line_view import LineView

MIN_WIDTH, MIN_HEIGHT = 60, 16


def is_too_small(size: Size) -> bool:
    return size.width < MIN_WIDTH or size.height < MIN_HEIGHT


class TooSmall(LineView, can_focus=False, inherit_bindings=False):
    """Covers the screen, which stays as it is below."""

    def on_resize(self) -> None:
        size = self.app.size
        sentence = (
            f"evaltui needs {MIN_WIDTH} columns and {MIN_HEIGHT} rows; this terminal has "
            f"{size.width} and {size.height}. Nothing is lost: make it larger."
        )
        self._lines = wrap([(sentence, "")], max(1, size.width))
        self.lines_changed(len(self._lines))

    def line(self, number: int) -> Line:
        return self._lines[number]
