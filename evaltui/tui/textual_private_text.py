"""A text area that keeps every character, by private names of Textual's, which are the module's only ones."""

from __future__ import annotations

import re

from rich.text import Text
from textual import events
from textual.document._document import Document, EditResult, Location
from textual.document._document_navigator import DocumentNavigator
from textual.document._wrapped_document import WrappedDocument
from textual.widgets import TextArea

from evaltui.text.values import visible
from evaltui.tui.text_field import TextField

# Terminals paste the end of a line as a carriage return.
_PASTED_NEWLINE = re.compile("\r\n?")
_DELETE = 0x7F


class ExactDocument(Document):
    """Lines end with a line feed, or all of them with carriage return and line feed; all else is text."""

    def __init__(self, text: str) -> None:
        super().__init__("")
        count = text.count("\n")
        self._newline = "\r\n" if count and text.count("\r\n") == count else "\n"
        self._lines = text.split(self._newline)

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        (top, left), (bottom, right) = top_end, bottom_end = sorted((start, end))
        replaced = self.get_text_range(top_end, bottom_end)
        before = self._lines[top][:left] if top < len(self._lines) else ""
        after = self._lines[bottom][right:] if bottom < len(self._lines) else ""
        new = text.replace(self._newline, "\n").split("\n")
        new[0] = before + new[0]
        column = len(new[-1])
        new[-1] += after
        self._lines[top : bottom + 1] = new
        return EditResult((top + len(new) - 1, column), replaced)


class ExactTextArea(TextField, TextArea):
    """A text area that holds its text to the character: what nobody typed is given back as it was.

    Textual's own takes ten characters for the end of a line, U+2028 among them, and gives one back for all.
    What is typed or pasted ends its lines as the text does; control characters are shown as pictures.
    """

    @property
    def typed(self) -> str:
        return self.text

    def takes_enter(self) -> bool:
        # In a field that sends messages it is bound.
        binding = self.screen.active_bindings.get("enter")
        return not self.read_only and (binding is None or binding.node is not self)

    def _set_document(self, text: str, language: str | None) -> None:
        self._highlight_query = None
        self.document = ExactDocument(text)
        self.wrapped_document = WrappedDocument(self.document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._build_highlight_map()
        self.move_cursor((0, 0))
        self._rewrap_and_refresh_virtual_size()

    def _replace_via_keyboard(self, insert: str, start: Location, end: Location) -> EditResult | None:
        return super()._replace_via_keyboard(self.taken(insert), start, end)

    def on_paste(self, event: events.Paste) -> None:
        """Textual's own also asks for the focus, but gets it later, when a click or a key has moved it on."""
        event.prevent_default()
        if not self.read_only and (result := self._replace_via_keyboard(event.text, *self.selection)):
            self.move_cursor(result.end_location)

    def taken(self, insert: str) -> str:
        """What is put into the text when this is typed or pasted."""
        return _PASTED_NEWLINE.sub("\n", insert)

    def get_line(self, line_index: int) -> Text:
        return _shown_safely(super().get_line(line_index))

    def height_at(self, width: int, most: int) -> int:
        """How many lines the text takes in so many cells; not more than `most` are counted."""
        if self.document.line_count >= most:
            return most
        # The cursor may stand behind the end of a line.
        return min(most, WrappedDocument(self.document, max(1, width - 1), self.indent_width).height)


def _shown_safely(line: Text) -> Text:
    """The line with a picture for every control character, so that each keeps its place."""
    plain = line.plain
    if plain.isprintable():
        return line
    line.plain = "".join(
        letter if letter == "\t" or visible(letter) == letter else _picture(letter) for letter in plain
    )
    return line


def _picture(letter: str) -> str:
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == _DELETE else "\ufffd"
