"""The two widgets in which a text is typed in its place on a page: a line, and a text of many lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Input, TextArea

from evaltui.tui.bindings import bindings
from evaltui.tui.widgets.typed_text import shown_safely
from evaltui.workbench.actions import Scope

Tell = Callable[[str], None]

_JSON_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))'
    r'|(?P<string>"(?:[^"\\]|\\.)*"?)'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b)"
)
# In a text of many lines these move the cursor and begin a line.
_OF_LINES = ("end_field", "next_choice", "previous_choice")


class _Told:
    """Hands every key that ends a field to who opened it, at once: what is typed next goes elsewhere."""

    tell: Tell

    def action_end_field(self) -> None:
        self.tell("end_field")

    def action_end_text(self) -> None:
        self.tell("end_text")

    def action_leave_field(self) -> None:
        self.tell("leave_field")

    def action_next_field(self) -> None:
        self.tell("next_field")

    def action_previous_field(self) -> None:
        self.tell("previous_field")

    def action_save_field(self) -> None:
        self.tell("save_field")

    def action_next_choice(self) -> None:
        self.tell("next_choice")

    def action_previous_choice(self) -> None:
        self.tell("previous_choice")

    def action_field_in_editor(self) -> None:
        self.tell("field_in_editor")


class FieldLine(_Told, Input):
    BINDINGS = bindings(Scope.FIELD)

    def __init__(self, tell: Tell, *, id: str) -> None:
        super().__init__(compact=True, select_on_focus=False, id=id)
        self.tell = tell

    @property
    def typed(self) -> str:
        return self.value

    def begin(self, text: str, *, selected: bool) -> None:
        """Show a text, all of it selected or the cursor at its end."""
        self.value = text
        self.action_end()
        if selected:
            self.select_all()


class FieldText(_Told, TextArea):
    BINDINGS: ClassVar[list[BindingType]] = [
        binding
        for binding in bindings(Scope.FIELD)
        if not (isinstance(binding, Binding) and binding.id in _OF_LINES)
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tone-key", "tone-string", "tone-number"}

    def __init__(self, tell: Tell, *, id: str, line_numbers: bool = False) -> None:
        super().__init__(compact=True, show_line_numbers=line_numbers, id=id)
        self.tell = tell
        self.is_json = False

    @property
    def typed(self) -> str:
        return self.text

    def begin(self, text: str, *, selected: bool, is_json: bool = False) -> None:
        self.is_json = is_json
        self.load_text(text)
        if selected:
            self.select_all()
        else:
            self.move_cursor(self.document.end)

    def get_line(self, line_index: int) -> Text:
        """JSON in colours, line by line: none of its texts goes over the end of a line."""
        line = shown_safely(super().get_line(line_index))
        if self.is_json:
            for token in _JSON_TOKEN.finditer(line.plain):
                style = self.get_component_rich_style(f"tone-{token.lastgroup}", partial=True)
                line.stylize(style, token.start(), token.end())
        return line
