"""The base of the panes of the main screen."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from textual.widget import Widget

from evaltui.files.agent_source import SourcePlace
from evaltui.text.lines import Line, Span, draw
from evaltui.tui.pages.writer import Page
from evaltui.tui.widgets.lines import LineView, ScrolledLines
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench


class Copied(NamedTuple):
    """A text to be copied."""

    what: str
    """Name of the text, as in `the trace of late_order`."""
    text: str


class Pane(LineView, can_focus=True, inherit_bindings=False):
    """A pane of the main screen. `follow` is called after every change while the pane is visible."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench

    @abstractmethod
    def follow(self) -> None: ...

    def heading(self) -> Line:
        """What the pane shows, beside its title; in few words."""
        return []

    def copied(self) -> Copied | None:
        """What copying takes from here."""
        return None

    def copied_json(self) -> Copied | None:
        """The same as data."""
        return None

    def source(self) -> SourcePlace | None:
        """Where the source of what is current stands."""
        return None

    def mark(self) -> Span | None:
        """What its tab says of it, in a glyph."""
        return None

    def below(self) -> Widget | None:
        """What stands below it and belongs to it: something to type in."""
        return None

    def left(self) -> None:
        """Another pane gets the focus."""

    @property
    def entry(self) -> Widget:
        """What has the focus first when one comes here."""
        return self


class PagePane(Pane, ScrolledLines, can_focus=True, inherit_bindings=False):
    """Shows a page about the selection, written anew for every width and whenever `shown_state` changes."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self.page = Page(80)
        self._written: object = None
        self._shown = Selection()

    @abstractmethod
    def shown_state(self) -> object:
        """What the page is made of: while it is equal, the page is not written again."""

    @abstractmethod
    def write(self, page: Page) -> None: ...

    def follow(self) -> None:
        width = self.size.width - 3
        if width <= 0:
            return
        written = (self.shown_state(), width)
        if written != self._written:
            self._written = written
            self.page = Page(width)
            self.write(self.page)
            self.lines_changed(len(self.page.lines))
        if self._workbench.navigation.selection != self._shown:
            self._shown = self._workbench.navigation.selection
            self._scroll_to_selection()

    def copied(self) -> Copied | None:
        """The whole page, without colours."""
        lines = [draw(line, color=False) for line in self.page.lines]
        eval_id = self._workbench.navigation.selection.eval_id
        what = "this page" if eval_id is None else eval_id
        return Copied(f"the {self.id} of {what}", "\n".join(lines) + "\n") if lines else None

    def _scroll_to_selection(self) -> None:
        turn = self._shown.turn
        line = self.page.turns.get(turn, 0) if turn is not None else 0
        self.scroll_to(y=line, animate=False, force=True)

    def on_resize(self) -> None:
        self.follow()

    def line(self, number: int) -> Line:
        return [(" ", ""), *self.page.lines[number]]
