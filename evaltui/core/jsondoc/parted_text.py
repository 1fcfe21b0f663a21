"""A text in parts, which is looked through without being put together: of a large set it takes 100 MB."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate


class PartedText:
    """Places are counted in characters of the whole text."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts
        self._starts = array("Q", accumulate(map(len, parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def between(self, start: int, end: int) -> str:
        """The text from one place to another."""
        return "".join(part[first:last] for part, first, last in self._stretches(start, end))

    def line_breaks(self, start: int, end: int) -> int:
        """How many line breaks there are between two places."""
        return sum(part.count("\n", first, last) for part, first, last in self._stretches(start, end))

    def line_start(self, place: int) -> int:
        """Where the line begins that has this place."""
        number = self._part_at(place)
        end = place - self._starts[number]
        while (found := self._parts[number].rfind("\n", 0, end)) < 0:
            if number == 0:
                return 0
            number -= 1
            end = len(self._parts[number])
        return self._starts[number] + found + 1

    def line_end(self, place: int) -> int:
        """Behind the line break of the line that has this place."""
        for number in range(self._part_at(place), len(self._parts)):
            found = self._parts[number].find("\n", max(0, place - self._starts[number]))
            if found >= 0:
                return self._starts[number] + found + 1
        return len(self)

    def _part_at(self, place: int) -> int:
        return min(bisect_right(self._starts, place), len(self._parts)) - 1

    def _stretches(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """The parts between two places, each with where in it these are."""
        number = self._part_at(start)
        while number < len(self._parts) and (first := self._starts[number]) < end:
            yield self._parts[number], max(0, start - first), min(len(self._parts[number]), end - first)
            number += 1
