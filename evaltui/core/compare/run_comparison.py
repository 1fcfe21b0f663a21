"""Run against run, case by case: what broke, what was fixed, and what cannot be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from evaltui.core.compare.changes_between_runs import other_expectation
from evaltui.core.compare.run_summary import CaseSummary, RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status

Kind = Literal["broken", "fixed", "flaky", "expectation changed", "new", "gone", "not run", "unchanged"]
# In the order in which they matter.
KINDS: tuple[Kind, ...] = (
    "broken",
    "fixed",
    "flaky",
    "expectation changed",
    "new",
    "gone",
    "not run",
    "unchanged",
)


class ScoreChange(NamedTuple):
    """A metric of a case in both runs; None where it was not asked for, or has no score."""

    metric: str
    base: float | None
    candidate: float | None


@dataclass(frozen=True)
class CaseChange:
    """A case in two runs. `reasons` say why the two verdicts cannot be held against each other.

    - broken, fixed: it passes (a flaky case by its policy) in one of them only;
    - flaky: both verdicts count the same, but in one of them at least its runs differed;
    - expectation changed: the case, or what it is scored by, is not the same;
    - new, gone: it did not exist in the other run; not run: it was not selected there, or not finished.
    """

    kind: Kind
    key: CaseId
    base: CaseSummary | None
    candidate: CaseSummary | None
    reasons: tuple[str, ...] = ()

    @property
    def eval_set_id(self) -> str:
        """The label of its set."""
        known = self.candidate or self.base
        return known.eval_set_id if known else self.key.path

    @property
    def scores(self) -> tuple[ScoreChange, ...]:
        """The metrics that either run has, in the order of the candidate."""
        mine, theirs = (side.scores if side else {} for side in (self.base, self.candidate))
        return tuple(ScoreChange(name, mine.get(name), theirs.get(name)) for name in {**theirs, **mine})

    @property
    def is_regression(self) -> bool:
        """Whether it does not pass now, and the base run does not excuse that.

        It does where the same expectation was not met there either.
        """
        if self.candidate is None or self.candidate.passes:
            return False
        return self.kind in ("broken", "new", "expectation changed") or self.base is None


@dataclass(frozen=True)
class Total:
    """A sum over the cases that both runs know it of."""

    base: float
    candidate: float

    @property
    def growth(self) -> str:
        """` (+29%)`; "" from nothing."""
        return f" ({(self.candidate - self.base) / self.base:+.0%})" if self.base else ""


@dataclass(frozen=True)
class Comparison:
    """Two runs, with every case of either exactly once: those of the candidate first, in its order."""

    base: RunSummary
    candidate: RunSummary
    cases: tuple[CaseChange, ...]

    @cached_property
    def set_names(self) -> Mapping[str, str]:
        """What is written before the id of a case, by the path of its set: `orders:`, "" for a single set."""
        labels = {change.key.path: change.eval_set_id for change in self.cases}
        if len(labels) < 2:
            return dict.fromkeys(labels, "")
        shared = Counter(labels.values())
        return {path: f"{label if shared[label] == 1 else path}:" for path, label in labels.items()}

    def of(self, kind: Kind) -> tuple[CaseChange, ...]:
        return tuple(change for change in self.cases if change.kind == kind)

    @property
    def regressions(self) -> tuple[CaseChange, ...]:
        return tuple(change for change in self.cases if change.is_regression)

    @property
    def seconds(self) -> Total | None:
        """Mean wall time of a run of each case, summed up."""
        return _total([(a.seconds, b.seconds) for a, b in self._in_both()])

    @property
    def tokens(self) -> Total | None:
        return _total([(a.tokens, b.tokens) for a, b in self._in_both()])

    def _in_both(self) -> Iterator[tuple[CaseSummary, CaseSummary]]:
        for change in self.cases:
            if change.base is not None and change.candidate is not None:
                yield change.base, change.candidate


def case_name(change: CaseChange, comparison: Comparison) -> str:
    """The id of a case, with that of its set where there are several, or the file where they share one."""
    return comparison.set_names[change.key.path] + change.key.eval_id


def _total(pairs: Sequence[tuple[float | None, float | None]]) -> Total | None:
    known = [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
    return Total(sum(mine for mine, _ in known), sum(theirs for _, theirs in known)) if known else None


def compare(base: RunSummary, candidate: RunSummary) -> Comparison:
    """Swapping the runs swaps broken and fixed, new and gone, and leaves the other kinds as they are."""
    base, candidate = _placed(base, candidate), _placed(candidate, base)
    keys = dict.fromkeys([*candidate.cases, *base.cases])
    changes = (change for key in keys for change in _changes(key, base, candidate))
    return Comparison(base, candidate, tuple(changes))


def _placed(run: RunSummary, other: RunSummary) -> RunSummary:
    """A run that knows set ids only, with the files that another run has for them.

    A case of a set id that several files of the other run have is ambiguous.
    """
    if not run.by_label:
        return run
    paths: dict[str, set[str]] = {}
    if not other.by_label:
        for summary in other.cases.values():
            paths.setdefault(summary.eval_set_id, set()).add(summary.id.path)
    cases: dict[CaseId, CaseSummary] = {}
    ambiguous = set(run.ambiguous)
    for key, summary in run.cases.items():
        found = paths.get(summary.eval_set_id, set())
        if key not in ambiguous and len(found) == 1 and not summary.path:
            summary = replace(summary, path=next(iter(found)))
        elif len(found) > 1:
            ambiguous.add(summary.id)
        cases[summary.id] = summary
    return replace(run, cases=cases, ambiguous=frozenset(ambiguous))


def _changes(key: CaseId, base: RunSummary, candidate: RunSummary) -> Iterator[CaseChange]:
    unclear = [run for run in (base, candidate) if key in run.ambiguous]
    if not unclear:
        yield _change(key, base, candidate)
        return
    reasons = tuple(f"several files have it, and {run.id} does not say which one it ran" for run in unclear)
    before, after = base.cases.get(key), candidate.cases.get(key)
    if after is not None:
        yield CaseChange("not run", key, None, after, reasons)
    if before is not None:
        yield CaseChange("not run", key, before, None, reasons)


def _change(key: CaseId, base: RunSummary, candidate: RunSummary) -> CaseChange:
    before, after = base.cases.get(key), candidate.cases.get(key)
    if before is None:
        return CaseChange("new" if base.lacks(key) else "not run", key, before, after)
    if after is None:
        return CaseChange("gone" if candidate.lacks(key) else "not run", key, before, after)
    reasons = tuple(other_expectation(before, after, base.circumstances, candidate.circumstances))
    return CaseChange(_kind(before, after, reasons), key, before, after, reasons)


def _kind(before: CaseSummary, after: CaseSummary, reasons: Sequence[str]) -> Kind:
    if reasons:
        return "expectation changed"
    if before.passes != after.passes:
        return "broken" if before.passes else "fixed"
    return "flaky" if Status.FLAKY in (before.status, after.status) else "unchanged"
