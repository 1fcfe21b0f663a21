"""The scores of the last results by metric; those of many results in files are read beside the screen."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.case_id import CaseId
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.workbench.criteria_trial import CaseScores
from evaltui.workbench.kept_results import ResultFile, ResultInFile, Scores, scores_of
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.results import Results
from evaltui.workbench.state import CaseOutcome

# Results that are read while the screen waits, and those that are read at once beside it.
_FEW, _AT_ONCE = 100, 500


class CriteriaScores:
    """Of cases that have been run; all metrics of their results, informational ones as well.

    Cases are numbered through all sets. What is known stays known: only cases with another result are looked
    at again.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._begin((), outcomes.results)

    def _begin(self, sets: Sequence[EvalSetFile], results: Results) -> None:
        self._sets, self._results, self._changes = sets, results, results.follow()
        self._firsts: list[int] = []
        count = 0
        for eval_set in sets:
            self._firsts.append(count)
            count += len(eval_set.cases)
        self._count = count
        self._scores: dict[str, CaseScores] = {}
        self._outcome: list[CaseOutcome | None] = [None] * count
        # 1 for the results of which only what the index has is known.
        self._is_unread = bytearray(count)
        self.unread = 0
        """How many these are."""

    def of(self, sets: Sequence[EvalSetFile]) -> Mapping[str, CaseScores]:
        """The scores of each metric of the cases of some sets, as far as they are known."""
        results = self._outcomes.results
        if results is not self._results or not _have_the_same_cases(sets, self._sets):
            self._begin(sets, results)
            self._look_at_all()
        elif changed := self._numbers(self._changes.take()):
            for number in changed:
                self._look(number, results.get(self._case_at(number)))
        else:
            return self._scores
        some = self._next_unread(_FEW)
        self._note(some, _read(some))
        return self._scores

    def _look_at_all(self) -> None:
        """As `_look` at each case, those at once whose results share their scores."""
        alike: dict[int, tuple[ResultInFile, list[int]]] = {}
        for first, eval_set in zip(self._firsts, self._sets, strict=True):
            for case, scored in self._results.of(eval_set.case_path):
                if (number := eval_set.number(case.eval_id)) is None:
                    continue
                kept = scored.kept
                if isinstance(kept, ResultInFile) and kept.runs == 1:
                    self._outcome[first + number] = scored
                    alike.setdefault(id(kept.scores), (kept, []))[1].append(first + number)
                else:
                    self._look(first + number, scored)
        for kept, numbers in alike.values():
            self.unread += len(numbers)
            for number in numbers:
                self._is_unread[number] = 1
            for name, score in kept.scores.items():
                self._scores_by(name).put_one(numbers, score)

    def _scores_by(self, name: str) -> CaseScores:
        if name not in self._scores:
            self._scores[name] = CaseScores(self._count, self._case_at)
        return self._scores[name]

    def _next_unread(self, most: int) -> dict[int, CaseOutcome | None]:
        found: dict[int, CaseOutcome | None] = {}
        at = self._is_unread.find(1)
        while at >= 0 and len(found) < most:
            found[at] = self._outcome[at]
            at = self._is_unread.find(1, at + 1)
        return found

    def _numbers(self, cases: Iterable[CaseId]) -> list[int]:
        sets = {one.case_path: (first, one) for first, one in zip(self._firsts, self._sets, strict=True)}
        found = ((case, *sets[case.path]) for case in cases if case.path in sets)
        numbers = ((first, eval_set.number(case.eval_id)) for case, first, eval_set in found)
        return sorted(first + number for first, number in numbers if number is not None)

    def _case_at(self, number: int) -> CaseId:
        place = bisect_right(self._firsts, number) - 1
        eval_set = self._sets[place]
        return CaseId(eval_set.case_path, eval_set.cases[number - self._firsts[place]].eval_id)

    def _look(self, number: int, scored: CaseOutcome | None) -> None:
        """Notes what is known of the result of a case without reading it."""
        before, self._outcome[number] = self._outcome[number], scored
        was_unread = self._is_unread[number]
        self._set_unread(number, is_unread=False)
        if scored is None:
            self._put(number, {})
        elif not isinstance(scored.kept, ResultInFile):
            self._put(number, scores_of(scored.kept))
        elif before is not None and before.run == scored.run and scored.kept.runs == 1 and not was_unread:
            # Scored again: what is measured of a run stays what it is.
            self._put(number, _of_index(scored.kept), keep_measured=True)
        else:
            self._put(number, _of_index(scored.kept))
            self._set_unread(number, is_unread=True)

    def _set_unread(self, number: int, *, is_unread: bool) -> None:
        self.unread += is_unread - self._is_unread[number]
        self._is_unread[number] = is_unread

    def _put(self, number: int, scores: Scores, *, keep_measured: bool = False) -> None:
        for name in scores:
            self._scores_by(name)
        for name, known in self._scores.items():
            if name in scores:
                known.put(number, scores[name])
            elif not (keep_measured and _is_measured(name)):
                known.put(number, ())

    async def read_some(self) -> None:
        """Reads the next ones of those that are not known yet."""
        begun, some = self._outcome, self._next_unread(_AT_ONCE)
        found = await asyncio.to_thread(_read, some)
        if self._outcome is begun:
            self._note(some, found)

    def _note(self, some: Mapping[int, CaseOutcome | None], found: Mapping[int, Scores]) -> None:
        """These results have been read, but for those that others stand for by now."""
        for number, scored in some.items():
            if self._outcome[number] is scored:
                self._put(number, found.get(number, {}))
                self._set_unread(number, is_unread=False)


def _of_index(kept: ResultInFile) -> Scores:
    # Of several runs the index has the mean, by which nothing passes or fails.
    return {name: (score,) for name, score in kept.scores.items()} if kept.runs == 1 else {}


def _is_measured(name: str) -> bool:
    """Whether a metric is reported whatever the config asks for."""
    return name in METRICS and not METRICS[name].gates


def _have_the_same_cases(sets: Sequence[EvalSetFile], others: Sequence[EvalSetFile]) -> bool:
    return len(sets) == len(others) and all(
        one.case_path == other.case_path and one.cases is other.cases
        for one, other in zip(sets, others, strict=True)
    )


def _read(some: Mapping[int, CaseOutcome | None]) -> dict[int, Scores]:
    """In a thread; of what cannot be read nothing is known."""
    numbers: dict[ResultFile, dict[int, int]] = {}
    for number, scored in some.items():
        if scored is not None and isinstance(scored.kept, ResultInFile):
            numbers.setdefault(scored.kept.file, {})[scored.kept.place] = number
    return {
        of_file[place]: scores
        for file, of_file in numbers.items()
        for place, scores in file.scores(of_file).items()
    }
