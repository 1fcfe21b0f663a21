"""Actions of the registry in Textual: their bindings, the apps that route them, the base of every screen.

The id of an action is the name of its method: `action_<id>` of the focused widget, of one around it, of the
screen, or of the app, whichever comes first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, ClassVar, TypeVar
from weakref import WeakSet

from textual import events, on
from textual.actions import ActionParseResult
from textual.app import ReturnType
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widget import Widget

from evaltui.text.values import visible_text
from evaltui.tui.ending import EndingApp
from evaltui.tui.textual_private import (
    HearingScreen,
    TextField,
    event_time,
    once,
    run_bindings,
    run_next_callbacks,
)
from evaltui.tui.widgets.lines import OneLine
from evaltui.workbench.actions import BY_ID, Action, Scope, actions_in
from evaltui.workbench.messages import Messages, WorkbenchMessage
from evaltui.workbench.state import READ_ONLY
from evaltui.workbench.workbench import Workbench

# A screen hears of these before it has everything, and after it has been left.
_OF_ITS_LIFE = (
    events.Load,
    events.Compose,
    events.Unmount,
    events.ScreenResume,
    events.ScreenSuspend,
)
# Seconds. Events come by the thousand, eyes see some thirty pictures a second.
_FRAME = 1 / 30


def bindings(scope: Scope, *only: str) -> list[BindingType]:
    """One binding per action of a scope, or per one of `only` these.

    What works everywhere does so with alt as well, which no field takes for text.
    """
    return [
        Binding(
            ",".join((*_keys_in(action, scope), *(_twins(action) if scope is Scope.MAIN else ()))),
            action.id,
            action.title,
            show=False,
            id=action.id,
        )
        for action in actions_in(scope)
        if not only or action.id in only
    ]


def _keys_in(action: Action, scope: Scope) -> Sequence[str]:
    """Its keys; in a field without letters, which are typed, and without those that edit its text."""
    if not scope.is_field:
        return action.keys
    return [key for key in action.keys if len(key) > 1 and key not in ("ctrl+d", "ctrl+u")]


def _twins(action: Action) -> list[str]:
    letters = [key for key in action.keys if len(key) == 1]
    return [f"alt+shift+{key.lower()}" if key.isupper() else f"alt+{key}" for key in letters]


class ActionApp(EndingApp[ReturnType]):
    """Runs an action on the focused widget, its screen, or the app: on the first that has its method."""

    workbench: Workbench | None = None
    """None before an agent is open."""

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        nodes = (default_namespace or self).ancestors_with_self
        screen = next((node for node in nodes if isinstance(node, ActionScreen)), None)
        if screen is None or not isinstance(action, str) or not _is_registered(action, default_namespace):
            return await super().run_action(action, default_namespace, namespaces)
        if not screen.check_action(action, ()):
            screen.refuse(action)
            return True
        leaves = BY_ID[action].acts and not _is_of_fields(action)
        if leaves and screen is self.screen_stack[0] and not screen.leave_field():
            return True
        for node in (screen.focused or screen).ancestors_with_self:
            if _has_action(node, action):
                return await super().run_action(BY_ID[action].call or action, node, namespaces)
        return False


def _has_action(node: DOMNode, action: str) -> bool:
    """Whether a node does an action of the registry."""
    return _is_registered(action, node) and hasattr(node, BY_ID[action].method)


def _is_registered(action: str, node: DOMNode | None) -> bool:
    """Whether an action of a node is of the registry; text fields have others of the same name."""
    if action not in BY_ID:
        return False
    return not isinstance(node, TextField) or _is_of_fields(action)


def _is_of_fields(action: str) -> bool:
    return any(scope.is_field for scope in BY_ID[action].where)


def draw_around(node: DOMNode) -> None:
    """Draws soon what is around a node, such as its border, unless it was taken off its screen meanwhile."""
    if node.is_attached and isinstance(node.screen, ActionScreen):
        node.screen.draw_changes_soon()


class ActionScreen(HearingScreen[ScreenResultType], inherit_bindings=False):
    """Ignores what comes before it is mounted, while another screen lies over it, or once it was left.

    Keys, clicks and messages come faster than screens come and go. What Textual does itself with them goes
    on; only what our screens do is held back.
    """

    @property
    def is_here(self) -> bool:
        """Whether it has everything in it and has not been left; another screen may lie over it."""
        return self.is_mounted and self.is_attached and self in self.app.screen_stack

    @property
    def takes_input(self) -> bool:
        """Whether what the user does is meant for it."""
        return self.is_mounted and self.is_active

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action not in BY_ID:
            return super().check_action(action, parameters)
        return self.takes_input and self.refusal(action) is None

    def refusal(self, action_id: str) -> str | None:
        """Why an action of the registry cannot be done now, as a sentence; None where it can."""
        bench = self._bench
        return READ_ONLY if bench is not None and bench.read_only and BY_ID[action_id].acts else None

    def footer_word(self, action: Action) -> str:
        """One or two words for what an action does here."""
        return action.short if self._bench is None else action.footer_word(self._bench)

    def refuse(self, action_id: str) -> bool:
        """Shows why an action is refused, for which its key or the mouse asks; False where it is not."""
        bench, reason = self._bench, self.refusal(action_id)
        if reason and bench is not None and self.takes_input:
            bench.say(reason)
        return bool(reason)

    def leave_field(self) -> bool:
        """Applies what is typed in an open field; False where it cannot be, and the field asks what to do."""
        return self._bench is None or self._bench.navigation.leave()

    @property
    def _bench(self) -> Workbench | None:
        """The workbench that its actions are about; None before there is one."""
        return self.app.workbench if isinstance(self.app, ActionApp) else None

    CSS_PATH: ClassVar[list[str | PurePath]] = [*sorted(Path(__file__).parent.glob("*/*.tcss"))]
    drawn_at = 0.0
    """When it was drawn last, in seconds of the monotonic clock."""
    _will_draw = False
    _draws_all = False
    """Whether it is drawn whatever has changed."""
    _messages: Messages | None = None
    _shows: tuple[type[WorkbenchMessage], ...] = ()

    def subscribe_to(self, messages: Messages, *types: type[WorkbenchMessage]) -> None:
        """Draws after every message of these types, and the lines around it after any other one."""
        self._messages, self._shows = messages, types
        messages.subscribe(self.hear_of, WorkbenchMessage)

    @on(events.Unmount)
    def unsubscribe(self) -> None:
        if self._messages is not None:
            self._messages.unsubscribe(self.hear_of)

    def hear_of(self, message: WorkbenchMessage) -> None:
        if isinstance(message, self._shows):
            self.draw_soon()
        else:
            self.draw_changes_soon()

    def draw_soon(self) -> None:
        """Draws all of it in the next frame, once for all that changed by then."""
        self._draws_all = True
        self.draw_changes_soon()

    def draw_changes_soon(self) -> None:
        """Draws the parts in the next frame that show something else by then."""
        if not self._will_draw:
            self._will_draw = True
            wait = self.drawn_at + _FRAME - time.monotonic()
            if wait > 0:
                once(self, wait, self.draw_now)
            else:
                self.call_next(self.draw_now)

    def draw_now(self) -> bool:
        """Draws without waiting for the next frame; False where nothing has changed since the last one."""
        if not self._will_draw:
            return False
        self._will_draw = False
        if self.is_here:
            self.drawn_at = time.monotonic()
            self.draw()
            for bar in self.query("Bar"):
                if isinstance(bar, OneLine):
                    bar.refresh_changed()
            self._draws_all = False
        return True

    def draw(self) -> None:
        """Shows the state of now, after a change."""
        if self._draws_all:
            self.follow()

    def follow(self) -> None:
        """Shows the state of now. Called whenever the screen is on top again."""

    def on_screen_resume(self) -> None:
        if self.is_here:
            self.follow()

    def on_screen_suspend(self) -> None:
        """Another screen has the keys: the footer shows none."""
        self.query("Footer").refresh()

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Leaves it. A second time, or while another screen lies over it, nothing happens."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def hears(self, message: Message) -> bool:
        if isinstance(message, events.Mount):
            # Without its widgets where the app is left while it opens.
            return self.is_attached
        if isinstance(message, _OF_ITS_LIFE):
            return True
        # All that is no event comes from what the user did to a widget.
        by_user = isinstance(message, events.InputEvent | events.Paste) or not isinstance(
            message, events.Event
        )
        return self.takes_input if by_user else self.is_here


LEAST_WITH_MARGINS = 30
"""Rows of a screen from which on a dialog has a blank row above and below what is in it."""


class DialogScreen(ActionScreen[ScreenResultType], ModalScreen[ScreenResultType], inherit_bindings=False):
    """Lies over another screen, none of whose keys works until it is left.

    A click beside `box`, a selector, leaves it; None where no click does.
    """

    box: ClassVar[str | None] = None

    @on(events.Resize)
    def leave_out_margins(self, event: events.Resize) -> None:
        """Without blank rows around its dialog where there are few."""
        self.set_class(event.size.height < LEAST_WITH_MARGINS, "-short")

    def on_click(self, event: events.Click) -> None:
        place = event.screen_x, event.screen_y
        if self.box is not None and not self.query_one(self.box).region.contains(*place):
            self.dismiss(None)


Answer = TypeVar("Answer")


def ask(asker: DOMNode, screen: Screen[Answer | None], then: Callable[[Answer], Any]) -> None:
    """Shows a screen; what it returns goes to `then`, unless that is None."""
    asker.app.push_screen(screen, lambda answer: None if answer is None else then(answer))


# Seconds. Waiting ends long before, but where something hangs.
_LONGEST_WAIT = 5.0
_LONGEST_OPENING = 10.0
_STEP = 0.005
# Things that one key sets going one after the other. What goes on by itself has no end.
_MOST_STEPS = 20


class KeysInOrder(ActionApp[ReturnType]):
    """Handles keys one after the other: what the first one does is done before the second one is looked at.

    Textual hands a key to what is focused when the key arrives, although keys before it may be about to move
    the focus: `/late`, typed at once or over a slow line, would run things instead of filtering them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leaving = False
        """Whether the app is being left: nothing that the user does counts any more then."""
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

    def copy_text(self, text: str) -> None:
        """Copies what the mouse has selected."""
        self.copy_to_clipboard(visible_text(text))

    def _is_for_selection(self, key: str) -> bool:
        """Whether a key was for what the mouse has selected, which is copied or forgotten by it."""
        copies = key == "ctrl+c" or (key == "y" and not isinstance(self.focused, TextField))
        if not self.screen.selections or not (copies or key == "escape"):
            return False
        if copies and (text := self.screen.get_selected_text()):
            self.copy_text(text)
        self.screen.clear_selection()
        return True

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and (self.leaving or not self.screen_stack):
            return
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self._acted:
                await self._settled()
            if not await self._is_open() or self._is_for_nobody(event):
                return
            if isinstance(event, events.Key) and self._is_for_selection(event.key):
                return
            if isinstance(event, events.Key) and not _is_typed(event, self.focused):
                self._acted = True
                if isinstance(self.focused, TextField):
                    await _caught_up(self.focused)
                if await run_bindings(self, event.key):
                    return
        elif isinstance(event, events.MouseDown | events.MouseUp):
            # A click may leave a field: it has what was typed before, and a key behind the click waits.
            self._acted = True
            if isinstance(self.focused, TextField):
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
        """Wait until what the last key has set going has come to its end: it may open or leave a screen, or
        move the focus.

        The next key is about what the screen shows then, such as the rows that a search has left: where they
        are to be drawn in the next frame, they are drawn now.
        """
        self._acted = False
        for _ in range(_MOST_STEPS):
            if not self.screen_stack:
                # It has been left.
                return
            await self._all_caught_up()
            # What is done with the answer of a dialog would come after this key.
            goes_on = await run_next_callbacks(self)
            screen = self.screen_stack[-1] if self.screen_stack else None
            if isinstance(screen, ActionScreen) and screen.draw_now():
                goes_on = True
            if not goes_on:
                return

    async def _all_caught_up(self) -> None:
        """Wait for what has the focus and all around it, then for whatever one of them has sent a message."""
        waits: Sequence[DOMNode] = (self.focused or self.screen).ancestors_with_self
        for _ in range(_MOST_STEPS):
            for one in waits:
                if isinstance(one, Widget) and one.is_running:
                    await _caught_up(one)
            waits = [one for one in self.screen.walk_children(with_self=True) if one.message_queue_size]
            if not waits:
                return

    def _is_for_nobody(self, event: events.Key | events.Paste) -> bool:
        if isinstance(self.focused, TextField):
            self._swallows = False
            return False
        if event.time < self._heard_from:
            return True
        if self._swallows and isinstance(event, events.Key) and not event.is_printable:
            self._swallows = False
        return self._swallows


def _is_typed(event: events.Key, focused: Widget | None) -> bool:
    """Whether the key is text for a field."""
    if not isinstance(focused, TextField):
        return False
    if event.key == "enter":
        return focused.takes_enter()
    return event.is_printable and not event.key.startswith("alt+")


async def _caught_up(field: Widget) -> None:
    """Wait until the field has taken what was typed into it."""
    done = asyncio.Event()
    if field.call_later(done.set):
        await asyncio.wait([asyncio.ensure_future(done.wait())], timeout=_LONGEST_WAIT)
