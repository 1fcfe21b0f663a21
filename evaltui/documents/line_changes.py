"""The lines of a file that a change removes and adds, and both texts as a unified diff."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import groupby
from typing import Literal, NamedTuple

from evaltui.documents.case_file import CaseFile
from evaltui.documents.edits import common_ends
from evaltui.documents.nodes import Node, parse_nodes

# Beyond this many pairs of items, finding those that are equal takes longer than reading all of them.
_MOST_COMPARISONS = 1_000_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class LineChange:
    """A removed line (`-`, with its old number) or an added line (`+`, with its new number), from 1."""

    op: Literal["-", "+"]
    number: int
    text: str


class _Region(NamedTuple):
    """A stretch of characters of the old text, and its replacement in the new text."""

    old: tuple[int, int]
    new: tuple[int, int]


def changed_lines(before: CaseFile, after: CaseFile) -> tuple[LineChange, ...]:
    """The lines that differ, in order; in each place the removed lines come first."""
    old, new = before.text, after.text
    if old == new:
        return ()
    changes: list[LineChange] = []
    old_at, new_at, old_line, new_line = 0, 0, 1, 1
    for region in _by_lines(_regions_of_texts(old, new), old, new):
        old_line += old.count("\n", old_at, region.old[0])
        new_line += new.count("\n", new_at, region.new[0])
        old_at, new_at = region.old[0], region.new[0]
        removed, added = _lines(old, region.old), _lines(new, region.new)
        head, tail = common_ends(removed, added)
        removed, added = removed[head : len(removed) - tail], added[head : len(added) - tail]
        changes += [LineChange("-", old_line + head + at, line) for at, line in enumerate(removed)]
        changes += [LineChange("+", new_line + head + at, line) for at, line in enumerate(added)]
    return tuple(changes)


def _regions_of_texts(before: str, after: str) -> Iterator[_Region]:
    try:
        old, new = parse_nodes(before), parse_nodes(after)
    except ValueError:
        # Of another format.
        yield _Region((0, len(before)), (0, len(after)))
        return
    yield _Region((0, old.start), (0, new.start))
    yield from _regions(old, new)
    yield _Region((old.end, len(before)), (new.end, len(after)))


def _regions(old: Node, new: Node) -> Iterator[_Region]:
    """The stretches of two values that may differ, in order: between their common items and inside them."""
    if old.own_text == new.own_text:
        return
    if old.text[old.start] != new.text[new.start] or not (old.children and new.children):
        yield _Region((old.start, old.end), (new.start, new.end))
        return
    ends = old.start + 1, new.start + 1
    for old_child, new_child in _pairs(old.children, new.children):
        yield _Region((ends[0], old_child.item_start), (ends[1], new_child.item_start))
        yield _Region((old_child.item_start, old_child.start), (new_child.item_start, new_child.start))
        yield from _regions(old_child, new_child)
        ends = old_child.end, new_child.end
    yield _Region((ends[0], old.end), (ends[1], new.end))


def _pairs(old: Sequence[Node], new: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
    """The pairs of items on both sides, members by key, elements by text or else by index."""
    labels = [[node.own_text if node.key is None else node.key for node in nodes] for nodes in (old, new)]
    for tag, i, i_end, j, j_end in _opcodes(*labels):
        if tag == "equal" or (tag == "replace" and old[0].key is None and i_end - i == j_end - j):
            yield from zip(old[i:i_end], new[j:j_end], strict=True)


def _opcodes(old: list[str], new: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """The opcodes of difflib, which compares only the items between the common start and the common end."""
    head, tail = common_ends(old, new)
    old_end, new_end = len(old) - tail, len(new) - tail
    yield "equal", 0, head, 0, head
    if (old_end - head) * (new_end - head) > _MOST_COMPARISONS:
        yield "replace", head, old_end, head, new_end
    else:
        matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end], autojunk=False)
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            yield tag, head + i, head + i_end, head + j, head + j_end
    yield "equal", old_end, len(old), new_end, len(new)


def _by_lines(regions: Iterator[_Region], old: str, new: str) -> Iterator[_Region]:
    """The regions that differ, of whole lines; those that share a line are one."""
    waiting: _Region | None = None
    for region in regions:
        if old[slice(*region.old)] == new[slice(*region.new)]:
            continue
        whole = _whole_lines(region, old, new)
        if waiting and (whole.old[0] < waiting.old[1] or whole.new[0] < waiting.new[1]):
            ends = max(waiting.old[1], whole.old[1]), max(waiting.new[1], whole.new[1])
            waiting = _Region((waiting.old[0], ends[0]), (waiting.new[0], ends[1]))
            continue
        if waiting:
            yield waiting
        waiting = whole
    if waiting:
        yield waiting


def _whole_lines(region: _Region, old: str, new: str) -> _Region:
    """The region from the start of its first line to the end of its last one, with the line break.

    A line of which both sides have nothing but the margin is no part of it: it begins the next item.
    """
    starts = [text.rfind("\n", 0, start) + 1 for text, (start, _) in ((old, region.old), (new, region.new))]
    last = [text.rfind("\n", start, end) + 1 for text, (start, end) in ((old, region.old), (new, region.new))]
    margins = old[last[0] : region.old[1]], new[last[1] : region.new[1]]
    if all(last) and margins[0] == margins[1] and not margins[0].strip():
        return _Region((starts[0], last[0]), (starts[1], last[1]))
    ends = [text.find("\n", end) + 1 for text, (_, end) in ((old, region.old), (new, region.new))]
    return _Region((starts[0], ends[0] or len(old)), (starts[1], ends[1] or len(new)))


def _lines(text: str, stretch: tuple[int, int]) -> list[str]:
    lines = text[slice(*stretch)].split("\n")
    # A text after the last line break is a line, an empty one is none.
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


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
    """A unified diff of texts with as many lines, of which those at the same place belong together."""
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
