"""One thing in full, over the main screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from evaltui.text.lines import Line, cells
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.pages.writer import Page
from evaltui.tui.widgets.line_view import ScrolledLines
from evaltui.tui.widgets.one_line import OneLine, rule
from evaltui.workbench.actions import Scope

Write = Callable[[Page], None]

# What a rule has around a title and what is right of it.
_AROUND = 12


class Tab(NamedTuple):
    """One of several ways to look at a thing."""

    name: str
    write: Write


class DetailsScreen(DialogScreen[None], inherit_bindings=False):
    """Stands alone, as the help does. What writes a page is called for every width anew.

    `tabs` is one way to look at the thing, or several, of which number `first` is shown first.
    """

    BINDINGS = bindings(Scope.DETAILS)

    def __init__(self, title: Line, tabs: Write | Sequence[Tab], first: int = 0) -> None:
        super().__init__()
        self._title_line = title
        self._tabs = (Tab("", tabs),) if callable(tabs) else tuple(tabs)
        self._current = first

    def compose(self) -> ComposeResult:
        with Vertical(id="details"):
            yield DetailsTitle(
                self._title_line, [tab.name for tab in self._tabs], self._current, id="details-title"
            )
            yield DetailsLines(self._tabs[self._current].write, id="details-lines")

    def action_close_details(self) -> None:
        self.dismiss()

    def action_next_page(self) -> None:
        self._show(self._current + 1)

    def action_previous_page(self) -> None:
        self._show(self._current - 1)

    def on_details_title_chosen(self, message: DetailsTitle.Chosen) -> None:
        self._show(message.number)

    def _show(self, number: int) -> None:
        self._current = number % len(self._tabs)
        self.query_one(DetailsTitle).show(self._current)
        self.query_one(DetailsLines).show(self._tabs[self._current].write)


class DetailsTitle(OneLine):
    """The title, and what else there is to look at."""

    class Chosen(Message):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, title: Line, names: Sequence[str], current: int, *, id: str) -> None:
        super().__init__(id=id)
        self._title_line = title
        self._names = names
        self._current = current

    def show(self, current: int) -> None:
        self._current = current
        self.refresh()

    def line(self, width: int) -> Line:
        hints: Line = [("tab  ", "dim")] if len(self._names) > 1 else []
        right = [*self._tabs(), *hints, ("esc closes", "dim")]
        if cells(self._title_line) + cells(right) + _AROUND > width:
            right = self._tabs()
        return rule(self._title_line, right, width, heavy=True)

    def _tabs(self) -> Line:
        if len(self._names) < 2:
            return []
        tabs: Line = []
        for number, name in enumerate(self._names):
            tabs += [(name, "accent" if number == self._current else "dim"), ("  ", "")]
        return tabs

    def on_click(self, event: events.Click) -> None:
        """What is right of the title are the tabs."""
        column = 0
        for text, _ in self.line(self.size.width):
            if column <= event.x < column + cell_len(text) and text in self._names:
                self.post_message(self.Chosen(self._names.index(text)))
            column += cell_len(text)


class DetailsLines(ScrolledLines, inherit_bindings=False):
    def __init__(self, write: Write, *, id: str) -> None:
        super().__init__(id=id)
        self._write = write
        self._page = Page(80)

    def show(self, write: Write) -> None:
        self._write = write
        self._page = Page(80)
        self.on_resize()
        self.scroll_home(animate=False)

    def on_resize(self) -> None:
        page = Page(self.size.width - 2)
        if self._page.lines and page.width == self._page.width:
            return
        self._write(page)
        self._page = page
        self.lines_changed(len(page.lines))

    def line(self, number: int) -> Line:
        return [(" ", ""), *self._page.lines[number]]
