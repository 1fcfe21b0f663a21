"""Two kept runs held against each other, as a list with the cases of each kind below its title."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from evaltui.core.compare.run_comparison import KINDS, CaseChange, Comparison, Kind, compare, what_changed
from evaltui.runs.history import KeptRun, open_run

# Of what did not change there is the most, and the least to see.
FOLDED_AT_FIRST: frozenset[Kind] = frozenset({"unchanged", "not run"})


@dataclass(frozen=True)
class Compared:
    base: KeptRun
    candidate: KeptRun
    comparison: Comparison

    @property
    def between(self) -> tuple[str, ...]:
        """What is different between the two besides what the agent did, in words."""
        return what_changed(self.base.summary, self.candidate.summary)


@dataclass(frozen=True)
class KindTitle:
    kind: Kind
    count: int
    folded: bool


ComparedRow = KindTitle | CaseChange


def compare_kept(base: Path, candidate: Path) -> Compared:
    """In a thread. Raises OSError, and ValueError for what cannot be read."""
    before, after = open_run(base), open_run(candidate)
    return Compared(before, after, compare(before.summary, after.summary))


def rows_of(comparison: Comparison, folded: Collection[Kind]) -> Iterator[ComparedRow]:
    """The kinds that there are, what matters most first, each with its cases unless it is folded."""
    for kind in KINDS:
        cases = comparison.of(kind)
        if cases:
            yield KindTitle(kind, len(cases), kind in folded)
            if kind not in folded:
                yield from cases
