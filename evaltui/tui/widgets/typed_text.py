"""Text as fields take it, and as they show it: nothing in it is obeyed by the terminal."""

from __future__ import annotations

import re

from rich.text import Text
from textual import events
from textual.widgets import Input

from evaltui.text.values import visible

_DELETE = 0x7F
# Terminals paste the end of a line as a carriage return.
_ENDS_OF_LINES = re.compile(r"\s*[\r\n]\s*")


def as_one_line(text: str) -> str:
    """Lines, one behind the other: for what has to be one line, as names have."""
    return _ENDS_OF_LINES.sub(" ", text.strip("\r\n"))


class OneLineInput(Input):
    """Takes lines that are pasted as one, where Textual's own takes the first and drops the others."""

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        if event.text:
            self.replace(as_one_line(event.text), *self.selection)

    def action_paste(self) -> None:
        self.replace(as_one_line(self.app.clipboard), *self.selection)


def shown_safely(line: Text) -> Text:
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
