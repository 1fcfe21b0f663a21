"""The items of a run on a cluster: which wait for a worker, and what became of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.events import Json
from evaltui.runner.cluster.chunks import Chunk, ChunkQueue
from evaltui.runner.cluster.messages import Ended, Printed, Recorded, Started, Told
from evaltui.runner.cluster.remote_worker import HeldChunk
from evaltui.runner.parent.pool import ExecutionResult, Listener
from evaltui.runner.plan import WorkItem


class RunItems:
    """Workers know an item by its number. Each is told to have ended exactly once."""

    def __init__(
        self, listener: Listener[WorkItem], seconds: Mapping[CaseId, float], changed: asyncio.Event
    ) -> None:
        """`seconds` are those that a run of a case takes, as far as known; `changed` is set when all items
        have ended."""
        self._listener = listener
        self._changed = changed
        self._items: list[WorkItem] = []
        self.queue = ChunkQueue[int](lambda number: seconds.get(self._items[number].case))
        self.left = 0
        """How many have not ended."""
        self.error: ErrorInfo | None = None
        """Why the agent cannot be imported anywhere."""
        self.group: asyncio.TaskGroup | None = None

    def __len__(self) -> int:
        """How many there are so far."""
        return len(self._items)

    def add(self, item: WorkItem) -> None:
        self._items.append(item)
        self.left += 1
        number = len(self._items) - 1
        if self.error is None:
            self.queue.add([number])
        else:
            self._end(number, ExecutionResult(error=self.error))

    def requests(self, chunk: Chunk[int]) -> dict[int, Json]:
        """What makes a host run the items of a chunk."""
        return {number: self._listener.message(self._items[number]) for number in chunk.items}

    def printed(self, message: Printed) -> None:
        item = None if message.item is None else self._items[message.item]
        self._listener.printed(item, message.source, message.line)

    async def on_message(self, held: HeldChunk, message: Started | Told | Recorded | Ended) -> None:
        """What happened to an item of a chunk."""
        item = self._items[message.item]
        match message:
            case Started(item=number):
                if number in held.events:
                    # Once more, alone: its recording begins anew.
                    self._listener.message(item)
                held.events[number] = []
                self._listener.started(item)
            case Told(item=number, text=text):
                held.events[number].append(self._listener.happened(item, text))
            case Recorded(line=line):
                self._listener.recorded(item, line)
            case Ended(item=number, ran=ran):
                held.left.discard(number)
                if ran.error is None:
                    self.queue.finished(ran.seconds)
                ran = replace(ran, events=tuple(held.events.pop(number, ())))
                # Goes on although the worker is lost meanwhile: the item has ended.
                await asyncio.shield(self._end(number, ran))

    def put_back(self, held: HeldChunk) -> None:
        """What has not ended of a chunk is run elsewhere."""
        left = _left_of(held)
        held.left.clear()
        if self.error is None:
            self.queue.put_back(held.chunk, left)
            return
        for number in left:
            self._end(number, ExecutionResult(error=self.error))

    def lose(self, held: HeldChunk, how: str) -> None:
        """The worker of a chunk is lost: what has not ended of it is run elsewhere, unless it is to blame."""
        guilty = self.queue.lost(held.chunk, _left_of(held))
        if guilty is not None:
            what = f"the worker {how} twice with this case alone on it"
            error = ErrorInfo("WorkerLostError", what, kind=ErrorKind.HOST_LOST)
            self._end(guilty, ExecutionResult(error=error))

    def leave(self) -> None:
        """The run was stopped: what waits has no result."""
        for number in self.queue.clear():
            self._end(number, ExecutionResult(is_left=True))

    async def break_all(self, error: ErrorInfo) -> None:
        """The agent can be imported nowhere: every item that waits, or will come, has this error."""
        self.error = error
        self._listener.broken(error)
        for number in self.queue.clear():
            await self._done(number, ExecutionResult(error=error))

    def _end(self, number: int, ran: ExecutionResult) -> asyncio.Task[None]:
        assert self.group is not None
        return self.group.create_task(self._done(number, ran))

    async def _done(self, number: int, ran: ExecutionResult) -> None:
        await self._listener.done(self._items[number], ran)
        self.left -= 1
        if not self.left:
            self._changed.set()


def _left_of(held: HeldChunk) -> Sequence[int]:
    return [number for number in held.chunk.items if number in held.left]
