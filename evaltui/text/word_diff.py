"""Differences between two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, get_args

# Beyond this many words, differing texts are shown as one removed and one added part.
MAX_WORDS = 6_000

_MIN_COMMON_SHARE, _MIN_COMMON_SHARE_IN_LINES = 0.3, 0.6

WordOp = Literal["same", "removed", "added"]
# What stands before and after a part, and its role.
MARKS: Mapping[WordOp, tuple[str, str, str]] = {
    "same": ("", "", ""),
    "removed": ("[-", "-]", "success exp"),
    "added": ("{+", "+}", "error act"),
}

# Chinese and Japanese are written without spaces: there every character counts as a word.
_SINGLE_CHARACTERS = (
    r"!-/:-@\[-`{-~\u2010-\u2027\u2030-\u205e\uff01-\uff0f"  # punctuation
    r"\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese and Japanese
)
_WORD = re.compile(rf"\s+|[{_SINGLE_CHARACTERS}]|[^\s{_SINGLE_CHARACTERS}]+")


def diff_words(expected: str, actual: str) -> tuple[tuple[WordOp, str], ...]:
    """The parts of both texts in reading order; a removed part precedes the added part that replaces it. Same
    and removed parts make up `expected`, same and added parts `actual`."""
    before, after = _WORD.findall(expected), _WORD.findall(actual)
    parts = [part for part in _diff_parts(before, after) if part[1]]
    return tuple(
        (op, "".join(text for _, text in group)) for op, group in groupby(parts, key=lambda part: part[0])
    )


def shares_much(parts: Sequence[tuple[WordOp, str]]) -> bool:
    """Whether the two texts are similar enough to mark single words; texts of several lines must be more
    similar."""
    same, removed, added = (
        sum(len(text) for op, text in parts if op == word_op) for word_op in get_args(WordOp)
    )
    several = any("\n" in text.strip() for _, text in parts)
    least = _MIN_COMMON_SHARE_IN_LINES if several else _MIN_COMMON_SHARE
    return same >= least * (same + max(removed, added))


def _diff_parts(before: list[str], after: list[str]) -> Iterator[tuple[WordOp, str]]:
    start = _common_prefix_length(before, after)
    end = _common_prefix_length(before[start:][::-1], after[start:][::-1])
    inner_before, inner_after = before[start : len(before) - end], after[start : len(after) - end]
    yield "same", "".join(before[:start])
    if len(inner_before) + len(inner_after) > MAX_WORDS:
        yield from _replacement(inner_before, inner_after)
    else:
        yield from _align_words(inner_before, inner_after)
    yield "same", "".join(before[len(before) - end :])


def _align_words(before: list[str], after: list[str]) -> Iterator[tuple[WordOp, str]]:
    # A space between two words that changed is no common ground.
    matcher = SequenceMatcher(str.isspace, before, after)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            yield "same", "".join(before[i:i_end])
        else:
            yield from _replacement(before[i:i_end], after[j:j_end])


def _replacement(before: list[str], after: list[str]) -> Iterator[tuple[WordOp, str]]:
    if before:
        yield "removed", "".join(before)
    if after:
        yield "added", "".join(after)


def _common_prefix_length(left: list[str], right: list[str]) -> int:
    """The number of equal items at the start of both lists."""
    for count, (mine, theirs) in enumerate(zip(left, right, strict=False)):
        if mine != theirs:
            return count
    return min(len(left), len(right))
