"""The items of a run that wait for a host; more may come while others run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Item = TypeVar("Item")


class WorkQueue(Generic[Item]):
    """Hands out the items of the most urgent group first, until it is closed: of equally urgent groups those
    of the one that came first, and of a group always in order."""

    def __init__(self, most: int) -> None:
        self.most = most
        """How many items there will be at most."""
        # Of a hundred thousand groups, each of few items: a deque takes ten times as much as a list.
        self._waiting: dict[int, list[Item]] = {}
        # Of a group the last entry counts.
        self._order: list[tuple[float, int, int]] = []
        self._entry_of: dict[int, tuple[float, int, int]] = {}
        self._numbers = count()
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many items wait."""
        return sum(map(len, self._waiting.values()))

    def add(self, items: Iterable[Item], group: int = 0, urgency: float = 1.0) -> None:
        """More to run, of a group that is as urgent from now on: the lower the `urgency`, the sooner."""
        waiting = self._waiting.setdefault(group, [])
        waiting.extend(items)
        known = self._entry_of.get(group)
        if not waiting:
            del self._waiting[group]
        elif known is None or known[0] != urgency:
            entry = self._entry_of[group] = (urgency, next(self._numbers), group)
            heappush(self._order, entry)
        self.wake()

    def _pop(self) -> Item:
        while (entry := self._order[0]) != self._entry_of.get(entry[-1]):
            heappop(self._order)
        group = entry[-1]
        item = self._waiting[group].pop(0)
        if not self._waiting[group]:
            del self._waiting[group], self._entry_of[group]
            heappop(self._order)
        return item

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
                return self._pop()
            await self._changed.wait()
        return None
