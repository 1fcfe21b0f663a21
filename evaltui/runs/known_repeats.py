"""The repeats that an interrupted run has a result of: they stay in its file until one is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from evaltui.core.model.budget import Amount
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.runs.run_file import RunFile


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts of a repeat that are needed before it is read."""

    expects: str
    spent: Amount


class KnownRepeats(Mapping[int, RepeatResult]):
    """The repeats of one case, by number from 0, each read when it is asked for.

    Asking for one raises what `RunFile` raises.
    """

    __slots__ = ("_case", "_facts", "_file")

    def __init__(self, file: RunFile, case: CaseId, facts: dict[int, _Facts]) -> None:
        self._file = file
        self._case = case
        self._facts = facts

    def first(self, count: int) -> KnownRepeats:
        """Those with a number below this one."""
        facts = {number: repeat for number, repeat in self._facts.items() if number < count}
        return KnownRepeats(self._file, self._case, facts)

    @property
    def expects(self) -> set[str]:
        """The fingerprints of the case when it was run."""
        return {repeat.expects for repeat in self._facts.values()}

    @property
    def spent(self) -> Amount:
        return sum((repeat.spent for repeat in self._facts.values()), Amount())

    def __getitem__(self, number: int) -> RepeatResult:
        if number not in self._facts:
            raise KeyError(number)
        return self._file.repeat(self._case, number)

    def __contains__(self, number: object) -> bool:
        return number in self._facts

    def __iter__(self) -> Iterator[int]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


def finished_repeats(
    file: RunFile, kinds: AbstractSet[ErrorKind] | None = None, *, of_traces: bool = False
) -> tuple[dict[CaseId, KnownRepeats], Amount]:
    """The repeats that a run has a result of, without those that had an error, of these kinds if there are
    any; and what was spent besides. Raises what `RunFile` raises."""
    facts: dict[CaseId, dict[int, _Facts]] = {}
    besides = file.spent_without_result
    for stored in file.repeats:
        result = file.result(stored.data)
        spent = result.spent
        amount = Amount.of(spent if spent is None or not of_traces else spent.of("judge"))
        if not _had_error(result, kinds):
            facts.setdefault(stored.case, {})[stored.repeat] = _Facts(result.expects, amount)
        else:
            besides += amount
    return {case: KnownRepeats(file, case, of_case) for case, of_case in facts.items()}, besides


def _had_error(result: RepeatResult, kinds: AbstractSet[ErrorKind] | None) -> bool:
    """Whether an error kept it from a verdict, of these kinds if there are any."""
    if result.status is not Status.ERROR and not result.errors:
        return False
    # Not every error has a kind: with all kinds, it is among them.
    return kinds is None or kinds >= set(ErrorKind) or not kinds.isdisjoint(result.error_kinds)
