"""A worker as the run sees it: what it holds, what it told, and what it is to be told."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.events import Event
from evaltui.runner.cluster.chunks import Chunk
from evaltui.runner.cluster.messages import (
    Again,
    Arrived,
    FromWorker,
    HostReady,
    OfCalls,
    Scored,
    ToWorker,
)
from evaltui.runner.cluster.waiting import wait_set
from evaltui.runner.cluster.worker_calls import WorkerCalls
from evaltui.runner.parent.gate.gate import Gate

# Seconds for which the worker hears of what was read, at the latest, and after which it did not hear.
_ACKNOWLEDGED = 5.0
_SEND_TIMEOUT = 20.0
# Seconds after which others are read although this worker's batch is not: what it tells may wait for judges.
_TURN = 0.25
# Batches, and bytes of them, that are read before the worker hears of that.
_UNACKNOWLEDGED = 20
_MOST_UNACKNOWLEDGED = 1_000_000


@dataclass
class HeldChunk:
    """A chunk that a worker has."""

    chunk: Chunk[int]
    left: set[int] = field(init=False)
    """Those of its items that have not ended."""
    events: dict[int, list[Event]] = field(default_factory=dict)
    """Of the items that are running, what happened so far."""

    def __post_init__(self) -> None:
        self.left = set(self.chunk.items)


OnMessage = Callable[["RemoteWorker", FromWorker], Awaitable[None]]


class RemoteWorker:
    """One worker, from its first word until it is lost or the run is over."""

    def __init__(
        self,
        address: str,
        client: Any,
        topic: str,
        gate: Gate | None,
        on_scored: Callable[[RemoteWorker, Scored], None],
    ) -> None:
        self.address = address
        self._on_scored = on_scored
        self.calls = WorkerCalls(gate, self.send)
        """Its model calls at the gate."""
        self.chunks: dict[int, HeldChunk] = {}
        self.waiting: deque[HostReady] = deque()
        """Its hosts that wait for a chunk."""
        self.known: set[int] = set()
        """The numbers of the waits for a chunk that it has told."""
        self.arrived: Arrived | None = None
        """What it is, as soon as it has told."""
        self.gemini: GeminiAccess | None = None
        """How judges reach Gemini from there, as soon as it has its variables."""
        self.heard = time.monotonic()
        self.is_lost = False
        """Whether what it was told, or has told, did not arrive."""
        self._client = client
        self._topic = topic
        self._unread: asyncio.Queue[tuple[int, int, list[FromWorker]]] = asyncio.Queue()
        self._is_closed = False
        self._last: int | None = None
        self._read = 0
        self._acknowledged = 0
        self._read_size = 0
        self._outbox: list[ToWorker] = []
        self._to_send = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def machine(self) -> str:
        """The host name or address of its machine."""
        return urlsplit(self.address).hostname or self.address

    @property
    def hosts(self) -> int:
        """How many hosts it has at work or waiting."""
        return len(self.chunks) + len(self.waiting)

    @property
    def in_flight(self) -> int:
        """How many items are running."""
        return sum(len(held.events) for held in self.chunks.values())

    def begin(self, group: asyncio.TaskGroup, on_message: OnMessage, turn: asyncio.Lock) -> None:
        """Read what it tells, and send what it is told, until it is closed. The workers of a run share the
        `turn` to be read."""
        self._tasks = [
            group.create_task(self._read_all(group, on_message, turn)),
            group.create_task(self._send_all()),
        ]

    def on_batch(self, number: int, batch: bytes) -> None:
        """It has told something; batches are numbered from 1."""
        self.heard = time.monotonic()
        if self._last is None and number > 1:
            # It comes back, or begins to be heard: what it said before is not known here.
            self.send(Again())
        if self.is_lost or (self._last is not None and number != self._last + 1):
            # What is missing may be how something began.
            self.is_lost = True
            return
        self._last = number
        others: list[FromWorker] = []
        for message in pickle.loads(batch):
            # These wait for nothing: what others wait for may depend on them.
            if isinstance(message, OfCalls):
                self.calls.on_message(message)
            elif isinstance(message, Scored):
                self._on_scored(self, message)
            else:
                others.append(message)
        self._unread.put_nowait((number, len(batch), others))

    def send(self, message: ToWorker) -> None:
        self._outbox.append(message)
        self._to_send.set()

    def close(self) -> None:
        self._is_closed = True
        for task in self._tasks:
            task.cancel()

    async def _read_all(self, group: asyncio.TaskGroup, on_message: OnMessage, turn: asyncio.Lock) -> None:
        while True:
            number, size, messages = await self._unread.get()
            # One batch after the other: read side by side, all workers would be given their next chunks at
            # the same moment, at which there is nothing left to read.
            async with turn:
                reading = group.create_task(self._read_batch(messages, on_message))
                self._tasks.append(reading)
                await asyncio.wait({reading}, timeout=_TURN)
            await asyncio.wait({reading})
            self._tasks.remove(reading)
            self._read = number
            self._read_size += size
            many = number - self._acknowledged >= _UNACKNOWLEDGED
            if many or self._read_size >= _MOST_UNACKNOWLEDGED:
                self._to_send.set()

    async def _read_batch(self, messages: list[FromWorker], on_message: OnMessage) -> None:
        for message in messages:
            await on_message(self, message)

    async def _send_all(self) -> None:
        while not self._is_closed:
            await wait_set(self._to_send, _ACKNOWLEDGED)
            self._to_send.clear()
            messages, self._outbox = self._outbox, []
            self._acknowledged, self._read_size = self._read, 0
            told = {"op": self._topic, "read": self._read, "given": pickle.dumps(messages)}
            try:
                sending = self._client.scheduler.proxy(msg=told, worker=self.address)
                # `asyncio.wait_for` of Python 3.11 loses a cancellation that comes along with the answer.
                async with asyncio.timeout(_SEND_TIMEOUT):
                    answer = await sending
            except (OSError, TimeoutError, KeyError, ValueError):
                answer = None
            if answer != "OK":
                self.is_lost = True
                return
