"""Splices of a text: what they do to its lines, and where a place of a document is after an edit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from evaltui.core.jsondoc.edits import same
from evaltui.core.jsondoc.parted_text import PartedText
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

    def later(self, characters: int) -> Splice:
        """The splice in a text that has so many more characters before it."""
        return Splice(self.start + characters, self.old, self.new)

    def apply(self, text: str) -> str:
        """The changed text. Raises ValueError where `old` is not what stands there."""
        if not 0 <= self.start <= len(text) or text[self.start : self.end] != self.old:
            raise ValueError(f"the text at offset {self.start} is not the text of this change")
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


# Beyond this many pairs of lines, finding those that are equal takes longer than reading all of them.
_MOST_COMPARISONS = 1_000_000
# Characters above a place that are looked at for where a value begins.
_MOST_ABOVE = 10_000


@dataclass(frozen=True)
class LineChange:
    """A line that goes (`-`, its number as it was), or comes (`+`, its number as it will be), from 1 on."""

    op: Literal["-", "+"]
    number: int
    text: str


@dataclass
class _Region:
    """A stretch of the old text, and what it is now; ends are exclusive, in characters."""

    old_start: int
    old_end: int
    start: int
    end: int


def changed_lines(before: Sequence[str], after: Sequence[str], splices: Iterable[Splice]) -> list[LineChange]:
    """The lines that differ, from the first on; of each place those that go come first.

    The splices, one after the other, made `after` of `before`; both are the parts of a text.
    """
    changes: list[LineChange] = []
    old_text, new_text = PartedText(before), PartedText(after)
    old, new = _Lines(old_text), _Lines(new_text)
    for region in _by_lines(_regions(splices), old_text, new_text):
        gone = old.between(region.old_start, region.old_end)
        come = new.between(region.start, region.end)
        opcodes = _opcodes(gone.lines, come.lines)
        # What is replaced stands where it stood.
        above = old.above(gone) if opcodes and opcodes[0][0] != "replace" else []
        for tag, i, i_end, j, j_end in opcodes:
            if tag == "equal":
                above = [*reversed(gone.lines[i:i_end]), *above]
                continue
            movable = above if tag != "replace" else []
            changes += _readable("-", gone.number + i, gone.lines[i:i_end], movable)
            changes += _readable("+", come.number + j, come.lines[j:j_end], movable)
            above = []
    return changes


def _readable(op: Literal["-", "+"], number: int, lines: list[str], above: list[str]) -> Iterator[LineChange]:
    """Lines that go, or come, from the beginning of a value to its end; `above` are the same on both sides.

    Where the line above them is the same as their last one, they could as well be said to stand one higher.
    """
    equal = 0
    while equal < min(len(above), len(lines)) and above[equal] == lines[-1 - equal]:
        equal += 1

    def strangeness(higher: int) -> tuple[bool, int]:
        first = lines[-higher % len(lines)]
        return first.lstrip().startswith(("}", "]")), len(first) - len(first.lstrip())

    higher = min(range(equal + 1), key=strangeness) if lines else 0
    shown = [*lines[len(lines) - higher :], *lines[: len(lines) - higher]]
    return (LineChange(op, at, line) for at, line in enumerate(shown, number - higher))


def _regions(splices: Iterable[Splice]) -> list[_Region]:
    """Where the texts differ, in order: splices that touch are one region."""
    regions: list[_Region] = []
    for splice in splices:
        grown = len(splice.new) - len(splice.old)
        first = bisect_left(regions, splice.start, key=lambda region: region.end)
        last = bisect_right(regions, splice.end, key=lambda region: region.start)
        # What is before has grown by so much, what the splice covers as well.
        shift = regions[first - 1].end - regions[first - 1].old_end if first else 0
        shift_behind = regions[last - 1].end - regions[last - 1].old_end if last else 0
        merged = _Region(splice.start - shift, splice.end - shift_behind, splice.start, splice.end)
        if first < last:
            merged.old_start = min(merged.old_start, regions[first].old_start)
            merged.start = min(merged.start, regions[first].start)
            merged.old_end = max(merged.old_end, regions[last - 1].old_end)
            merged.end = max(merged.end, regions[last - 1].end)
        merged.end += grown
        for region in regions[last:]:
            region.start += grown
            region.end += grown
        regions[first:last] = [merged]
    return regions


def _by_lines(regions: Iterable[_Region], before: PartedText, after: PartedText) -> Iterator[_Region]:
    """Regions that are made of whole lines; those that share a line are one."""
    waiting: _Region | None = None
    for region in regions:
        old_start, start = before.line_start(region.old_start), after.line_start(region.start)
        if waiting is not None and (old_start < waiting.old_end or start < waiting.end):
            old_start, start = waiting.old_start, waiting.start
        elif waiting is not None:
            yield waiting
        old_end, end = before.line_end(region.old_end), after.line_end(region.end)
        waiting = _Region(old_start, old_end, start, end)
    if waiting is not None:
        yield waiting


@dataclass(frozen=True)
class _Stretch:
    """Lines of a text, the number of the first one, where it begins, and where the last stretch ended."""

    number: int
    lines: list[str]
    start: int
    end_of_last: int


class _Lines:
    """The lines of a text, which is gone through once."""

    def __init__(self, text: PartedText) -> None:
        self._text = text
        self._position = 0
        self._number = 1

    def between(self, start: int, end: int) -> _Stretch:
        """Both ends are beginnings of lines, or the end of the text; the next stretch is further down."""
        self._number += self._text.line_breaks(self._position, start)
        stretch = _Stretch(self._number, self._split(start, end), start, self._position)
        self._number += self._text.line_breaks(start, end)
        self._position = end
        return stretch

    def above(self, stretch: _Stretch) -> list[str]:
        """The lines between the last stretch and one, the nearest first and not too many."""
        far = stretch.start - _MOST_ABOVE > stretch.end_of_last
        lines = self._split(stretch.start - _MOST_ABOVE if far else stretch.end_of_last, stretch.start)
        # The first one may have lost its beginning.
        return lines[:0:-1] if far else lines[::-1]

    def _split(self, start: int, end: int) -> list[str]:
        lines = self._text.between(start, end).split("\n")
        # What follows the last line break is no line.
        lines = lines[:-1] if lines[-1] == "" else lines
        return [line.removesuffix("\r") for line in lines]


def _opcodes(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    has_none_in_common = old and new and set(old).isdisjoint(new)
    if has_none_in_common or len(old) * len(new) > _MOST_COMPARISONS:
        return [("replace", 0, len(old), 0, len(new))]
    return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
