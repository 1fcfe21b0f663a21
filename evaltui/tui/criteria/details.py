"""The pane beside the criteria: the page of the current row, and in it the cases to go to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from evaltui.core.model.case_id import CaseId
from evaltui.text.lines import Line
from evaltui.tui.action_screen import bindings
from evaltui.tui.dialogs.prompt import moves
from evaltui.tui.widgets.lines import ScrolledLines
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope


class CriteriaDetails(ScrolledLines, inherit_bindings=False):
    """`write` writes the page for so many rows, and returns the lines that stand for cases.

    Keys move from case to case, and scroll where there is none; `enter` goes to the case.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*moves(), *bindings(Scope.CRITERIA_EFFECT)]

    class Chosen(Message):
        """The user wants to see a case."""

        def __init__(self, case: CaseId) -> None:
            super().__init__()
            self.case = case

    def __init__(self, write: Callable[[Page, int], Mapping[int, CaseId]], *, id: str) -> None:
        super().__init__(id=id)
        self._write = write
        self._page = Page(80)
        self._places: dict[int, tuple[CaseId, int]] = {}
        # The current case, and which of its lines it is.
        self._at: tuple[CaseId, int] | None = None

    def follow(self) -> None:
        """Writes the page of now; the cursor stays with its case."""
        self._page = Page(self.line_width)
        seen = Counter[CaseId]()
        self._places = {}
        for line, case in sorted(self._write(self._page, self.size.height).items()):
            self._places[line] = case, seen[case]
            seen[case] += 1
        if not self.has_focus or self._at not in self._places.values():
            self._at = next(iter(self._places.values()), None)
        self.lines_changed(len(self._page.lines))

    def from_top(self) -> None:
        """Shows the page from its beginning, as that of another row."""
        self.scroll_home(animate=False)
        self.follow()

    def on_resize(self) -> None:
        self.follow()

    def line(self, number: int) -> Line:
        line = self._page.lines[number]
        if not (self.has_focus and self._is_current(number)):
            return line
        (first, role), *rest = line
        return [("▌", "bold accent"), (first[1:], role), *rest]

    def row_role(self, number: int) -> str:
        return "current" if self.has_focus and self._is_current(number) else ""

    def _is_current(self, number: int) -> bool:
        return number in self._places and self._places[number] == self._at

    # Keys and mouse

    def action_step_line(self, step: int) -> None:
        lines = [*self._places]
        at = next((number for number in lines if self._is_current(number)), None)
        top, height = self.scroll_offset.y, self.size.height
        if at is not None and top <= at < top + height:
            there = lines.index(at) + step
            if 0 <= there < len(lines):
                self._go(lines[there])
                return
        self.scroll_relative(y=step, animate=False)

    def _go(self, line: int) -> None:
        self._at = self._places[line]
        self.show_line(line)
        self.refresh()

    def action_open(self) -> None:
        """Goes to the current case."""
        if self._at is not None:
            self.post_message(self.Chosen(self._at[0]))

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number in self._places:
            self._go(number)
            if event.chain > 1:
                self.action_open()
