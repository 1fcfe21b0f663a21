"""The widget that shows a page."""

from __future__ import annotations

from collections.abc import Callable

from evaltui.text.lines import Line
from evaltui.tui.widgets.lines import ScrolledLines
from evaltui.tui.widgets.writer import MAX_WIDTH, Page


class PageLines(ScrolledLines, inherit_bindings=False):
    """A page, written anew for every width."""

    def __init__(
        self,
        write: Callable[[Page], object],
        *,
        can_focus: bool = True,
        indent: int = 1,
        widest: int = MAX_WIDTH,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.can_focus = can_focus
        self._margin = " " * indent
        self._widest = widest
        self.page = Page(80)
        """The page that is shown."""
        self._write = write

    def show(self, write: Callable[[Page], object]) -> None:
        """Shows another page from its beginning."""
        self._write = write
        self.write_page()
        self.scroll_home(animate=False)

    def write_page(self) -> None:
        """Writes the page anew, after a change of what it tells."""
        page = Page(self.size.width - 2, self._widest)
        self._write(page)
        # Only a page that is whole is drawn.
        self.page = page
        self.lines_changed(len(page.lines))

    def on_resize(self) -> None:
        if not self.page.lines or self.page.width != Page(self.size.width - 2, self._widest).width:
            self.write_page()

    def line(self, number: int) -> Line:
        return [(self._margin, ""), *self.page.lines[number]]

    def full_text(self, number: int) -> str:
        return self.page.full_texts.get(number) or super().full_text(number)
