"""The panes of the main screen, and which of them are side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from evaltui.tui.pane import Pane
from evaltui.tui.panes.tree.view import CaseTree
from evaltui.workbench.workbench import Workbench

MEDIUM, WIDE = 90, 140
START = "start"


def make_pane(id: str, workbench: Workbench) -> Pane:
    """The first frame shows the cases; it does not wait for the other panes to be imported."""
    if id == "cases":
        return CaseTree(workbench, id=id)
    from evaltui.tui.panes.case.view import CaseView
    from evaltui.tui.panes.chat.view import ChatView
    from evaltui.tui.panes.console import ConsoleView
    from evaltui.tui.panes.result import ResultView
    from evaltui.tui.panes.start import StartView
    from evaltui.tui.panes.trace import TraceView

    kinds: dict[str, Callable[..., Pane]] = {
        "case": CaseView,
        "result": ResultView,
        "chat": ChatView,
        "trace": TraceView,
        "console": ConsoleView,
        START: StartView,
    }
    return kinds[id](workbench, id=id)


class PaneKind(NamedTuple):
    """A pane of the main screen. Its key is its place in `PANES`, its action is `show_<id>`.

    The start pane is none of `PANES`: it is shown by itself, in place of the panes about cases.
    """

    id: str
    title: str


PANES: tuple[PaneKind, ...] = (
    PaneKind("cases", "Cases"),
    PaneKind("case", "Case"),
    PaneKind("result", "Result"),
    PaneKind("chat", "Chat"),
    PaneKind("trace", "Trace"),
    PaneKind("console", "Console"),
)
KEYS = {kind.id: str(number + 1) for number, kind in enumerate(PANES)}
TITLES = {kind.id: kind.title for kind in PANES} | {START: "Start"}

_ALL = tuple(kind.id for kind in PANES)
_MAIN = tuple(pane for pane in _ALL if pane != "cases")
# What is worked on, with what came of it beside it.
_MIDDLE = ("case", "chat")
_RIGHT = tuple(pane for pane in _MAIN if pane not in _MIDDLE)
# As long as there is no case.
_OF_CASES = ("case", "result", "trace")
_AT_START = (START, "chat", "console")
LEFT_TO_RIGHT = ("cases", START, *_MIDDLE, *_RIGHT)


@dataclass(frozen=True)
class Column:
    """Panes that share a place on the screen as tabs."""

    panes: tuple[str, ...]
    """Ids of the panes, from left to right."""
    shown: str
    """Id of the pane on top."""


@dataclass
class Layout:
    """What the user has chosen to see: it outlives every change of the terminal's size."""

    focus: str = "cases"
    """The pane with the focus."""
    main: str = "case"
    """The pane beside the cases where two columns fit."""
    middle: str = "case"
    """The pane in the middle of three columns."""
    right: str = "result"
    """The pane at the right of three columns."""
    cases_hidden: bool = False
    maximised: bool = False
    """Whether the pane with the focus has the whole screen."""
    at_start: bool = False
    """Whether there is no case, and the start pane stands for those about cases."""

    def start(self, at_start: bool) -> None:
        """Have the start pane, or no longer; the focus goes there from panes that have nothing to show."""
        if at_start != self.at_start:
            self.at_start = at_start
            if at_start:
                self.go_to(START if self.focus in ("cases", *_OF_CASES) else self.focus)
            elif self.focus == START:
                self.go_to("cases")

    def go_to(self, pane: str) -> None:
        """Have the focus on a pane, on top of those that share its place."""
        if self.at_start and pane in _OF_CASES:
            pane = START
        self.focus = pane
        if pane == "cases":
            self.cases_hidden = False
        else:
            self.bring_up(pane)

    def bring_up(self, pane: str) -> None:
        """Put a pane on top, wherever the focus is."""
        if pane == START:
            return
        self.main = pane
        if pane in _RIGHT:
            self.right = pane
        else:
            self.middle = pane

    def hide_cases(self, hidden: bool) -> None:
        self.cases_hidden = hidden
        if hidden and self.focus == "cases":
            self.focus = self.main

    def columns(self, width: int) -> tuple[Column, ...]:
        """From left to right, for a terminal of `width` cells. The pane with the focus is always shown."""
        if width < MEDIUM or self.maximised:
            return (Column(("cases", *_AT_START) if self.at_start else _ALL, self.focus),)
        cases = () if self.cases_hidden else (Column(("cases",), "cases"),)
        if self.at_start:
            return (*cases, self._column(_AT_START, START))
        if width < WIDE:
            return (*cases, self._column(_MAIN, self.main))
        return (*cases, self._column(_MIDDLE, self.middle), self._column(_RIGHT, self.right))

    def _column(self, panes: tuple[str, ...], on_top: str) -> Column:
        return Column(panes, self.focus if self.focus in panes else on_top)
