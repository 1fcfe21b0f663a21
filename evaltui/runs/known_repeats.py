"""The runs of cases that an interrupted run has a result of: they stay in its log until one is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from evaltui.core.model.budget import Amount
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.runs.history import stored_repeat
from evaltui.runs.log_lines import line_at, parsed
from evaltui.runs.log_reader import events_between, lines_of_cases, spent_without_result


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run of a case is in a log, in bytes, and what is known of it without reading it again."""

    begin: int
    result: int
    expects: str
    spent: Amount


class KnownRepeats(Mapping[int, RepeatResult]):
    """The runs of one case, by number from 0, each read from the log when it is asked for.

    Asking for one raises OSError, and ValueError for a log that is damaged.
    """

    __slots__ = ("_case", "_eval_set_id", "_log", "_places")

    def __init__(self, log: Path, case: CaseId, eval_set_id: str, places: dict[int, _Place]) -> None:
        self._log = log
        self._case = case
        self._eval_set_id = eval_set_id
        self._places = places

    def first(self, count: int) -> KnownRepeats:
        """Those with a number below this one."""
        places = {number: place for number, place in self._places.items() if number < count}
        return KnownRepeats(self._log, self._case, self._eval_set_id, places)

    @property
    def expects(self) -> set[str]:
        """The fingerprints of the case when it was run."""
        return {place.expects for place in self._places.values()}

    @property
    def spent(self) -> Amount:
        return sum((place.spent for place in self._places.values()), Amount())

    def __getitem__(self, number: int) -> RepeatResult:
        place = self._places[number]
        stretch = place.begin, place.result
        events = events_between(self._log, stretch, self._case, self._eval_set_id).get(number, [])
        data = next(parsed(self._log, line_at(self._log, place.result)))
        return stored_repeat(self._log, data["result"], events)

    def __contains__(self, number: object) -> bool:
        return number in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, number: int, place: _Place) -> None:
        """A run that was made again counts instead of the one before."""
        self._places[number] = place


def finished_repeats(
    log: Path, kinds: AbstractSet[ErrorKind] | None = None, *, of_traces: bool = False
) -> tuple[dict[CaseId, KnownRepeats], Amount]:
    """The runs of cases that a log has a result of; without those that had an error, of these kinds if there
    are any. And what was spent besides.

    Raises OSError, and ValueError for a log that is damaged.
    """
    finished: dict[CaseId, KnownRepeats] = {}
    began: dict[tuple[CaseId, int], int] = {}
    besides = spent_without_result(log)
    for line in lines_of_cases(log):
        run = line.case, line.repeat
        if line.kind == "case_started":
            began[run] = line.place
        elif line.kind != "repeat_result":
            began.setdefault(run, line.place)
        else:
            begin = began.pop(run, line.place)
            result = stored_repeat(log, line.data["result"])
            spent = result.spent
            amount = Amount.of(spent if spent is None or not of_traces else spent.of("judge"))
            if not _had_error(result, kinds):
                known = finished.setdefault(line.case, KnownRepeats(log, line.case, line.eval_set_id, {}))
                known.add(line.repeat, _Place(begin, line.place, result.expects, amount))
            elif spent is not None:
                besides += amount
    return finished, besides


def _had_error(result: RepeatResult, kinds: AbstractSet[ErrorKind] | None) -> bool:
    """Whether an error kept it from a verdict, of these kinds if there are any."""
    if result.status is not Status.ERROR and not result.errors:
        return False
    # Nobody knows the kind of an error in an earlier log: with all kinds, it is among them.
    return kinds is None or kinds >= set(ErrorKind) or not kinds.isdisjoint(result.error_kinds)
