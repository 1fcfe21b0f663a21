"""The first row of the pane of cases: the key of their filter, and its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal

from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells
from evaltui.tui.widgets.lines import OneLine

if TYPE_CHECKING:
    from evaltui.tui.widgets.fields import FilterLine

IDLE = "filter cases"
"""What stands in an empty filter."""


class FilterRow(Horizontal):
    """The key of the filter, and the filter behind it, which the first frame does not wait for."""

    def compose(self) -> ComposeResult:
        yield FilterKey()

    def add_line(self, line: FilterLine) -> None:
        self.add_class("-with-line")
        self.mount(line)

    async def on_click(self) -> None:
        await self.screen.run_action("filter")


class FilterKey(OneLine):
    def line(self, width: int) -> Line:
        key: Line = [(f"{key_of('filter')} ", "bold accent")]
        return [*key, (IDLE, "faint")] if width > cells(key) else key
