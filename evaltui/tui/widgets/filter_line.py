"""A line in which a filter is typed, and what there is to say about it below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.strip import Strip
from textual.timer import Timer

from evaltui.text.lines import Line, wrap
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.painting import paint, tone_classes
from evaltui.tui.widgets.typed_text import OneLineInput
from evaltui.workbench.actions import Scope

_MOST_LINES = 3
# Seconds without a further letter: of a word that is typed or pasted at once, only the whole is looked for.
_PAUSE = 0.005


class FilterLine(OneLineInput):
    """Filters while one types. It is seen while it is typed in, and as long as it has a text.

    `example` is a filter that says what can be typed, `examples` what an empty one may be made of: as many
    as there is room for.
    """

    BINDINGS = bindings(Scope.FILTER)
    COMPONENT_CLASSES: ClassVar[set[str]] = tone_classes()

    example: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, id: str) -> None:
        super().__init__(compact=True, id=id)
        self._followed = ""
        self._soon: Timer | None = None
        self._below: list[Line] = []

    def filter_text(self) -> str:
        """The filter that is set."""
        raise NotImplementedError

    def set_filter(self, text: str) -> None:
        raise NotImplementedError

    def problem(self) -> str:
        """What of it cannot be understood."""
        raise NotImplementedError

    def follow(self) -> None:
        """Show the filter that is set, also where it was not set from here."""
        text = self.filter_text()
        if text != self._followed:
            self._followed = self.value = text
        self.display = self.has_focus or bool(text)
        self._write_below()

    def on_input_changed(self) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._soon = once(self, _PAUSE, self.apply)

    def apply(self) -> None:
        """Filter by what has been typed by now."""
        if self._soon is not None:
            self._soon.stop()
            self._soon = None
        if self.value != self.filter_text():
            # Not to be taken for a filter set from elsewhere.
            self._followed = self.value
            self.set_filter(self.value)

    def on_resize(self) -> None:
        # Textual would break a longer one into lines.
        self.placeholder = " ".join(_fitting(self.example, self.content_size.width, 1))
        self._write_below()

    def _write_below(self) -> None:
        below = self._remark()
        if below != self._below:
            self._below = below
            self.styles.height = 1 + len(below)
            self.refresh(layout=True)

    def _remark(self) -> list[Line]:
        """What cannot be understood, and what can be typed while nothing is."""
        width = max(8, self.content_size.width)
        if problem := self.problem():
            return wrap([(f"! {visible(problem)}", "yellow")], width)[:_MOST_LINES]
        if not self.has_focus or self.value:
            return []
        return [[("   ".join(_fitting(self.examples, width, 3)), "dim")]]

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return super().render_line(y)
        width = self.content_size.width
        return paint(self, self._below[y - 1], width) if y <= len(self._below) else Strip.blank(width)


def _fitting(words: Sequence[str], width: int, gap: int) -> list[str]:
    """The first words, as many as `width` cells hold."""
    fitting: list[str] = []
    for word in words:
        width -= len(word) + (gap if fitting else 0)
        if width < 0:
            break
        fitting.append(word)
    return fitting
