"""The two widgets in which a text is typed in its place: one that `enter` ends, and one of many lines."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from evaltui.tui.action_screen import bindings
from evaltui.tui.textual_private import ExactTextArea
from evaltui.tui.widgets.typed_text import as_one_line
from evaltui.workbench.actions import Scope

_JSON_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))'
    r'|(?P<string>"(?:[^"\\]|\\.)*"?)'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b)"
)
# In a text of many lines these move the cursor and begin a line.
_OF_LINES = ("end_field", "next_choice", "previous_choice")


def _bindings(*, of_lines: bool) -> list[BindingType]:
    return [
        binding
        for binding in bindings(Scope.FIELD)
        if isinstance(binding, Binding) and (binding.id in _OF_LINES) is of_lines
    ]


class FieldText(ExactTextArea):
    """A text of many lines; `is_json` has its tokens coloured. The keys that end it are actions of the pane
    or screen around it."""

    BINDINGS: ClassVar[list[BindingType]] = _bindings(of_lines=False)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tone-key", "tone-string", "tone-number"}

    def __init__(self, *, id: str, line_numbers: bool = False) -> None:
        super().__init__(compact=True, show_line_numbers=line_numbers, id=id)
        self.is_json = False

    @property
    def typed(self) -> str:
        return self.text

    def begin(self, text: str, *, selected: bool, is_json: bool = False) -> None:
        """Show a text, all of it selected or the cursor at its end."""
        self.is_json = is_json
        self.load_text(text)
        if selected:
            self.select_all()
        else:
            self.move_cursor(self.document.end)

    def get_line(self, line_index: int) -> Text:
        """JSON in colours, line by line: none of its texts goes over the end of a line."""
        line = super().get_line(line_index)
        if self.is_json:
            for token in _JSON_TOKEN.finditer(line.plain):
                style = self.get_component_rich_style(f"tone-{token.lastgroup}", partial=True)
                line.stylize(style, token.start(), token.end())
        return line


class FieldLine(FieldText):
    """A text that `enter` ends. It grows with what is pasted into it, unless it is a name: `one_line`."""

    BINDINGS: ClassVar[list[BindingType]] = _bindings(of_lines=True)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.one_line = True
        # In a form it is one line high; who has room for more sets this.
        self.soft_wrap = False

    def taken(self, insert: str) -> str:
        insert = super().taken(insert)
        if insert.find("\n") == len(insert) - 1:
            # A line that was copied as a whole.
            return insert[:-1]
        return as_one_line(insert) if self.one_line else insert
