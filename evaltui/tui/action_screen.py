"""What every screen is: it does nothing before it has everything in it, while another lies over it, or once
it has been left.

Keys, clicks and messages come faster than screens come and go. What Textual does itself with them goes on;
only what our screens do is held back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType

# A screen hears of these before it has everything, and after it has been left.
_OF_ITS_LIFE = (
    events.Load,
    events.Compose,
    events.Mount,
    events.Unmount,
    events.ScreenResume,
    events.ScreenSuspend,
)


class ActionScreen(Screen[ScreenResultType], inherit_bindings=False):
    """Does the actions of the registry, which a subclass knows how to `perform`."""

    @property
    def is_here(self) -> bool:
        """Whether it has everything in it and has not been left; another screen may lie over it."""
        return self.is_mounted and self.is_attached and self in self.app.screen_stack

    @property
    def takes_input(self) -> bool:
        """Whether what the user does is meant for it."""
        return self.is_mounted and self.is_active

    def action_perform(self, action_id: str) -> None:
        """Do an action of the registry."""
        if self.takes_input:
            self.perform(action_id)

    def perform(self, action_id: str) -> None:
        raise NotImplementedError

    def follow(self) -> None:
        """Show what is known now. Called whenever the screen is on top again."""

    def on_screen_resume(self) -> None:
        if self.is_here:
            self.follow()

    def every(self, seconds: float, callback: Callable[[], object]) -> None:
        """Call something again and again, as long as the screen has everything in it."""
        self.set_interval(seconds, lambda: callback() if self.is_here else None)

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Leave it. A second time, or while another screen lies over it, nothing happens."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def _get_dispatch_methods(
        self, method_name: str, message: Message
    ) -> Iterable[tuple[type, Callable[[Message], Awaitable[None]]]]:
        for owner, method in super()._get_dispatch_methods(method_name, message):
            if not issubclass(owner, ActionScreen) or self._hears(message):
                yield owner, method

    def _hears(self, message: Message) -> bool:
        if isinstance(message, _OF_ITS_LIFE):
            return True
        # All that is no event comes from what the user did to a widget.
        by_user = isinstance(message, events.InputEvent | events.Paste) or not isinstance(
            message, events.Event
        )
        return self.takes_input if by_user else self.is_here


class DialogScreen(ActionScreen[ScreenResultType], ModalScreen[ScreenResultType], inherit_bindings=False):
    """Lies over another screen, none of whose keys works until it is left.

    A click beside `box`, a selector, leaves it; None where no click does.
    """

    box: ClassVar[str | None] = None

    def on_click(self, event: events.Click) -> None:
        place = event.screen_x, event.screen_y
        if self.box is not None and not self.query_one(self.box).region.contains(*place):
            self.dismiss(None)
