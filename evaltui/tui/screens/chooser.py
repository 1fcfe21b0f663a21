"""The choice between several agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ActionApp, ActionScreen, bindings
from evaltui.tui.widgets.choices import ChoiceList
from evaltui.tui.widgets.lines import DrawnLine, Title
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
    AUTO_FOCUS = "#agents"

    def __init__(self, folder: Path, agents: Sequence[str]) -> None:
        super().__init__()
        self._folder = folder
        self._agents = agents

    def compose(self) -> ComposeResult:
        folder, count = visible(str(self._folder.resolve())), str(len(self._agents))
        yield Title(lambda: [("Which agent? ", "bold"), (folder, "muted")], lambda: [(count, "muted")])
        yield ChoiceList(len(self._agents), self._line, id="agents")
        yield DrawnLine(_keys)

    def _line(self, number: int, is_current: bool) -> Line:
        return [("▌ " if is_current else "  ", "bold accent"), (visible(self._agents[number]), "")]

    def action_leave(self) -> None:
        self.app.exit()

    @on(ChoiceList.OptionSelected)
    def action_open_agent(self) -> None:
        self.app.exit(self._agents[self.query_one(ChoiceList).current])


def _keys(width: int) -> Line:
    shown = [action for action in actions_in(Scope.CHOOSER) if action.rank is not None]
    return [
        span
        for action in shown
        for span in ((f" {key_name(action.keys[0])}", "bold"), (f" {action.title} ", "muted"))
    ]
