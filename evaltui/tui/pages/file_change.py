"""What becomes of the lines of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from evaltui.core.jsondoc.preview import LineChange
from evaltui.core.jsondoc.splices import smallest
from evaltui.text.lines import Line, Span
from evaltui.text.values import visible
from evaltui.tui.pages.writer import Page
from evaltui.workbench.accepting import FileChange

_TONES = {"-": "red", "+": "green"}
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
        head.append((f"  in {change.cases} cases", "dim"))
    page.row(*head)
    shown = change.lines[:_MOST_LINES]
    digits = len(str(max((line.number for line in shown), default=0)))
    margin = _margin(shown)
    for block in _blocks(shown):
        for line, spans in _marked(block, margin):
            mark: Line = [(f"  {line.number:>{digits}} ", "dim"), (f"{line.op} ", _TONES[line.op])]
            page.text(spans, mark)
    if left := len(change.lines) - len(shown):
        page.row((f"  … and {left:,} lines more", "dim"))


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
        yield line, _differing(texts[number], partner, _TONES[line.op])


def _differing(text: str, partner: str, tone: str) -> list[Span]:
    change = smallest(0, partner, text)
    before, differs, after = text[: change.start], change.new, text[change.start + len(change.new) :]
    if len(text) > _LONGEST_LINE:
        before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
        after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
        if len(differs) > _LONGEST_LINE:
            differs = f"{differs[: _LONGEST_LINE // 2]} … {differs[-_LONGEST_LINE // 2 :]}"
    return [(visible(before), ""), (visible(differs), tone), (visible(after), "")]
