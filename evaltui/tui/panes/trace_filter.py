"""The line in which a search of the trace is typed."""

from __future__ import annotations

from evaltui.tui.widgets.filter_line import FilterLine
from evaltui.workbench.traces import problem_of
from evaltui.workbench.workbench import Workbench


class TraceFilter(FilterLine):
    example = ("kind:tool", "agent:guide", '"a text"')
    examples = ("a word", "kind:tool", "kind:model", "agent:x", "failed", '"some words"', "-not")

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench

    def filter_text(self) -> str:
        return self._workbench.navigation.trace_search

    def set_filter(self, text: str) -> None:
        self._workbench.navigation.search_trace(text)

    def problem(self) -> str:
        return problem_of(self.value)
