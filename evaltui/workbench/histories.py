"""What earlier runs say of cases, read when it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from evaltui.core.model.case_id import CaseId
    from evaltui.runs.history import CaseHistory, CasePoint, History
    from evaltui.workbench.agent_state import AgentState

# Who goes through a list looks at no case for longer than this: nothing is read meanwhile.
_PAUSE = 0.3
_MOST_KNOWN = 200


@dataclass(frozen=True)
class CasePast:
    """The history of a case, and how the runs in it are called, by their ids."""

    history: CaseHistory
    names: Mapping[str, str]

    def until(self, moment: datetime) -> CasePast:
        """The runs that were begun by then."""
        points = tuple(point for point in self.history.points if point.started <= moment)
        return replace(self, history=replace(self.history, points=points))

    def title_of(self, point: CasePoint) -> str:
        """`run 18`, `run 18 baseline`"""
        name = self.names.get(point.run.id, "")
        return f"run {point.number} {name}" if name else f"run {point.number}"


class Histories:
    """Reading many runs takes a moment: nothing waits for it, `changed` is called when it is done.

    `agent` says where its runs are now.
    """

    def __init__(self, agent: AgentState, changed: Callable[[], None]) -> None:
        self._agent = agent
        self._changed = changed
        self._known: dict[CaseId, tuple[int, CasePast]] = {}
        self._version = 0
        self._wanted: CaseId | None = None
        self._history: History | None = None
        self._reading: asyncio.Task[None] | None = None

    def get(self, case: CaseId) -> CasePast | None:
        """What is known of a case; where there may be more by now, it is read, and `changed` called then."""
        version, known = self._known.get(case, (-1, None))
        if version != self._version:
            self._wanted = case
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
        return known

    def outdate(self) -> None:
        """There are further runs, or their names have changed."""
        self._version += 1

    async def _read(self) -> None:
        while self._wanted is not None:
            key, version = self._wanted, self._version
            await asyncio.sleep(_PAUSE)
            if self._wanted != key:
                continue
            past = await asyncio.to_thread(self._read_one, key)
            if self._wanted == key:
                self._wanted = None
            self._known.pop(key, None)
            self._known[key] = version, past
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._changed()

    def _read_one(self, key: CaseId) -> CasePast:
        """In a thread: the first frame does not wait for what reads runs."""
        from evaltui.runs.history import CaseHistory, History

        store = self._agent.store
        if self._history is None or self._history.store != store:
            self._history = History(store, self._agent.address.name)
        try:
            history = self._history.of(key)
        except OSError:
            history = CaseHistory(key, ())
        return CasePast(history, {run: name for name, run in store.names().items()})

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
