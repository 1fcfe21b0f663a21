"""The lines of the list of cases, each looked at when it is seen; and which cases are marked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from evaltui.core.editing.set import SetEditor
from evaltui.core.model.case_id import CaseId
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

    def line_of(self, case: int, turn: int | None) -> int | None:
        """The line of a case, or of its turn, counted from the set's own; None where it is not shown."""
        place = bisect_left(self.cases, case)
        if place == len(self.cases) or self.cases[place] != case:
            return None
        above = bisect_left(self.unfolded, place, key=lambda one: one.place)
        line = 1 + place + sum(one.turns for one in self.unfolded[:above])
        if turn is None:
            return line
        if above == len(self.unfolded) or self.unfolded[above].place != place:
            return None
        return line + 1 + turn if turn < self.unfolded[above].turns else None


class TreeRows:
    """`kept` are the numbers of the cases that a filter keeps, None without one: it unfolds every set."""

    def __init__(
        self,
        sets: Sequence[EvalSetFile],
        kept: Mapping[str, Sequence[int]] | None,
        folded: Collection[str],
        unfolded: Collection[CaseId],
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
            ids = {case.eval_id for case in unfolded if case.path == eval_set.case_path}
            block = _Block(number, eval_set, self.count, cases, _unfolded(eval_set, cases, ids))
            self._blocks.append(block)
            self.count += block.size

    def row(self, line: int) -> Row:
        """Raises IndexError where there is no such line."""
        if not 0 <= line < self.count:
            raise IndexError(line)
        block = self._blocks[bisect_right(self._blocks, line, key=lambda one: one.first) - 1]
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
        # Only what is shown has a line: of ten thousand cases a filter may have left one.
        cases = block.eval_set.cases
        found = (number for number in block.cases if cases[number].eval_id == selection.eval_id)
        number = next(found, None)
        return None if number is None else block.line_of(number, selection.turn)

    def shown(self, set_number: int) -> Sequence[int]:
        """The numbers of the cases of a set that have a line."""
        return next((block.cases for block in self._blocks if block.number == set_number), ())


def _unfolded(eval_set: EvalSetFile, cases: Sequence[int], ids: Collection[str]) -> list[_Unfolded]:
    found: list[_Unfolded] = []
    if not ids:
        return found
    before = 0
    for place, number in enumerate(cases):
        case = eval_set.cases[number]
        if case.eval_id in ids and (turns := case.outline.turns):
            found.append(_Unfolded(place, turns, before))
            before += turns
    return found


@dataclass(frozen=True)
class CaseClipboard:
    """Cases that were copied, or are to be moved once they are pasted (`cut`).

    `sources` are their sets and configs as they were then: what is copied can be pasted even when it has
    been changed or deleted since.
    """

    cases: tuple[CaseId, ...]
    cut: bool
    sources: Mapping[Path, SetEditor]

    @cached_property
    def members(self) -> frozenset[CaseId]:
        """The cases, to be looked up for every line that is drawn."""
        return frozenset(self.cases)


class Marking:
    """What the user has picked out of the list of cases, in the order of picking."""

    def __init__(self) -> None:
        self._marked: dict[CaseId, None] = {}
        self.clipboard: CaseClipboard | None = None

    def __contains__(self, case: CaseId) -> bool:
        return case in self._marked

    def __len__(self) -> int:
        return len(self._marked)

    @property
    def marked(self) -> Collection[CaseId]:
        return self._marked.keys()

    def toggle(self, cases: Collection[CaseId]) -> None:
        """Mark cases; where all of them are marked, no longer."""
        if all(case in self._marked for case in cases):
            self._marked = {case: None for case in self._marked if case not in cases}
        else:
            self._marked.update(dict.fromkeys(cases))

    def clear(self) -> None:
        self._marked.clear()

    def keep_only_in(self, sets: Iterable[EvalSetFile]) -> None:
        """Forget cases that are gone."""
        paths = {case.path for case in self._marked}
        ids = {
            eval_set.case_path: {case.eval_id for case in eval_set.cases}
            for eval_set in sets
            if eval_set.case_path in paths
        }
        self._marked = {case: None for case in self._marked if case.eval_id in ids.get(case.path, ())}

    def is_cut(self, case: CaseId) -> bool:
        """Whether a case is to be moved with the next paste."""
        return self.clipboard is not None and self.clipboard.cut and case in self.clipboard.members
