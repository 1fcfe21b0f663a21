"""Many splices of a text as few, and what they make of a text that is never read all at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from evaltui.core.jsondoc.splices import Splice


def composed(splices: Iterable[Splice]) -> list[Splice]:
    """The splices, in order of the places that they have in the text before all of them, that do the same as
    these do one after the other; none where nothing is left of what these did.

    Raises ValueError where one does not fit those before it.
    """
    made: list[Splice] = []
    # Where each of them begins now.
    starts: list[int] = []
    for splice in splices:
        first = bisect_left(range(len(made)), splice.start, key=lambda at: starts[at] + len(made[at].new))
        last = max(first, bisect_right(starts, splice.end))
        before = made[first - 1].end - starts[first - 1] - len(made[first - 1].new) if first else 0
        one = _with(splice, made[first:last], starts[first:last], before)
        start = min([splice.start, *starts[first : min(first + 1, last)]])
        made[first:last] = [one] if one.old != one.new else []
        starts[first:last] = [start] if one.old != one.new else []
        if grown := len(splice.new) - len(splice.old):
            behind = first + (one.old != one.new)
            starts[behind:] = [place + grown for place in starts[behind:]]
    return made


def _with(splice: Splice, touched: Sequence[Splice], starts: Sequence[int], before: int) -> Splice:
    """A splice in one with those that it touches, of which it is told where they begin now; what is before
    all of them has grown shorter by so many characters."""
    old, position = "", splice.start
    head = tail = ""
    for one, start in zip(touched, starts, strict=True):
        end = start + len(one.new)
        stretch = slice(max(start, splice.start), min(end, splice.end))
        if (
            splice.old[stretch.start - splice.start : stretch.stop - splice.start]
            != (one.new[stretch.start - start : stretch.stop - start])
        ):
            raise ValueError(f"the text at offset {splice.start} is not the text of this change")
        old += splice.old[position - splice.start : max(0, start - splice.start)] + one.old
        head = head or one.new[: max(0, splice.start - start)]
        tail = one.new[max(0, splice.end - start) :] if end > splice.end else ""
        position = max(position, min(end, splice.end))
    old += splice.old[position - splice.start :]
    return Splice(min([splice.start, *starts[:1]]) + before, old, head + splice.new + tail)


def changed_pieces(pieces: Iterable[str], splices: Iterable[Splice]) -> Iterator[str]:
    """A text that is given in pieces, as `composed` splices make it. Raises ValueError where one does not
    fit."""
    rest = iter(pieces)
    text, position = "", 0
    for splice in splices:
        while position + len(text) < splice.start:
            yield text
            position += len(text)
            text = next(rest, None) or _missing(splice)
        while position + len(text) < splice.end:
            text += next(rest, None) or _missing(splice)
        yield text[: splice.start - position]
        if text[splice.start - position : splice.end - position] != splice.old:
            _missing(splice)
        yield splice.new
        text, position = text[splice.end - position :], splice.end
    yield text
    yield from rest


def _missing(splice: Splice) -> str:
    raise ValueError(f"the text at offset {splice.start} is not the text of this change")
