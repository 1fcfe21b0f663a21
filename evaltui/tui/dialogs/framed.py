"""Screens about runs: the header, one frame with tabs in its border, the status line and the footer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.screen import ScreenResultType
from textual.widget import Widget

from evaltui.text.lines import Line
from evaltui.tui.action_screen import DialogScreen, ask
from evaltui.tui.dialogs.keys import HelpScreen
from evaltui.tui.layout import MEDIUM_WIDTH
from evaltui.tui.main.bars import Footer, Header, Status, TabRow
from evaltui.tui.pane import PaneFrame, Tab
from evaltui.workbench.actions import ACTIONS_BY_ID, Scope
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.workbench import Workbench

# From here on there are rows for all of a plot, and between blocks.
_TALL_SCREEN = 32
RUNS, COMPARE, SESSIONS, MATRIX, GAPS = "runs", "compare", "sessions", "matrix", "gaps"
TRAJECTORIES = "trajectories"
_TABS = ((RUNS, "H", "Runs"), (COMPARE, "=", "Compare"))


class FramedScreen(DialogScreen[ScreenResultType], inherit_bindings=False):
    """A screen over the main screen, whose keys are off while it is open. `tab` is the tab on top."""

    tab: str
    scope: Scope
    tabs: tuple[tuple[str, str, str], ...] = _TABS
    """The tabs in its border: an id, a key and a title each."""
    SHOWS: ClassVar[tuple[type[WorkbenchMessage], ...]] = ()
    """The messages after which its contents may have changed."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self.workbench = workbench

    @property
    def on_top(self) -> str:
        """The shown tab."""
        return self.tab

    @abstractmethod
    def parts(self) -> Iterator[Widget]:
        """The contents of the frame."""

    @abstractmethod
    def where(self) -> Line:
        """The text in the bottom border."""

    @abstractmethod
    def draw_around(self) -> None:
        """Draws the contents that depend on the current row, and the frame."""

    @abstractmethod
    def other_tab(self) -> None:
        """Another tab was clicked."""

    def below(self) -> Iterator[Widget]:
        """The widgets below the frame."""
        yield from ()

    def status(self) -> Status:
        """The status line."""
        return Status(self.workbench, id=f"{self.tab}-status")

    def compose(self) -> ComposeResult:
        yield Header(self.workbench, id=f"{self.tab}-header")
        yield TabRow(id="tabs")
        yield PaneFrame(*self.parts(), id=f"{self.tab}-frame")
        yield from self.below()
        yield self.status()
        yield Footer(self.workbench, id=f"{self.tab}-footer")

    def on_mount(self) -> None:
        self.subscribe_to(self.workbench.messages, *self.SHOWS)
        self.query_one(Footer).scope = self.scope
        self.draw_frame()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < MEDIUM_WIDTH, "-narrow")
        self.set_class(event.size.height < _TALL_SCREEN, "-low")
        # What is as high as its room is written once that is known.
        self.call_after_refresh(self.draw_around)

    def draw_frame(self) -> None:
        """Draws the tabs, the position, and the lines around the frame."""
        tabs = tuple(Tab(tab, key, title, None, tab == self.on_top) for tab, key, title in self.tabs)
        where = self.where()
        self.query_one(TabRow).show(tabs, where)
        frame = self.query_one(f"#{self.tab}-frame", PaneFrame)
        frame.show(tabs, where, focused=frame.has_focus_within)
        self.query("OneLine").refresh()

    def refusal(self, action_id: str) -> str | None:
        return ACTIONS_BY_ID[action_id].refusal(self.workbench, self.scope)

    def action_help(self) -> None:
        ask(self, HelpScreen(self.scope, self.refusal), self.run_action)

    def action_go_to(self, tab: str) -> None:
        """Shows a tab, by a click."""
        if tab != self.on_top and self.takes_input:
            self.other_tab()
