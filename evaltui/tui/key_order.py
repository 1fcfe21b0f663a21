"""Keys one after the other: what the first one does is done before the second one is looked at.

Textual hands a key to what is focused when the key arrives, although keys before it may be about to move the
focus. Who types `/late` at once, or over a slow line, would have run things instead of filtering them.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakSet

from textual import events
from textual.app import ReturnType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from evaltui.tui.ending import EndingApp

# Seconds.
_LONGEST_WAIT = 0.5
_LONGEST_OPENING = 10.0
_STEP = 0.005


class KeysInOrder(EndingApp[ReturnType]):
    """`leaving` is set once it is being left: nothing that the user does counts any more then."""

    def __init__(self) -> None:
        super().__init__()
        self.leaving = False
        self._waited_for: WeakSet[Screen[Any]] = WeakSet()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and (self.leaving or not self.screen_stack):
            return
        is_new = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        if is_new and not await self._is_open():
            return
        if is_new and isinstance(event, events.Key) and not _is_typed(event, self.focused):
            if isinstance(self.focused, Input | TextArea):
                await _caught_up(self.focused)
            # Textual would do the same, but several messages later.
            for priority in (True, False):
                if await self._check_bindings(event.key, priority=priority):
                    return
        await super().on_event(event)

    async def _is_open(self) -> bool:
        """Wait until the screen on top has everything in it; what comes in vain is for no other screen."""
        for _ in range(int(_LONGEST_OPENING / _STEP)):
            if not self.screen_stack or self.leaving:
                return False
            screen = self.screen
            if screen.is_mounted:
                await self._wait_for_focus(screen)
                if screen is self.screen:
                    return True
            else:
                await asyncio.sleep(_STEP)
        return False

    async def _wait_for_focus(self, screen: Screen[Any]) -> None:
        """A screen that has just been opened takes a moment until something in it has the focus."""
        if screen in self._waited_for:
            return
        self._waited_for.add(screen)
        for _ in range(int(_LONGEST_WAIT / _STEP)):
            if screen.focused is not None or screen is not self.screen:
                return
            await asyncio.sleep(_STEP)


def _is_typed(event: events.Key, focused: Widget | None) -> bool:
    """Whether the key is text for a field."""
    if isinstance(focused, TextArea) and event.key == "enter":
        return not focused.read_only and not _ends_text(focused, event.key)
    is_text = event.is_printable and not event.key.startswith("alt+")
    return isinstance(focused, Input | TextArea) and is_text


def _ends_text(field: TextArea, key: str) -> bool:
    """Whether a key that is text elsewhere is bound in the field itself, as in one that sends messages."""
    binding = field.screen.active_bindings.get(key)
    return binding is not None and binding.node is field


async def _caught_up(field: Widget) -> None:
    """Wait until the field has taken what was typed into it."""
    done = asyncio.Event()
    if field.call_later(done.set):
        await asyncio.wait([asyncio.ensure_future(done.wait())], timeout=_LONGEST_WAIT)
