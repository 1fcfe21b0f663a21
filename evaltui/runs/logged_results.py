"""The results of a run of many cases: they are in its file, and read from there when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

from evaltui.core.compare.run_summary import CaseSummary, summarize
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.spending import Spending
from evaltui.core.secrets import Secrets
from evaltui.runs.history import KeptRun, result_of
from evaltui.runs.run_file import CaseInRun, RunFile
from evaltui.runs.run_tables import case_json


class LoggedResults(Sequence[CaseResult]):
    """Results of cases in a run's file, without their secrets; those that it does not have are kept.

    Asking for one raises what `RunFile` raises. The file may be deleted meanwhile.
    """

    def __init__(self, file: RunFile, cases: Iterable[CaseInRun | CaseResult], secrets: Secrets) -> None:
        self._file = file
        self._cases = tuple(cases)
        self._secrets = secrets

    @property
    def summaries(self) -> Iterator[CaseSummary]:
        """Those of the cases, in order, without reading the results."""
        for case in self._cases:
            yield case.summary if isinstance(case, CaseInRun) else summarize(case)

    @property
    def reported(self) -> Iterator[Json]:
        """The cases as reports have them, which are as such in the file."""
        for case in self._cases:
            yield self._file.reported(case, self._secrets) if isinstance(case, CaseInRun) else case_json(case)

    @property
    def costs(self) -> Iterator[tuple[str, Spending | None]]:
        """As `costs_of`."""
        return self._file.costs

    def only(self, numbers: Iterable[int]) -> LoggedResults:
        """Some of them, by their places from 0."""
        return LoggedResults(self._file, [self._cases[number] for number in numbers], self._secrets)

    def __len__(self) -> int:
        return len(self._cases)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> LoggedResults: ...
    def __getitem__(self, index: int | slice) -> CaseResult | LoggedResults:
        if isinstance(index, slice):
            return LoggedResults(self._file, self._cases[index], self._secrets)
        case = self._cases[index]
        if isinstance(case, CaseInRun):
            return result_of(self._file, case, self._secrets)
        return self._secrets.masked(case)


def results_of(run: KeptRun, secrets: Secrets) -> Sequence[CaseResult]:
    """The selected cases of a stored run without their secrets: one may have been named as such since.

    Raises what `RunFile` raises; where there are many, when one is asked for.
    """
    if run.file is not None:
        numbers = run.file.numbers
        rows = [
            CaseInRun(numbers[case], case, summary) if case in numbers else run.case(case)
            for case, summary in run.summary.cases.items()
        ]
        return LoggedResults(run.file, rows, secrets)
    return tuple(secrets.masked(run.case(case)) for case in run.summary.cases)


def summaries_of(cases: Sequence[CaseResult]) -> Iterator[CaseSummary]:
    """The summaries of results, without reading those that are in a file."""
    return cases.summaries if isinstance(cases, LoggedResults) else map(summarize, cases)


def reported(cases: Sequence[CaseResult]) -> Iterator[Json]:
    """Results as reports have them."""
    return cases.reported if isinstance(cases, LoggedResults) else map(case_json, cases)


def costs_of(cases: Sequence[CaseResult]) -> Iterator[tuple[str, Spending | None]]:
    """The path and the cost, None where nobody knows, of each case that has a result."""
    if isinstance(cases, LoggedResults):
        return cases.costs
    return ((case.id.path, case.spent) for case in cases if case.repeats)


def those_at(cases: Sequence[CaseResult], numbers: Iterable[int]) -> Sequence[CaseResult]:
    """Some of the results, by their places from 0, without reading those that are in a file."""
    return cases.only(numbers) if isinstance(cases, LoggedResults) else [cases[one] for one in numbers]


def by_path(cases: Sequence[CaseResult], paths: Iterable[str]) -> Mapping[str, Sequence[CaseResult]]:
    """The results by the file of their case; for each of the paths, there are some or none."""
    if not isinstance(cases, LoggedResults):
        found: dict[str, list[CaseResult]] = {path: [] for path in paths}
        for case in cases:
            found[case.id.path].append(case)
        return found
    numbers: dict[str, list[int]] = {path: [] for path in paths}
    for number, summary in enumerate(cases.summaries):
        numbers[summary.id.path].append(number)
    return {path: cases.only(some) for path, some in numbers.items()}
