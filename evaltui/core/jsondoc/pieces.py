"""A long text that is cheap to change."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from evaltui.core.jsondoc.splices import Splice

# Characters. A set of 20 MB is some hundred pieces; a change copies one or two of them.
_SIZE = 1 << 16


@dataclass(frozen=True)
class Text:
    """A text in pieces: a change makes a new text that shares all pieces but those it touches."""

    pieces: tuple[str, ...]
    _ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ends", list(accumulate(map(len, self.pieces))))

    @classmethod
    def of(cls, text: str) -> Text:
        return cls(_cut(text))

    def __str__(self) -> str:
        return "".join(self.pieces)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, span: slice) -> str:
        start, end, _ = span.indices(len(self))
        return "".join(piece[low:high] for piece, low, high, _ in self._within(start, end))

    def find(self, wanted: str, start: int, end: int) -> int:
        """As str.find, for a single character."""
        for piece, low, high, offset in self._within(start, end):
            if (found := piece.find(wanted, low, high)) >= 0:
                return offset + found
        return -1

    def rfind(self, wanted: str, start: int, end: int) -> int:
        """As str.rfind, for a single character."""
        for piece, low, high, offset in reversed(list(self._within(start, end))):
            if (found := piece.rfind(wanted, low, high)) >= 0:
                return offset + found
        return -1

    def count(self, wanted: str, start: int, end: int) -> int:
        """As str.count, for a single character."""
        return sum(piece.count(wanted, low, high) for piece, low, high, _ in self._within(start, end))

    def spliced(self, splice: Splice) -> Text:
        """Raises ValueError where the splice does not fit."""
        first = min(bisect_right(self._ends, splice.start), len(self.pieces) - 1)
        last = min(max(first, bisect_left(self._ends, splice.end)), len(self.pieces) - 1)
        offset = self._ends[first] - len(self.pieces[first])
        touched = "".join(self.pieces[first : last + 1])
        changed = Splice(splice.start - offset, splice.old, splice.new).apply(touched)
        return Text((*self.pieces[:first], *_cut(changed), *self.pieces[last + 1 :]))

    def _within(self, start: int, end: int) -> Iterator[tuple[str, int, int, int]]:
        """The pieces of a stretch: each with where the stretch begins and ends in it, and its own offset."""
        for index in range(bisect_right(self._ends, start), len(self.pieces)):
            piece = self.pieces[index]
            offset = self._ends[index] - len(piece)
            if offset >= end:
                break
            yield piece, max(start - offset, 0), min(end - offset, len(piece)), offset


def _cut(text: str) -> tuple[str, ...]:
    if len(text) <= 2 * _SIZE:
        return (text,)
    return tuple(text[start : start + _SIZE] for start in range(0, len(text), _SIZE))
