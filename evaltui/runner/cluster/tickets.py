"""What Dask schedules: tickets, each of which brings a host of some worker to the run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from evaltui.runner.cluster.worker import serve_chunks

# More than there are hosts: some lie where a host is at work, and workers may come.
_LEAST = 20
_OF_EACH_HOST = 2


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

    def make(self, chunks: int, hosts: int, addresses: Collection[str] | None) -> None:
        """Have some that have come to no host, while so many chunks wait and there are so many hosts; None
        for any worker, else one of these.

        A ticket brings a host that runs one chunk after the other, so there need not be one for each.
        """
        for _ in range(min(chunks, max(_LEAST, _OF_EACH_HOST * hosts)) - len(self._unused)):
            self._number += 1
            workers = None if addresses is None else list(addresses)
            key = f"{self._topic}-{self._number}"
            future = self._client.submit(
                serve_chunks, self._topic, self._number, key=key, pure=False, workers=workers
            )
            self._open[self._number] = future
            self._unused.add(self._number)

    def release(self) -> None:
        """The run is over."""
        for future in self._open.values():
            future.release()
        self._open.clear()
