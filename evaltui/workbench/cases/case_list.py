"""The list of cases: its lines, and the search of cases by a few letters."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.state import Selection


class Row(NamedTuple):
    """One line of the list: a set, one of its cases, or one turn of that; counted from 0."""

    eval_set: EvalSetFile
    case: int | None = None
    turn: int | None = None

    @property
    def depth(self) -> int:
        return 0 if self.case is None else 1 if self.turn is None else 2

    @property
    def selection(self) -> Selection:
        """The selection for the line."""
        eval_id = None if self.case is None else self.eval_set.cases[self.case].eval_id
        return Selection(self.eval_set.case_path, eval_id, self.turn)


def tree_rows(
    sets: Sequence[EvalSetFile],
    matching: Mapping[str, Sequence[int]] | None,
    folded: Collection[str],
    unfolded: Collection[CaseId],
    order: Callable[[EvalSetFile, Sequence[int]], Sequence[int]] = lambda eval_set, numbers: numbers,
) -> list[Row | None]:
    """The lines of the tree of sets and cases; None is an empty line, which separates sets with shown cases.

    `matching` are the numbers of the cases that match the filter; None without a filter. A filter unfolds
    every set. `order` sorts the numbers of a set's cases.
    """
    rows: list[Row | None] = []
    for eval_set in sets:
        path, cases = eval_set.case_path, eval_set.cases
        if matching is not None and path not in matching:
            continue
        numbers: Sequence[int] = range(len(cases)) if matching is None else matching[path]
        if matching is None and path in folded:
            numbers = ()
        if rows and (numbers or ((last := rows[-1]) is not None and last.depth)):
            rows.append(None)
        rows.append(Row(eval_set))
        ids = {case.eval_id for case in unfolded if case.path == path}
        for number in order(eval_set, numbers):
            rows.append(Row(eval_set, number))
            if ids and cases[number].eval_id in ids:
                rows += [Row(eval_set, number, turn) for turn in range(cases[number].outline.turns or 0)]
    return rows


def line_of(rows: Sequence[Row | None], selection: Selection) -> int | None:
    """The line that shows a selection; None where none does."""
    path, turn = selection.path, selection.turn
    for line, row in enumerate(rows):
        if row is not None and row.turn == turn and row.eval_set.case_path == path:
            eval_id = None if row.case is None else row.eval_set.cases[row.case].eval_id
            if eval_id == selection.eval_id:
                return line
    return None


# What a word is worth by where it is found; within one kind, tighter and earlier is better.
_WHOLE_ID_SCORE = 500.0
_ID_START_SCORE = 400.0
_ID_WORD_SCORE = 350.0
_ID_PART_SCORE = 300.0
_ID_LETTERS_SCORE = 200.0
_SET_SCORE = 150.0
_TEXT_SCORE = 100.0
_MAX_RANGE_IN_KIND = 50.0


@dataclass(frozen=True)
class Jump:
    """A search result; `marked` are the places of the typed letters in its id."""

    case: CaseId
    set_id: str
    text: str
    score: float
    marked: tuple[int, ...] = ()


def rank_cases(query: str, sets: Sequence[EvalSetFile], limit: int = 50) -> list[Jump]:
    """The cases that match every word of the query, best first, then in file order.

    A word matches the id, as a whole, inside, or by its letters in order (`bkh` in `book_hotel`), and a part
    of the set's id and of the user's texts. An empty query matches nothing.
    """
    words = query.casefold().split()
    if not words:
        return []
    # Of equal scores, nlargest keeps the order in which they come.
    return heapq.nlargest(limit, _jumps(words, sets), key=lambda jump: jump.score)


def _letters_in(word: str, value: str) -> tuple[int, ...]:
    """The places of the word's letters in a value, in order and as near together as possible."""
    best: tuple[int, ...] = ()
    start = 0
    while places := _letters_from(word, value, start):
        if not best or places[-1] - places[0] < best[-1] - best[0]:
            best = places
        start = places[0] + 1
    return best


def _letters_from(word: str, value: str, start: int) -> tuple[int, ...]:
    """The first place of each letter after the previous one; `()` where a letter is missing."""
    places = []
    for letter in word:
        if (place := value.find(letter, start)) < 0:
            return ()
        places.append(place)
        start = place + 1
    return tuple(places)


def _jumps(words: Sequence[str], sets: Sequence[EvalSetFile]) -> Iterator[Jump]:
    for eval_set in sets:
        set_id = eval_set.eval_set_id.casefold()
        for case in eval_set.cases:
            if (match := _match(words, case, set_id)) is not None:
                score, marked = match
                named = CaseId(eval_set.case_path, case.eval_id)
                yield Jump(named, eval_set.eval_set_id, case.outline.first_text, score, marked)


def _match(words: Sequence[str], case: StoredCase, set_id: str) -> tuple[float, tuple[int, ...]] | None:
    """The mean score of the words, and their places in the id; None where a word does not match."""
    eval_id = case.eval_id.casefold()
    total, marked = 0.0, set[int]()
    for word in words:
        worth, places = _score_in_id(word, eval_id)
        if not worth:
            if word in set_id:
                worth = _SET_SCORE + _MAX_RANGE_IN_KIND * len(word) / len(set_id)
            elif any(word in text.casefold() for text in case.outline.texts):
                worth = _TEXT_SCORE
            else:
                return None
        total += worth
        marked.update(places)
    # Letters that become two when folded would shift the places behind them.
    shown = tuple(sorted(marked)) if len(eval_id) == len(case.eval_id) else ()
    return total / len(words), shown


def _score_in_id(word: str, eval_id: str) -> tuple[float, tuple[int, ...]]:
    at = eval_id.find(word)
    if at >= 0:
        share = _MAX_RANGE_IN_KIND * len(word) / len(eval_id)
        word_start = re.search(rf"(?<![^\W_]){re.escape(word)}", eval_id)
        at = word_start.start() if word_start else at
        places = tuple(range(at, at + len(word)))
        if word == eval_id:
            return _WHOLE_ID_SCORE, places
        if at == 0:
            return _ID_START_SCORE + share, places
        return (_ID_WORD_SCORE if word_start else _ID_PART_SCORE) + share, places
    places = _letters_in(word, eval_id)
    if not places:
        return 0.0, ()
    return _ID_LETTERS_SCORE + _MAX_RANGE_IN_KIND * len(places) / (places[-1] - places[0] + 1), places
