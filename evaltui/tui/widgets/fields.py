"""Input widgets: one line, many lines, a filter, a message."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import Input

from evaltui.text.glyphs import text_for_terminal
from evaltui.text.lines import Line, wrap
from evaltui.text.syntax import json_line
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.textual_private import ExactTextArea, TextField, call_later_once
from evaltui.tui.theme import palette
from evaltui.tui.widgets.lines import paint, plain_text
from evaltui.workbench.actions import Scope

# Terminals paste the end of a line as a carriage return.
_LINE_ENDS = re.compile(r"\s*[\r\n]\s*")


def join_lines(text: str) -> str:
    """Joins lines to one, for values such as names."""
    return _LINE_ENDS.sub(" ", text.strip("\r\n"))


class OneLineInput(TextField, Input):
    """An input that joins pasted lines, where Textual's own takes the first and drops the others."""

    @property
    def typed(self) -> str:
        return self.value

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        if event.text:
            self.replace(join_lines(event.text), *self.selection)

    def action_paste(self) -> None:
        self.replace(join_lines(self.app.clipboard), *self.selection)


class FieldText(ExactTextArea):
    """A text of many lines; `is_json` colours its tokens. The keys that end it are actions of the pane or
    screen around it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.TEXT)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"role-key", "role-string", "role-number"}

    def __init__(self, *, id: str, line_numbers: bool = False) -> None:
        super().__init__(compact=True, show_line_numbers=line_numbers, id=id)
        self.is_json = False

    def show_text(self, text: str, *, selected: bool, is_json: bool = False) -> None:
        """Shows a text, all of it selected or with the cursor at its end."""
        self.is_json = is_json
        self.load_text(text)
        if selected:
            self.select_all()
        else:
            self.move_cursor(self.document.end)

    def get_line(self, line_index: int) -> Text:
        """A line, with JSON coloured line by line: JSON strings never cross line ends."""
        line = super().get_line(line_index)
        spans = json_line(line.plain) if self.is_json else []
        # Characters that are spelt out elsewhere keep their places in a field, without colours.
        if plain_text(spans) == line.plain:
            end = 0
            for text, role in spans:
                start, end = end, end + len(text)
                line.stylize(palette(self.app).style(role).rich_style, start, end)
        return line


class FieldLine(FieldText):
    """A text that `enter` ends. It grows with pasted lines, unless it is a name: `one_line`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.FIELD)
    scope = Scope.FIELD

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.one_line = True
        # In a form it is one line high; who has room for more sets this.
        self.soft_wrap = False

    def text_to_insert(self, insert: str) -> str:
        insert = super().text_to_insert(insert)
        if insert.find("\n") == len(insert) - 1:
            # A line that was copied as a whole.
            return insert[:-1]
        return join_lines(insert) if self.one_line else insert


_MAX_LINES = 3
# Seconds without a further letter: of a word that is typed or pasted at once, only the whole is looked for.
_PAUSE_SECONDS = 0.005


class FilterLine(OneLineInput):
    """Filters while the user types. It is visible while it has the focus or a text."""

    BINDINGS = bindings(Scope.FILTER)
    scope = Scope.FILTER
    example: ClassVar[tuple[str, ...]] = ()
    """A filter as an example, as much of it as fits."""
    examples: ClassVar[tuple[str, ...]] = ()
    """The parts of a filter, for the hint."""
    always: ClassVar[bool] = False
    """Whether it is also visible while it is empty and not focused; it shows `idle` then."""
    idle: ClassVar[str] = ""

    def __init__(self, *, id: str) -> None:
        super().__init__(compact=True, id=id)
        self._followed = ""
        self._timer: Timer | None = None
        self._below: list[Line] = []

    @abstractmethod
    def filter_text(self) -> str:
        """The current filter."""

    @abstractmethod
    def set_filter(self, text: str) -> None: ...

    @abstractmethod
    def problem(self) -> str:
        """Why the filter cannot be parsed."""

    def follow(self) -> None:
        """Shows the current filter, also where it was set elsewhere."""
        text = self.filter_text()
        if text != self._followed:
            self._followed = self.value = text
        self.display = self.always or self.has_focus or bool(text)
        self._write_below()

    def on_input_changed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = call_later_once(self, _PAUSE_SECONDS, self.apply)

    def apply(self) -> None:
        """Applies the typed text."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self.value != self.filter_text():
            # Not to be taken for a filter set from elsewhere.
            self._followed = self.value
            self.set_filter(self.value)

    def _write_below(self) -> None:
        # Textual would break a longer one into lines.
        example = " ".join(first_words(self.example, self.content_size.width, 1))
        self.placeholder = self.idle if self.idle and not self.has_focus else example
        below = self._remark()
        if below != self._below:
            self._below = below
            self.styles.height = 1 + len(below)
            self.refresh(layout=True)

    on_resize = _write_below

    def _remark(self) -> list[Line]:
        """The problem of the filter, or a hint while it is empty."""
        width = max(8, self.content_size.width)
        if problem := self.problem():
            return wrap([(f"! {visible(problem)}", "warning")], width)[:_MAX_LINES]
        if not self.has_focus or self.value:
            return []
        return [[("   ".join(first_words(self.examples, width, 3)), "muted")]]

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return super().render_line(y)
        width = self.content_size.width
        return paint(self, self._below[y - 1], width) if y <= len(self._below) else Strip.blank(width)


def first_words(words: Sequence[str], width: int, gap: int) -> list[str]:
    """The first words that fit in `width` cells, `gap` cells apart."""
    fitting: list[str] = []
    for word in words:
        width -= len(word) + (gap if fitting else 0)
        if width < 0:
            break
        fitting.append(word)
    return fitting


class MessageField(ExactTextArea):
    """The text of a message. Keys with other effects are actions of the box around it.

    `detach` is called for backspace at the start.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.MESSAGE)
    scope = Scope.MESSAGE

    def __init__(self, detach: Callable[[], None], placeholder: str, *, id: str) -> None:
        shown = text_for_terminal(placeholder)
        super().__init__(compact=True, highlight_cursor_line=False, placeholder=shown, id=id)
        self._drop_attached = detach

    def show_text(self, text: str) -> None:
        """Shows a text with the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_delete_left(self) -> None:
        if self.selection.is_empty and self.cursor_location == (0, 0):
            self._drop_attached()
        else:
            super().action_delete_left()

    @property
    def wrapped_row(self) -> int:
        return self.wrapped_document.location_to_offset(self.cursor_location).y
