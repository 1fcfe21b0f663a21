"""What Dask schedules: tickets, each of which brings a host of some worker to the run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from evaltui.runner.cluster.worker import serve_chunk

_MOST = 1000


class Tickets:
    """Of a run, which has the name `topic` on its workers."""

    def __init__(self, client: Any, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._number = 0
        self._open: dict[int, Any] = {}
        # Of these, those that have not come to a host yet.
        self._unused: set[int] = set()

    def look(self) -> None:
        """Forget those that are over."""
        for number, future in list(self._open.items()):
            if future.done():
                del self._open[number]
                self._unused.discard(number)

    def used(self, number: int) -> None:
        """One has come to a host."""
        self._unused.discard(number)

    def give_up_unused(self) -> None:
        """Those that have come to no host may wait for a worker for ever: others are made for them."""
        self._unused.clear()

    def make(self, wanted: int, addresses: Collection[str] | None) -> None:
        """Have so many that have come to no host; None for any worker, else one of these."""
        for _ in range(min(wanted, _MOST) - len(self._unused)):
            self._number += 1
            workers = None if addresses is None else list(addresses)
            key = f"{self._topic}-{self._number}"
            future = self._client.submit(
                serve_chunk, self._topic, self._number, key=key, pure=False, workers=workers
            )
            self._open[self._number] = future
            self._unused.add(self._number)

    def release(self) -> None:
        """The run is over."""
        for future in self._open.values():
            future.release()
        self._open.clear()
