"""The summary of a set's results, for the page of the set."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evaltui.core.compare.totals import Totals, totals_of
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.runs.run_file import MetricTotal
from evaltui.workbench.result.stored_results import RunResults, StoredResult
from evaltui.workbench.state import CaseOutcome, EarlierResult

MAX_SLOW = 3


class ChangedCase(NamedTuple):
    """A case with another status than before, by the same expectation."""

    case: CaseId
    before: EarlierResult
    status: str


@dataclass
class SetResults:
    """The summary of a set's results.

    Only current results are included, but `statuses`, `runs` and `first` also include stale ones.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    runs: set[str] = field(default_factory=set)
    """The names of the runs of the results."""
    first: CaseId | None = None
    failing: list[CaseId] = field(default_factory=list)
    """The cases that need attention, in the order of the set."""
    totals: Totals = field(default_factory=Totals)
    metrics: Mapping[str, MetricTotal] = field(default_factory=dict)
    """The totals of the metrics that decide cases, by name, in the order of the config."""
    slowest: list[tuple[float, CaseId]] = field(default_factory=list)
    """The seconds of the slowest cases, the slowest first."""
    changes: list[ChangedCase] = field(default_factory=list)


def results_of_set(
    eval_set: EvalSetFile,
    outcome: Callable[[CaseId], CaseOutcome | None],
    earlier: Callable[[CaseId], EarlierResult | None],
    of_now: Collection[CaseId],
) -> SetResults:
    """The summary of a set's results.

    `earlier` returns the result before the last one; `of_now` are the cases with a current result.
    """
    summary, results, times = SetResults(), list[CaseOutcome](), list[tuple[float, CaseId]]()
    for stored in eval_set.cases:
        case = CaseId(eval_set.case_path, stored.eval_id)
        if (scored := outcome(case)) is None:
            continue
        figures = scored.figures
        summary.first = summary.first or case
        summary.statuses[figures.status] += 1
        summary.runs.add(scored.run.name)
        if case not in of_now:
            continue
        results.append(scored)
        if not figures.passes:
            summary.failing.append(case)
        if figures.seconds:
            times.append((figures.seconds * figures.runs, case))
        before = earlier(case)
        if before is not None and before.differs(scored):
            summary.changes.append(ChangedCase(case, before, scored.status))
    summary.totals = totals_of(scored.figures for scored in results)
    summary.slowest = heapq.nsmallest(MAX_SLOW, times, key=lambda pair: -pair[0])
    summary.metrics = _metrics(results)
    return summary


def _metrics(results: Iterable[CaseOutcome]) -> dict[str, MetricTotal]:
    """The totals of metrics; results in run files are not read for them."""
    stored: dict[RunResults, list[int]] = {}
    in_memory: list[CaseResult] = []
    configs = {}
    for scored in results:
        configs[id(scored.config)] = scored.config
        if isinstance(scored.ref, StoredResult):
            stored.setdefault(scored.ref.file, []).append(scored.ref.number)
        else:
            in_memory.append(scored.ref.result)
    names = dict.fromkeys(metric.metric_name for config in configs.values() for metric in config.metrics())
    totals = dict.fromkeys(names, MetricTotal())
    for file, numbers in stored.items():
        for name, total in file.metric_totals(numbers).items():
            totals[name] = totals.get(name, MetricTotal()) + total
    for metric in (metric for result in in_memory for metric in result.metrics):
        if metric.status is not Status.INFORMATIONAL:
            is_of = (metric.status is status for status in (Status.FAILED, Status.NOT_EVALUATED))
            score = metric.score is not None, metric.score or 0.0
            total = MetricTotal(1, metric.status is Status.PASSED, *score, *is_of)
            totals[metric.name] = totals.get(metric.name, MetricTotal()) + total
    return {name: total for name, total in totals.items() if total.cases}
