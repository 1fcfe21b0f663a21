"""What came of the selected case or set."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

from evaltui.reports.lines import Line, Span
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.outcome import glyph
from evaltui.tui.pages.selected import fingerprint, page_title, write_page
from evaltui.tui.pages.writer import Page
from evaltui.tui.pane import PagePane
from evaltui.tui.screens.details import DetailsScreen
from evaltui.workbench.actions import Scope
from evaltui.workbench.state import CaseKey
from evaltui.workbench.workbench import Workbench

_NO_DIFFERENCES = "no calls, answers or state differ from what is expected"


class ResultView(PagePane, can_focus=True, inherit_bindings=False):
    BINDINGS = bindings(Scope.RESULT)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._current: int | None = None
        self._current_case: CaseKey | None = None

    def heading(self) -> Line:
        title, origin = page_title(self._workbench)
        if self._current is not None:
            origin = [(f"{self._current + 1}/{len(self.page.differences)}", ""), (" differences", "")]
        return [*origin, *([("  ", "")] if origin else []), *title]

    def mark(self) -> Span | None:
        case = self._workbench.selection.case
        return glyph(self._workbench.status(case)) if case else None

    def fingerprint(self) -> Hashable:
        return fingerprint(self._workbench)

    def write(self, page: Page) -> None:
        write_page(page, self._workbench)

    # Differences

    def follow(self) -> None:
        page, selection = self.page, self._workbench.selection.case
        super().follow()
        rewritten = self.page is not page
        if selection != self._current_case or (
            rewritten and len(self.page.differences) != len(page.differences)
        ):
            self._current = None
        self._current_case = selection

    def step_difference(self, step: int) -> None:
        """Go to the next (1) or the previous (-1) difference and mark it, around the end with a notice."""
        self.follow()
        differences = self.page.differences
        if not differences:
            self._workbench.say(_NO_DIFFERENCES)
            return
        number = self._beyond(step) if self._current is None else self._current + step
        if not 0 <= number < len(differences):
            number = 0 if step > 0 else len(differences) - 1
            self._workbench.say("from the first difference again" if step > 0 else "from the last one again")
        self._current = number
        difference = differences[number]
        self.show_line(difference.last - 1)
        self.show_line(difference.first)
        self.refresh()

    def _beyond(self, step: int) -> int:
        """The first difference from the top of what is seen, or the last one above it."""
        top = self.scroll_offset.y
        above = sum(difference.first < top for difference in self.page.differences)
        return above if step > 0 else above - 1

    def action_open_details(self) -> None:
        if self._current is None:
            hint = "n goes to a difference, enter shows all of it"
            self._workbench.say(hint if self.page.differences else _NO_DIFFERENCES)
            return
        # It colours JSON, which the first frame need not wait for.
        from evaltui.tui.pages.difference import write_sides

        difference = self.page.differences[self._current]
        title: Line = [(difference.title, "bold")]
        self.app.push_screen(DetailsScreen(title, partial(write_sides, difference=difference)))

    def _is_current(self, number: int) -> bool:
        if self._current is None:
            return False
        difference = self.page.differences[self._current]
        return difference.first <= number < difference.last

    def line(self, number: int) -> Line:
        if not self._is_current(number):
            return super().line(number)
        return [("▌", "accent"), *self.page.lines[number]]

    def line_classes(self, number: int) -> tuple[str, ...]:
        return ("current-line",) if self._is_current(number) else ()
