"""What stands above and below the rows of a trace."""

from __future__ import annotations

from evaltui.tui.widgets.fields import FilterLine
from evaltui.tui.widgets.page_lines import PageLines
from evaltui.workbench.trace.traces import problem_of
from evaltui.workbench.workbench import Workbench


class Summary(PageLines, inherit_bindings=False):
    """What stands below the rows of a trace, while there is room."""

    _followed: object = None

    def follow(self, *state: object) -> None:
        """Writes it anew when the state is another one."""
        if state != self._followed and self.size.height:
            self._followed = state
            self.write_page()

    def on_resize(self) -> None:
        self.write_page()


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
