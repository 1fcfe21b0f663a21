"""Every key, from the action registry."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from evaltui.reports.lines import Line, pad
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.outcome import glyph
from evaltui.tui.widgets.line_view import ScrolledLines
from evaltui.tui.widgets.one_line import OneLine, rule
from evaltui.workbench.actions import ACTIONS, Action, Scope
from evaltui.workbench.keys import key_name
from evaltui.workbench.verdicts import COUNTED, NOT_RUN, RUNNING, WORDS

_KEYS = 16


class HelpScreen(ModalScreen[None], inherit_bindings=False):
    """Stands alone: no key of the main screen works until it is closed."""

    BINDINGS = bindings(Scope.HELP)

    def compose(self) -> ComposeResult:
        with Vertical(id="help"):
            yield HelpTitle(id="help-title")
            yield HelpLines(id="help-lines")

    def action_perform(self, action_id: str) -> None:
        if action_id == "close_help":
            self.dismiss()
        else:
            getattr(self.query_one(HelpLines), f"action_{action_id}")()


class HelpTitle(OneLine):
    def line(self, width: int) -> Line:
        return rule([("Keys", "bold")], [("esc closes", "dim")], width, heavy=True)


class HelpLines(ScrolledLines, inherit_bindings=False):
    def on_mount(self) -> None:
        self._lines = list(_lines())
        self.lines_changed(len(self._lines))

    def line(self, number: int) -> Line:
        return self._lines[number]


def _lines() -> Iterator[Line]:
    groups: dict[tuple[Scope, ...], list[Action]] = {}
    for action in ACTIONS:
        if action.where != (Scope.HELP,):
            groups.setdefault(action.where, []).append(action)
    for where, actions in groups.items():
        yield [(_TITLES[where[0]] if len(where) == 1 else "In every list", "bold")]
        for action in actions:
            names = " ".join(key_name(key) for key in action.keys)
            yield [("  ", ""), (pad(names, _KEYS), "accent"), (action.help, "")]
        yield []
    yield [("Outcomes", "bold")]
    for status in (*COUNTED, NOT_RUN, RUNNING):
        yield [("  ", ""), glyph(status), (f" {WORDS[status]}", "")]


_TITLES = {
    Scope.MAIN: "Everywhere",
    Scope.CASES: "In the list of cases",
    Scope.RESULT: "In the result",
}
