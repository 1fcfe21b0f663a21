"""The filter of cases, the first row of their pane."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal

from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.fields import FilterLine
from evaltui.tui.widgets.lines import OneLine
from evaltui.workbench.workbench import Workbench

# Seconds: first the line is seen.
_BEFORE_PREPARING = 0.05


class FilterInput(FilterLine):
    always = True
    idle = "filter cases"
    example = ("fail", "tool:book_hotel", "score<0.8", '"late order"')
    examples = (
        "a word",
        "pass",
        "tool:x",
        "id:x*",
        "-not",
        '"some words"',
        "set:x",
        "#tag",
        "text:x",
        "flaky",
        "not_run",
    )

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench

    def on_focus(self) -> None:
        once(self, _BEFORE_PREPARING, self._workbench.navigation.prepare_filter)

    def filter_text(self) -> str:
        return self._workbench.navigation.filtered.text

    def set_filter(self, text: str) -> None:
        self._workbench.navigation.set_filter(text)

    def problem(self) -> str:
        return self._workbench.navigation.filtered.problem or ""


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
        return [*key, (FilterInput.idle, "faint")] if width > cells(key) else key
