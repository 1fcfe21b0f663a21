"""What is shown of a matrix: which variant is current, which cases are listed in which order, and which
repeat of a case is looked at."""

from __future__ import annotations

from dataclasses import replace

from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.runs.matrices import OpenMatrix
from evaltui.text.figures import counted
from evaltui.text.lines import Line
from evaltui.workbench.matrix.matrices import ORDERS, MatrixRow, Order, rows_of
from evaltui.workbench.state import deciding_repeat

NONE_YET: Line = [
    ("No matrix yet. A run of several variants in a terminal makes one:\n\n", "muted"),
    ("evaltui run --variant base --variant flash:model=gemini-2.5-flash", "key"),
]


class MatrixView:
    """A matrix as it is looked at."""

    def __init__(self) -> None:
        self.opened: OpenMatrix | None = None
        self.column = 0
        """The variant of the current cell, by its place in the matrix."""
        self.order: Order = "set"
        self.differing = False
        """Whether only cases that differ are listed."""
        self.note: Line = [("Reading the runs…", "muted")]
        """Why there is no matrix."""
        self.first = 0
        """Of the variants besides the base, the first one that is shown."""
        self.repeat: int | None = None
        """The repeat that is looked at, from 0; None for the one that decides the result."""
        self._folded: set[str] = set()

    def show(self, opened: OpenMatrix | None) -> None:
        """Shows a matrix; what is current stays where the same one was read again."""
        is_other = opened is None or self.opened is None or opened.stored.id != self.opened.stored.id
        self.opened = opened
        if opened is not None and (is_other or self.column >= len(opened.matrix.columns)):
            self.column, self.first = next(iter(others_of(opened.matrix)), opened.matrix.base), 0

    def refusal(self, *, besides_base: bool = False) -> str | None:
        """Why nothing can be done with the current variant, as a sentence; None where something can."""
        if self.opened is None:
            return "No matrix yet" if self.note is NONE_YET else "".join(text for text, _ in self.note)
        if besides_base and self.column == self.opened.matrix.base:
            return "This is the base; select another variant"
        return None

    def go_to(self, column: int, fitting: int) -> None:
        """Makes a variant the current one; `fitting` is for how many besides the base there is room."""
        if self.opened is None:
            return
        self.column = column
        others = others_of(self.opened.matrix)
        if column in others:
            place = others.index(column)
            self.first = min(max(self.first, place - fitting + 1), place)

    def step(self, step: int, fitting: int) -> None:
        """Goes on by so many variants, the base being the first."""
        if self.opened is not None:
            shown = [self.opened.matrix.base, *others_of(self.opened.matrix)]
            place = max(0, min(shown.index(self.column) + step, len(shown) - 1))
            self.go_to(shown[place], fitting)

    def set_base(self) -> None:
        """Compares the others with the current variant; the base before is the current one then."""
        if self.opened is not None:
            before = self.opened.matrix.base
            self.opened = replace(self.opened, matrix=self.opened.matrix.with_base(self.column))
            self.column, self.first = before, 0

    def sort(self) -> None:
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]

    def fold(self, path: str) -> None:
        """Folds a set, or unfolds it."""
        self._folded ^= {path}

    def rows(self) -> list[MatrixRow]:
        if self.opened is None:
            return []
        return rows_of(
            self.opened.matrix, self.order, self.column, differing=self.differing, folded=self._folded
        )

    def cases_of(self, row: MatrixRow) -> tuple[list[CaseId], str]:
        """The cases of a row, and what they are called: a case, or all of a set."""
        if isinstance(row, Row):
            return [row.case], row.case.eval_id
        if row is None or self.opened is None:
            return [], ""
        cases = [one.case for one in self.opened.matrix.sets[row.path]]
        return cases, f"{row.label}, {counted(len(cases), 'case')}"

    # Repeats

    def repeat_of(self, result: CaseResult) -> int:
        """The repeat of a result that is shown, from 0."""
        last = len(result.repeats) - 1
        return deciding_repeat(result) if self.repeat is None else min(self.repeat, last)

    def step_repeat(self, step: int, result: CaseResult) -> str:
        """Looks at the next repeat, or the one before it; returns which it is, as a sentence."""
        runs = len(result.repeats)
        if runs < 2:
            return "One repeat"
        self.repeat = (self.repeat_of(result) + step) % runs
        return f"Repeat {self.repeat + 1} of {runs}"


def others_of(matrix: Matrix) -> tuple[int, ...]:
    """The variants besides the base."""
    return tuple(place for place in range(len(matrix.columns)) if place != matrix.base)
