"""One thing in full, over the main screen."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from evaltui.reports.lines import Line
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.writer import Page
from evaltui.tui.widgets.line_view import ScrolledLines
from evaltui.tui.widgets.one_line import OneLine, rule
from evaltui.workbench.actions import Scope

Write = Callable[[Page], None]


class DetailsScreen(ModalScreen[None], inherit_bindings=False):
    """Stands alone, as the help does. `write` is called for every width anew."""

    BINDINGS = bindings(Scope.DETAILS)

    def __init__(self, title: Line, write: Write) -> None:
        super().__init__()
        self._title_line = title
        self._write = write

    def compose(self) -> ComposeResult:
        with Vertical(id="details"):
            yield DetailsTitle(self._title_line, id="details-title")
            yield DetailsLines(self._write, id="details-lines")

    def action_perform(self, action_id: str) -> None:
        if action_id == "close_details":
            self.dismiss()
        else:
            getattr(self.query_one(DetailsLines), f"action_{action_id}")()


class DetailsTitle(OneLine):
    def __init__(self, title: Line, *, id: str) -> None:
        super().__init__(id=id)
        self._title_line = title

    def line(self, width: int) -> Line:
        return rule(self._title_line, [("esc closes", "dim")], width, heavy=True)


class DetailsLines(ScrolledLines, inherit_bindings=False):
    def __init__(self, write: Write, *, id: str) -> None:
        super().__init__(id=id)
        self._write = write
        self._page = Page(80)

    def on_resize(self) -> None:
        page = Page(self.size.width - 2)
        if self._page.lines and page.width == self._page.width:
            return
        self._write(page)
        self._page = page
        self.lines_changed(len(page.lines))

    def line(self, number: int) -> Line:
        return [(" ", ""), *self._page.lines[number]]
