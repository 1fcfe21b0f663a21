"""Markdown as styled lines, fast enough for text that is still streamed.

Line breaks are kept. Only the last paragraph of a growing text is drawn again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from evaltui.text.lines import Line, cells, cut, fill_line, with_role, wrap, wrap_behind
from evaltui.text.syntax import code_lines
from evaltui.text.values import visible

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([\w+-]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_RULE = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*$")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s+(.*)")
_QUOTE = re.compile(r" {0,3}>\s?(.*)")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
# Marks that nothing closes must not be looked after through a long text.
_INLINE = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)(?P<code>.{1,800}?)(?P=ticks)(?!`)"
    r"|(?P<strong>\*\*|__)(?=\S)(?P<bold>.{1,800}?)(?<=\S)(?P=strong)"
    r"|~~(?=\S)(?P<struck>.{1,800}?)(?<=\S)~~"
    r"|!?\[(?P<text>[^\]\n]{0,800})\]\((?P<url>[^)\s]+)[^)\n]*\)"
    r"|(?P<link>https?://[^\s<>()\"']+[^\s<>()\"'.,;:!?])"
    r"|(?<![\w*])\*(?=[^\s*])(?P<star>[^*\n]{1,800}?)(?<=[^\s*])\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_])(?P<line>[^_\n]{1,800}?)(?<=[^\s_])_(?!\w)"
)
_MIN_COLUMN = 8


def markdown_lines(text: str, width: int) -> list[Line]:
    """The lines of a Markdown text for `width` cells."""
    lines: list[Line] = []
    for paragraph in _paragraphs(text):
        lines += [[]] if lines else []
        lines += _draw_paragraph(paragraph, max(_MIN_COLUMN, width))
    return lines


def _paragraphs(text: str) -> Iterator[str]:
    """Divides a text at empty lines into paragraphs; a fenced block is one paragraph."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            lines.append(line)
            if mark and mark[1].startswith(fence) and not mark[2]:
                fence = ""
        elif line.strip():
            lines.append(line)
            fence = mark[1] if mark else ""
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


@lru_cache(maxsize=1024)
def _draw_paragraph(paragraph: str, width: int) -> Sequence[Line]:
    lines: list[Line] = []
    written = paragraph.split("\n")
    place = 0
    while place < len(written):
        line = written[place]
        if mark := _FENCE.match(line):
            end = _end_of_fence(written, place, mark[1])
            lines += _draw_code(written[place + 1 : end], mark[2], width)
            place = end + 1
        elif place + 1 < len(written) and "|" in line and _TABLE_RULE.match(written[place + 1]):
            end = next((n for n in range(place, len(written)) if "|" not in written[n]), len(written))
            lines += _table_lines([line, *written[place + 2 : end]], written[place + 1], width)
            place = end
        else:
            lines += _draw_line(line, width)
            place += 1
    return lines


def _end_of_fence(lines: Sequence[str], start: int, fence: str) -> int:
    """Index of the line that closes a fenced block; the number of lines while it is not closed."""
    for number in range(start + 1, len(lines)):
        mark = _FENCE.match(lines[number])
        if mark and mark[1].startswith(fence) and not mark[2]:
            return number
    return len(lines)


def _draw_line(line: str, width: int) -> list[Line]:
    if _RULE.match(line):
        return [[("─" * width, "line")]]
    if heading := _HEADING.match(line):
        return wrap(_style_inline(heading[2], "bold accent"), width)
    if quote := _QUOTE.match(line):
        return wrap_behind([("│ ", "line")], _style_inline(quote[1], "string"), width)
    if item := _ITEM.match(line):
        bullet = "•" if item[2] in "-*+" else item[2]
        return wrap_behind([(f"{item[1]}{bullet} ", "accent")], _style_inline(item[3]), width)
    text = line.lstrip(" \t")
    return wrap_behind([(" " * (len(line) - len(text)), "")], _style_inline(text), width)


def _draw_code(lines: Sequence[str], language: str, width: int) -> Iterator[Line]:
    """The lines of a code block, on a surface of its own, below the name of its language."""
    text = "\n".join(lines)
    written = [[(visible(language), "muted")]] if language else []
    for line in [*written, *code_lines(text, language)]:
        for part in wrap(line, width - 2) if line else [[]]:
            yield with_role("surface", fill_line([(" ", ""), *part], width))


def _table_lines(rows: Sequence[str], rule: str, width: int) -> Iterator[Line]:
    """The lines of a table. Columns are as wide as their contents; where there is no room, wide cells are
    wrapped."""
    written = [[_style_inline(text) for text in _split_row(row)] for row in rows]
    right = [mark.endswith(":") and not mark.startswith(":") for mark in _split_row(rule)]
    columns = max(map(len, written))
    sizes = [max((cells(row[n]) for row in written if n < len(row)), default=0) for n in range(columns)]
    widths = _share_width(sizes, width - 2 * (columns - 1))
    for number, row in enumerate(written):
        wrapped = [wrap(cell, size) if cell else [] for size, cell in zip(widths, row, strict=False)]
        for height in range(max(1, *map(len, wrapped))):
            line: Line = []
            for column, parts in enumerate(wrapped):
                size, part = widths[column], parts[height] if height < len(parts) else []
                room = " " * (size - cells(part))
                at_right = column < len(right) and right[column]
                line.append((room if at_right else "", ""))
                line += with_role("bold", part) if number == 0 else part
                line.append((f"{'' if at_right else room}  ", ""))
            # Nothing is behind the last one.
            yield cut(line[:-1], width)
        if number == 0:
            yield [("─" * min(width, sum(widths) + 2 * (columns - 1)), "line")]


def _share_width(sizes: Sequence[int], room: int) -> list[int]:
    """Widths of columns that share `room` cells: narrow columns keep their size, wide ones share the rest."""
    widths = list(sizes)
    for position, column in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        widths[column] = max(3, min(sizes[column], room // (len(sizes) - position)))
        room -= widths[column]
    return widths


def _split_row(row: str) -> list[str]:
    return [text.strip() for text in row.strip().strip("|").split("|")]


def _style_inline(text: str, role: str = "") -> Line:
    """A line of text with its inline marks as roles."""
    line: Line = []
    end = 0
    for match in _INLINE.finditer(text):
        line += [(visible(text[end : match.start()]), role)]
        line += _style_match(match, role)
        end = match.end()
    line.append((visible(text[end:]), role))
    return [span for span in line if span[0]]


def _style_match(match: re.Match[str], role: str) -> Line:
    part = match.groupdict()
    if part["escaped"]:
        return [(part["escaped"], role)]
    if part["code"]:
        return [(visible(part["code"].strip() or part["code"]), "number panel")]
    if part["bold"]:
        return with_role("bold", _style_inline(part["bold"], role))
    if part["struck"]:
        return with_role("strike", _style_inline(part["struck"], role))
    if part["url"]:
        place = [] if part["text"] == part["url"] else [(f" ({visible(part['url'])})", "muted")]
        return [(visible(part["text"] or part["url"]), "underline function"), *place]
    if part["link"]:
        return [(visible(part["link"]), "underline function")]
    return _style_inline(part["star"] or part["line"], role)
