"""What a worker tells the run, on its way."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import deque
from typing import Any

from evaltui.runner.cluster.own_texts import OwnTexts
from evaltui.runner.cluster.waiting import wait_set

# Seconds for which what happens is gathered.
_GATHERED = 0.25
HEARTBEAT = 2.0
# Characters that are passed on at once, and those after which hosts wait until the run has taken some.
_BATCH = 64_000
_MOST_UNREAD = 8_000_000


class Link:
    """Passes on what happens here, in order and in batches.

    By the stream that a worker has to the scheduler: it stays open, and keeps the order.
    """

    def __init__(self, topic: str, worker: Any) -> None:
        self._topic = topic
        self._worker = worker
        self.own: OwnTexts | None = None
        """What is not to leave this worker as it is; None where the run is on the same machine."""
        self.heartbeat = HEARTBEAT
        """Seconds after which a worker that has nothing to tell tells that."""
        self._messages: list[Any] = []
        self._size = 0
        self._sent = 0
        self._sent_at = 0.0
        self._unread: deque[tuple[int, int]] = deque()
        self._unread_size = 0
        self._room = asyncio.Event()
        self._room.set()
        self._soon = asyncio.Event()
        self._sending = asyncio.create_task(self._send_now_and_then())

    def put(self, message: Any, size: int = 100, *, now: bool = False) -> None:
        """`size` in characters, about."""
        self._messages.append(message)
        self._size += size
        if now or self._size > _BATCH:
            self._soon.set()

    async def room(self) -> None:
        """Wait until the run has read enough of what it was told."""
        await self._room.wait()

    def read(self, number: int) -> None:
        """The run has read everything up to this batch."""
        while self._unread and self._unread[0][0] <= number:
            self._unread_size -= self._unread.popleft()[1]
        if self._unread_size < _MOST_UNREAD:
            self._room.set()

    async def _send_now_and_then(self) -> None:
        while True:
            await wait_set(self._soon, _GATHERED)
            if self._messages or time.monotonic() - self._sent_at > self.heartbeat:
                self.send()

    def send(self) -> None:
        """What is gathered, an empty batch too."""
        messages, size = self._messages, self._size
        self._messages, self._size = [], 0
        self._soon.clear()
        self._sent += 1
        self._sent_at = time.monotonic()
        self._unread.append((self._sent, size))
        self._unread_size += size
        if self._unread_size >= _MOST_UNREAD:
            self._room.clear()
        pickled = pickle.dumps(messages)
        if self.own is not None and self.own.are_in(pickled):
            pickled = pickle.dumps([self.own.replaced(one) for one in messages])
        batch = {"worker": self._worker.address, "number": self._sent, "batch": pickled}
        self._worker.log_event(self._topic, batch)

    def close(self) -> None:
        self._sending.cancel()
