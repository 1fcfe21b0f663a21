"""The base of the panes that show a page about the selection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from evaltui.text.lines import Line, draw
from evaltui.tui.pane import Copied, Pane
from evaltui.tui.textual_private import HearingScreen
from evaltui.tui.widgets.lines import ScrolledLines
from evaltui.tui.widgets.writer import MAX_WIDTH, Page
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# What the names of sections that are turns begin with.
_TURN = "turn "


class PagePane(Pane, ScrolledLines, can_focus=True, inherit_bindings=False):
    """Shows a page about the selection, written anew for every width and whenever `shown_state` changes."""

    widest = MAX_WIDTH
    """The cells that a line of the page may have."""

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
        width = self.size.width - 2
        if width <= 0:
            return
        written = (self.shown_state(), width)
        if written != self._written:
            self._written = written
            page = Page(width, self.widest)
            self.write(page)
            # Only a page that is whole is drawn.
            self.page = page
            self.lines_changed(len(page.lines))
        if self._workbench.navigation.selection != self._shown:
            self._shown = self._workbench.navigation.selection
            self._scroll_to_selection()

    def sections(self) -> Iterator[tuple[str, int]]:
        return ((f"{_TURN}{turn}", line) for turn, line in self.page.turns.items())

    def jump(self, section: str) -> None:
        if section.startswith(_TURN):
            navigation = self._workbench.navigation
            navigation.select(navigation.selection._replace(turn=int(section.removeprefix(_TURN))))

    def page_to_copy(self) -> Page:
        """The page as it is copied."""
        return self.page

    def copied(self) -> Copied | None:
        """The whole page, without colours."""
        lines = [draw(line, color=False) for line in self.page_to_copy().lines]
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

    def full_text(self, number: int) -> str:
        return self.page.full_texts.get(number) or super().full_text(number)

    def selectable(self, number: int, start: int, end: int) -> tuple[int, int]:
        """Of two sides, that one in which the mouse began to select."""
        start, end = super().selectable(number, start, end)
        origin = self.screen.selection_origin if isinstance(self.screen, HearingScreen) else None
        if number not in self.page.sides or origin is None:
            return start, end
        # The first cell of a line is the margin.
        left, right = (1 + place for place in self.page.sides[number])
        return (max(start, right), end) if origin.x >= right else (start, min(end, left))
