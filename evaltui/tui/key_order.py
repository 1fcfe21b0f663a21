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

from evaltui.tui.action_screen import ActionApp
from evaltui.tui.textual_private import event_time, run_bindings

# Seconds. Waiting ends long before, but where something hangs.
_LONGEST_WAIT = 5.0
_LONGEST_OPENING = 10.0
_STEP = 0.005


class KeysInOrder(ActionApp[ReturnType]):
    """`leaving` is set once it is being left: nothing that the user does counts any more then."""

    def __init__(self) -> None:
        super().__init__()
        self.leaving = False
        self._waited_for: WeakSet[Screen[Any]] = WeakSet()
        self._acted = False
        self._heard_from = 0.0
        self._swallows = False

    def ignore_typed_ahead(self) -> None:
        """Forget the keys that have been typed by now: they were meant for a field that does not come."""
        self._heard_from = event_time()

    def swallow_typing(self) -> None:
        """Forget text until another key is pressed: the field that it is meant for is not there any more."""
        self._swallows = True

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and (self.leaving or not self.screen_stack):
            return
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self._acted:
                await self._settled()
            if not await self._is_open() or self._is_for_nobody(event):
                return
            if isinstance(event, events.Key) and not _is_typed(event, self.focused):
                self._acted = True
                if isinstance(self.focused, Input | TextArea):
                    await _caught_up(self.focused)
                if await run_bindings(self, event.key):
                    return
        elif isinstance(event, events.MouseDown | events.MouseUp):
            # A click may leave a field: it has what was typed before, and a key behind the click waits.
            self._acted = True
            if isinstance(self.focused, Input | TextArea):
                await _caught_up(self.focused)
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
        """A screen that has just been opened takes a moment until something in it has the focus, and a
        widget that has just been made until it is there."""
        if screen in self._waited_for and (screen.focused is None or screen.focused.is_mounted):
            return
        self._waited_for.add(screen)
        for _ in range(int(_LONGEST_WAIT / _STEP)):
            if screen is not self.screen or (screen.focused is not None and screen.focused.is_mounted):
                return
            if screen.focused is None and screen.is_mounted and not screen.focus_chain:
                await _caught_up(screen)
                if not screen.focus_chain:
                    return
            await asyncio.sleep(_STEP)

    async def _settled(self) -> None:
        """Wait until what the last key has set going has come to its end, where it may move the focus."""
        self._acted = False
        widget = self.focused or self.screen
        for one in widget.ancestors_with_self:
            if isinstance(one, Widget) and one.is_running:
                await _caught_up(one)

    def _is_for_nobody(self, event: events.Key | events.Paste) -> bool:
        if isinstance(self.focused, Input | TextArea):
            self._swallows = False
            return False
        if event.time < self._heard_from:
            return True
        if self._swallows and isinstance(event, events.Key) and not event.is_printable:
            self._swallows = False
        return self._swallows


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
