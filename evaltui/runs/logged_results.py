"""The results of a run of many cases: they are in its log, and read from there when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import overload

from evaltui.core.compare.run_summary import CaseSummary, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult
from evaltui.core.secrets import Secrets
from evaltui.runs.history import KeptRun, case_of, events_of
from evaltui.runs.index_rows import LoggedCase
from evaltui.runs.log_reader import read_run, text_of
from evaltui.runs.store import in_use

# Of so many cases a run keeps the results until it is over.
MOST_KEPT = 1000


class LoggedResults(Sequence[CaseResult]):
    """Results of cases in a log, without their secrets; those that it does not have are kept.

    Asking for one raises OSError, and ValueError for a log that is damaged.
    """

    def __init__(self, log: Path, cases: Iterable[LoggedCase | CaseResult], secrets: Secrets) -> None:
        self._log = log
        self._cases = tuple(cases)
        self._secrets = secrets
        # Another run that is over must not delete it meanwhile.
        self._in_use = ExitStack()
        self._in_use.enter_context(in_use(log))

    @property
    def summaries(self) -> Iterator[CaseSummary]:
        """Those of the cases, in order, without reading the results."""
        for case in self._cases:
            yield case.summary if isinstance(case, LoggedCase) else summarize(case)

    def only(self, numbers: Iterable[int]) -> LoggedResults:
        """Some of them, by their places from 0."""
        return LoggedResults(self._log, [self._cases[number] for number in numbers], self._secrets)

    def __len__(self) -> int:
        return len(self._cases)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> LoggedResults: ...
    def __getitem__(self, index: int | slice) -> CaseResult | LoggedResults:
        if isinstance(index, slice):
            return LoggedResults(self._log, self._cases[index], self._secrets)
        case = self._cases[index]
        if not isinstance(case, LoggedCase):
            return self._secrets.masked(case)
        result = case_of(self._log, case)
        # Far faster than to look through the result.
        text = text_of(self._log, case)
        may_have = self._secrets.may_be_in(text) or self._secrets.has_marks(text)
        return self._secrets.masked(result) if may_have else result

    def events(self, case: CaseId) -> Mapping[int, Sequence[Event]]:
        """What happened in a case, by repeat; nothing where that is not in the log."""
        found = self._by_id.get(case)
        return self._secrets.masked(events_of(self._log, found)) if found is not None else {}

    @cached_property
    def _by_id(self) -> dict[CaseId, LoggedCase]:
        return {one.id: one for one in self._cases if isinstance(one, LoggedCase)}


class ResultsOfRun:
    """The results of a run while it goes on; of many cases, only those that are in no log are kept."""

    def __init__(self) -> None:
        self._kept: dict[CaseId, CaseResult] = {}
        self._in_log: set[CaseId] = set()
        self._log: Path | None = None
        self._is_logged = False

    def __len__(self) -> int:
        return len(self._kept) + len(self._in_log)

    def log_grew(self, log: Path | None) -> None:
        """The log that has the next results; None where no more can be written."""
        self._log, self._is_logged = log or self._log, log is not None

    def add(self, result: CaseResult) -> None:
        self._kept[result.id] = result
        if self._is_logged and len(self._kept) > MOST_KEPT:
            self._in_log.update(self._kept)
            self._kept.clear()

    def of(self, selected: Iterable[tuple[CaseId, str]], secrets: Secrets) -> Sequence[CaseResult]:
        """Every selected case in order, with its result or without; `selected` has the ids of the sets.

        Raises OSError, and ValueError for a log that is damaged.
        """
        if self._log is None or not self._in_log:
            return tuple(self._kept.get(case) or CaseResult.not_run(case, label) for case, label in selected)
        known: dict[CaseId, LoggedCase | CaseResult] = {one.id: one for one in read_run(self._log).results}
        known |= self._kept
        rows = [known.get(case) or CaseResult.not_run(case, label) for case, label in selected]
        return LoggedResults(self._log, rows, secrets)


def results_of(run: KeptRun, secrets: Secrets) -> Sequence[CaseResult]:
    """The selected cases of a stored run without their secrets, which logs of earlier versions may hold.

    Raises OSError, and ValueError for a log that is damaged; where there are many, when one is asked for.
    """
    if run.logged is not None and len(run.logged) > MOST_KEPT:
        rows = [run.logged.get(case) or run.case(case) for case in run.summary.cases]
        return LoggedResults(run.path, rows, secrets)
    return tuple(secrets.masked(run.case(case)) for case in run.summary.cases)


def summaries_of(cases: Sequence[CaseResult]) -> Iterator[CaseSummary]:
    """The summaries of results, without reading those that are in a log."""
    return cases.summaries if isinstance(cases, LoggedResults) else map(summarize, cases)


def those_at(cases: Sequence[CaseResult], numbers: Iterable[int]) -> Sequence[CaseResult]:
    """Some of the results, by their places from 0, without reading those that are in a log."""
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
