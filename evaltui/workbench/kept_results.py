"""Results that stay in files: lists need a few figures of each case, and whoever looks at one the rest."""

from __future__ import annotations

import os
import pickle
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from evaltui.core.compare.run_summary import CaseSummary
    from evaltui.core.model.events import Event
    from evaltui.core.model.outcome import CaseResult, Status
    from evaltui.core.model.spending import Cost, Payer
    from evaltui.runs.run_file import RunFile

# Characters of events that are read and parsed in a few milliseconds.
_SHORT = 50_000
# More results than are seen at once.
_MOST_READ = 500
# A temporary file goes when none of its results is needed any more.
_MOST_IN_FILE = 10_000


class ResultFile(Protocol):
    """A file that has results."""

    @property
    def log(self) -> Path | None:
        """The log that they are read from; None for any other file."""

    def result(self, place: int) -> CaseResult | str:
        """A result without the invocations of its repeats, or a sentence on why it cannot be read."""

    def events(self, place: int) -> dict[int, list[Event]] | str:
        """What happened in the case, by repeat, or a sentence on why it cannot be read."""

    def is_short(self, place: int) -> bool:
        """Whether that is read before anybody notices."""


class _Verdict(NamedTuple):
    """What many results have in common, so that they share it; as in `CaseSummary`."""

    eval_set_id: str
    status: Status
    runs: int
    passed: int
    policy: str
    policy_met: bool


_shared = lru_cache(1024)(_Verdict)


@lru_cache(1024)
def _mapping(items: tuple[tuple[Any, Any], ...]) -> Mapping[Any, Any]:
    """Scores and costs, which many results have in common, too."""
    return dict(items)


# Not frozen, as `CaseOutcome`.
@dataclass(slots=True)
class ResultInFile:
    """A result that is read when it is asked for, and figures of it as in `CaseSummary`."""

    file: ResultFile
    place: int
    verdict: _Verdict
    scores: Mapping[str, float]
    seconds: float | None
    tokens: float | None
    costs: Mapping[Payer, Cost]

    @property
    def eval_set_id(self) -> str:
        return self.verdict.eval_set_id

    @property
    def status(self) -> Status:
        return self.verdict.status

    @property
    def runs(self) -> int:
        return self.verdict.runs

    @property
    def passed(self) -> int:
        return self.verdict.passed

    @property
    def policy(self) -> str:
        return self.verdict.policy

    @property
    def policy_met(self) -> bool:
        return self.verdict.policy_met

    @classmethod
    def of(cls, file: ResultFile, place: int, summary: CaseSummary) -> ResultInFile:
        verdict = _shared(
            summary.eval_set_id,
            summary.status,
            summary.runs,
            summary.passed,
            summary.policy,
            summary.policy_met,
        )
        scores, costs = (_mapping(tuple(one.items())) for one in (summary.scores, summary.costs))
        return cls(file, place, verdict, scores, summary.seconds, summary.tokens, costs)

    def read(self) -> CaseResult | str:
        """The result, or a sentence on why it cannot be read."""
        return self.file.result(self.place)

    def unread(self, eval_id: str) -> CaseResult:
        """What stands for the result where it cannot be read: how it came out, and nothing else."""
        from evaltui.core.model.outcome import CaseResult

        return CaseResult(
            eval_id,
            self.status,
            eval_set_id=self.eval_set_id,
            policy=self.policy,
            policy_met=self.policy_met,
        )


class ResultsInLog:
    """The results of a run in its log; `run` is what it is called."""

    def __init__(self, log: Path, run: str) -> None:
        self.log: Path = log
        self._run = run

    def _open(self) -> RunFile:
        from evaltui.runs.run_file import RunFile

        return RunFile(self.log)

    def result(self, place: int) -> CaseResult | str:
        """See `ResultFile`."""
        return _result_in(self, place)

    def scores(self, places: Collection[int]) -> dict[int, dict[str, tuple[float, str]]]:
        """By place the scores of metrics with their statuses, of the deciding repeat; of what cannot be read
        none."""
        try:
            return self._open().deciding_scores(places)
        except (OSError, ValueError):
            return {}

    def read(self, place: int) -> CaseResult | str:
        """As `result`, from the log in any case."""
        from evaltui.runs.history import result_of

        try:
            file = self._open()
            return result_of(file, file.case_at(place), with_actual=False)
        except (OSError, ValueError) as error:
            return self._why_not(error)

    def events(self, place: int) -> dict[int, list[Event]] | str:
        """See `ResultFile`."""
        try:
            return self._open().events(place)
        except (OSError, ValueError) as error:
            return self._why_not(error)

    def is_short(self, place: int) -> bool:
        """See `ResultFile`."""
        try:
            return self._open().size_of_events(place) <= _SHORT
        except (OSError, ValueError):
            return True

    def _why_not(self, error: OSError | ValueError) -> str:
        if isinstance(error, FileNotFoundError):
            return f"Run log of {self._run} was deleted; run again"
        return f"Run log of {self._run} is unreadable: {error}"


@lru_cache(_MOST_READ)
def _result_in(file: ResultsInLog, place: int) -> CaseResult | str:
    """Of all logs together, those that were asked for last are kept."""
    return file.read(place)


class ResultsApart:
    """Results that no log has, as those that were scored again, in a file without a name."""

    log: None = None

    def __init__(self) -> None:
        """Raises OSError."""
        self._file = TemporaryFile(buffering=0)  # noqa: SIM115  it is closed with the last result
        self._ends = array("Q", [0])

    @property
    def is_full(self) -> bool:
        """Whether the next results belong into another file: this one goes when none of its is needed."""
        return len(self._ends) > _MOST_IN_FILE

    def add(self, result: CaseResult) -> ResultInFile:
        """Raises OSError."""
        from evaltui.core.compare.run_summary import summarize

        data = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        os.pwrite(self._file.fileno(), data, self._ends[-1])
        self._ends.append(self._ends[-1] + len(data))
        return ResultInFile.of(self, len(self._ends) - 2, summarize(result))

    def events(self, place: int) -> str:
        """See `ResultFile`."""
        return "No run log for this case"

    def is_short(self, place: int) -> bool:
        """See `ResultFile`."""
        return True

    def result(self, place: int) -> CaseResult | str:
        """See `ResultFile`."""
        start, end = self._ends[place : place + 2]
        try:
            result: CaseResult = pickle.loads(os.pread(self._file.fileno(), end - start, start))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            return f"Result cannot be read from the folder of temporary files: {error}; run again"
        return result
