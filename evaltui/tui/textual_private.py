"""All use of private names of Textual but those of text areas, to be checked with every new version of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

from rich.console import Console
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._compositor import Compositor, CompositorUpdate
from textual._time import get_time
from textual.app import App
from textual.content import Content
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Offset, Region
from textual.keys import Keys
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.timer import Timer
from textual.widget import Widget


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


async def run_next_callbacks(app: App[Any]) -> bool:
    """Runs what the app is to do next, such as what follows the answer of a dialog; False for nothing.

    Textual does so once the message is handled which the app is at.
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


# How much more than what has changed may be painted anew at once.
_MOST_BETWEEN = 1.5


def near_each_other(regions: Iterable[Region]) -> list[set[Region]]:
    """The regions in groups, between those of which there is little else."""
    groups: list[tuple[Region, set[Region]]] = []
    for region in sorted(regions):
        for number, (around, group) in enumerate(groups):
            both = around.union(region)
            if both.area <= _MOST_BETWEEN * (around.area + region.area):
                groups[number] = both, {*group, region}
                break
        else:
            groups.append((region, {region}))
    return [group for _, group in groups]


class _Updates(CompositorUpdate):
    """Several updates of a screen as one."""

    def __init__(self, updates: Sequence[CompositorUpdate]) -> None:
        self._updates = updates

    def render_segments(self, console: Console) -> str:
        return "".join(one.render_segments(console) for one in self._updates)


class NearCompositor(Compositor):
    """Textual's renders all that lies between two changes: where a line at the top and one at the bottom have
    changed, the whole screen."""

    def render_partial_update(self) -> CompositorUpdate | None:  # type: ignore[override]
        groups = near_each_other(self._dirty_regions)
        updates = []
        for group in groups:
            self._dirty_regions = group
            if (update := super().render_partial_update()) is not None:
                updates.append(update)
        self._dirty_regions = set()
        return _Updates(updates) if updates else None


def set_border_texts(widget: Widget, title: Content, subtitle: Content) -> None:
    """Sets what stands in the borders of a widget; Textual would paint anew what is between them, too."""
    widget._border_title = title
    widget._border_subtitle = subtitle
    width, height = widget.outer_size
    borders = Region(0, 0, width, 1), Region(0, height - 1, width, 1)
    # They count from what is inside.
    widget.refresh(*(border.translate(-widget.content_offset) for border in borders))


class HearingScreen(Screen[ScreenResultType], inherit_bindings=False):
    """A screen whose own handlers get only the messages that it `hears`; Textual's get all of them."""

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name, id, classes)
        self._compositor = NearCompositor()
        self._bars_waited = False

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

    def _on_timer_update(self) -> None:
        """Scroll bars wait for what they belong to, which else would be painted a frame later."""
        are_alone = {*map(type, self._dirty_widgets)} == {ScrollBar} and not self._layout_required
        if are_alone and not self._bars_waited:
            self._bars_waited = True
            self.call_later(self._on_timer_update)
        else:
            self._bars_waited = False
            super()._on_timer_update()

    def _compositor_refresh(self) -> None:
        """While updates wait for each other, Textual renders the whole screen and throws that away."""
        if self.app._batch_count:
            self._repaint_required = True
        else:
            super()._compositor_refresh()

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
