"""The filter of cases, in the first row of their pane."""

from __future__ import annotations

from textual import work

from evaltui.tui.cases.filter import IDLE
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.fields import FilterLine
from evaltui.workbench.workbench import Workbench

# Seconds: first the line is seen.
_BEFORE_PREPARING = 0.05


class FilterInput(FilterLine):
    always = True
    idle = IDLE
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
        once(self, _BEFORE_PREPARING, self._prepare)

    @work
    async def _prepare(self) -> None:
        await self._workbench.navigation.prepare_filter()

    def filter_text(self) -> str:
        return self._workbench.navigation.filtered.text

    def set_filter(self, text: str) -> None:
        self._workbench.navigation.set_filter(text)

    def problem(self) -> str:
        return self._workbench.navigation.filtered.problem or ""
