"""A change of a text: what stands where, and what takes its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """`old`, which begins `start` characters into a text, becomes `new`."""

    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        """Where `old` ends."""
        return self.start + len(self.old)

    @property
    def inverse(self) -> Splice:
        return Splice(self.start, self.new, self.old)

    def apply(self, text: str) -> str:
        """The changed text. Raises ValueError where `old` is not what stands there."""
        if not 0 <= self.start <= len(text) or text[self.start : self.end] != self.old:
            raise ValueError(f"the text at offset {self.start} is not the one that this change was made for")
        return "".join((text[: self.start], self.new, text[self.end :]))


def inverted(splices: Sequence[Splice]) -> tuple[Splice, ...]:
    """What takes splices back that were applied one after the other."""
    return tuple(splice.inverse for splice in reversed(splices))


def applied(text: str, splices: Sequence[Splice]) -> str:
    """The text after splices, one after the other. Raises ValueError where one does not fit."""
    for splice in splices:
        text = splice.apply(text)
    return text


def smallest(start: int, old: str, new: str) -> Splice:
    """The splice that makes `new` of `old`, without what both begin and end with."""
    head = _common(old, new)
    old, new = old[head:], new[head:]
    tail = _common(old[::-1], new[::-1])
    return Splice(start + head, old[: len(old) - tail], new[: len(new) - tail])


def differences(old: Sequence[str], new: Sequence[str]) -> Iterator[Splice]:
    """The splices, one after the other, that make one text of another, both of them given in parts."""
    shorter = min(len(old), len(new))
    head = next((number for number in range(shorter) if old[number] != new[number]), shorter)
    rest = range(1, shorter - head + 1)
    tail = next((number - 1 for number in rest if old[-number] != new[-number]), shorter - head)
    position = sum(map(len, old[:head]))
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) != len(new):
        old, new = ["".join(old)], ["".join(new)]
    for one, other in zip(old, new, strict=True):
        if one != other:
            yield smallest(position, one, other)
        position += len(other)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with in common; bisected, since comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
