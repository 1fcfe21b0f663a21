"""An answer cut into the sentences that a judge looks at one by one.

They are cut here and not, as google-adk has it, by the judge: a judge that cuts may leave out or rewrite what
it then finds to be true, and costs a question more. Where it is not clear that a sentence ends, it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"\s*(```|~~~)")
_TABLE_ROW = re.compile(r"\s*\|")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s")
_HEADING = re.compile(r"\s*#{1,6}\s")
_CLOSING = "[\"'”’»)\\]*_`]*"
# From the first mark of a row: to begin at each of thousands would take forever.
_END = re.compile(rf"(?:(?<![.!?…।؟۔])[.!?…।؟۔]++{_CLOSING}(?=\s)|[。！？｡]+[」』”’）)\"]*)")
_NEXT = re.compile(r"\S")
_LAST_WORD = re.compile(r"(\w+(?:\.\w+)*)\.$")
# More than any abbreviation has.
_LONGEST_WORD = 40
_ABBREVIATIONS = frozenset(["approx", "ca", "cf", "dr", "fig", "mr", "mrs", "ms", "nr", "prof", "st", "vs"])


def sentences(text: str) -> list[str]:
    """The sentences of a text, word for word and in order; what has no letter and no digit is none.

    A table and a block of code are one sentence each, items of a list and headings at least one each.
    """
    pieces = (piece.strip() for block in _blocks(text) for piece in _cut(block))
    return [piece for piece in pieces if any(character.isalnum() for character in piece)]


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, items, headings, tables and code: no sentence goes from one to the next."""
    block, kind = "", ""
    for line in text.splitlines(keepends=True):
        if kind == "code":
            block += line
            if _FENCE.match(line):
                yield block
                block, kind = "", ""
            continue
        here = _kind(line)
        if here == kind == "table" or (here == "text" and kind in ("text", "item") and _goes_on(block, line)):
            block += line
        else:
            yield block
            block, kind = line, here
    yield block


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    if _FENCE.match(line):
        return "code"
    if _TABLE_ROW.match(line):
        return "table"
    if _HEADING.match(line):
        return "heading"
    return "item" if _ITEM.match(line) else "text"


def _goes_on(block: str, line: str) -> bool:
    """Whether a line only continues the one before it, which was broken to fit a width."""
    return line.lstrip()[0].islower() and not block.rstrip().endswith((".", "!", "?", ":", "…"))


def _cut(block: str) -> Iterator[str]:
    if _FENCE.match(block) or _TABLE_ROW.match(block):
        yield block
        return
    begin = 0
    for end in _END.finditer(block):
        following = _NEXT.search(block, end.end())
        if _ends(block[begin : end.end()], following[0] if following else ""):
            yield block[begin : end.end()]
            begin = end.end()
    yield block[begin:]


def _ends(sentence: str, following: str) -> bool:
    if following.islower():
        return False
    word = _LAST_WORD.search(sentence[-_LONGEST_WORD:])
    return word is None or not (_is_shortened(word[1].lower()) or _ITEM.fullmatch(f"{sentence} "))


def _is_shortened(word: str) -> bool:
    """Whether the dot after a word belongs to it: an initial, "e.g.", "Dr."."""
    letters = word.split(".")
    return word in _ABBREVIATIONS or (
        all(letter.isalpha() for letter in letters)
        and (len(word) == 1 or max(map(len, letters)) < 3 > len(letters) > 1)
    )
