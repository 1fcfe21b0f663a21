"""The list of cases: its lines, each looked at when it is seen, and the cases that a few letters may mean."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.files.eval_set_file import EvalSetFile
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
    """A case whose turns are shown: its place among the cases shown, and the turns shown before it."""

    place: int
    turns: int
    before: int


@dataclass(frozen=True)
class _Block:
    """A set from its line `first` on, with the numbers of the cases that are shown, and their turns."""

    number: int
    eval_set: EvalSetFile
    first: int
    cases: Sequence[int]
    unfolded: Sequence[_Unfolded]

    @property
    def size(self) -> int:
        return 1 + len(self.cases) + sum(one.turns for one in self.unfolded)

    def row(self, line: int) -> Row:
        """The row at a line, counted from the set's own."""
        if line == 0:
            return Row(self.number)
        at = line - 1
        nearest = bisect_right(self.unfolded, at, key=lambda one: one.place + one.before) - 1
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
        """The line of a shown case, or of its turn, counted from the set's own; None for a folded turn."""
        above = bisect_left(self.unfolded, place, key=lambda one: one.place)
        line = 1 + place + sum(one.turns for one in self.unfolded[:above])
        if turn is None:
            return line
        if above == len(self.unfolded) or self.unfolded[above].place != place:
            return None
        return line + 1 + turn if turn < self.unfolded[above].turns else None


class TreeRows:
    """`kept` are the numbers of the cases that a filter keeps, None without one: it unfolds every set.

    `order` puts the numbers of a set's cases in order. An empty line keeps sets apart of which one shows
    cases.
    """

    def __init__(
        self,
        sets: Sequence[EvalSetFile],
        kept: Mapping[str, Sequence[int]] | None,
        folded: Collection[str],
        unfolded: Collection[CaseId],
        order: Callable[[EvalSetFile, Sequence[int]], Sequence[int]] = lambda eval_set, numbers: numbers,
    ) -> None:
        self._sets = sets
        self._blocks: list[_Block] = []
        self.count = 0
        for number, eval_set in enumerate(sets):
            cases: Sequence[int] = range(len(eval_set.cases))
            if kept is not None:
                if eval_set.case_path not in kept:
                    continue
                cases = kept[eval_set.case_path]
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
        return self._blocks[bisect_right(self._blocks, line, key=lambda one: one.first) - 1]

    def is_gap(self, line: int) -> bool:
        """Whether a line is empty."""
        block = self._block_at(line)
        return line - block.first >= block.size

    def row(self, line: int) -> Row:
        """Raises IndexError where there is no such line, or it is empty."""
        if not 0 <= line < self.count or self.is_gap(line):
            raise IndexError(line)
        block = self._block_at(line)
        return block.row(line - block.first)

    def eval_set(self, row: Row) -> EvalSetFile:
        """The set that a row is of, as it was when these rows were made."""
        return self._sets[row.set_number]

    def selection(self, line: int) -> Selection:
        """What a line selects."""
        row = self.row(line)
        eval_set = self.eval_set(row)
        if row.case is None:
            return Selection(eval_set.case_path)
        return Selection(eval_set.case_path, eval_set.cases[row.case].eval_id, row.turn)

    def line_of(self, selection: Selection) -> int | None:
        """The line that shows what is selected, None where none does."""
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
            found = (at for at, one in enumerate(block.cases) if cases[one].eval_id == selection.eval_id)
            place = next(found, None)
        return None if place is None else block.line_of(place, selection.turn)

    def shown(self, set_number: int) -> Sequence[int]:
        """The numbers of the cases of a set that have a line."""
        return next((block.cases for block in self._blocks if block.number == set_number), ())


def _unfolded(eval_set: EvalSetFile, cases: Sequence[int], ids: Collection[str]) -> list[_Unfolded]:
    found: list[_Unfolded] = []
    if not ids:
        return found
    before = 0
    places = (_place(cases, eval_set.number(eval_id)) for eval_id in ids)
    for place in sorted(place for place in places if place is not None):
        if turns := eval_set.cases[cases[place]].outline.turns:
            found.append(_Unfolded(place, turns, before))
            before += turns
    return found


def _place(numbers: Sequence[int], number: int | None) -> int | None:
    """Where one of the numbers stands; found without a step of Python for each of them."""
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
    words = query.casefold().split()
    if not words:
        return []
    # Of equal scores, nlargest keeps the order in which they come.
    return heapq.nlargest(limit, _jumps(words, sets), key=lambda jump: jump.score)


def _letters_in(word: str, value: str) -> tuple[int, ...]:
    """The places of the word's letters in a value, in their order and as near together as they are."""
    best: tuple[int, ...] = ()
    start = 0
    while places := _letters_from(word, value, start):
        if not best or places[-1] - places[0] < best[-1] - best[0]:
            best = places
        start = places[0] + 1
    return best


def _letters_from(word: str, value: str, start: int) -> tuple[int, ...]:
    """The first place of each letter behind that of the one before; `()` where one is missing."""
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
            if (found := _found(words, case, set_id)) is not None:
                score, marked = found
                named = CaseId(eval_set.case_path, case.eval_id)
                yield Jump(named, eval_set.eval_set_id, case.outline.first_text, score, marked)


def _found(words: Sequence[str], case: StoredCase, set_id: str) -> tuple[float, tuple[int, ...]] | None:
    """What the words are worth, on average, and their places in the id; None where one is not found."""
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
        begins = re.search(rf"(?<![^\W_]){re.escape(word)}", eval_id)
        at = begins.start() if begins else at
        places = tuple(range(at, at + len(word)))
        if word == eval_id:
            return _WHOLE_ID, places
        if at == 0:
            return _START_OF_ID + share, places
        return (_WORD_OF_ID if begins else _IN_ID) + share, places
    places = _letters_in(word, eval_id)
    if not places:
        return 0.0, ()
    return _LETTERS_OF_ID + _WITHIN_KIND * len(places) / (places[-1] - places[0] + 1), places
