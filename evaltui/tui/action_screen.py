"""Registry actions in Textual: their bindings, the apps that route them, the base class of every screen.

The id of an action is the name of its method: `action_<id>` of the focused widget, of a widget around it, of
the screen, or of the app, whichever comes first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
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
    call_later_once,
    event_time,
    run_bindings,
    run_next_callbacks,
)
from evaltui.tui.widgets.lines import OneLine
from evaltui.workbench.actions import ACTIONS_BY_ID, Action, Scope, actions_in
from evaltui.workbench.messages import Messages, WorkbenchMessage
from evaltui.workbench.state import READ_ONLY
from evaltui.workbench.workbench import Workbench

# A screen hears of these before it has everything, and after it has been left.
_LIFE_EVENTS = (
    events.Load,
    events.Compose,
    events.Unmount,
    events.ScreenResume,
    events.ScreenSuspend,
)
# Seconds. Events come by the thousand, eyes see some thirty pictures a second.
_FRAME = 1 / 30


def bindings(scope: Scope, *only: str) -> list[BindingType]:
    """One binding per action of a scope, or per action of `only`.

    Global actions are also bound with alt, which no field takes as text.
    """
    return [
        Binding(
            ",".join((*_keys_in(action, scope), *(_alt_keys(action) if scope is Scope.MAIN else ()))),
            action.id,
            action.title,
            show=False,
            id=action.id,
        )
        for action in actions_in(scope)
        if not only or action.id in only
    ]


def _keys_in(action: Action, scope: Scope) -> Sequence[str]:
    """The keys of an action; in a field without letters, which are typed, and without keys that edit text."""
    if not scope.is_field:
        return action.keys
    return [key for key in action.keys if len(key) > 1 and key not in ("ctrl+d", "ctrl+u")]


def _alt_keys(action: Action) -> list[str]:
    letters = [key for key in action.keys if len(key) == 1]
    return [f"alt+shift+{key.lower()}" if key.isupper() else f"alt+{key}" for key in letters]


class ActionApp(EndingApp[ReturnType]):
    """Runs an action on the focused widget, its screen, or the app: the first one with its method."""

    workbench: Workbench | None = None
    """The workbench; None before an agent is open."""

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
        leaves = ACTIONS_BY_ID[action].acts and not _is_field_action(action)
        if leaves and screen is self.screen_stack[0] and not screen.leave_field():
            return True
        for node in (screen.focused or screen).ancestors_with_self:
            if _has_action(node, action):
                return await super().run_action(ACTIONS_BY_ID[action].call or action, node, namespaces)
        return False


def _has_action(node: DOMNode, action: str) -> bool:
    """Whether a node has the method of a registry action."""
    return _is_registered(action, node) and hasattr(node, ACTIONS_BY_ID[action].method)


def _is_registered(action: str, node: DOMNode | None) -> bool:
    """Whether an action of a node is in the registry; text fields have others of the same name."""
    if action not in ACTIONS_BY_ID:
        return False
    return not isinstance(node, TextField) or _is_field_action(action)


def _is_field_action(action: str) -> bool:
    return any(scope.is_field for scope in ACTIONS_BY_ID[action].where)


def draw_around(node: DOMNode) -> None:
    """Draws the surroundings of a node, such as its border, in the next frame, unless it was removed."""
    if node.is_attached and isinstance(node.screen, ActionScreen):
        node.screen.draw_changes_soon()


def start_work(
    node: DOMNode,
    work: Callable[..., Coroutine[Any, Any, object]],
    *arguments: Any,
    group: str = "",
    exit_on_error: bool = True,
) -> None:
    """Runs an async function in the background; with a group, in place of the work that runs in it.

    The worker itself calls the function, so that a node that is removed before leaves no coroutine behind.
    """
    call: Any = partial(work, *arguments)
    node.run_worker(call, group=group or "default", exclusive=bool(group), exit_on_error=exit_on_error)


class ActionScreen(HearingScreen[ScreenResultType], inherit_bindings=False):
    """The base class of screens; it ignores events before it is mounted, under another screen, and after it
    was closed.

    Keys, clicks and messages arrive faster than screens open and close. Textual's own handling continues;
    only the handlers of our screens are held back.
    """

    @property
    def is_here(self) -> bool:
        """Whether it is complete and not closed, nor is the app; another screen may lie over it."""
        return self.is_mounted and self.is_attached and self.app.is_running and self in self.app.screen_stack

    @property
    def takes_input(self) -> bool:
        """Whether it receives the user's input."""
        return self.is_mounted and self.is_active

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action not in ACTIONS_BY_ID:
            return super().check_action(action, parameters)
        return self.takes_input and self.refusal(action) is None

    def refusal(self, action_id: str) -> str | None:
        """Why a registry action is refused now, as a sentence; None where it is not."""
        bench = self._bench
        return READ_ONLY if bench is not None and bench.read_only and ACTIONS_BY_ID[action_id].acts else None

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
        """Applies the draft in an open field; False where it cannot be applied, and the field shows a
        question."""
        return self._bench is None or self._bench.navigation.leave()

    @property
    def _bench(self) -> Workbench | None:
        """The workbench of its actions; None before there is one."""
        return self.app.workbench if isinstance(self.app, ActionApp) else None

    CSS_PATH: ClassVar[list[str | PurePath]] = [*sorted(Path(__file__).parent.glob("*/*.tcss"))]
    drawn_at = 0.0
    """Time of the last drawing, in seconds of the monotonic clock."""
    _will_draw = False
    _draws_all = False
    """Whether all of it is drawn, independent of changes."""
    _messages: Messages | None = None
    _shows: tuple[type[WorkbenchMessage], ...] = ()

    def subscribe_to(self, messages: Messages, *types: type[WorkbenchMessage]) -> None:
        """Draws after every message of these types, and only the lines around it after any other message."""
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
        """Draws everything in the next frame, once for all changes until then."""
        self._draws_all = True
        self.draw_changes_soon()

    def draw_changes_soon(self) -> None:
        """Draws the changed parts in the next frame."""
        if not self._will_draw:
            self._will_draw = True
            wait = self.drawn_at + _FRAME - time.monotonic()
            if wait > 0:
                call_later_once(self, wait, self.draw_now)
            else:
                self.call_next(self.draw_now)

    def draw_now(self) -> bool:
        """Draws without waiting for the next frame; False for no change since the last drawing."""
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
        """Shows the current state, after a change."""
        if self._draws_all:
            self.follow()

    def follow(self) -> None:
        """Shows the current state. Called whenever the screen is on top again."""

    def on_screen_resume(self) -> None:
        if self.is_here:
            self.follow()

    def on_screen_suspend(self) -> None:
        """Another screen gets the keys, so the footer shows none."""
        self.query("Footer").refresh()

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Closes the screen. A second call, or one under another screen, has no effect."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def hears(self, message: Message) -> bool:
        if isinstance(message, events.Mount):
            # Without its widgets where the app is left while it opens.
            return self.is_attached
        if isinstance(message, _LIFE_EVENTS):
            return True
        # All that is no event comes from what the user did to a widget.
        by_user = isinstance(message, events.InputEvent | events.Paste) or not isinstance(
            message, events.Event
        )
        return self.takes_input if by_user else self.is_here


MIN_WITH_MARGINS = 30
"""Minimum rows of a screen for a blank row above and below the contents of a dialog."""


class DialogScreen(ActionScreen[ScreenResultType], ModalScreen[ScreenResultType], inherit_bindings=False):
    """A dialog over another screen, whose keys are off while it is open.

    A click outside of `box`, a selector, closes it; None where no click does.
    """

    box: ClassVar[str | None] = None

    @on(events.Resize)
    def leave_out_margins(self, event: events.Resize) -> None:
        """Removes the blank rows of its dialog on a low screen."""
        self.set_class(event.size.height < MIN_WITH_MARGINS, "-short")

    def on_click(self, event: events.Click) -> None:
        place = event.screen_x, event.screen_y
        if self.box is not None and not self.query_one(self.box).region.contains(*place):
            self.action_close()

    def action_close(self) -> None:
        """Closes it without a result."""
        self.dismiss(None)


Answer = TypeVar("Answer")


def ask(asker: DOMNode, screen: Screen[Answer | None], then: Callable[[Answer], Any]) -> None:
    """Opens a screen; its result goes to `then`, unless it is None."""
    asker.app.push_screen(screen, lambda answer: None if answer is None else then(answer))


# Seconds. Waiting ends long before, but where something hangs.
_MAX_WAIT = 5.0
_MAX_OPENING = 10.0
_STEP_SECONDS = 0.005
# Things that one key sets going one after the other. What goes on by itself has no end.
_MAX_STEPS = 20


class KeysInOrder(ActionApp[ReturnType]):
    """Handles keys one after the other: the effect of a key is complete before the next key is handled.

    Textual sends a key to the focused widget on arrival, although earlier keys may be about to move the
    focus: `/late`, typed at once or over a slow line, would run actions instead of filtering.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leaving = False
        """Whether the app is closing: input is ignored then."""
        self._waited_for: WeakSet[Screen[Any]] = WeakSet()
        self._acted = False
        self._heard_from = 0.0
        self._swallows = False

    def ignore_typed_ahead(self) -> None:
        """Drops the typed keys: they were meant for a field that will not open."""
        self._heard_from = event_time()

    def swallow_typing(self) -> None:
        """Drops text until another key is pressed: its field is closed."""
        self._swallows = True

    def copy_text(self, text: str) -> None:
        """Copies the text selected with the mouse."""
        self.copy_to_clipboard(visible_text(text))

    def _is_for_selection(self, key: str) -> bool:
        """Whether a key is for the text selected with the mouse: it copies or clears the selection."""
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
                    await _wait_for_field(self.focused)
                if await run_bindings(self, event.key):
                    return
        elif isinstance(event, events.MouseDown | events.MouseUp):
            # A click may leave a field: it has what was typed before, and a key behind the click waits.
            self._acted = True
            if isinstance(self.focused, TextField):
                await _wait_for_field(self.focused)
        await super().on_event(event)

    async def _is_open(self) -> bool:
        """Waits until the top screen is complete; a key during that time is for no other screen."""
        for _ in range(int(_MAX_OPENING / _STEP_SECONDS)):
            if not self.screen_stack or self.leaving:
                return False
            screen = self.screen
            if screen.is_mounted:
                await self._wait_for_focus(screen)
                if screen is self.screen:
                    return True
            else:
                await asyncio.sleep(_STEP_SECONDS)
        return False

    async def _wait_for_focus(self, screen: Screen[Any]) -> None:
        """Waits until a new screen has a focused widget, and until a new widget is ready."""
        if screen in self._waited_for and (screen.focused is None or screen.focused.is_mounted):
            return
        self._waited_for.add(screen)
        for _ in range(int(_MAX_WAIT / _STEP_SECONDS)):
            if screen is not self.screen or (screen.focused is not None and screen.focused.is_mounted):
                return
            if screen.focused is None and screen.is_mounted and not screen.focus_chain:
                await _wait_for_field(screen)
                if not screen.focus_chain:
                    return
            await asyncio.sleep(_STEP_SECONDS)

    async def _settled(self) -> None:
        """Waits until the effect of the last key is complete: it may open or close a screen, or move the
        focus.

        The next key concerns the screen after that, such as the rows of a search: a scheduled drawing is done
        now.
        """
        self._acted = False
        for _ in range(_MAX_STEPS):
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
        """Waits for the focused node and all nodes around it, then for all nodes that they have sent messages
        to."""
        waits: Sequence[DOMNode] = (self.focused or self.screen).ancestors_with_self
        for _ in range(_MAX_STEPS):
            for waiting in waits:
                if isinstance(waiting, Widget) and waiting.is_running:
                    await _wait_for_field(waiting)
            waits = [node for node in self.screen.walk_children(with_self=True) if node.message_queue_size]
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
    """Whether a field takes the key as text."""
    if not isinstance(focused, TextField):
        return False
    if event.key == "enter":
        return focused.takes_enter()
    return event.is_printable and not event.key.startswith("alt+")


async def _wait_for_field(field: Widget) -> None:
    """Waits until the field has taken the typed text."""
    done = asyncio.Event()
    if field.call_later(done.set):
        await asyncio.wait([asyncio.ensure_future(done.wait())], timeout=_MAX_WAIT)
