"""Splices of a text, and where a place of a document is after an edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaltui.core.jsondoc.edits import same
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import CaseList, StoredCase


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


Match = Callable[[Any, Any], bool]


def followed(old: Any, new: Any, path: JsonPath) -> JsonPath | None:
    """The path of the same thing in the new data; None where it is gone.

    What the old data did not have yet stays where it would be. Elements are known again by what they are,
    else by their id, else by what is equal, at last by their order.
    """
    found: list[str | int] = []
    for depth, step in enumerate(path):
        if old is new:
            return (*found, *path[depth:])
        if isinstance(old, list) and isinstance(new, list) and isinstance(step, int):
            if step >= len(old):
                return (*found, *path[depth:])
            at: str | int | None = _places(old, new).get(step)
        elif isinstance(old, dict) and isinstance(new, dict):
            if step not in old:
                return (*found, *path[depth:])
            at = str(step) if step in new else _renamed(old, new, str(step))
        else:
            return None
        if at is None:
            return None
        old, new = old[step], new[at]
        found.append(at)
    return tuple(found)


def _places(old: list[Any], new: list[Any]) -> dict[int, int]:
    """Index in the old list to index in the new one, of all that are in both."""
    if isinstance(old, CaseList) and isinstance(new, CaseList):
        return _places_of_cases(old.stored, new.stored)
    places: dict[int, int] = {}
    left, free = list(range(len(old))), list(range(len(new)))
    matches: tuple[Match, ...] = (lambda one, other: one is other, _has_its_id, same)
    for match in matches:
        for index in tuple(left):
            at = next((number for number in free if match(old[index], new[number])), None)
            if at is not None:
                places[index] = at
                left.remove(index)
                free.remove(at)
    if len(left) == len(free):
        places |= zip(left, free, strict=True)
    return places


def _places_of_cases(old: Sequence[StoredCase], new: Sequence[StoredCase]) -> dict[int, int]:
    """As `_places`, in one go through thousands of cases, and without parsing any that is the same."""
    at = {case: number for number, case in enumerate(new)}
    places = {number: at[case] for number, case in enumerate(old) if case in at}
    taken = set(places.values())
    free = [number for number in range(len(new)) if number not in taken]
    left = [number for number in range(len(old)) if number not in places]
    rest = _places([old[number].value for number in left], [new[number].value for number in free])
    return places | {left[number]: free[to] for number, to in rest.items()}


def _has_its_id(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    names = ("eval_id", "evalId", "invocation_id", "invocationId", "rubric_id", "rubricId", "id")
    return any(one.get(name) and one.get(name) == other.get(name) for name in names)


def _renamed(old: dict[str, Any], new: dict[str, Any], key: str) -> str | None:
    """What a member that is gone is called now: the new member at its place."""
    at = list(old).index(key)
    keys = list(new)
    return keys[at] if len(old) == len(new) and keys[at] not in old else None
