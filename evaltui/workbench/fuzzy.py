"""Jumping to a case by a few letters of it: which cases are meant, best first."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.files.eval_set_file import EvalSetFile

# What a word is worth by where it is found; within one kind, tighter and earlier is better.
_WHOLE_ID = 500.0
_START_OF_ID = 400.0
_WORD_OF_ID = 350.0
_IN_ID = 300.0
_LETTERS_OF_ID = 200.0
_IN_SET = 150.0
_IN_TEXT = 100.0
_WITHIN_KIND = 50.0


@dataclass(frozen=True)
class Jump:
    """A case that may be meant; `marked` are the places in its id of the letters that were typed."""

    case: CaseId
    set_id: str
    text: str
    score: float
    marked: tuple[int, ...] = ()


def rank_cases(query: str, sets: Sequence[EvalSetFile], limit: int = 50) -> list[Jump]:
    """The cases in which every word of the query is found, best first, then in file order.

    A word is looked for in the id, whole, inside, or as letters in their order (`bkh` in `book_hotel`), and
    as it is in the id of the set and in what the user says. Nothing typed finds nothing.
    """
    words = [_Word(word) for word in query.casefold().split()]
    if not words:
        return []
    # Of equal scores, nlargest keeps the order in which they come.
    return heapq.nlargest(limit, _jumps(words, sets), key=lambda jump: jump.score)


class _Word:
    def __init__(self, text: str) -> None:
        self.text = text

    def letters_in(self, value: str) -> tuple[int, ...]:
        """The places of the word's letters in a value, in their order and as near together as they are."""
        best: tuple[int, ...] = ()
        start = 0
        while places := self._letters_from(value, start):
            if not best or places[-1] - places[0] < best[-1] - best[0]:
                best = places
            start = places[0] + 1
        return best

    def _letters_from(self, value: str, start: int) -> tuple[int, ...]:
        """The first place of each letter behind that of the one before; `()` where one is missing."""
        places = []
        for letter in self.text:
            if (place := value.find(letter, start)) < 0:
                return ()
            places.append(place)
            start = place + 1
        return tuple(places)


def _jumps(words: Sequence[_Word], sets: Sequence[EvalSetFile]) -> Iterator[Jump]:
    for eval_set in sets:
        set_id = eval_set.eval_set_id.casefold()
        for case in eval_set.cases:
            if (found := _found(words, case, set_id)) is not None:
                score, marked = found
                named = CaseId(eval_set.case_path, case.eval_id)
                yield Jump(named, eval_set.eval_set_id, case.outline.first_text, score, marked)


def _found(words: Sequence[_Word], case: StoredCase, set_id: str) -> tuple[float, tuple[int, ...]] | None:
    """What the words are worth, on average, and their places in the id; None where one is not found."""
    eval_id = case.eval_id.casefold()
    total, marked = 0.0, set[int]()
    for word in words:
        worth, places = _in_id(word, eval_id)
        if not worth:
            if word.text in set_id:
                worth = _IN_SET + _WITHIN_KIND * len(word.text) / len(set_id)
            elif any(word.text in text.casefold() for text in case.outline.texts):
                worth = _IN_TEXT
            else:
                return None
        total += worth
        marked.update(places)
    # Letters that become two when folded would shift the places behind them.
    shown = tuple(sorted(marked)) if len(eval_id) == len(case.eval_id) else ()
    return total / len(words), shown


def _in_id(word: _Word, eval_id: str) -> tuple[float, tuple[int, ...]]:
    at = eval_id.find(word.text)
    if at >= 0:
        share = _WITHIN_KIND * len(word.text) / len(eval_id)
        begins = re.search(rf"(?<![^\W_]){re.escape(word.text)}", eval_id)
        at = begins.start() if begins else at
        places = tuple(range(at, at + len(word.text)))
        if word.text == eval_id:
            return _WHOLE_ID, places
        if at == 0:
            return _START_OF_ID + share, places
        return (_WORD_OF_ID if begins else _IN_ID) + share, places
    places = word.letters_in(eval_id)
    if not places:
        return 0.0, ()
    return _LETTERS_OF_ID + _WITHIN_KIND * len(places) / (places[-1] - places[0] + 1), places
