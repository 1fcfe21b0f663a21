"""Rows of a result as two-sided lines: calls with their arguments, values, and word diffs of texts.

Two columns where there is room, else one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len

from evaltui.core.model.outcome import TurnResult
from evaltui.text.lines import Line, Span, cells, character_count, fill_line, join_ends, pad, with_role, wrap
from evaltui.text.markdown import markdown_lines
from evaltui.text.outcomes import ROW_MARKS
from evaltui.text.syntax import JSON, arguments_line, code_lines
from evaltui.text.values import show_value, type_names, visible, visible_block
from evaltui.text.word_diff import MARKS, WordOp
from evaltui.tui.widgets.writer import Folding, Page
from evaltui.views.rows import (
    ABSENT,
    Row,
    argument_rows,
    call_rows,
    common_words,
    cut_middle,
    labelled_sides,
)

# From here on what is expected and what is actual stand beside each other: in a pane of 110 cells.
MIN_WIDTH_BESIDE = 106
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
    if page.width >= MIN_WIDTH_BESIDE:
        page.lines.append(_line_beside(page, sides, len(page.lines)))
    else:
        page.lines += _lines_below(page.width, sides)


def put_off_sides(page: Page, make: Callable[[], Sides], height: int = 1) -> None:
    """Adds sides that are built when they are first drawn; one below the other they take `height` lines."""
    first = len(page.lines)
    if page.width >= MIN_WIDTH_BESIDE:
        page.lines.put_off(lambda: _line_beside(page, make(), first))
        return
    for place in range(height):
        page.lines.put_off(partial(_draw_deferred, page.width, make, place))


def _draw_deferred(width: int, make: Callable[[], Sides], place: int) -> Line:
    return list(_lines_below(width, make()))[place]


def _line_beside(page: Page, sides: Sides, number: int) -> Line:
    """The sides as line `number` of the page."""
    room = column_width(page)
    mark, role = ROW_MARKS[sides.op]
    note: Line = [(sides.note, _note_role(sides))] if sides.note else []
    left_note, right_note = (note, []) if sides.actual is None else ([], note)
    left = _tint_line(
        sides.expected or [], left_note, room, "exp" if sides.differs and sides.expected else ""
    )
    has_right = sides.differs and sides.actual is not None
    right = _tint_line(sides.actual or [], right_note, room, "act" if has_right else "")
    gutter: Line = [("  ", ""), (mark, role), (" " * (GUTTER - 3), "")]
    before: Line = [(" " * MARGIN, ""), *left]
    page.sides[number] = character_count(before), character_count([*before, *gutter])
    return [*before, *gutter, *right]


def _note_role(sides: Sides) -> str:
    return "" if sides.differs and sides.op == "changed" else "error" if sides.differs else "muted"


def note_width(note: str) -> int:
    """The cells of a note and the gaps around it."""
    return cells([(note, "")]) + 3 if note else 0


def _tint_line(line: Line, note: Line, room: int, tint: str) -> Line:
    """Exactly `room` cells, with a note at the right end."""
    ends: Line = [(" ", ""), *note, (" ", "")] if note else []
    drawn = fill_line(join_ends(line, ends, room, gap=1), room)
    return with_role(tint, drawn) if tint else drawn


def _lines_below(width: int, sides: Sides) -> Iterator[Line]:
    room = width - MARGIN - 2
    if any(sides.notes):
        marks = (("−", "success"), ("+", "error"))
        if sides.op == "rule":
            marks = (ROW_MARKS["rule"], ROW_MARKS[""])
        lines = (sides.expected or [], sides.actual or [])
        for mark, line, note, tint in zip(marks, lines, sides.notes, ("exp", "act"), strict=True):
            drawn = _tint_line(line, [(note, "")] if note else [], room, "")
            whole: Line = [(" " * MARGIN, ""), mark, (" ", ""), *drawn]
            yield with_role(tint, whole) if sides.differs else whole
        return
    side = sides.actual if sides.actual is not None else sides.expected or []
    drawn = _tint_line(side, [(sides.note, _note_role(sides))] if sides.note else [], room, "")
    whole = [(" " * MARGIN, ""), ROW_MARKS[sides.op], (" ", ""), *drawn]
    tint = "act" if sides.actual is not None else "exp"
    yield with_role(tint, whole) if sides.differs and sides.op != "changed" else whole


def write_heads(page: Page, expected: tuple[str, str], actual: tuple[str, str]) -> None:
    """Writes the headings of two columns: `expected FILE:LINE ─────  │  actual run 18 ─────`.

    Each side has a name, and a place.
    """
    if page.width < MIN_WIDTH_BESIDE:
        return
    room = column_width(page)
    left, right = (_head(*side, room) for side in (expected, actual))
    page.lines.append([(" " * MARGIN, ""), *left, ("  │".ljust(GUTTER), "line"), *right])


def _head(side: str, where: str, room: int) -> Line:
    line: Line = [(side, "muted"), (f" {visible(where)} " if where else " ", "faint")]
    return [*line, ("─" * max(0, room - cells(line)), "line")]


_MAX_PATH = 28
# Enter shows all of it.
_MAX_VALUE = 400
_MAX_TEXT_LENGTH = 20_000


# Calls


def write_calls(
    page: Page, turn: TurnResult, number: int, folding: Folding, *, is_brief: bool = False
) -> None:
    """Writes the calls of a turn, from 0; equal ones take one line each where it `is_brief`."""
    for group in call_rows(turn, number):
        if group.title and not folding.is_open(group.key, usual=False):
            margin = "    " if group.rows[0].kind == "argument" else "  "
            page.fold(group.key, [(f"{margin}▸ ", "faint"), ("= ", "muted"), (group.title, "muted")])
            continue
        width = _label_width(row for row in group.rows if row.kind == "argument")
        for row in group.rows:
            if row.kind == "call":
                with _difference(page, row, _call_sides(row)):
                    _write_call(page, row, is_brief=is_brief, checked=turn.checks_calls)
            else:
                write_value(page, row, "  ", width)


def _label_width(rows: Iterable[Row]) -> int:
    return max(4, min(_MAX_PATH, max((cell_len(row.label) for row in rows), default=4)))


def _difference(page: Page, row: Row, sides: Mapping[str, Any]) -> AbstractContextManager[None]:
    return page.difference(row.at, sides) if row.at else nullcontext()


def _call_sides(row: Row) -> dict[str, Any]:
    sides = {"expected": row.expected, "actual": row.actual}
    if row.op == "moved":
        sides = {"the same on both sides": row.actual}
    return {side: {"name": row.label, "args": args} for side, args in sides.items() if args is not ABSENT}


def _write_call(page: Page, row: Row, *, is_brief: bool, checked: bool) -> None:
    if row.op == "made":
        # Nothing is expected: there is one column.
        mark: Line = [(" " * MARGIN, ""), ROW_MARKS["made"], (" ", "")]
        page.row(*mark, *_one_line_call(row))
        return
    if is_brief and row.op in ("", "same") and ABSENT not in (row.expected, row.actual):
        put_off_sides(page, lambda: Sides(row.op, _one_line_call(row), _one_line_call(row)))
        return
    sides = labelled_sides(row, _MAX_VALUE)
    left, right = (side if checked or side is None else [(row.label, "")] for side in sides)
    put_off_sides(page, partial(Sides, row.op, left, right, row.note, differs=row.differs))
    arguments = list(argument_rows(row))
    width = min(_MAX_PATH, max((cell_len(argument.label) for argument in arguments), default=0))
    for argument in arguments:
        put_off_sides(page, partial(_value_sides, page, argument, "  ", width))


def _one_line_call(row: Row) -> Line:
    return [(row.label, "bold"), *arguments_line(row.actual, _MAX_VALUE)]


def argument_lines(args: Mapping[str, Any] | None) -> Iterator[Line]:
    names = {name: visible(str(name)) for name in args or {}}
    width = min(_MAX_PATH, max(map(cell_len, names.values()), default=0))
    for name, data in (args or {}).items():
        yield [("  ", ""), (pad(names[name], width), "key"), ("  ", ""), (show_value(data, _MAX_VALUE), JSON)]


# Values


def write_value(page: Page, row: Row, margin: str = "", width: int = 0) -> None:
    """Writes an argument, or a key of the state, behind a label of `width` cells."""
    sides = {"expected": row.expected, "actual": row.actual}
    sides = {side: value for side, value in sides.items() if value is not ABSENT}
    with _difference(page, row, sides):
        make = partial(_value_sides, page, row, margin, width or cell_len(row.label))
        put_off_sides(page, make, 2 if row.is_change else 1)


def _value_sides(page: Page, row: Row, margin: str, width: int) -> Sides:
    room = (column_width(page) if page.width >= MIN_WIDTH_BESIDE else page.width) - width - len(margin) - 4
    lines = labelled_sides(row, max(12, room) if row.is_change else _MAX_VALUE, pad(row.label, width))
    expected, actual = (None if line is None else [(margin, ""), *line] for line in lines)
    return Sides(row.op, expected, actual, row.note, _notes(row), row.differs)


def _notes(row: Row) -> tuple[str, str]:
    """The note for sides that are one below the other."""
    if not row.is_change:
        return "", ""
    if row.op == "rule":
        return row.note, ""
    kinds = type_names(row.expected, row.actual)
    return (f"expected {kinds[0]}", f"actual {kinds[1]}") if kinds else ("expected", "actual")


# Texts


def write_text(page: Page, row: Row) -> None:
    """Writes a response, or an intermediate text, as a word diff where both sides are similar."""
    if row.kind == "unscored":
        text = f"{row.label}: {_safe_text(row.actual)}"
        page.text([(text, "muted"), (f"  {row.note}", "faint")], [("    ", "")])
        return
    if row.op == "made":
        # Nothing is expected: there is one column.
        page.lines += [[("    ", ""), *line] for line in prose(row.actual, page.width - 4)]
        return
    texts = {"expected": row.expected, "actual": row.actual}
    with _difference(page, row, {side: text for side, text in texts.items() if text is not ABSENT}):
        if not row.is_change and not row.instead:
            _write_one_text(page, row)
        elif page.width >= MIN_WIDTH_BESIDE:
            _write_beside(page, row)
        else:
            _write_below(page, row)


def _author_text(row: Row) -> str:
    return f"{row.label}: " if row.label else ""


def _write_one_text(page: Page, row: Row) -> None:
    """Writes a text that is equal on both sides, or missing on one side."""
    text = row.expected if row.actual is ABSENT else row.actual
    room = (column_width(page) if page.width >= MIN_WIDTH_BESIDE else page.width - MARGIN - 2) - note_width(
        row.note
    )
    for number, line in enumerate(prose(f"{_author_text(row)}{text}", max(8, room))):
        left, right = (None if side is ABSENT else line for side in (row.expected, row.actual))
        op, note = (row.op, row.note) if number == 0 else ("", "")
        write_sides(page, Sides(op, left, right, note, differs=row.differs))


def _write_beside(page: Page, row: Row) -> None:
    room = column_width(page)
    room_right = room - note_width(row.note)
    parts = common_words(row.expected, "" if row.instead else row.actual)
    if parts:
        by: Line = [(_author_text(row), "muted")] if row.label else []
        sides = ([part for part in parts if part[0] != other] for other in ("added", "removed"))
        left, right = (
            wrap([*by, *mark_words(texts, "exp-hi", marks=page.marks)], width)
            for texts, width in zip(sides, (room, room_right), strict=True)
        )
    else:
        left = prose(f"{_author_text(row)}{row.expected}", room)
        right = (
            [[(row.instead, "error")]]
            if row.instead
            else prose(f"{_author_text(row)}{row.actual}", room_right)
        )
    for number, (expected, actual) in enumerate(zip_longest(left, right)):
        op, note = (row.op, row.note) if number == 0 else ("", "")
        write_sides(page, Sides(op, expected, actual, note, differs=row.differs and not parts))


def _write_below(page: Page, row: Row) -> None:
    room = page.width - MARGIN - 2
    if not row.instead and (parts := common_words(row.expected, row.actual)):
        by: Line = [(_author_text(row), "muted")] if row.label else []
        words = mark_words(parts, "exp-hi strike", marks=page.marks)
        lines = wrap([*by, *words], room - note_width(row.note))
        for number, line in enumerate(lines):
            op, note = (row.op, row.note) if number == 0 else ("", "")
            write_sides(page, Sides(op, None, line, note))
        return
    for number, line in enumerate(prose(f"{_author_text(row)}{row.expected}", room - note_width("expected"))):
        op, note = ("missing", "expected") if number == 0 else ("", "")
        write_sides(page, Sides(op, line, None, note, differs=row.differs))
    first, text = (row.instead, "") if row.instead else (row.note, f"{_author_text(row)}{row.actual}")
    for number, line in enumerate(prose(text, room - note_width(first)) or [[]]):
        op, note = ("extra", first) if number == 0 else ("", "")
        write_sides(page, Sides(op, None, line, note, differs=row.differs))


def prose(text: str, room: int) -> list[Line]:
    """A text wrapped to `width` cells; a text with several lines is read as Markdown."""
    shown = _safe_text(text)
    return markdown_lines(shown, room) if "\n" in shown.strip() else wrap([(shown, "")], room)


def mark_words(parts: Sequence[tuple[WordOp, str]], removed: str, *, marks: bool) -> list[Span]:
    """The words of one text, or of both where all parts are passed; changed words are tinted, or in `marks`.

    Texts with several lines have the colours of Markdown.
    """
    # Marks could not be read with a line through them.
    roles = {"same": "", "removed": "exp-hi" if marks else removed, "added": "act-hi"}
    spans: list[Span] = []
    touching = False
    for op, text in parts:
        start, end, _ = MARKS[op] if marks else ("", "", "")
        only = text.strip() or text
        before, _, after = text.partition(only)
        # In the texts they touch; for the eye they are two words.
        gap = " " if op == "added" and touching else ""
        touching = op == "removed" and not after
        spans += [
            (f"{gap}{_safe_text(before)}", ""),
            (f"{start}{_safe_text(only)}{end}", roles[op]),
            (_safe_text(after), ""),
        ]
    return _color_markdown(spans)


def _color_markdown(spans: list[Span]) -> list[Span]:
    """A text of several lines with the colours of Markdown under its own roles."""
    text = "".join(part for part, _ in spans)
    if "\n" not in text.strip():
        return spans
    coloured = [span for line in code_lines(text, "markdown") for span in (*line, ("\n", ""))][:-1]
    if "".join(part for part, _ in coloured) != text:
        return spans
    place = 0
    for part, role in spans:
        if role and part:
            coloured = with_role(role, coloured, place, place + len(part))
        place += len(part)
    return coloured


def _safe_text(text: str) -> str:
    """A text of several lines, safe for the terminal; a very long one without its middle."""
    return visible_block(cut_middle(text, _MAX_TEXT_LENGTH))
