"""Phrases for messages about user data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

_LONGEST_QUOTE = 40


def in_words(value: Any) -> str:
    """A JSON value as it is named in a sentence: `the number 5`, `the text 'abc'`, `an object`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str() if len(value) > _LONGEST_QUOTE:
            return f"the text {value[: _LONGEST_QUOTE - 1] + '…'!r}"
        case str():
            return f"the text {value!r}"
        case dict():
            return "an object"
        case _:
            return "a list"


def nearest(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known word that was probably meant; `likeness` from 0 (anything) to 1 (the same)."""
    hits = difflib.get_close_matches(word, list(known), n=1, cutoff=likeness)
    return hits[0] if hits else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word; empty where nothing is near."""
    hit = nearest(word, known)
    return f"; did you mean {hit!r}?" if hit else ""
