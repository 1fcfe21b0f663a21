"""The line in which a filter of the cases is typed."""

from __future__ import annotations

from evaltui.tui.textual_private import once
from evaltui.tui.widgets.filter_line import FilterLine
from evaltui.workbench.workbench import Workbench

# Seconds: first the line is seen.
_BEFORE_PREPARING = 0.05


class FilterInput(FilterLine):
    example = ("fail", "tool:book_hotel", "score<0.8", '"late order"')
    examples = (
        "a word",
        "pass",
        "tool:x",
        "id:x*",
        "-not",
        '"some words"',
        "set:x",
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
