"""Divides the items of a run into chunks for workers, and tells which item to blame when workers die."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import Any

from evaltui.core.model.events import Event

# Seconds that the items of a chunk may take together on one host.
_TARGET = 30.0
# Items of a chunk, at most; fewer until an item has ended, whose time is the guess for the others.
_MAX_ITEMS = 120
_MAX_AT_FIRST = 50
# Chunks that each host still gets, at least: they become small, so that all hosts end together.
_CHUNKS_LEFT = 3
# Seconds within which a worker starts a chunk, unless it is busy with the work of other clients.
_STUCK = 3.0
# Deaths of workers that ran only one case, until that case is to blame.
_DEATHS = 2


@dataclass(eq=False)
class Chunk:
    """Items, by their numbers, that one host runs as one Dask task."""

    number: int
    items: tuple[int, ...]
    is_alone: bool = False
    """Whether its only item may have killed a worker; the worker runs no other item meanwhile."""
    unfinished: set[int] = field(init=False)
    """The items of the chunk that have not ended."""
    events: dict[int, list[Event]] = field(default_factory=dict)
    """The events so far of each running item."""
    future: Any = None
    """The future of the Dask task; None until the chunk is submitted."""
    created: float = field(default_factory=time.monotonic)
    is_started: bool = False
    """Whether its worker has started it."""

    def __post_init__(self) -> None:
        self.unfinished = set(self.items)

    @property
    def is_stuck(self) -> bool:
        """Whether the worker should have started the chunk by now."""
        return not self.is_started and time.monotonic() - self.created > _STUCK

    @property
    def unfinished_items(self) -> Sequence[int]:
        return [number for number in self.items if number in self.unfinished]


class ChunkQueue:
    """Items that wait for a worker."""

    def __init__(self) -> None:
        self._waiting: deque[int] = deque()
        self._suspects: deque[Sequence[int]] = deque()
        self._deaths: Counter[int] = Counter()
        self._number = 0
        self._finished = 0
        self._seconds_in_total = 0.0

    def add(self, item: int) -> None:
        self._waiting.append(item)

    def __len__(self) -> int:
        """Number of waiting items."""
        return len(self._waiting) + sum(map(len, self._suspects))

    def on_finished(self, seconds: float) -> None:
        """Counts an item that took so many seconds, as a guess for the others."""
        self._finished += 1
        self._seconds_in_total += seconds

    def next_chunk(self, hosts: int, at_once: int, *, alone: bool) -> Chunk | None:
        """The next chunk for one of `hosts` hosts that each run `at_once` items side by side; None where no
        item may start there. `alone` is whether the host's worker runs nothing else.

        Items that may have killed a worker come last.
        """
        if self._waiting:
            items = self._next_items(hosts, at_once)
            for _ in items:
                self._waiting.popleft()
            return self._new_chunk(items)
        for number, group in enumerate(self._suspects):
            if len(group) > 1 or alone:
                del self._suspects[number]
                return self._new_chunk(group, is_alone=len(group) == 1)
        return None

    def on_lost(self, chunk: Chunk) -> int | None:
        """Queues the unfinished items of a chunk whose worker died again, in halves. Returns the item to
        blame, once that is certain."""
        unfinished = chunk.unfinished_items
        if not unfinished:
            return None
        if chunk.is_alone:
            (item,) = unfinished
            self._deaths[item] += 1
            if self._deaths[item] == _DEATHS:
                return item
        middle = ceil(len(unfinished) / 2)
        self._suspects.extend(half for half in (unfinished[:middle], unfinished[middle:]) if half)
        return None

    def put_back(self, chunk: Chunk) -> None:
        """Puts the unfinished items of a chunk whose worker is alive at the front of the queue."""
        if chunk.is_alone:
            self._suspects.extendleft([item] for item in chunk.unfinished_items)
        else:
            self._waiting.extendleft(reversed(chunk.unfinished_items))

    def clear(self) -> list[int]:
        """Empties the queue and returns its items."""
        items = [*self._waiting, *(item for group in self._suspects for item in group)]
        self._waiting.clear()
        self._suspects.clear()
        return items

    def _next_items(self, hosts: int, at_once: int) -> list[int]:
        most = max(at_once, ceil(len(self._waiting) / (hosts * _CHUNKS_LEFT)))
        if not self._finished:
            return [*islice(self._waiting, min(most, _MAX_AT_FIRST))]
        seconds = self._seconds_in_total / self._finished / at_once
        in_time = max(at_once, int(_TARGET / seconds)) if seconds else _MAX_ITEMS
        return [*islice(self._waiting, min(most, in_time, _MAX_ITEMS))]

    def _new_chunk(self, items: Iterable[int], *, is_alone: bool = False) -> Chunk:
        self._number += 1
        return Chunk(self._number, tuple(items), is_alone)
