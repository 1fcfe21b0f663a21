"""Chunks: the items that a worker is given at once, and which of them is to blame when workers die."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from evaltui.core.model.events import Event

# Seconds that the items of a chunk take together, on as many at once as a host has.
_TARGET = 30.0
# Items of a chunk, at most; fewer until one has ended, which tells how long others may take.
_MOST_ITEMS = 120
_MOST_AT_FIRST = 50
# Chunks that each host still gets, at least: they become small, so that all hosts end together.
_CHUNKS_LEFT = 3
# Seconds within which a worker begins with a chunk, unless others compute there.
_STUCK = 3.0
# Deaths of workers that had nothing but one case, until that case is to blame.
_DEATHS = 2


@dataclass(eq=False)
class Chunk:
    """Items, by their numbers, that one host runs as one task of Dask's."""

    number: int
    items: tuple[int, ...]
    is_alone: bool = False
    """Whether its one item may have ended a worker: no other is run there meanwhile."""
    left: set[int] = field(init=False)
    """Those of its items that have not ended."""
    events: dict[int, list[Event]] = field(default_factory=dict)
    """Of the items that are running, what happened so far."""
    future: Any = None
    """Dask's, once a worker was given it."""
    made: float = field(default_factory=time.monotonic)
    has_begun: bool = False
    """Whether its worker has begun with it."""

    def __post_init__(self) -> None:
        self.left = set(self.items)

    @property
    def is_stuck(self) -> bool:
        """Whether it waits for long."""
        return not self.has_begun and time.monotonic() - self.made > _STUCK

    @property
    def items_left(self) -> Sequence[int]:
        return [number for number in self.items if number in self.left]


class ChunkQueue:
    """Items that wait for a worker. `seconds` is how long an item takes, None where it is unknown."""

    def __init__(self, seconds: Callable[[int], float | None]) -> None:
        self._seconds = seconds
        self._waiting: deque[int] = deque()
        self._suspects: deque[Sequence[int]] = deque()
        self._deaths: Counter[int] = Counter()
        self._number = 0
        self._finished = 0
        self._taken = 0.0

    def add(self, item: int) -> None:
        self._waiting.append(item)

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._waiting) + sum(map(len, self._suspects))

    def finished(self, seconds: float) -> None:
        """An item took so long: a guess for those that never ran."""
        self._finished += 1
        self._taken += seconds

    def take(self, hosts: int, at_once: int, *, alone: bool) -> Chunk | None:
        """The next chunk for a host that runs `at_once` items side by side, one of so many hosts; None where
        nothing waits that may begin there. `alone` is whether nothing else is run by the host's worker.

        What may have ended a worker comes last.
        """
        if self._waiting:
            items = self._next(hosts, at_once)
            for _ in items:
                self._waiting.popleft()
            return self._chunk(items)
        for number, group in enumerate(self._suspects):
            if len(group) > 1 or alone:
                del self._suspects[number]
                return self._chunk(group, is_alone=len(group) == 1)
        return None

    def lost(self, chunk: Chunk) -> int | None:
        """The worker of a chunk died. The item that is to blame, if that is known now; all others that have
        not ended wait again, in halves."""
        left = chunk.items_left
        if not left:
            return None
        if chunk.is_alone:
            (item,) = left
            self._deaths[item] += 1
            if self._deaths[item] == _DEATHS:
                return item
        middle = ceil(len(left) / 2)
        self._suspects.extend(half for half in (left[:middle], left[middle:]) if half)
        return None

    def put_back(self, chunk: Chunk) -> None:
        """What has not ended of a chunk, whose worker is well, is next."""
        if chunk.is_alone:
            self._suspects.extendleft([item] for item in chunk.items_left)
        else:
            self._waiting.extendleft(reversed(chunk.items_left))

    def clear(self) -> list[int]:
        """Everything that waits, which waits no more."""
        items = [*self._waiting, *(item for group in self._suspects for item in group)]
        self._waiting.clear()
        self._suspects.clear()
        return items

    def _next(self, hosts: int, at_once: int) -> list[int]:
        usual = self._taken / self._finished if self._finished else None
        most = min(
            _MOST_AT_FIRST if usual is None else _MOST_ITEMS,
            max(at_once, ceil(len(self._waiting) / (hosts * _CHUNKS_LEFT))),
        )
        items: list[int] = []
        seconds = 0.0
        for item in self._waiting:
            stored = self._seconds(item)
            seconds += (stored if stored is not None else usual or 0.0) / at_once
            if len(items) == most or (len(items) >= at_once and seconds > _TARGET):
                break
            items.append(item)
        return items

    def _chunk(self, items: Iterable[int], *, is_alone: bool = False) -> Chunk:
        self._number += 1
        return Chunk(self._number, tuple(items), is_alone)
