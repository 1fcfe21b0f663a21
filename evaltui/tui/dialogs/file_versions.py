"""Lines of a file before and after a change, or of its base and the two versions in conflict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import NamedTuple

from evaltui.core.matching.pairing import common_ends
from evaltui.documents.line_changes import LineChange
from evaltui.documents.merge import Clash, Side
from evaltui.documents.open_file import FileConflict
from evaltui.text.figures import counted
from evaltui.text.lines import Line, Span, cells, fill_line, pad, split_line, with_role, wrap_behind
from evaltui.text.syntax import json_line
from evaltui.text.values import visible, visible_lines
from evaltui.text.word_diff import diff_words
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.result.accepting import FileChange

# As in git: what goes is red, what comes green.
_ROLES = {"-": "error", "+": "success"}
_FILLS = {"error": "act", "success": "exp"}
# Longer lines are shown around what differs in them: a whole file may be one line.
_MAX_LINE_LENGTH = 400
_CONTEXT_CHARACTERS = 40
# Nobody reads more before saying yes or no.
_MAX_LINES = 2_000


def write_file_change(page: Page, change: FileChange) -> None:
    gone = sum(line.op == "-" for line in change.lines)
    added = len(change.lines) - gone
    head: Line = [(visible(change.path.name), "bold")]
    head += [(f"  {op}{count}", "") for op, count in (("-", gone), ("+", added)) if count]
    if change.cases > 1:
        head.append((f"  in {counted(change.cases, 'case')}", "muted"))
    page.row(*head)
    write_line_changes(page, change.lines)


def write_line_changes(page: Page, changes: Sequence[LineChange]) -> None:
    """Writes the removed and added lines, with their differences marked."""
    shown = changes[:_MAX_LINES]
    digits = len(str(max((line.number for line in shown), default=0)))
    margin = _margin(line.text for line in shown)
    for number, block in enumerate(_blocks(shown)):
        if number:
            page.row((f" {'…':>{digits}}", "faint"))
        for line, spans in _mark_block(block, margin):
            role, fill = _ROLES[line.op], _FILLS[_ROLES[line.op]]
            mark: Line = [(f" {line.number:>{digits}} ", f"muted {fill}"), (f"{line.op} ", f"{role} {fill}")]
            first = len(page.lines)
            page.text(spans, mark)
            for row in page.lines[first:]:
                row.append((" " * (page.width - cells(row)), fill))
    if left := len(changes) - len(shown):
        page.row((f"  … {counted(left, 'more line')}", "muted"))


def _margin(texts: Iterable[str]) -> int:
    """The indentation that all lines have in common."""
    return min((_indent(text) for text in texts if text.strip()), default=0)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))


def _blocks(lines: Sequence[LineChange]) -> Iterator[list[LineChange]]:
    """Lines that go, with those that come for them, as long as no line stays between them."""
    block: list[LineChange] = []
    # The old number that the next line would have, and how many more lines have come than gone.
    follows, offset = 0, 0
    for line in lines:
        place = line.number if line.op == "-" else line.number - offset
        if block and (place != follows or (line.op == "-" and block[-1].op == "+")):
            yield block
            block = []
        block.append(line)
        follows = place + (line.op == "-")
        offset += 1 if line.op == "+" else -1
    if block:
        yield block


def _mark_block(block: Sequence[LineChange], margin: int) -> Iterator[tuple[LineChange, list[Span]]]:
    """The lines of a block, coloured; differences are marked where there are as many added as removed
    lines."""
    texts = [line.text[margin:].replace("\t", "    ") for line in block]
    half = len(block) // 2
    is_paired = [line.op for line in block] == ["-"] * half + ["+"] * half
    for number, line in enumerate(block):
        partner = texts[number + half if number < half else number - half] if is_paired else ""
        yield line, _mark_differences(texts[number], partner, _ROLES[line.op])


def _mark_differences(text: str, partner: str, role: str) -> list[Span]:
    if not partner and len(text) <= _MAX_LINE_LENGTH:
        return with_role(_FILLS[role], json_line(text))
    head, tail = common_ends(partner, text)
    before, differs, after = text[:head], text[head : len(text) - tail], text[len(text) - tail :]
    if len(text) > _MAX_LINE_LENGTH:
        before = before if len(before) <= _CONTEXT_CHARACTERS else f"…{before[-_CONTEXT_CHARACTERS:]}"
        after = after if len(after) <= _CONTEXT_CHARACTERS else f"{after[:_CONTEXT_CHARACTERS]}…"
        if len(differs) > _MAX_LINE_LENGTH:
            differs = f"{differs[: _MAX_LINE_LENGTH // 2]} … {differs[-_MAX_LINE_LENGTH // 2 :]}"
    start = len(visible(before))
    line = with_role(_FILLS[role], json_line(before + differs + after))
    return with_role(f"{_FILLS[role]}-hi", line, start, start + len(visible(differs)))


# Lines that are the same are shown this far around those that differ.
_CONTEXT_LINES = 3
_MAX_COMPARISONS = 4_000_000


class Choice(NamedTuple):
    """A conflict to decide; `whole` is the file where it has no parts."""

    clash: Clash
    kind: str


class VersionRow(NamedTuple):
    """A line of a choice: its heading, a line of each version, or the number of folded lines."""

    choice: int
    head: bool = False
    base: str | None = None
    mine: str | None = None
    theirs: str | None = None
    folded: int = 0
    blank: bool = False
    part: int = 0
    """The part of a wrapped line, from 0."""

    @property
    def by_side(self) -> Mapping[str, str]:
        """The lines of the versions that have one."""
        texts = {"base": self.base, "mine": self.mine, "theirs": self.theirs}
        return {side: text for side, text in texts.items() if text is not None}

    @property
    def differs(self) -> bool:
        """Whether mine and theirs differ here."""
        return self.mine != self.theirs


class Versions(NamedTuple):
    """The lines of each version; `base` is None where two additions are compared."""

    base: list[str] | None
    mine: list[str]
    theirs: list[str]


def choices_of(clash: FileConflict, base: str | None) -> list[Choice]:
    """The conflicts to decide; `base` is the text of the file before both changes."""
    conflict = clash.conflict
    if conflict.reason is not None:
        return [Choice(Clash(clash.path.name, base, clash.mine, clash.theirs), "file")]
    kinds = (("case", conflict.cases), ("member", conflict.members), ("order of", conflict.orders))
    return [Choice(clash, kind) for kind, clashes in kinds for clash in clashes]


def versions_of(clash: Clash) -> Versions:
    """The versions as lines, formatted where the difference stays visible."""
    base = None if clash.base is None else _lines(clash.base, "")
    mine, theirs = _lines(clash.mine, "removed here"), _lines(clash.theirs, "removed outside")
    if mine != theirs:
        return Versions(base, mine, theirs)
    texts = (visible_lines(text or "") for text in (clash.mine, clash.theirs))
    return Versions(None if clash.base is None else visible_lines(clash.base), *texts)


def _lines(text: str | None, gone: str) -> list[str]:
    if text is None:
        return [f"({gone})"]
    try:
        return visible_lines(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    except ValueError:
        return visible_lines(text)


def compare_versions(choice: int, versions: Versions) -> Iterator[VersionRow]:
    """Compares the versions line by line, without common indentation; equal lines far from a difference are
    folded."""
    rows = list(_align(choice, versions))
    differing = [number for number, row in enumerate(rows) if row.differs or row.base != row.mine]
    if versions.base is None:
        differing = [number for number, row in enumerate(rows) if row.differs]
    shown = {
        near for number in differing for near in range(number - _CONTEXT_LINES, number + _CONTEXT_LINES + 1)
    }
    margin = _margin(
        text for number, row in enumerate(rows) if number in shown for text in row.by_side.values()
    )
    for is_shown, group in groupby(enumerate(rows), key=lambda pair: pair[0] in shown):
        equal = [row for _, row in group]
        if is_shown or len(equal) == 1:
            yield from (_dedent(row, margin) for row in equal)
        else:
            yield VersionRow(choice, folded=len(equal))


def _dedent(row: VersionRow, margin: int) -> VersionRow:
    base, mine, theirs = (
        None if text is None else text[margin:] for text in (row.base, row.mine, row.theirs)
    )
    return row._replace(base=base, mine=mine, theirs=theirs)


def _align(choice: int, versions: Versions) -> Iterator[VersionRow]:
    """The lines of all versions side by side, aligned at the lines that all have."""
    base, mine, theirs = versions
    if base is None:
        for _, i1, i2, j1, j2 in _opcodes(mine, theirs):
            pairs = zip_longest(mine[i1:i2], theirs[j1:j2])
            yield from (VersionRow(choice, mine=left, theirs=right) for left, right in pairs)
        return
    in_mine, in_theirs = dict(_equal_lines(base, mine)), dict(_equal_lines(base, theirs))
    ends = [(n, in_mine[n], in_theirs[n]) for n in range(len(base)) if n in in_mine and n in in_theirs]
    b = m = t = 0
    for next_b, next_m, next_t in [*ends, (len(base), len(mine), len(theirs))]:
        for texts in zip_longest(base[b:next_b], mine[m:next_m], theirs[t:next_t]):
            yield VersionRow(choice, False, *texts)
        if next_b < len(base):
            yield VersionRow(choice, False, base[next_b], mine[next_m], theirs[next_t])
        b, m, t = next_b + 1, next_m + 1, next_t + 1


def _equal_lines(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The numbers of the equal lines, in order."""
    for op, i1, i2, j1, j2 in _opcodes(first, second):
        if op == "equal":
            yield from zip(range(i1, i2), range(j1, j2), strict=True)


def _opcodes(first: Sequence[str], second: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """The opcodes of difflib; for long texts, which take difflib too long, those of one common start and
    end."""
    if len(first) * len(second) <= _MAX_COMPARISONS:
        return SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    head, tail = common_ends(first, second)
    end, second_end = len(first) - tail, len(second) - tail
    opcodes = [
        ("equal", 0, head, 0, head),
        ("replace", head, end, head, second_end),
        ("equal", end, len(first), second_end, len(second)),
    ]
    return [opcode for opcode in opcodes if opcode[1] < opcode[2] or opcode[3] < opcode[4]]


# Columns


_GUTTER_WIDTH = 2
_COLUMN_GAP = " │ "
NAMES = {"base": "base, last saved", "mine": "mine, unsaved", "theirs": "theirs, on disk"}


def column_width(columns: int, width: int) -> int:
    """Cells of each of the columns."""
    return (width - _GUTTER_WIDTH - len(_COLUMN_GAP) * (columns - 1)) // columns


def join_columns(parts: Sequence[Line], width: int, mark: Span = ("", "")) -> Line:
    """Lines side by side, each cut to its column."""
    room = column_width(len(parts), width)
    line: Line = [(pad(mark[0], _GUTTER_WIDTH), mark[1])]
    for number, part in enumerate(parts):
        line += [(_COLUMN_GAP, "line")] if number else []
        line += fill_line(part, room)
    return line


def version_lines(row: VersionRow, side: str, chosen: Side | None, room: int) -> list[Line]:
    """The line of one version in `width` cells: changes are coloured, with the changed words tinted, and the
    chosen version is green."""
    text = row.by_side.get(side, "")
    line: Line = [(text, "muted")]
    if side != "base" and row.differs and text != row.base and chosen in (None, side):
        other = row.by_side.get("theirs" if side == "mine" else "mine", "")
        line = with_role("exp" if chosen else "bold", json_line(text))
        place = 0
        for op, part in diff_words(other if row.base is None else row.base, text):
            if op == "added":
                line = with_role("exp-hi", line, place, place + len(part))
            place += len(part) if op != "removed" else 0
    before, rest = split_line(line, _indent(text))
    return wrap_behind([*before], rest, room)
