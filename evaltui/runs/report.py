"""The data for all reports of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import overload

from evaltui.core.compare.failure_groups import FailureGroup, failure_groups
from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.compare.run_summary import CaseSummary, summarize
from evaltui.core.compare.totals import Rates, Totals, rates, totals_of
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.spending import RunningTotal, Spending
from evaltui.core.secrets import Secrets
from evaltui.core.trace.model_calls import CallCounts
from evaltui.project.run_settings import RunSettings
from evaltui.runs.history import StoredRun, result_of
from evaltui.runs.run_file import CaseInRun, RunFile
from evaltui.runs.run_header import SelectedSet
from evaltui.runs.run_tables import case_json


class ReportedCases(Sequence[CaseResult]):
    """Results of cases with masked secrets, read on demand from the run's file.

    Reading raises the errors of `RunFile`. The file may be deleted meanwhile.
    """

    def __init__(
        self,
        cases: Iterable[CaseInRun | CaseResult],
        secrets: Secrets = Secrets(),  # noqa: B008
        file: RunFile | None = None,
    ) -> None:
        """Wraps results, or cases whose results are in `file`."""
        self._cases = tuple(cases)
        self._secrets = secrets
        self._file = file

    @classmethod
    def of_run(cls, run: StoredRun, secrets: Secrets) -> ReportedCases:
        """The selected cases of a stored run, with texts masked that were declared secret since.

        Raises the errors of `RunFile`.
        """
        numbers = run.file.numbers

        def row(case: CaseId, summary: CaseSummary) -> CaseInRun | CaseResult:
            # A case that has finished since is in no total of the run as it was opened.
            if summary.runs:
                return CaseInRun(numbers[case], case, summary)
            return CaseResult.not_run(case, summary.eval_set_id, run.file.statuses_of(case))

        rows = (row(case, summary) for case, summary in run.summary.cases.items())
        return cls(rows, secrets, run.file)

    @property
    def summaries(self) -> Iterator[CaseSummary]:
        """The summaries of the cases in order, without reading their results."""
        for case in self._cases:
            yield case.summary if isinstance(case, CaseInRun) else summarize(case)

    @property
    def as_json(self) -> Iterator[Json]:
        """The JSON data of the cases for the JSON report, as stored in the file."""
        for case in self._cases:
            if isinstance(case, CaseInRun):
                assert self._file is not None
                yield self._file.reported(case, self._secrets)
            else:
                yield case_json(self._secrets.masked(case))

    @property
    def costs(self) -> Iterator[tuple[str, Spending | None]]:
        """Path and spending of each case with a result, or of its repeats; None for unknown spending."""
        if self._file is not None:
            return self._file.costs
        return ((case.id.path, case.spent) for case in self if case.repeats)

    def only(self, numbers: Iterable[int]) -> ReportedCases:
        """The cases at some indices, from 0."""
        return ReportedCases((self._cases[number] for number in numbers), self._secrets, self._file)

    def by_path(self, paths: Iterable[str]) -> Mapping[str, ReportedCases]:
        """The cases by path of their set, empty for a path without cases."""
        numbers: dict[str, list[int]] = {path: [] for path in paths}
        for number, case in enumerate(self._cases):
            numbers[case.id.path].append(number)
        return {path: self.only(some) for path, some in numbers.items()}

    def __len__(self) -> int:
        return len(self._cases)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> ReportedCases: ...
    def __getitem__(self, index: int | slice) -> CaseResult | ReportedCases:
        if isinstance(index, slice):
            return ReportedCases(self._cases[index], self._secrets, self._file)
        case = self._cases[index]
        if isinstance(case, CaseInRun):
            assert self._file is not None
            return result_of(self._file, case, self._secrets)
        return self._secrets.masked(case)


EventsOfCase = Callable[[CaseId], Mapping[int, Sequence[Event]]]
"""Reads the events of a case by repeat, from 0; none where they are unknown."""


def no_events(_: CaseId) -> Mapping[int, Sequence[Event]]:
    """Returns no events, for a run that was not stored."""
    return {}


ExpectedOfCase = Callable[[CaseId], Sequence[Invocation]]


@dataclass(frozen=True)
class RunReport:
    """A run with its circumstances.

    `started` is in UTC, `seconds` is wall time, None where it is unknown. Each case belongs to a set by the
    path in its id.
    """

    cases: ReportedCases
    status: Status
    """The worst status of the cases, see `RunHeader.status_of`."""
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
    """The agent's Python, the reason for it, and its framework; "" for evaltui's own Python."""
    settings: RunSettings = field(default_factory=RunSettings)
    """The run-wide settings."""
    model: str = ""
    """The agent's model; "" where it is unknown."""
    address: str = ""
    """The agent as on a command line; "" where it is unknown."""
    events: EventsOfCase = no_events
    """Reads the events of a case. Raises OSError, and ValueError for a damaged log."""
    expected: ExpectedOfCase = lambda case: ()
    """Reads the expected turns of a case; none for a simulated user, and where they are unknown.

    Raises the errors of `events`.
    """
    unscored: tuple[str, ...] = ()
    """Sentences about unscored parts of the traces."""

    @property
    def uses_recordings(self) -> bool:
        """Whether the run replayed or made recordings."""
        return self.settings.record != "off" or self.calls.stubbed_tools > 0

    @cached_property
    def rates(self) -> Rates | None:
        """Pass rates and mean scores; None without cases."""
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
        """The spending of all cases, and by file."""
        spent, by_path = RunningTotal(), defaultdict[str, RunningTotal](RunningTotal)
        for path, cost in self.cases.costs:
            by_path[path].add(cost)
            spent.add(cost)
        return spent.value, {path: total.value for path, total in by_path.items()}

    @property
    def spent(self) -> Spending | None:
        """The spending of all cases, by model; None where it is unknown."""
        return self._spent[0]

    def spent_in(self, eval_set: SelectedSet) -> Spending | None:
        """The spending of the cases of a set; None where it is unknown."""
        return self._spent[1].get(eval_set.path)

    @cached_property
    def error_kinds(self) -> Counter[ErrorKind]:
        """Number of cases with errors, by kind of error."""
        may_have = (
            self.cases[number]
            for number, summary in enumerate(self.summaries)
            if Status.ERROR in summary.outcomes
        )
        return Counter(kind for case in may_have for kind in case.error_kinds if kind)

    @cached_property
    def failures(self) -> tuple[FailureGroup, ...]:
        """The cases that failed or had an error, by reason; a flaky one that its policy lets pass is none."""
        return failure_groups(
            (summary.id, self.cases[number])
            for number, summary in enumerate(self.summaries)
            if summary.runs and not summary.passes
        )

    @cached_property
    def tags(self) -> Mapping[str, Totals]:
        """Totals of the cases by tag, sorted by tag; empty without tags."""
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
        """The id of a set, with its file where several sets have this id."""
        shared = sum(other.eval_set_id == eval_set.eval_set_id for other in self.sets) > 1
        return f"{eval_set.eval_set_id} ({eval_set.path})" if shared else eval_set.eval_set_id
