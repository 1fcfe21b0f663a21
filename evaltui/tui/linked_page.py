"""A page with parts that keys go to, and that enter or a second click opens: metrics, cases."""

from __future__ import annotations

from abc import abstractmethod

from evaltui.core.model.case_id import CaseId
from evaltui.text.lines import Line, divided
from evaltui.tui.page_pane import PagePane
from evaltui.tui.widgets.writer import Link
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench


class LinkedPage(PagePane, can_focus=True, inherit_bindings=False):
    """The pane of such a page. Where its parts are cases, the keys that scroll other pages go to them."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        # What is current, by what was selected then.
        self._linked: tuple[Selection, CaseId | str] | None = None

    @abstractmethod
    def open_link(self, link: Link) -> None: ...

    @property
    def link(self) -> Link | None:
        """The current part of the page."""
        if self._linked is None or self._linked[0] != self._workbench.navigation.selection:
            return None
        return next((link for link in self.page.links if link.opens == self._linked[1]), None)

    def leave_link(self) -> None:
        """No part is the current one any more."""
        self._linked = None

    def go_to_link(self, link: Link) -> None:
        """Makes a part the current one, and the difference no longer."""
        self._linked = self._workbench.navigation.selection, link.opens
        if self._workbench.navigation.difference is not None:
            self._workbench.navigation.select_difference(None)
        self.show_line(link.last - 1)
        self.show_line(link.first)
        self.refresh()

    def action_step_item(self, step: int) -> None:
        links, link = self.page.links, self.link
        if links:
            # From nowhere to the first one, or to the last.
            here = links.index(link) if link else min(-step, 0)
            self.go_to_link(links[(here + step) % len(links)])

    @property
    def _lists_cases(self) -> bool:
        return bool(self.page.links) and isinstance(self.page.links[0].opens, CaseId)

    def action_step_line(self, step: int) -> None:
        if self._lists_cases:
            self.action_step_item(step)
        else:
            super().action_step_line(step)

    def click_link(self, line: int, cell: int) -> bool:
        """Whether there is a part at a place of the page: it is made the current one, or opened if it is."""
        for link in self.page.links:
            end = self.page.width if link.end is None else link.end
            if link.first <= line < link.last and link.start <= cell < end:
                if link == self.link:
                    self.open_link(link)
                else:
                    self.go_to_link(link)
                return True
        return False

    # Drawing

    def line(self, number: int) -> Line:
        link = self.link
        if link is None or not link.first <= number < link.last:
            return super().line(number)
        line = self.page.lines[number]
        if isinstance(link.opens, CaseId):
            return [("▌", "bold accent"), *line]
        before, rest = divided(line, link.start)
        inside, after = divided(rest, (link.end or self.page.width) - link.start)
        tint = "sel" if self.has_focus else "sel-blur"
        shown = [
            (text, role.replace("surface", tint).replace("faint", "muted"))
            for text, role in divided(inside, 1)[1]
        ]
        # The marker stays on the card's own ground: where the tint is a reversed one, it would be a gap.
        return [(" ", ""), *before, ("▌", "bold accent surface"), *shown, *after]

    def row_role(self, number: int) -> str:
        link = self.link
        is_current = link is not None and link.first <= number < link.last
        return "current" if is_current and link and isinstance(link.opens, CaseId) else ""
