"""The items of a run that wait for a host; more may come while others run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Item = TypeVar("Item")
_LEAST = 1.0
"""The urgency of what is least urgent."""


class WorkQueue(Generic[Item]):
    """Hands out the items of the most urgent group first, until it is closed: of equally urgent groups those
    of the one that came first, and of a group always in order."""

    def __init__(self, most: int) -> None:
        self.most = most
        """How many items there will be at most."""
        # Of a hundred thousand groups no more is made at first than this.
        self._first: deque[Item] = deque()
        self._group_of: Callable[[Item], int] = lambda _: 0
        # Each of few items: a deque takes ten times as much as a list.
        self._waiting: dict[int, list[Item]] = {}
        # Of a group the last entry counts.
        self._order: list[tuple[float, int, int]] = []
        self._entry_of: dict[int, tuple[float, int, int]] = {}
        self._numbers = count()
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._first) + sum(map(len, self._waiting.values()))

    def begin(self, items: Iterable[Item], group_of: Callable[[Item], int]) -> None:
        """What is to be run at first, each group's items one after the other; nothing is less urgent."""
        self._first.extend(items)
        self._group_of = group_of
        self.wake()

    def add(self, items: Iterable[Item], group: int = 0, urgency: float = _LEAST) -> None:
        """More to run, of a group that is as urgent from now on: the lower the `urgency`, the sooner."""
        waiting = self._waiting.setdefault(group, [])
        while self._first and self._group_of(self._first[0]) == group:
            waiting.append(self._first.popleft())
        waiting.extend(items)
        known = self._entry_of.get(group)
        if not waiting:
            del self._waiting[group]
        elif known is None or known[0] != urgency:
            entry = self._entry_of[group] = (urgency, next(self._numbers), group)
            heappush(self._order, entry)
        self.wake()

    def put_back(self, item: Item) -> None:
        """One that was taken and not begun."""
        self._first.appendleft(item)
        self.wake()

    def _pop(self) -> Item:
        while self._order and self._order[0] != self._entry_of.get(self._order[0][-1]):
            heappop(self._order)
        if self._first and (not self._order or self._order[0][0] >= _LEAST):
            return self._first.popleft()
        group = self._order[0][-1]
        item = self._waiting[group].pop(0)
        if not self._waiting[group]:
            del self._waiting[group], self._entry_of[group]
            heappop(self._order)
        return item

    @property
    def _has_items(self) -> bool:
        return bool(self._first or self._waiting)

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
        while not self._has_items and not self._closed:
            await self._changed.wait()
        return self._has_items

    async def take(self, wanted: Callable[[], bool] = lambda: True) -> Item | None:
        """The next item, as soon as there is one; None when there will be none, or none is `wanted` here."""
        while wanted() and (self._has_items or not self._closed):
            if self._has_items:
                return self._pop()
            await self._changed.wait()
        return None
