"""How the cases of a set came out, added up."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.workbench.kept_results import ResultInFile
from evaltui.workbench.results import needs_attention
from evaltui.workbench.state import CaseOutcome, EarlierResult

if TYPE_CHECKING:
    from evaltui.core.model.config import EvalConfig
    from evaltui.core.model.spending import Cost

MOST_SLOW = 3
# Cases that are gone through again when one of them has another result.
_PART = 1000

Outcome = Callable[[CaseId], CaseOutcome | None]


Earlier = Callable[[CaseId], EarlierResult | None]
"""None where there was none."""


class Moved(NamedTuple):
    """A case with another status than before, by the same expectation."""

    case: CaseId
    before: EarlierResult
    status: str


@dataclass
class MetricTotal:
    """What a metric says of the cases that it scores."""

    cases: int = 0
    passed: int = 0
    scored: int = 0
    """How many cases have a score."""
    sum: float = 0.0
    """Of their scores."""

    def add(self, more: MetricTotal) -> None:
        self.cases += more.cases
        self.passed += more.passed
        self.scored += more.scored
        self.sum += more.sum


@dataclass
class SetTotals:
    """Of the cases of a set that have a result."""

    cases: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    runs: set[str] = field(default_factory=set)
    """The names of the runs that they are from."""
    failing: list[CaseId] = field(default_factory=list)
    """The cases to stop at, in the order of the set."""
    first: CaseId | None = None
    timed: int = 0
    """How many have a known time."""
    seconds: float = 0.0
    """Of these, all repeats together."""
    tokens: float | None = None
    """Of all repeats; None where none are known."""
    cost: Cost | None = None
    """Of all repeats; None where nobody knows."""
    metrics: dict[str, MetricTotal] = field(default_factory=dict)
    """Those that pass or fail cases, by name."""
    slowest: list[tuple[float, CaseId]] = field(default_factory=list)
    """The seconds of those that took longest, the longest first."""
    changes: list[Moved] = field(default_factory=list)

    def add(self, more: SetTotals) -> None:
        """Those of cases that come later in the set."""
        self.cases += more.cases
        self.statuses.update(more.statuses)
        self.runs |= more.runs
        self.failing += more.failing
        self.first = self.first or more.first
        self.timed += more.timed
        self.seconds += more.seconds
        if more.tokens is not None:
            self.tokens = (self.tokens or 0.0) + more.tokens
        if more.cost is not None:
            self.cost = more.cost if self.cost is None else self.cost + more.cost
        for name, total in more.metrics.items():
            self.metrics.setdefault(name, MetricTotal()).add(total)
        self.slowest = _longest([*self.slowest, *more.slowest])
        self.changes += more.changes


class TotalsInParts:
    """What came of the cases of a set, added up, of many cases without reading a result.

    While a run goes on it is asked for again and again: only the parts with new results are gone through.
    """

    def __init__(self) -> None:
        # By the number of the first case.
        self._parts: dict[int, tuple[Sequence[StoredCase], SetTotals]] = {}
        # Those of all cases, with these; None where a part is not known.
        self._whole: tuple[Sequence[StoredCase], SetTotals] | None = None

    def outdate(self, numbers: Iterable[int]) -> None:
        """These cases, counted from 0, have other results than before."""
        for start in {number - number % _PART for number in numbers}:
            self._parts.pop(start, None)
            self._whole = None

    def get(self, eval_set: EvalSetFile, outcome: Outcome, earlier: Earlier) -> SetTotals:
        """Goes through no case as long as nothing has changed."""
        if self._whole is not None and self._whole[0] is eval_set.cases:
            return self._whole[1]
        for _ in self.count(eval_set, outcome, earlier):
            pass
        whole = SetTotals()
        for start in range(0, len(eval_set.cases), _PART):
            whole.add(self._parts[start][1])
        self._whole = eval_set.cases, whole
        return whole

    def count(self, eval_set: EvalSetFile, outcome: Outcome, earlier: Earlier) -> Iterator[None]:
        """Goes through the parts that have changed, one at each step."""
        known, starts = self._parts, range(0, len(eval_set.cases), _PART)
        self._parts = {start: known[start] for start in starts if start in known}
        for start in starts:
            cases = eval_set.cases[start : start + _PART]
            if start not in self._parts or self._parts[start][0] != cases:
                self._parts[start] = cases, _totals(eval_set.case_path, cases, outcome, earlier)
                yield


def _totals(path: str, cases: Iterable[StoredCase], outcome: Outcome, earlier: Earlier) -> SetTotals:
    totals, thresholds = SetTotals(), Thresholds()
    times: list[tuple[float, CaseId]] = []
    alike: dict[tuple[int, ...], list[CaseOutcome]] = {}
    for one in cases:
        case = CaseId(path, one.eval_id)
        scored = outcome(case)
        if scored is None:
            continue
        if totals.first is None:
            totals.first = case
        alike.setdefault(_what_is_shared(scored), []).append(scored)
        if needs_attention(scored.kept):
            totals.failing.append(case)
        if (seconds := _add(totals, scored)) is not None:
            times.append((seconds, case))
        before = earlier(case)
        if before is not None and before.differs(scored):
            totals.changes.append(Moved(case, before, scored.status))
    for some in alike.values():
        _add_shared(totals, some[0], len(some), thresholds)
    totals.timed, totals.seconds = len(times), sum(seconds for seconds, _ in times)
    totals.slowest = _longest(times)
    return totals


def _what_is_shared(scored: CaseOutcome) -> tuple[int, ...]:
    """The same for results in files that share what `_add_shared` adds up: most of a run do."""
    kept = scored.kept
    if not isinstance(kept, ResultInFile):
        return (id(scored),)
    return id(kept.verdict), id(kept.scores), id(kept.costs), id(scored.run), id(scored.config)


def _add_shared(totals: SetTotals, scored: CaseOutcome, count: int, thresholds: Thresholds) -> None:
    """Adds what so many results have in common with this one."""
    totals.cases += count
    totals.statuses[str(scored.status)] += count
    totals.runs.add(scored.run.name)
    for cost in scored.figures.costs.values():
        totals.cost = _times(cost, count) if totals.cost is None else totals.cost + _times(cost, count)
    for name, score, passed in _metrics(scored, thresholds):
        total = totals.metrics.setdefault(name, MetricTotal())
        total.cases += count
        total.passed += count * passed
        if score is not None:
            total.scored += count
            total.sum += count * score


def _times(cost: Cost, count: int) -> Cost:
    """A cost so many times, in as many steps as the number has binary digits."""
    if count == 1:
        return cost
    half = _times(cost, count // 2)
    return half + half + cost if count % 2 else half + half


def _longest(times: Sequence[tuple[float, CaseId]]) -> list[tuple[float, CaseId]]:
    return heapq.nsmallest(MOST_SLOW, times, key=lambda pair: -pair[0])


def _add(totals: SetTotals, scored: CaseOutcome) -> float | None:
    """Returns the seconds of all repeats; None where nobody knows."""
    known = scored.figures
    if known.tokens is not None:
        totals.tokens = (totals.tokens or 0.0) + known.tokens * known.runs
    return known.seconds * known.runs if known.seconds else None


def _metrics(scored: CaseOutcome, thresholds: Thresholds) -> Iterator[tuple[str, float | None, bool]]:
    """The metrics that pass or fail a case: the name, the score, and whether it passes."""
    kept = scored.kept
    if isinstance(kept, ResultInFile):
        is_passed = kept.status == "PASSED"
        for name, score in kept.scores.items():
            yield name, score, is_passed or thresholds.passes(scored.config, name, score)
        return
    for metric in kept.metrics:
        if metric.status != "INFORMATIONAL":
            yield metric.name, metric.score, metric.status == "PASSED"


class Thresholds:
    """Those of the metrics of configs, most of which are the same object."""

    def __init__(self) -> None:
        # With the config, so that no other one gets its number.
        self._known: dict[int, tuple[EvalConfig, Mapping[str, tuple[float, bool]]]] = {}

    def passes(self, config: EvalConfig, name: str, score: float) -> bool:
        """Whether a score of a metric passes, False for a metric that the config does not ask for."""
        if (known := self._known.get(id(config))) is None:
            known = self._known[id(config)] = config, _thresholds(config)
        if name not in known[1]:
            return False
        threshold, lower_is_better = known[1][name]
        return score <= threshold if lower_is_better else score >= threshold


def _thresholds(config: EvalConfig) -> Mapping[str, tuple[float, bool]]:
    """The threshold of each metric that has one, and whether scores up to it pass."""
    from evaltui.core.metrics.metric import effective_threshold

    asked = ((metric, effective_threshold(metric)) for metric in config.metrics())
    return {
        metric.metric_name: (threshold, metric.lower_is_better)
        for metric, threshold in asked
        if threshold is not None
    }
