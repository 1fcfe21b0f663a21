"""Results of cases in run files and in memory: figures for lists, and the full result on demand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltui.core.compare.run_summary import CaseSummary
    from evaltui.core.model.events import Event
    from evaltui.core.model.outcome import CaseResult
    from evaltui.runs.run_file import MetricTotal, RunFile

# Characters of events that are read and parsed in a few milliseconds.
_MAX_SHORT = 50_000
# More results than are seen at once.
_MAX_CACHED = 500


class RunResults:
    """Results in the file of a run, by the numbers of cases; `run` is the run's name."""

    def __init__(self, path: Path, run: str) -> None:
        self.path = path
        self._run = run

    def _open(self) -> RunFile:
        from evaltui.runs.adk_results import open_run_file

        return open_run_file(self.path)

    def result(self, number: int) -> CaseResult | str:
        """A result without the invocations of its repeats, or a sentence on why it is unreadable."""
        return _cached_result(self, number)

    def read(self, number: int) -> CaseResult | str:
        """The same as `result`, always read from the file."""
        from evaltui.runs.history import result_of

        try:
            file = self._open()
            return result_of(file, file.case_at(number), with_actual=False)
        except (OSError, ValueError) as error:
            return self._problem(error)

    def scores(self, numbers: Collection[int]) -> dict[int, dict[str, tuple[float, str]]]:
        """The scores and statuses of metrics by case, of the deciding repeat; {} if unreadable."""
        try:
            return self._open().deciding_scores(numbers)
        except (OSError, ValueError):
            return {}

    def metric_totals(self, numbers: Collection[int]) -> Mapping[str, MetricTotal]:
        """Totals of the deciding metrics of these cases; {} if unreadable."""
        try:
            return self._open().metric_totals(numbers)
        except (OSError, ValueError):
            return {}

    def events(self, number: int) -> dict[int, list[Event]] | str:
        """The events of a case by repeat, or a sentence on why they are unreadable."""
        try:
            return self._open().events(number)
        except (OSError, ValueError) as error:
            return self._problem(error)

    def is_short(self, number: int) -> bool:
        """Whether the events of a case can be read without a noticeable delay."""
        try:
            return self._open().size_of_events(number) <= _MAX_SHORT
        except (OSError, ValueError):
            return True

    def _problem(self, error: OSError | ValueError) -> str:
        if isinstance(error, FileNotFoundError):
            return f"Run log of {self._run} was deleted; run again"
        return f"Run log of {self._run} is unreadable: {error}"


@lru_cache(_MAX_CACHED)
def _cached_result(file: RunResults, number: int) -> CaseResult | str:
    return file.read(number)


@dataclass(eq=False, slots=True)
class StoredResult:
    """A result in a run file, read on demand."""

    figures: CaseSummary
    file: RunResults
    number: int
    """The number of the case in the file."""

    def read(self) -> CaseResult | str:
        """The result, or a sentence on why it is unreadable."""
        return self.file.result(self.number)


@dataclass(eq=False, slots=True)
class ResultInMemory:
    """A result that no file has: it was scored again, or its run has no file."""

    figures: CaseSummary
    result: CaseResult

    @classmethod
    def of(cls, result: CaseResult) -> ResultInMemory:
        from evaltui.core.compare.run_summary import summarize

        return cls(summarize(result), result)

    def read(self) -> CaseResult:
        """The result."""
        return self.result


ResultRef = StoredResult | ResultInMemory
"""A result of a case, without the invocations of its repeats."""
