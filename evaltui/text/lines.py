"""Lines of styled text, measured in terminal cells.

A line is a list of `(text, role)`. A role names the meaning of a text: `muted`, `bold error`. Themes turn
roles into styles on a screen, `draw` turns them into the colours of a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len, chop_cells

from evaltui.text.values import without_commands

Span = tuple[str, str]
Line = list[Span]

_CODES = {"success": "32", "error": "31", "warning": "33", "muted": "2", "faint": "2", "bold": "1"}


def joined(line: Iterable[Span]) -> Line:
    """The line with neighboring spans of one role as one."""
    groups = groupby(line, key=lambda span: span[1])
    return [("".join(text for text, _ in group), role) for role, group in groups]


def draw(line: Sequence[Span], *, color: bool) -> str:
    """The line as text without trailing spaces and commands to CI services; with `color`, with terminal
    colours."""
    runs = joined(line)
    while runs and not runs[-1][0].strip():
        runs.pop()
    if runs:
        runs[-1] = (runs[-1][0].rstrip(), runs[-1][1])
    return without_commands("".join(_paint(text, style) if color else text for text, style in runs))


def cells(line: Sequence[Span]) -> int:
    """The width of a line in cells."""
    return sum(cell_len(text) for text, _ in line)


def character_count(line: Sequence[Span]) -> int:
    """The number of characters in a line."""
    return sum(len(text) for text, _ in line)


def cut(line: Line, width: int) -> Line:
    """The line cut to at most `width` cells, with `…` at the end where it is cut."""
    if cells(line) <= width:
        return line
    left = width - 1
    fitted: Line = []
    for text, style in line:
        fitting = fit(text, left)
        fitted.append((fitting, style))
        left -= cell_len(fitting)
        if fitting != text:
            break
    return [*fitted, ("…", "muted")]


def fill_line(line: Line, width: int) -> Line:
    """The line cut or filled with spaces to exactly `width` cells."""
    line = cut(line, width)
    return [*line, (" " * (width - cells(line)), "")]


def split_line(line: Sequence[Span], position: int) -> tuple[Line, Line]:
    """Splits a line at a cell into two lines."""
    before: Line = []
    for number, (text, role) in enumerate(line):
        size = cell_len(text)
        if size > position:
            fitting = fit(text, position)
            return [*before, (fitting, role)], [(text[len(fitting) :], role), *line[number + 1 :]]
        before.append((text, role))
        position -= size
    return before, []


def join_ends(
    left: Sequence[Span], right: Sequence[Span], width: int, *, gap: int = 2, least: int = 2
) -> Line:
    """A left and a right text in one line of `width` cells, with `gap` cells between them. The left text is
    cut if necessary; the right one is left out where fewer than `least` cells remain for the left one."""
    room = width - cells(right)
    if not right or room - gap < least:
        return cut(list(left), width)
    shortened = cut(list(left), room - gap)
    return [*shortened, (" " * (room - cells(shortened)), ""), *right]


def with_role(role: str, line: Sequence[Span], start: int = 0, end: int | None = None) -> Line:
    """The line with `role` added below the roles of its texts, from character `start` to before `end`."""
    marked: Line = []
    place = 0
    for text, own in line:
        first = min(max(start - place, 0), len(text))
        last = len(text) if end is None else min(max(end - place, first), len(text))
        parts = (text[:first], own), (text[first:last], f"{role} {own}".strip()), (text[last:], own)
        marked += [part for part in parts if part[0]]
        place += len(text)
    return marked


def _paint(text: str, style: str) -> str:
    codes = ";".join(_CODES[word] for word in style.split() if word in _CODES)
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text.strip() else text


def fit(text: str, width: int) -> str:
    """The longest start of the text that fits in `width` cells."""
    if cell_len(text) <= width:
        return text
    return next(iter(chop_cells(text, width)), "") if width > 0 else ""


def pad(text: str, width: int) -> str:
    """The text cut with `…` or filled with spaces to exactly `width` cells."""
    if cell_len(text) > width:
        text = fit(text, width - 1) + "…"
    return text + " " * (width - cell_len(text))


def wrap(spans: Sequence[Span], width: int, extra_lead: int = 0) -> list[Line]:
    """Breaks a text between words into lines of at most `width` cells; a newline also breaks. The first line
    has `more` further cells. A word may have several roles. No-break spaces do not break, and become plain
    spaces."""
    lines: list[Line] = [[]]
    used = -extra_lead
    for word in _words(spans):
        first = word[0][0]
        if first == "\n":
            lines.append([])
            used = 0
            continue
        size = cell_len(first) if len(word) == 1 else cells(word)
        if used and used + size > width:
            lines.append([])
            used = 0
            if first[0] in _SPACES:
                continue
        if size <= width:
            for text, role in word:
                _add(lines[-1], text, role)
            used += size
            continue
        for text, role in _chop_word(word, width):
            part = cell_len(text)
            if used + part > width:
                lines.append([])
                used = 0
            _add(lines[-1], text, role)
            used += part
    return lines


def _add(line: Line, text: str, role: str) -> None:
    if "\xa0" in text:
        text = text.replace("\xa0", " ")
    if line and line[-1][1] == role:
        line[-1] = (line[-1][0] + text, role)
    else:
        line.append((text, role))


def wrap_behind(first: Sequence[Span], spans: Sequence[Span], width: int, least: int = 8) -> list[Line]:
    """Wraps a text behind `first`; further lines are indented by its width. A line has at least `least` cells
    of text."""
    margin = cells(first)
    return [
        [*(first if number == 0 else [(" " * margin, "")]), *line]
        for number, line in enumerate(wrap(spans, max(least, width - margin)))
    ]


# Where a line may be broken.
_PIECE = re.compile(r"\n|[^\S\n\xa0]+|[\S\xa0]+")
_SPACES = frozenset(chr(code) for code in range(0x3001) if chr(code).isspace()) - {"\xa0"}


def _words(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Words, the spaces between them, and newlines, each as a list of spans."""
    word: list[Span] = []
    for text, role in spans:
        for piece in _PIECE.findall(text):
            if piece[0] not in _SPACES:
                word.append((piece, role))
                continue
            if word:
                yield word
                word = []
            yield [(piece, role)]
    if word:
        yield word


def _chop_word(word: Sequence[Span], width: int) -> Iterator[Span]:
    """Divides a word that is longer than a line into parts that fit."""
    for text, role in word:
        yield from ((part, role) for part in chop_cells(text, width))
