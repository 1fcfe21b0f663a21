"""The list of cases: its lines, each built when it is shown, and the search of cases by a few letters."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.state import Selection


class Row(NamedTuple):
    """One line of the list: a set, one of its cases, or one turn of that; counted from 0."""

    set_number: int
    case: int | None = None
    turn: int | None = None

    @property
    def depth(self) -> int:
        return 0 if self.case is None else 1 if self.turn is None else 2


@dataclass(frozen=True)
class _Unfolded:
    """A case with its turns shown: its place among the shown cases, and the number of turns shown before
    it."""

    place: int
    turns: int
    before: int


@dataclass(frozen=True)
class _Block:
    """A set from its line `first` on, with the numbers of its shown cases, and their turns."""

    number: int
    eval_set: EvalSetFile
    first: int
    cases: Sequence[int]
    unfolded: Sequence[_Unfolded]

    @property
    def size(self) -> int:
        return 1 + len(self.cases) + sum(case.turns for case in self.unfolded)

    def row(self, line: int) -> Row:
        """The row at a line, counted from the set's own."""
        if line == 0:
            return Row(self.number)
        at = line - 1
        nearest = bisect_right(self.unfolded, at, key=lambda case: case.place + case.before) - 1
        if nearest < 0:
            return Row(self.number, self.cases[at])
        case = self.unfolded[nearest]
        turn = at - case.place - case.before - 1
        if turn < 0:
            return Row(self.number, self.cases[case.place])
        if turn < case.turns:
            return Row(self.number, self.cases[case.place], turn)
        return Row(self.number, self.cases[at - case.before - case.turns])

    def line_of(self, place: int, turn: int | None) -> int | None:
        """The line of a shown case, or of its turn, counted from the line of the set; None for a hidden
        turn."""
        above = bisect_left(self.unfolded, place, key=lambda case: case.place)
        line = 1 + place + sum(case.turns for case in self.unfolded[:above])
        if turn is None:
            return line
        if above == len(self.unfolded) or self.unfolded[above].place != place:
            return None
        return line + 1 + turn if turn < self.unfolded[above].turns else None


class TreeRows:
    """The lines of the tree of sets and cases.

    `matching` are the numbers of the cases that match the filter; None without a filter. A filter unfolds
    every set. `order` sorts the numbers of a set's cases. An empty line separates sets with shown cases.
    """

    def __init__(
        self,
        sets: Sequence[EvalSetFile],
        matching: Mapping[str, Sequence[int]] | None,
        folded: Collection[str],
        unfolded: Collection[CaseId],
        order: Callable[[EvalSetFile, Sequence[int]], Sequence[int]] = lambda eval_set, numbers: numbers,
    ) -> None:
        self._sets = sets
        self._blocks: list[_Block] = []
        self.count = 0
        for number, eval_set in enumerate(sets):
            cases: Sequence[int] = range(len(eval_set.cases))
            if matching is not None:
                if eval_set.case_path not in matching:
                    continue
                cases = matching[eval_set.case_path]
            elif eval_set.case_path in folded:
                cases = ()
            cases = order(eval_set, cases)
            ids = {case.eval_id for case in unfolded if case.path == eval_set.case_path}
            if self._blocks and (cases or self._blocks[-1].cases):
                self.count += 1
            block = _Block(number, eval_set, self.count, cases, _unfolded(eval_set, cases, ids))
            self._blocks.append(block)
            self.count += block.size

    def _block_at(self, line: int) -> _Block:
        return self._blocks[bisect_right(self._blocks, line, key=lambda block: block.first) - 1]

    def is_gap(self, line: int) -> bool:
        """Whether a line is empty."""
        block = self._block_at(line)
        return line - block.first >= block.size

    def row(self, line: int) -> Row:
        """The row of a line. Raises IndexError for an empty line, and past the end."""
        if not 0 <= line < self.count or self.is_gap(line):
            raise IndexError(line)
        block = self._block_at(line)
        return block.row(line - block.first)

    def eval_set(self, row: Row) -> EvalSetFile:
        """The set of a row, as it was when these rows were built."""
        return self._sets[row.set_number]

    def selection(self, line: int) -> Selection:
        """The selection for a line."""
        row = self.row(line)
        eval_set = self.eval_set(row)
        if row.case is None:
            return Selection(eval_set.case_path)
        return Selection(eval_set.case_path, eval_set.cases[row.case].eval_id, row.turn)

    def line_of(self, selection: Selection) -> int | None:
        """The line that shows a selection; None where none does."""
        for block in self._blocks:
            if block.eval_set.case_path == selection.path:
                line = self._line_in(block, selection)
                return None if line is None else block.first + line
        return None

    def _line_in(self, block: _Block, selection: Selection) -> int | None:
        if selection.eval_id is None:
            return 0
        place = _place(block.cases, block.eval_set.number(selection.eval_id))
        if place is None:
            # Of several cases with one id, a filter may have left another one than the first.
            cases = block.eval_set.cases
            at_id = (
                at for at, number in enumerate(block.cases) if cases[number].eval_id == selection.eval_id
            )
            place = next(at_id, None)
        return None if place is None else block.line_of(place, selection.turn)

    def shown(self, set_number: int) -> Sequence[int]:
        """The numbers of the shown cases of a set."""
        return next((block.cases for block in self._blocks if block.number == set_number), ())


def _unfolded(eval_set: EvalSetFile, cases: Sequence[int], ids: Collection[str]) -> list[_Unfolded]:
    unfolded: list[_Unfolded] = []
    if not ids:
        return unfolded
    before = 0
    places = (_place(cases, eval_set.number(eval_id)) for eval_id in ids)
    for place in sorted(place for place in places if place is not None):
        if turns := eval_set.cases[cases[place]].outline.turns:
            unfolded.append(_Unfolded(place, turns, before))
            before += turns
    return unfolded


def _place(numbers: Sequence[int], number: int | None) -> int | None:
    """The index of a number; None where it is missing."""
    try:
        return None if number is None else numbers.index(number)
    except ValueError:
        return None


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
        worth, places = _in_id(word, eval_id)
        if not worth:
            if word in set_id:
                worth = _IN_SET + _WITHIN_KIND * len(word) / len(set_id)
            elif any(word in text.casefold() for text in case.outline.texts):
                worth = _IN_TEXT
            else:
                return None
        total += worth
        marked.update(places)
    # Letters that become two when folded would shift the places behind them.
    shown = tuple(sorted(marked)) if len(eval_id) == len(case.eval_id) else ()
    return total / len(words), shown


def _in_id(word: str, eval_id: str) -> tuple[float, tuple[int, ...]]:
    at = eval_id.find(word)
    if at >= 0:
        share = _WITHIN_KIND * len(word) / len(eval_id)
        word_start = re.search(rf"(?<![^\W_]){re.escape(word)}", eval_id)
        at = word_start.start() if word_start else at
        places = tuple(range(at, at + len(word)))
        if word == eval_id:
            return _WHOLE_ID, places
        if at == 0:
            return _START_OF_ID + share, places
        return (_WORD_OF_ID if word_start else _IN_ID) + share, places
    places = _letters_in(word, eval_id)
    if not places:
        return 0.0, ()
    return _LETTERS_OF_ID + _WITHIN_KIND * len(places) / (places[-1] - places[0] + 1), places
