"""What came of the selected case or set."""

from __future__ import annotations

from collections.abc import Hashable

from evaltui.reports.lines import Line
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.selected import fingerprint, write_page
from evaltui.tui.pages.writer import Page
from evaltui.tui.widgets.line_view import ScrolledLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench


class ResultView(ScrolledLines, can_focus=True, inherit_bindings=False):
    """Shows the page of the selection, written for the width at hand."""

    BINDINGS = bindings(Scope.RESULT)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._page = Page(80)
        self._written: Hashable = None
        self._shown = Selection()

    def follow(self) -> None:
        """Write the page again if it would be another one, and scroll to where the selection is."""
        width = self.size.width - 3
        if width <= 0:
            return
        written = (fingerprint(self._workbench), width)
        if written != self._written:
            self._written = written
            self._page = write_page(self._workbench, width)
            self.lines_changed(len(self._page.lines))
        if self._workbench.selection != self._shown:
            self._shown = self._workbench.selection
            self._scroll_to_selection()

    def _scroll_to_selection(self) -> None:
        turn = self._shown.turn
        line = self._page.turns.get(turn, 0) if turn is not None else 0
        self.scroll_to(y=line, animate=False, force=True)

    def on_resize(self) -> None:
        self.follow()

    def line(self, number: int) -> Line:
        return [(" ", ""), *self._page.lines[number]]
