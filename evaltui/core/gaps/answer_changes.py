"""Changes of a response that an eval set should notice: another number, a negation, an invented promise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from evaltui.core.metrics.answer_rules import has_text, names_in, plain, with_other_units
from evaltui.core.metrics.response_match import same_words

EMPTIED = "answer emptied"
NEGATED = "answer negated"
CUT = "answer cut"
NUMBER = "another number"
DATE = "another date or time"
UNIT = "another unit"
NAME = "another name"
PROMISE = "an invented promise"

"""Kinds that are made of English words."""
# Others that change no word change nothing but punctuation and white space.
_OF_SYMBOLS = (EMPTIED, UNIT)

_PROMISE = " I have also refunded you 100 dollars."
_NAMES = ("Avery", "Morgan")
_MIN_WORDS = 4
_MIN_LETTERS = 8
# A number that is no part of an id, a date or a time.
_NUMBER = re.compile(r"(?<![\w.,:/])(?<!\w-)(?P<first>\d+)(?:[.,]\d+)*(?![\w:/-]|[.,]\d)")
_DATE = re.compile(r"(?<![\w-])\d{4}-\d\d-(?P<last>\d\d)(?![\w-])")
_TIME = re.compile(r"(?<![\w:])\d\d?:(?P<last>\d\d)(?![\w:])")
_VERB = re.compile(r"\b(?:is|are|was|were|will|can|could|should|must|has|have|had)\b(?!n't)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_NOT = re.compile(r"\bnot ", re.IGNORECASE)
_ENGLISH = re.compile(
    r"\b(?:the|is|are|was|were|you|your|it|and|of|with|for|to|from|this|that|will|have|has|not|on|at|i)\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"\b(?:de|het|een|en|van|uit|der|die|das|und|ist|ein|eine|nicht|auf|im|le|la|les|et|est|un|une|du|des|pas|el"
    r"|los|las|y|es|una|por|que|il|lo|gli|e|che|di|per|non|att|det|är|och|ett|på|og|til|ikke|er|o|os|um|uma|não)\b",
    re.IGNORECASE,
)


class AnswerChange(NamedTuple):
    """A response after a change."""

    kind: str
    text: str


@lru_cache(maxsize=64)
def is_english(text: str) -> bool:
    """Whether a text has more English function words than those of other languages."""
    return len(_ENGLISH.findall(text)) > len(_OTHER.findall(text))


def answer_changes(text: str) -> Iterator[AnswerChange]:
    """The changes of a response, in order; those of words only of an English one."""
    changes = [
        AnswerChange(EMPTIED, ""),
        *(AnswerChange(CUT, short) for short in _cut(text)),
        *(AnswerChange(NUMBER, changed) for changed in _replaced(text, _NUMBER, "first")),
        *(AnswerChange(DATE, changed) for changed in _replaced(text, _DATE, "last")),
        *(AnswerChange(DATE, changed) for changed in _replaced(text, _TIME, "last")),
        *(AnswerChange(UNIT, changed) for changed in with_other_units(text)),
    ]
    if is_english(text):
        changes += [AnswerChange(NEGATED, changed) for changed in _negated(text)]
        changes += [AnswerChange(NAME, changed) for changed in _renamed(text)]
        changes += [AnswerChange(PROMISE, text.rstrip() + _PROMISE)]
    return (
        change
        for change in changes
        if plain(change.text) != plain(text)
        and (change.kind in _OF_SYMBOLS or not same_words(change.text, text))
    )


def with_number(text: str, number: int | float) -> tuple[str, int | float] | None:
    """The response with a number one further from zero, and that number; None if the response lacks it."""
    for match in _NUMBER.finditer(text):
        written = match[0].replace(",", "")
        is_negative = text[: match.start()].endswith("-")
        if written in (str(abs(number)), f"{abs(number):g}") and is_negative == (number < 0):
            other = _next(match, "first")
            changed = f"{text[: match.start()]}{other}{text[match.end() :]}"
            return changed, number - 1 if is_negative else number + 1
    return None


def without_values(text: str, values: Iterable[object]) -> str:
    """The response without the sentences that have one of these values; "" where none is left."""
    words = [str(value) for value in values if value not in ("", None) and not isinstance(value, bool)]
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    sentences = (text[start:end].strip() for start, end in pairwise(ends))
    rest = (item for item in sentences if item and not any(has_text(item, value) for value in words))
    return " ".join(rest)


def _cut(text: str) -> Iterator[str]:
    words = text.split()
    if len(words) >= _MIN_WORDS:
        yield " ".join(words[: len(words) // 2])
    elif len(words) == 1 and len(text) >= _MIN_LETTERS and not text.isascii():
        # Of a script without spaces.
        yield text[: len(text) // 2]


def _replaced(text: str, pattern: re.Pattern[str], group: str) -> Iterator[str]:
    for match in pattern.finditer(text):
        yield f"{text[: match.start()]}{_next(match, group)}{text[match.end() :]}"


def _next(match: re.Match[str], group: str) -> str:
    """The number, date or time one after that of a match; the last of a month or hour is followed by its
    first."""
    digits, whole, start = match[group], match[0], match.start(group) - match.start()
    most = 0 if group == "first" else 28 if "-" in whole else 59
    number = int(digits) + 1
    if most and number > most:
        number = 1
    return f"{whole[:start]}{number:0{len(digits)}}{whole[start + len(digits) :]}"


def _negated(text: str) -> Iterator[str]:
    """The first negation taken out, else the first statement negated; a question is none."""
    if match := _NOT.search(text):
        yield text[: match.start()] + text[match.end() :]
        return
    for match in _VERB.finditer(text):
        end = _SENTENCE_END.search(text, match.end())
        if end is None or end[0] != "?":
            yield f"{text[: match.end()]} not{text[match.end() :]}"
            return


def _renamed(text: str) -> Iterator[str]:
    for name in names_in(text):
        # A word in capitals is stressed, or a status.
        if name.isalpha() and name.isupper():
            continue
        other = next(other for other in _NAMES if other not in name)
        yield text.replace(name, other, 1)
