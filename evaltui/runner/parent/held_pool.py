"""Conversations that were held elsewhere take the place of running an agent: their events are told again."""

from __future__ import annotations

import asyncio
import json

from evaltui.core.model.events import Json
from evaltui.runner.parent.pool import ExecutionResult, Listener
from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.plan import (
    HeldConversations,
    WorkItem,
)
from evaltui.runner.protocol import FilesOpened


class HeldPool:
    """Works as `HostPool` does, without hosts."""

    def __init__(
        self,
        held: HeldConversations,
        agent: Json,
        listener: Listener[WorkItem],
    ) -> None:
        self.opened = FilesOpened()
        self._held = held
        self._agent = agent
        self._listener = listener

    def host_count(self, items: int) -> int:
        """None are needed."""
        del items
        return 0

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        """Tell of each item what happened in its conversation."""
        self._listener.loaded(self._agent)
        while (item := await work.take()) is not None:
            held = self._held[item.case][item.repeat].read()
            self._listener.started(item)
            events = tuple(
                # As a host writes it.
                self._listener.happened(item, json.dumps(one.to_json(), separators=(",", ":")))
                for one in held.events
            )
            await self._listener.done(
                item, ExecutionResult(events, held.final_state, held.error, held.seconds)
            )
            # Keys and signals come first.
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Nothing is open."""

    async def kill(self) -> None:
        """Nothing is at work."""
