"""The data that every report is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from evaltui.core.compare.rates import Rates, rates
from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.compare.run_result import RunResult
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Event
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.spending import Spending
from evaltui.core.trace.model_calls import CallCounts
from evaltui.files.run_settings import RunSettings
from evaltui.reports.set_totals import RunningTotals, SetTotal
from evaltui.runs.logged_results import by_path, summaries_of
from evaltui.runs.sets import SetInfo

EventsOfCase = Callable[[CaseId], Mapping[int, Sequence[Event]]]
"""What happened in a case, by repeat from 0; empty where nobody knows."""


def no_events(_: CaseId) -> Mapping[int, Sequence[Event]]:
    """Those of a run that was not stored."""
    return {}


@dataclass(frozen=True)
class RunReport:
    """A run and its circumstances: `started` is UTC, `seconds` wall time, None where nobody knows.

    Each case of the result belongs to one of the sets, by the path of its id.
    """

    result: RunResult
    agent: str
    started: datetime
    seconds: float | None
    sets: tuple[SetInfo, ...]
    log: str | None = None
    parallel: int = 1
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None
    record: RecordMode = DEFAULT_MODE
    calls: CallCounts = field(default_factory=CallCounts)
    checks: tuple[MetricCheck, ...] = ()
    python: str = ""
    """The agent's Python, why it is the one, and its framework there; "" for evaltui's own."""
    settings: RunSettings = field(default_factory=RunSettings)
    """The run-wide settings."""
    model: str = ""
    """The agent's; "" where nobody knows."""
    address: str = ""
    """The words that name the agent on a command line; "" where they are not known."""
    events: EventsOfCase = no_events
    """Reads what happened in a case. Raises OSError, and ValueError for a log that is damaged."""
    known_spending: Spending | None = None
    """What all cases cost, where it was added up while they were run."""
    known_totals: Mapping[str, SetTotal] | None = None
    """What the cases of each set come to, by their file, where it was added up as well."""

    @property
    def uses_recordings(self) -> bool:
        """Whether not everything that is in it happened in this run, or some of it was kept for another."""
        return self.record != "off" or self.calls.stubbed_tools > 0

    @cached_property
    def rates(self) -> Rates | None:
        """Pass rate and mean scores; None where no case was run."""
        return rates(self.summaries)

    @cached_property
    def summaries(self) -> tuple[CaseSummary, ...]:
        """Those of the cases, in order."""
        return tuple(summaries_of(self.result.cases))

    @cached_property
    def _summaries_by_path(self) -> Mapping[str, Sequence[CaseSummary]]:
        found: dict[str, list[CaseSummary]] = {}
        for one in self.summaries:
            found.setdefault(one.id.path, []).append(one)
        return found

    def summaries_of_set(self, info: SetInfo) -> Sequence[CaseSummary]:
        """Those of the cases of a set, in their order there."""
        return self._summaries_by_path.get(info.known_as, ())

    @cached_property
    def spent(self) -> Spending | None:
        """What all cases cost; None where nobody knows."""
        return self.result.spent if self.known_spending is None else self.known_spending

    def total_of(self, info: SetInfo, cases: Sequence[CaseResult]) -> SetTotal:
        """What the cases of a set come to."""
        known = self.known_totals
        if known is None:
            added = RunningTotals()
            for case in cases:
                added.add(info.known_as, case.seconds, case.spent)
            known = added.of_sets
        return known.get(info.known_as, SetTotal())

    @cached_property
    def error_kinds(self) -> Counter[ErrorKind]:
        """How many cases had errors of each kind."""
        cases = zip(self.summaries, range(len(self.result.cases)), strict=True)
        may_have = (self.result.cases[number] for one, number in cases if Status.ERROR in one.outcomes)
        return Counter(kind for case in may_have for kind in case.error_kinds if kind)

    def by_set(self) -> list[tuple[SetInfo, Sequence[CaseResult]]]:
        """Each set with its cases."""
        infos = {one.known_as: one for one in self.sets}
        return [(infos[path], found) for path, found in by_path(self.result.cases, infos).items()]

    def name_of(self, info: SetInfo) -> str:
        """The id of a set, with its file where another set of the run has the same id."""
        shared = sum(one.eval_set_id == info.eval_set_id for one in self.sets) > 1
        return f"{info.eval_set_id} ({info.known_as})" if shared else info.eval_set_id


def verdict(case: CaseResult) -> Status:
    """A case's status, a flaky one as its policy decides: PASSED or FAILED."""
    if case.status is Status.FLAKY:
        return Status.PASSED if case.passed else Status.FAILED
    return case.status


def count(cases: Iterable[CaseResult | CaseSummary], status: Status) -> int:
    return sum(case.status is status for case in cases)
