"""The line in which a filter of the cases is typed, and what there is to say about it below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.strip import Strip
from textual.widgets import Input

from evaltui.core.show import visible
from evaltui.reports.lines import Line, wrap
from evaltui.tui.bindings import bindings
from evaltui.tui.widgets.painting import paint, tone_classes
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench

_EXAMPLE = ("fail", "tool:book_hotel", "score<0.8", '"late order"')
# What an empty filter may be made of; as many as there is room for.
_EXAMPLES = (
    "a word",
    "pass",
    "tool:x",
    "id:x*",
    "-not",
    '"some words"',
    "set:x",
    "text:x",
    "flaky",
    "not_run",
)
_MOST_LINES = 3


class FilterInput(Input):
    """Filters while one types. It is seen while it is typed in, and as long as it has a text."""

    BINDINGS = bindings(Scope.FILTER)
    COMPONENT_CLASSES: ClassVar[set[str]] = tone_classes()

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(compact=True, id=id)
        self._workbench = workbench
        self._followed = ""
        self._below: list[Line] = []

    def follow(self) -> None:
        """Show the filter that is set, also where it was not set from here."""
        text = self._workbench.filtered.text
        if text != self._followed:
            self._followed = self.value = text
        self.display = self.has_focus or bool(text)
        self._write_below()

    def on_input_changed(self) -> None:
        if self.value != self._workbench.filtered.text:
            # Not to be taken for a filter set from elsewhere: more may have been typed by then.
            self._followed = self.value
            self._workbench.set_filter(self.value)

    def on_resize(self) -> None:
        # Textual would break a longer one into lines.
        self.placeholder = " ".join(_fitting(_EXAMPLE, self.content_size.width, 1))
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
        if problem := self._workbench.filtered.problem:
            return wrap([(f"! {visible(problem)}", "yellow")], width)[:_MOST_LINES]
        if not self.has_focus or self.value:
            return []
        return [[("   ".join(_fitting(_EXAMPLES, width, 3)), "dim")]]

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
