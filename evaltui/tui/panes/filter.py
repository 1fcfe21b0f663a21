"""The line in which a filter of the cases is typed."""

from __future__ import annotations

from textual.widgets import Input

from evaltui.tui.bindings import bindings
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench


class FilterInput(Input):
    """Filters while one types. It is seen while it is typed in, and as long as it has a text."""

    BINDINGS = bindings(Scope.FILTER)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(placeholder="words, pass, fail, error, flaky", compact=True, id=id)
        self._workbench = workbench
        self._followed = ""

    def follow(self) -> None:
        """Show the filter that is set, also where it was not set from here."""
        text = self._workbench.filtered.text
        if text != self._followed:
            self._followed = self.value = text
        self.display = self.has_focus or bool(text)

    def on_input_changed(self) -> None:
        if self.value != self._workbench.filtered.text:
            # Not to be taken for a filter set from elsewhere: more may have been typed by then.
            self._followed = self.value
            self._workbench.set_filter(self.value)
