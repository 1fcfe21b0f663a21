"""All use of private names of Textual, to be checked with every new version of it."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from rich.text import Text
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._time import get_time
from textual.app import App
from textual.document._document import Document, EditResult, Location
from textual.document._document_navigator import DocumentNavigator
from textual.document._wrapped_document import WrappedDocument
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Offset
from textual.keys import Keys
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.selection import Selection
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TextArea

from evaltui.text.values import visible

# Terminals paste the end of a line as a carriage return.
_PASTED_NEWLINE = re.compile("\r\n?")
_DELETE = 0x7F


def event_time() -> float:
    """The time of now on the clock that events are stamped with, in seconds."""
    return get_time()


def know_alt_enter() -> None:
    """Makes alt+enter the key ctrl+j, as which many terminals send it.

    Most send it as escape and return, of which Textual makes a return: who wanted a new line would have sent
    a message that is not finished.
    """
    cast("dict[str, Any]", ANSI_SEQUENCES_KEYS)["\x1b\r"] = (Keys.ControlJ,)


def once(pump: MessagePump, seconds: float, callback: Callable[[], object]) -> Timer:
    """Calls something after a while.

    Textual leaves out the ticks for which it is too late when a timer begins. A timer that ticks once would
    never tick where its time has passed by then, because it is short or the process was held up.
    """
    timer = pump.set_timer(seconds, callback)
    timer._skip = False
    return timer


async def run_bindings(app: App[Any], key: str) -> bool:
    """Runs the action that a key is bound to; False if it is bound to none.

    Textual does the same when it dispatches a key, but several messages later.
    """
    for priority in (True, False):
        if await app._check_bindings(key, priority=priority):
            return True
    return False


def driver_of(app: App[Any]) -> Driver | None:
    """The driver of the terminal; None while the app does not run."""
    return app._driver


def wrap_output(driver: LinuxDriver, wrap: Callable[[Any], Any]) -> None:
    """Replaces the file that a driver writes to."""
    driver._file = wrap(driver._file)


class HearingScreen(Screen[ScreenResultType], inherit_bindings=False):
    """A screen whose own handlers get only the messages that it `hears`; Textual's get all of them."""

    @abstractmethod
    def hears(self, message: Message) -> bool: ...

    @property
    def selection_origin(self) -> Offset | None:
        """Where in its widget the mouse began to select: character and line."""
        return self._select_state.start.content_offset if self._select_state else None

    def validate_selections(self, selections: dict[Widget, Selection]) -> dict[Widget, Selection]:
        """Only dragging selects, not a double click, and only in the widget that it began in."""
        began_in = self._select_state.start.content_widget if self._select_state else None
        return {widget: one for widget, one in selections.items() if widget is began_in}

    def _forward_event(self, event: events.Event) -> None:
        """The mouse that has selected a text has not clicked; one that has moved by a cell has."""
        if isinstance(event, events.MouseUp) and self._mouse_down_offset is not None:
            moved = event.screen_offset - self._mouse_down_offset
            if abs(moved.x) <= 1 and not moved.y:
                self._mouse_down_offset = event.screen_offset
        if not (isinstance(event, events.Click) and self.selections):
            super()._forward_event(event)

    def _get_dispatch_methods(
        self, method_name: str, message: Message
    ) -> Iterable[tuple[type, Callable[[Message], Awaitable[None]]]]:
        for owner, method in super()._get_dispatch_methods(method_name, message):
            if not issubclass(owner, HearingScreen) or self.hears(message):
                yield owner, method


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


class ExactTextArea(TextArea):
    """A text area that holds its text to the character: what nobody typed is given back as it was.

    Textual's own takes ten characters for the end of a line, U+2028 among them, and gives one back for all.
    What is typed or pasted ends its lines as the text does; control characters are shown as pictures.
    """

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
