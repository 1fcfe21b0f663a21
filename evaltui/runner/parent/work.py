"""The items of a run that wait for a host; more may come while others run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Item = TypeVar("Item")


class WorkQueue(Generic[Item]):
    """Hands out the most urgent item first, of equal ones that which came first, until it is closed."""

    def __init__(self, most: int) -> None:
        self.most = most
        """How many items there will be at most."""
        self._waiting: list[tuple[float, int, Item]] = []
        self._numbers = count()
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._waiting)

    def add(self, items: Iterable[Item], urgency: float = 1.0) -> None:
        """More to run; the lower the `urgency`, the sooner."""
        for item in items:
            heappush(self._waiting, (urgency, next(self._numbers), item))
        self.wake()

    def close(self) -> None:
        """Nothing more will come; what waits is still handed out."""
        self._closed = True
        self.wake()

    def wake(self) -> None:
        """Let those who wait for an item look again whether they still should."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def waits(self) -> bool:
        """Whether there is an item, as soon as that is known; False when there will be none any more."""
        while not self._waiting and not self._closed:
            await self._changed.wait()
        return bool(self._waiting)

    async def take(self, wanted: Callable[[], bool] = lambda: True) -> Item | None:
        """The next item, as soon as there is one; None when there will be none, or none is `wanted` here."""
        while wanted() and (self._waiting or not self._closed):
            if self._waiting:
                return heappop(self._waiting)[2]
            await self._changed.wait()
        return None
