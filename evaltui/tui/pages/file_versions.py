"""Lines of a file before and after a change, and in two versions that are in conflict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import NamedTuple

from evaltui.core.jsondoc.merge import Clash
from evaltui.core.jsondoc.splices import LineChange, smallest
from evaltui.files.open_file import FileConflict
from evaltui.text.figures import counted
from evaltui.text.lines import Line, Span, with_role
from evaltui.text.syntax import json_line
from evaltui.text.values import visible, visible_lines
from evaltui.tui.pages.writer import Page
from evaltui.workbench.accepting import FileChange

# As in git: what goes is red, what comes green.
_ROLES = {"-": "error", "+": "success"}
_FILLS = {"error": "act", "success": "exp"}
# Longer lines are shown around what differs in them: a whole file may be one line.
_LONGEST_LINE = 400
_AROUND = 40
# Nobody reads more before saying yes or no.
_MOST_LINES = 2_000


def write_file_change(page: Page, change: FileChange) -> None:
    gone = sum(line.op == "-" for line in change.lines)
    come = len(change.lines) - gone
    head: Line = [(visible(change.path.name), "bold")]
    head += [(f"  {op}{count}", "") for op, count in (("-", gone), ("+", come)) if count]
    if change.cases > 1:
        head.append((f"  in {change.cases} cases", "muted"))
    page.row(*head)
    write_line_changes(page, change.lines)


def write_line_changes(page: Page, changes: Sequence[LineChange]) -> None:
    """The lines that go and come, with what differs in them marked."""
    shown = changes[:_MOST_LINES]
    digits = len(str(max((line.number for line in shown), default=0)))
    margin = _margin(shown)
    for block in _blocks(shown):
        for line, spans in _marked(block, margin):
            mark: Line = [(f"  {line.number:>{digits}} ", "muted"), (f"{line.op} ", _ROLES[line.op])]
            page.text(spans, mark)
    if left := len(changes) - len(shown):
        page.row((f"  … {counted(left, 'more line')}", "muted"))


def _margin(lines: Sequence[LineChange]) -> int:
    """How much of their indentation all lines have in common."""
    margins = [len(line.text) - len(line.text.lstrip(" \t")) for line in lines if line.text.strip()]
    return min(margins, default=0)


def _blocks(lines: Sequence[LineChange]) -> Iterator[list[LineChange]]:
    """Lines that go, with those that come for them."""
    block: list[LineChange] = []
    for op, group in groupby(lines, key=lambda line: line.op):
        if op == "-" and block:
            yield block
            block = []
        block += group
    if block:
        yield block


def _marked(block: Sequence[LineChange], margin: int) -> Iterator[tuple[LineChange, list[Span]]]:
    """The lines of a block; where each line that goes has one that comes, with what differs in colour."""
    texts = [line.text[margin:].replace("\t", "    ") for line in block]
    half = len(block) // 2
    is_paired = [line.op for line in block] == ["-"] * half + ["+"] * half
    for number, line in enumerate(block):
        partner = texts[number + half if number < half else number - half] if is_paired else ""
        yield line, _differing(texts[number], partner, _ROLES[line.op])


def _differing(text: str, partner: str, role: str) -> list[Span]:
    change = smallest(0, partner, text)
    before, differs, after = text[: change.start], change.new, text[change.start + len(change.new) :]
    if len(text) > _LONGEST_LINE:
        before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
        after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
        if len(differs) > _LONGEST_LINE:
            differs = f"{differs[: _LONGEST_LINE // 2]} … {differs[-_LONGEST_LINE // 2 :]}"
    start = len(visible(before))
    line = with_role(_FILLS[role], json_line(before + differs + after))
    return with_role(f"{_FILLS[role]}-hi", line, start, start + len(visible(differs)))


# Lines that are the same are shown this far around those that differ.
_CONTEXT = 3
_MOST_COMPARISONS = 4_000_000


class Choice(NamedTuple):
    """Something to decide; `whole` is the file where it cannot be decided in parts."""

    clash: Clash
    kind: str


class VersionRow(NamedTuple):
    """A line of one choice: its head, lines that differ or are equal, or none, so many that are folded."""

    choice: int
    head: bool = False
    mine: str | None = None
    theirs: str | None = None
    differs: bool = False
    folded: int = 0
    blank: bool = False


def choices_of(clash: FileConflict) -> list[Choice]:
    conflict = clash.conflict
    if conflict.reason is not None:
        return [Choice(Clash(clash.path.name, None, clash.mine, clash.theirs), "file")]
    kinds = (("case", conflict.cases), ("member", conflict.members), ("order of", conflict.orders))
    return [Choice(one, kind) for kind, clashes in kinds for one in clashes]


def both_versions(clash: Clash) -> tuple[list[str], list[str]]:
    """Both versions as lines, spread out where that loses nothing of the difference."""
    mine, theirs = _lines(clash.mine, "removed here"), _lines(clash.theirs, "removed outside")
    if mine == theirs:
        return visible_lines(clash.mine or ""), visible_lines(clash.theirs or "")
    return mine, theirs


def _lines(text: str | None, gone: str) -> list[str]:
    if text is None:
        return [f"({gone})"]
    try:
        return visible_lines(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    except ValueError:
        return visible_lines(text)


def compared(choice: int, mine: Sequence[str], theirs: Sequence[str]) -> Iterator[VersionRow]:
    """Line by line; of what is the same, only what stands around a difference."""
    found = _opcodes(mine, theirs)
    for place, (op, i1, i2, j1, j2) in enumerate(found):
        if op != "equal":
            pairs = zip_longest(mine[i1:i2], theirs[j1:j2])
            yield from (VersionRow(choice, mine=one, theirs=other, differs=True) for one, other in pairs)
            continue
        before = 0 if place == 0 else _CONTEXT
        behind = 0 if place == len(found) - 1 else _CONTEXT
        equal = [VersionRow(choice, mine=text, theirs=text) for text in mine[i1:i2]]
        hidden = len(equal) - before - behind
        if hidden <= 1:
            yield from equal
        else:
            yield from equal[:before]
            yield VersionRow(choice, folded=hidden)
            yield from equal[len(equal) - behind :]


def _opcodes(mine: Sequence[str], theirs: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """As those of difflib, which for long texts that have little in common takes too long."""
    if len(mine) * len(theirs) <= _MOST_COMPARISONS:
        return SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
    head = _common(mine, theirs)
    tail = _common(mine[head:][::-1], theirs[head:][::-1])
    end, other_end = len(mine) - tail, len(theirs) - tail
    found = [
        ("equal", 0, head, 0, head),
        ("replace", head, end, head, other_end),
        ("equal", end, len(mine), other_end, len(theirs)),
    ]
    return [one for one in found if one[1] < one[2] or one[3] < one[4]]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))
