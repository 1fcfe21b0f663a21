"""The lines of a file that a change removes and adds, and both texts as a unified diff."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import groupby, pairwise
from typing import Literal

from evaltui.core.matching.pairing import common_ends
from evaltui.documents.case_file import CaseFile, is_same

# Beyond this many pairs of lines, finding those that are equal takes longer than reading all of them.
_MAX_COMPARISONS = 1_000_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class LineChange:
    """A removed line (`-`, with its old number) or an added line (`+`, with its new number), from 1."""

    op: Literal["-", "+"]
    number: int
    text: str


def changed_lines(before: CaseFile, after: CaseFile) -> tuple[LineChange, ...]:
    """The differing lines in order; at each place, removed lines come first."""
    old, new = _lines(before.text), _lines(after.text)
    changes: list[LineChange] = []
    for (i, j), (i_end, j_end) in pairwise(_bounds(before, after, len(old), len(new))):
        for start, end, to, to_end in _differences(old, new, (i, i_end), (j, j_end)):
            changes += [LineChange("-", at + 1, old[at]) for at in range(start, end)]
            changes += [LineChange("+", at + 1, new[at]) for at in range(to, to_end)]
    return tuple(changes)


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\n").removesuffix("\r") for line in lines_of(text)]


def _bounds(before: CaseFile, after: CaseFile, old: int, new: int) -> list[tuple[int, int]]:
    """The lines on which cases begin that both have, with the first line and the end of both."""
    head, tail = len(before.chunks), 0
    if head != len(after.chunks):
        head, tail = common_ends(before.chunks, after.chunks, is_same)
    starts, starts_now = before.lines_of_cases, after.lines_of_cases
    pairs = [*zip(starts[:head], starts_now[:head], strict=True)]
    pairs += zip(starts[len(starts) - tail :], starts_now[len(starts_now) - tail :], strict=True)
    return [(0, 0), *((line - 1, line_now - 1) for line, line_now in pairs), (old, new)]


def _differences(
    old: Sequence[str], new: Sequence[str], of_old: tuple[int, int], of_new: tuple[int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """The lines from which to which two stretches differ, on both sides."""
    (i, i_end), (j, j_end) = of_old, of_new
    head, tail = common_ends(old[i:i_end], new[j:j_end])
    i, i_end, j, j_end = i + head, i_end - tail, j + head, j_end - tail
    if (i_end - i) * (j_end - j) <= _MAX_COMPARISONS:
        matcher = SequenceMatcher(None, old[i:i_end], new[j:j_end], autojunk=False)
        codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
        ends = [-head, *(code[2] for code in codes[:-1])]
        starts = [*(code[1] for code in codes[1:]), i_end - i + tail]
        for (tag, start, end, to, to_end), above, below in zip(codes, ends, starts, strict=False):
            room = start - above, below - end
            by = _slide(old, i + start, i + end, *room) if tag == "delete" else 0
            by = _slide(new, j + to, j + to_end, *room) if tag == "insert" else by
            yield i + start + by, i + end + by, j + to + by, j + to_end + by
    elif i_end - i == j_end - j:
        yield from (
            (i + n, i + n + 1, j + n, j + n + 1) for n in range(i_end - i) if old[i + n] != new[j + n]
        )
    else:
        yield i, i_end, j, j_end


def _slide(lines: Sequence[str], start: int, end: int, above: int, below: int) -> int:
    """The number of lines by which a block can start later among equal lines, so that its first line has the
    least indentation.

    `above` and `below` are the numbers of unchanged lines around it.
    """
    down = up = 0
    while down < below and lines[start + down] == lines[end + down]:
        down += 1
    while up < above and lines[start - 1 - up] == lines[end - 1 - up]:
        up += 1
    return min(range(down, -up - 1, -1), key=lambda by: _indent(lines[start + by]))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def lines_of(text: str) -> list[str]:
    """The lines of a text with their line feeds; no other character ends a line."""
    return _LINE.findall(text)


def diff_lines(name: str, before: str, after: str, context: int = 3) -> list[str]:
    """A unified diff of two texts of a file."""
    old, new = lines_of(before), lines_of(after)
    if len(old) == len(new):
        # Most changes are inside lines; difflib takes minutes for thousands of them.
        lines = _diff_of_pairs(name, old, new, context)
    else:
        lines = unified_diff(old, new, name, name, n=context)
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _diff_of_pairs(name: str, old: Sequence[str], new: Sequence[str], context: int) -> Iterator[str]:
    """A unified diff of texts with equally many lines, in which lines at the same index belong together."""
    changed = [number for number, (before, after) in enumerate(zip(old, new, strict=True)) if before != after]
    if changed:
        yield from (f"--- {name}\n", f"+++ {name}\n")
    for hunk in _groups(changed, 2 * context + 1):
        start, end = max(0, hunk[0] - context), min(len(old), hunk[-1] + context + 1)
        place = f"{start + 1},{end - start}" if end - start > 1 else str(start + 1)
        yield f"@@ -{place} +{place} @@\n"
        for is_changed, numbers in groupby(range(start, end), {*hunk}.__contains__):
            lines = list(numbers)
            yield from (f"-{old[number]}" for number in lines if is_changed)
            yield from (f"{'+' if is_changed else ' '}{new[number]}" for number in lines)


def _groups(numbers: Sequence[int], most: int) -> Iterator[list[int]]:
    """Ascending numbers in groups: neighbours in a group are at most `most` apart."""
    group: list[int] = []
    for number in numbers:
        if group and number - group[-1] > most:
            yield group
            group = []
        group.append(number)
    if group:
        yield group
