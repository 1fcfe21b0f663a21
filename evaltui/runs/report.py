"""The data that every report is made of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.compare.totals import Rates, Totals, rates, totals_of
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import RunningTotal, Spending
from evaltui.core.trace.model_calls import CallCounts
from evaltui.project.run_settings import RunSettings
from evaltui.runs.reported_cases import ReportedCases
from evaltui.runs.run_header import SelectedSet

EventsOfCase = Callable[[CaseId], Mapping[int, Sequence[Event]]]
"""Gives the events of a case by repeat, from 0; none where they are unknown."""


def no_events(_: CaseId) -> Mapping[int, Sequence[Event]]:
    """Gives no events: the run was not stored."""
    return {}


ExpectedOfCase = Callable[[CaseId], Sequence[Invocation]]


def nothing_expected(_: CaseId) -> Sequence[Invocation]:
    """Gives no expectation: the run was not stored."""
    return ()


@dataclass(frozen=True)
class RunReport:
    """A run and its circumstances: `started` is UTC, `seconds` wall time, None where nobody knows.

    Each case belongs to one of the sets, by the path of its id.
    """

    cases: ReportedCases
    status: Status
    """The worst of theirs."""
    agent: str
    started: datetime
    seconds: float | None
    sets: tuple[SelectedSet, ...]
    log: str | None = None
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None
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
    expected: ExpectedOfCase = nothing_expected
    """Reads what each turn of a case expects; nothing where a user is simulated, or nobody knows. Raises what
    `events` does."""

    @property
    def uses_recordings(self) -> bool:
        """Whether not everything that is in it happened in this run, or some of it was kept for another."""
        return self.settings.record != "off" or self.calls.stubbed_tools > 0

    @cached_property
    def rates(self) -> Rates | None:
        """Pass rate and mean scores; None where no case was run."""
        return rates(self.summaries, self.totals)

    @cached_property
    def summaries(self) -> tuple[CaseSummary, ...]:
        """The summaries of the cases, in order."""
        return tuple(self.cases.summaries)

    @cached_property
    def totals(self) -> Totals:
        """The totals of the cases."""
        return totals_of(self.summaries)

    @cached_property
    def _spent(self) -> tuple[Spending | None, Mapping[str, Spending | None]]:
        """The cost of all cases, and of the cases of each file."""
        spent, by_path = RunningTotal(), defaultdict[str, RunningTotal](RunningTotal)
        for path, cost in self.cases.costs:
            by_path[path].add(cost)
            spent.add(cost)
        return spent.value, {path: total.value for path, total in by_path.items()}

    @property
    def spent(self) -> Spending | None:
        """The cost of all cases, by model; None where it is unknown."""
        return self._spent[0]

    def spent_in(self, eval_set: SelectedSet) -> Spending | None:
        """The cost of the cases of a set; None where it is unknown."""
        return self._spent[1].get(eval_set.path)

    @cached_property
    def error_kinds(self) -> Counter[ErrorKind]:
        """How many cases had errors of each kind."""
        may_have = (
            self.cases[number]
            for number, summary in enumerate(self.summaries)
            if Status.ERROR in summary.outcomes
        )
        return Counter(kind for case in may_have for kind in case.error_kinds if kind)

    @cached_property
    def tags(self) -> Mapping[str, Totals]:
        """The totals of the cases with each tag, sorted by tag; empty where no case has a tag."""
        by_tag: dict[str, list[CaseSummary]] = {}
        tags = {eval_set.path: eval_set.tags for eval_set in self.sets}
        for case in self.summaries:
            for tag in tags[case.id.path].get(case.eval_id, ()):
                by_tag.setdefault(tag, []).append(case)
        return {tag: totals_of(by_tag[tag]) for tag in sorted(by_tag)}

    def by_set(self) -> list[tuple[SelectedSet, ReportedCases]]:
        """Each set with its cases."""
        sets = {eval_set.path: eval_set for eval_set in self.sets}
        return [(sets[path], cases) for path, cases in self.cases.by_path(sets).items()]

    def name_of(self, eval_set: SelectedSet) -> str:
        """The id of a set, with its file where another set of the run has the same id."""
        shared = sum(other.eval_set_id == eval_set.eval_set_id for other in self.sets) > 1
        return f"{eval_set.eval_set_id} ({eval_set.path})" if shared else eval_set.eval_set_id
