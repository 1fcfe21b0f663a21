"""The matrices of an agent as a list, of which one is chosen."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from evaltui.runs.matrices import StoredMatrix, stored_matrices
from evaltui.runs.run_kind import RunKind
from evaltui.text.figures import counted, show_moment
from evaltui.text.lines import Line, both_ends
from evaltui.text.values import visible
from evaltui.tui.dialogs.finding import SearchScreen, has_words
from evaltui.workbench.matrix.matrices import title_of
from evaltui.workbench.workbench import Workbench


class MatrixChooser(SearchScreen[StoredMatrix, StoredMatrix]):
    """Returns a matrix of stored runs."""

    box = "#pick-run"
    title_text = "Open matrix"
    placeholder = "type the name of a variant"
    take_word = "open"

    def __init__(self, workbench: Workbench, current: str) -> None:
        super().__init__()
        self.nothing = "Loading runs…"
        self._workbench = workbench
        self._shown = current
        self._known: list[StoredMatrix] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self._read(), group="load", exclusive=True)

    async def _read(self) -> None:
        agent = self._workbench.agent
        self._known = await asyncio.to_thread(stored_matrices, agent.store, RunKind.of(agent.address))
        self.nothing = "No match" if self._known else "No matrix yet"
        if self.is_here:
            self.search_again()

    def find(self, query: str) -> list[StoredMatrix]:
        return [one for one in self._known if has_words(query, title_of(one))]

    def found_line(self, found: StoredMatrix, width: int) -> Line:
        left: Line = [
            (f" {show_moment(found.started, datetime.now(UTC)):<14}", "muted"),
            (visible(title_of(found)), ""),
        ]
        shown = "shown  " if found.id == self._shown else ""
        return both_ends(left, [(f"{shown}{counted(len(found.logs), 'variant')} ", "muted")], width)

    def result_of(self, found: StoredMatrix) -> StoredMatrix:
        return found
