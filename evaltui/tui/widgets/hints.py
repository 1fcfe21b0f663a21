"""Keys and what they do, on a screen that lies over the main one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from textual import events
from textual.binding import Binding, BindingType

from evaltui.text.lines import Line, cells
from evaltui.tui.action_screen import bindings
from evaltui.tui.widgets.one_line import OneLine
from evaltui.workbench.actions import BY_ID, Scope, keys_of
from evaltui.workbench.actions.action import LISTS
from evaltui.workbench.keymap import key_name
from evaltui.workbench.workbench import Workbench


def moves() -> list[BindingType]:
    """The keys that go about in every list."""
    shared = {action.id for action in BY_ID.values() if action.where == LISTS}
    return [one for one in bindings(Scope.DETAILS) if isinstance(one, Binding) and one.id in shared]


class Hint(NamedTuple):
    """An action that is worth doing here, and what it is called here."""

    action: str
    word: str


class Hints(OneLine):
    """Keys and what they do on a screen that lies over the main one; a click does it."""

    def __init__(self, workbench: Workbench, hints: Callable[[], Sequence[Hint]]) -> None:
        super().__init__()
        self._workbench = workbench
        self._hints = hints

    def line(self, width: int) -> Line:
        return [span for _, part in self._parts() for span in part]

    def _parts(self) -> Iterator[tuple[str, Line]]:
        for hint in self._hints():
            key = key_name(keys_of(BY_ID[hint.action], self._workbench)[0])
            yield hint.action, [(" ", ""), (key, "bold"), (f" {hint.word} ", "dim")]

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        left = event.x
        for action, part in self._parts():
            if left < cells(part):
                await self.screen.run_action(action)
                return
            left -= cells(part)
