"""All uses of private names of Textual, to be checked with each new version.

`Fault of 8.2.8` is a description for a bug report: the steps, the actual and the expected behaviour.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar, cast

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
from textual.widgets import OptionList, TextArea

from evaltui.text.values import visible
from evaltui.workbench.actions import Scope


class TextField:
    """A widget for typed text; `scope` is that of its keys."""

    scope: ClassVar[Scope] = Scope.TEXT

    @property
    @abstractmethod
    def typed(self) -> str:
        """The text in it."""

    def takes_enter(self) -> bool:
        """Whether enter starts a new line in it."""
        return False


def event_time() -> float:
    """The current time on the clock of event time stamps, in seconds."""
    return get_time()


def know_alt_enter() -> None:
    r"""Makes alt+enter the key ctrl+j, which many terminals send for it.

    Fault of 8.2.8: press alt+enter in a terminal without the kitty protocol, which sends `\x1b\r`. The key is
    `enter`, and an unfinished message is sent. Expected: `alt+enter`.
    """
    cast("dict[str, Any]", ANSI_SEQUENCES_KEYS)["\x1b\r"] = (Keys.ControlJ,)


def call_later_once(pump: MessagePump, seconds: float, callback: Callable[[], object]) -> Timer:
    """Calls a function after a delay.

    Fault of 8.2.8: `set_timer(1e-9, callback)`, or a longer one in a process that is blocked until its time
    has passed. The timer skips the late tick, and never calls. Expected: it calls once, late.
    """
    timer = pump.set_timer(seconds, callback)
    timer._skip = False
    return timer


async def run_bindings(app: App[Any], key: str) -> bool:
    """Runs the action of a key; False where it has none.

    Textual does the same when it dispatches a key, but several messages later.
    """
    for priority in (True, False):
        if await app._check_bindings(key, priority=priority):
            return True
    return False


async def run_next_callbacks(app: App[Any]) -> bool:
    """Runs the pending callbacks of the app, such as those for the result of a dialog; False for none.

    Textual does so after the current message of the app.
    """
    waits = bool(app._next_callbacks)
    await app._flush_next_callbacks()
    return waits


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
        """The start of the mouse selection in its widget: character and line."""
        return self._select_state.start.content_offset if self._select_state else None

    def validate_selections(self, selections: dict[Widget, Selection]) -> dict[Widget, Selection]:
        """Selects only by dragging, not by a double click, and only in the widget where the drag started."""
        began_in = self._select_state.start.content_widget if self._select_state else None
        return {widget: selection for widget, selection in selections.items() if widget is began_in}

    def _forward_event(self, event: events.Event) -> None:
        """Forwards a click unless it has selected a text.

        Fault of 8.2.8: press a button of the mouse, move it by a cell, release the button. There is no
        `Click`. Expected: one.
        """
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


def clicked_option(options: OptionList, click: events.Click) -> int | None:
    """The number of the option that a click is on; None where there is none.

    Fault of 8.2.8: `OptionList` believes the number that is painted below the mouse. Replace its options by
    fewer ones and click on one of the old before the screen is painted again: IndexError, and the app ends.
    It should pass over a number that it has no option for.
    """
    number: int | None = click.style.meta.get("option")
    return number if number is not None and number < options.option_count else None


# Terminals paste the end of a line as a carriage return.
_PASTED_NEWLINE = re.compile("\r\n?")
_DELETE = 0x7F


class ExactDocument(Document):
    """A document whose lines end with a line feed, or all with carriage return and line feed; other
    characters are text."""

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
    r"""A text area that keeps its text exactly: unedited parts are returned unchanged.

    Typed or pasted lines end as those of the text do; control characters are shown as pictures.

    Fault of 8.2.8: `TextArea("a\u2028b").text`. It is `a\nb`, as for ten characters in all. Expected: the
    text that was passed.
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
        return super()._replace_via_keyboard(self.text_to_insert(insert), start, end)

    def on_paste(self, event: events.Paste) -> None:
        """Pastes without requesting the focus.

        Fault of 8.2.8: paste, and press tab at once. The text area requested the focus while pasting and gets
        it later, so it has the focus again. Expected: the next widget has it.
        """
        event.prevent_default()
        if not self.read_only and (result := self._replace_via_keyboard(event.text, *self.selection)):
            self.move_cursor(result.end_location)

    def text_to_insert(self, insert: str) -> str:
        """The text that is inserted for a typed or pasted text."""
        return _PASTED_NEWLINE.sub("\n", insert)

    def get_line(self, line_index: int) -> Text:
        return _replace_controls(super().get_line(line_index))

    def height_at(self, width: int, most: int) -> int:
        """The number of wrapped lines in `width` cells; not more than `most` are counted."""
        if self.document.line_count >= most:
            return most
        # The cursor may stand behind the end of a line.
        return min(most, WrappedDocument(self.document, max(1, width - 1), self.indent_width).height)


def _replace_controls(line: Text) -> Text:
    """The line with a picture for every control character, so that no character is moved."""
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
