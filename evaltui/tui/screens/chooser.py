"""Which of several agents is meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import ClassVar

from textual.app import ComposeResult

from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ActionApp, ActionScreen, bindings
from evaltui.tui.widgets.lines import CursorLines, OneLine, rule
from evaltui.workbench.actions import Scope, actions_in
from evaltui.workbench.keymap import key_name

_TUI = Path(__file__).parents[1]


class ChooserApp(ActionApp[str]):
    """Runs before the workbench, and returns the name of the agent that was chosen, None for none."""

    TITLE = "evaltui"
    CSS_PATH: ClassVar[list[str | PurePath]] = [_TUI / "app.tcss", _TUI / "screens" / "chooser.tcss"]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, folder: Path, agents: Sequence[str]) -> None:
        super().__init__()
        self._folder = folder
        self._agents = agents

    def get_default_screen(self) -> ChooserScreen:
        return ChooserScreen(self._folder, self._agents)


class ChooserScreen(ActionScreen[None], inherit_bindings=False):
    BINDINGS = bindings(Scope.CHOOSER)

    def __init__(self, folder: Path, agents: Sequence[str]) -> None:
        super().__init__()
        self._folder = folder
        self._agents = agents

    def compose(self) -> ComposeResult:
        yield ChooserTitle(self._folder, len(self._agents))
        yield ChooserList(self._agents, id="agents")
        yield ChooserFooter()

    def action_leave(self) -> None:
        self.app.exit()


class ChooserTitle(OneLine):
    def __init__(self, folder: Path, count: int) -> None:
        super().__init__()
        self._folder = folder
        self._count = count

    def line(self, width: int) -> Line:
        title = [("Which agent? ", "bold"), (visible(str(self._folder.resolve())), "dim")]
        return rule(title, [(str(self._count), "dim")], width, heavy=True)


class ChooserFooter(OneLine):
    def line(self, width: int) -> Line:
        shown = [action for action in actions_in(Scope.CHOOSER) if action.rank is not None]
        return [
            span
            for action in shown
            for span in ((f" {key_name(action.keys[0])}", "bold"), (f" {action.title} ", "dim"))
        ]


class ChooserList(CursorLines, can_focus=True, inherit_bindings=False):
    def __init__(self, agents: Sequence[str], *, id: str) -> None:
        super().__init__(id=id)
        self._agents = agents

    def on_mount(self) -> None:
        self.focus()

    def on_resize(self) -> None:
        self.lines_changed(len(self._agents))

    def line(self, number: int) -> Line:
        here = number == self.cursor
        return [("▌ " if here else "  ", "accent"), (visible(self._agents[number]), "")]

    def open_current(self) -> None:
        self.action_open_agent()

    def action_open_agent(self) -> None:
        self.app.exit(self._agents[self.cursor])
