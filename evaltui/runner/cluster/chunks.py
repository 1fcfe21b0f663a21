"""Which items a worker is given at once, and which of them is to blame when workers die."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)

# Seconds that the items of a chunk take together, on as many at once as a host has.
_TARGET = 30.0
# Items of a chunk, at most; fewer until one has ended, which tells how long others may take.
_MOST_ITEMS = 120
_MOST_AT_FIRST = 50
# Chunks that each host still gets, at least: they become small, so that all hosts end together.
_CHUNKS_LEFT = 3
# Deaths of workers that had nothing but one case, until that case is to blame.
_DEATHS = 2


@dataclass(frozen=True)
class Chunk(Generic[Item]):
    """Items that one host runs."""

    number: int
    items: tuple[Item, ...]
    is_alone: bool = False
    """Whether its one item may have ended a worker: no other is run there meanwhile."""


class ChunkQueue(Generic[Item]):
    """Items that wait for a worker. `seconds` is how long an item takes, None where nobody knows."""

    def __init__(self, seconds: Callable[[Item], float | None]) -> None:
        self._seconds = seconds
        self._waiting: deque[Item] = deque()
        self._suspects: deque[tuple[Item, ...]] = deque()
        self._deaths: Counter[Item] = Counter()
        self._number = 0
        self._finished = 0
        self._taken = 0.0

    def add(self, items: Iterable[Item]) -> None:
        self._waiting.extend(items)

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._waiting) + sum(map(len, self._suspects))

    def finished(self, seconds: float) -> None:
        """An item took so long: what is known of those that never ran."""
        self._finished += 1
        self._taken += seconds

    def chunks_left(self, hosts: int, at_once: int) -> int:
        """About how many chunks what waits will be, with so many hosts."""
        if not self._waiting:
            return len(self._suspects)
        return ceil(len(self._waiting) / len(self._next(hosts, at_once))) + len(self._suspects)

    def take(self, hosts: int, at_once: int, *, alone: bool) -> Chunk[Item] | None:
        """The next chunk for a host that runs `at_once` items side by side, one of so many hosts; None where
        nothing waits that may begin there. `alone` is whether nothing else is run by the host's worker.

        What may have ended a worker comes last.
        """
        if self._waiting:
            items = tuple(self._next(hosts, at_once))
            for _ in items:
                self._waiting.popleft()
            return self._chunk(items)
        for number, group in enumerate(self._suspects):
            if len(group) > 1 or alone:
                del self._suspects[number]
                return self._chunk(group, is_alone=len(group) == 1)
        return None

    def lost(self, chunk: Chunk[Item], left: Sequence[Item]) -> Item | None:
        """The worker of a chunk died, and these items had not ended. The item that is to blame, if that is
        known now; the others wait again, in halves."""
        if not left:
            return None
        if chunk.is_alone:
            (item,) = left
            self._deaths[item] += 1
            if self._deaths[item] == _DEATHS:
                return item
        middle = ceil(len(left) / 2)
        self._suspects.extend(tuple(half) for half in (left[:middle], left[middle:]) if half)
        return None

    def put_back(self, chunk: Chunk[Item], left: Sequence[Item]) -> None:
        """These items of a chunk have not ended, and its worker is well: they are the next ones."""
        if chunk.is_alone:
            self._suspects.extendleft((item,) for item in left)
        else:
            self._waiting.extendleft(reversed(left))

    def clear(self) -> list[Item]:
        """Everything that waits, which waits no more."""
        items = [*self._waiting, *(item for group in self._suspects for item in group)]
        self._waiting.clear()
        self._suspects.clear()
        return items

    def _next(self, hosts: int, at_once: int) -> list[Item]:
        usual = self._taken / self._finished if self._finished else None
        most = min(
            _MOST_AT_FIRST if usual is None else _MOST_ITEMS,
            max(at_once, ceil(len(self._waiting) / (hosts * _CHUNKS_LEFT))),
        )
        items: list[Item] = []
        seconds = 0.0
        for item in self._waiting:
            known = self._seconds(item)
            seconds += (known if known is not None else usual or 0.0) / at_once
            if len(items) == most or (len(items) >= at_once and seconds > _TARGET):
                break
            items.append(item)
        return items

    def _chunk(self, items: tuple[Item, ...], *, is_alone: bool = False) -> Chunk[Item]:
        self._number += 1
        return Chunk(self._number, items, is_alone)
