"""Coverage of an agent by its cases, at three levels: reached, expected, and noticed if changed."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from evaltui.core.gaps.cells import Cell, CellKind, Tools, cells_of_call, tool_cells
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, Invocation, InvocationEvents, tool_calls, tool_responses
from evaltui.core.model.renaming import TRANSFER
from evaltui.core.model.tool_schema import DeclaredTool
from evaltui.core.scoring import Expected


@dataclass(frozen=True, slots=True)
class CellCoverage:
    """The coverage of a cell."""

    kind: CellKind
    name: str
    reached: int
    """Cases in whose results it is."""
    expected: int | None
    """Cases that expect it, or have a rule that names it; None for agents, which no case names."""
    noticed: int | None
    """Changes of it that were noticed; None for what is not changed."""


@dataclass
class Coverage:
    """Counts coverage, case by case."""

    tools: Tools
    cells: dict[Cell, None] = field(default_factory=dict)
    """All known cells, in order."""
    reached: defaultdict[Cell, array[int]] = field(default_factory=partial(defaultdict, partial(array, "L")))
    """The cases in whose results each cell is, by their places in `cases`: there are many of both."""
    cases: list[CaseId] = field(default_factory=list)
    """The cases with results."""
    knows_state: bool = False
    """Whether the final session state of a result is known."""
    expected: Counter[Cell] = field(default_factory=Counter)
    noticed: Counter[Cell] = field(default_factory=Counter)

    def declare(self, tools: Iterable[DeclaredTool], agents: Iterable[str], transfers: Iterable[str]) -> None:
        """Adds the cells of an agent's tools; `agents` are itself and those below, `transfers` those to which
        a call transfers."""
        for tool in tools:
            self.cells |= dict.fromkeys(tool_cells(tool))
        for agent in agents:
            self.cells[Cell("agent", agent)] = None
        self.cells |= {Cell("transfer", agent): None for agent in transfers}

    def add_expected(self, case: EvalCase, expected: Expected) -> None:
        """Counts what a case expects, and what its rules name."""
        cells = [*self._of_turns(case.conversation or [], has_agents=False)]
        cells += [Cell("state key", key) for key in case.final_session_state or {}]
        for name, rules in expected.rules.items():
            cells += [Cell("argument", f"{name}.{rule.path[0]}") for rule in rules.ranked if rule.path]
        # In an order that is the same each time.
        self.expected.update(dict.fromkeys(cells).keys())

    def add_actual(
        self, case: CaseId, turns: Sequence[Invocation], final_state: Mapping[str, Any] | None
    ) -> None:
        """Notes what a case reached in one of its repeats, which follow each other."""
        if self.cases[-1:] != [case]:
            self.cases.append(case)
        place = len(self.cases) - 1
        self.knows_state |= final_state is not None
        keys = (Cell("state key", key) for key in final_state or {})
        for cell in dict.fromkeys(chain(self._of_turns(turns), keys)):
            if self.reached[cell][-1:] != array("L", [place]):
                self.reached[cell].append(place)

    def reaching(self, cell: Cell) -> list[CaseId]:
        """The cases in whose results a cell is."""
        return [self.cases[place] for place in self.reached.get(cell, ())]

    def _of_turns(self, turns: Iterable[Invocation], *, has_agents: bool = True) -> Iterator[Cell]:
        for turn in turns:
            data = turn.intermediate_data
            for call in tool_calls(data):
                yield from cells_of_call(call, self.tools)
            for response in tool_responses(data):
                if response.name != TRANSFER and "error" in (response.response or {}):
                    yield Cell("tool error", response.name or "")
            if has_agents and isinstance(data, InvocationEvents):
                for event in data.invocation_events:
                    if event.author != "user":
                        yield Cell("agent", event.author)

    @property
    def rows(self) -> list[CellCoverage]:
        """All cells, the declared ones first; a single agent is none, nor is a key of an unknown state."""
        cells = dict.fromkeys([*self.cells, *self.reached, *self.expected])
        if self.cases and not self.knows_state:
            cells = {cell: None for cell in cells if cell.kind != "state key"}
        if sum(cell.kind == "agent" for cell in cells) == 1:
            cells = {cell: None for cell in cells if cell.kind != "agent"}
        return [
            CellCoverage(
                *cell,
                len(self.reached.get(cell, ())),
                None if cell.kind == "agent" else self.expected[cell],
                None if cell.kind == "tool error" else self.noticed[cell],
            )
            for cell in cells
        ]
