"""Two-sided lines, expected and actual: two columns where there is room, else one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from evaltui.text.lines import Line, both_ends, cells, characters, filled, with_role
from evaltui.text.outcomes import ROW_MARKS
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Page

# From here on what is expected and what is actual stand beside each other: in a pane of 110 cells.
BESIDE = 106
# The cells between the two columns, with the mark of a line in their middle, and those before the first one.
GUTTER, MARGIN = 5, 2


@dataclass(frozen=True)
class Sides:
    """A line of two aligned sides."""

    op: str
    """A key of `ROW_MARKS`."""
    expected: Line | None = None
    """None where this side is empty."""
    actual: Line | None = None
    note: str = ""
    """The reason of the difference."""
    notes: tuple[str, str] = ("", "")
    """The same for sides that are one below the other, the expected one first; empty where one line is
    enough."""
    differs: bool = False
    """Whether the difference counts, and is tinted."""


def column_width(page: Page) -> int:
    """The cells of each of the two columns."""
    return (page.width - MARGIN - GUTTER) // 2


def write_sides(page: Page, sides: Sides) -> None:
    if page.width >= BESIDE:
        page.lines.append(_beside(page, sides, len(page.lines)))
    else:
        page.lines += _below(page.width, sides)


def put_off_sides(page: Page, make: Callable[[], Sides], height: int = 1) -> None:
    """Adds sides that are built when they are first drawn; one below the other they take `height` lines."""
    first = len(page.lines)
    if page.width >= BESIDE:
        page.lines.put_off(lambda: _beside(page, make(), first))
        return
    for place in range(height):
        page.lines.put_off(partial(_drawn, page.width, make, place))


def _drawn(width: int, make: Callable[[], Sides], place: int) -> Line:
    return list(_below(width, make()))[place]


def _beside(page: Page, sides: Sides, number: int) -> Line:
    """The sides as line `number` of the page."""
    room = column_width(page)
    mark, role = ROW_MARKS[sides.op]
    note: Line = [(sides.note, _note_role(sides))] if sides.note else []
    left_note, right_note = (note, []) if sides.actual is None else ([], note)
    left = _tinted(sides.expected or [], left_note, room, "exp" if sides.differs and sides.expected else "")
    has_right = sides.differs and sides.actual is not None
    right = _tinted(sides.actual or [], right_note, room, "act" if has_right else "")
    gutter: Line = [("  ", ""), (mark, role), (" " * (GUTTER - 3), "")]
    before: Line = [(" " * MARGIN, ""), *left]
    page.sides[number] = characters(before), characters([*before, *gutter])
    return [*before, *gutter, *right]


def _note_role(sides: Sides) -> str:
    return "" if sides.differs and sides.op == "changed" else "error" if sides.differs else "muted"


def note_width(note: str) -> int:
    """The cells of a note and the gaps around it."""
    return cells([(note, "")]) + 3 if note else 0


def _tinted(line: Line, note: Line, room: int, tint: str) -> Line:
    """Exactly `room` cells, with a note at the right end."""
    ends: Line = [(" ", ""), *note, (" ", "")] if note else []
    drawn = filled(both_ends(line, ends, room, gap=1), room)
    return with_role(tint, drawn) if tint else drawn


def _below(width: int, sides: Sides) -> Iterator[Line]:
    room = width - MARGIN - 2
    if any(sides.notes):
        marks = (("−", "success"), ("+", "error"))
        if sides.op == "rule":
            marks = (ROW_MARKS["rule"], ROW_MARKS[""])
        lines = (sides.expected or [], sides.actual or [])
        for mark, line, note, tint in zip(marks, lines, sides.notes, ("exp", "act"), strict=True):
            drawn = _tinted(line, [(note, "")] if note else [], room, "")
            whole: Line = [(" " * MARGIN, ""), mark, (" ", ""), *drawn]
            yield with_role(tint, whole) if sides.differs else whole
        return
    side = sides.actual if sides.actual is not None else sides.expected or []
    drawn = _tinted(side, [(sides.note, _note_role(sides))] if sides.note else [], room, "")
    whole = [(" " * MARGIN, ""), ROW_MARKS[sides.op], (" ", ""), *drawn]
    tint = "act" if sides.actual is not None else "exp"
    yield with_role(tint, whole) if sides.differs and sides.op != "changed" else whole


def write_heads(page: Page, expected: tuple[str, str], actual: tuple[str, str]) -> None:
    """Writes the headings of two columns: `expected FILE:LINE ─────  │  actual run 18 ─────`.

    Each side has a name, and a place.
    """
    if page.width < BESIDE:
        return
    room = column_width(page)
    left, right = (_head(*side, room) for side in (expected, actual))
    page.lines.append([(" " * MARGIN, ""), *left, ("  │".ljust(GUTTER), "line"), *right])


def _head(side: str, where: str, room: int) -> Line:
    line: Line = [(side, "muted"), (f" {visible(where)} " if where else " ", "faint")]
    return [*line, ("─" * max(0, room - cells(line)), "line")]
