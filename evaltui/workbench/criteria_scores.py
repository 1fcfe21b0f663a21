"""The scores of the last results by metric; those of many results in files are read beside the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.workbench.criteria_trial import CaseScores
from evaltui.workbench.kept_results import ResultInFile
from evaltui.workbench.outcomes import Outcomes

# Results that are read while the screen waits, and those that are read at once beside it.
_FEW, _AT_ONCE = 100, 500

_OfCase = Mapping[str, Sequence[float | None]]


class CriteriaScores:
    """Of cases that have been run; all metrics of their results, informational ones as well."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._read: dict[CaseId, tuple[ResultInFile, _OfCase]] = {}
        self._unread: dict[CaseId, ResultInFile] = {}

    @property
    def unread(self) -> int:
        """Results of which only what the index has is known."""
        return len(self._unread)

    def of(self, sets: Iterable[EvalSetFile]) -> Mapping[str, CaseScores]:
        """The scores of each metric of the cases of some sets, as far as they are known."""
        scores: dict[str, CaseScores] = {}
        self._unread.clear()
        few = _FEW
        for eval_set in sets:
            for one in eval_set.cases:
                case = CaseId(eval_set.case_path, one.eval_id)
                if (scored := self._outcomes.get(case)) is None:
                    continue
                if isinstance(scored.kept, ResultInFile) and not self._knows(case, scored.kept) and few:
                    few -= 1
                    self._read[case] = scored.kept, _scores_of(scored.result)
                for name, runs in self._of_case(case, scored.kept).items():
                    scores.setdefault(name, CaseScores()).add(case, runs)
        return scores

    def _knows(self, case: CaseId, kept: ResultInFile) -> bool:
        return case in self._read and self._read[case][0] is kept

    def _of_case(self, case: CaseId, kept: CaseResult | ResultInFile) -> _OfCase:
        if not isinstance(kept, ResultInFile):
            return _scores_of(kept)
        if self._knows(case, kept):
            return self._read[case][1]
        self._unread[case] = kept
        # Of several runs the index has the mean, by which nothing passes or fails.
        return _shared(tuple((name, (score,)) for name, score in kept.scores.items() if kept.runs == 1))

    async def read_some(self) -> None:
        """Reads the next ones of those that are not known yet."""
        some = dict(islice(self._unread.items(), _AT_ONCE))
        found = await asyncio.to_thread(_read, some)
        for case, kept in some.items():
            if self._unread.get(case) is kept:
                del self._unread[case]
                self._read[case] = kept, found[case]


def _read(files: Mapping[CaseId, ResultInFile]) -> dict[CaseId, _OfCase]:
    """In a thread; of what cannot be read nothing is known."""
    results = ((case, kept.read()) for case, kept in files.items())
    return {case: {} if isinstance(result, str) else _scores_of(result) for case, result in results}


def _scores_of(result: CaseResult) -> _OfCase:
    scores: dict[str, list[float | None]] = {}
    # A result without repeats has the metrics of its only run itself.
    for run in result.repeats or [result]:
        for metric in run.metrics:
            scores.setdefault(metric.name, []).append(metric.score)
    return _shared(tuple((name, tuple(runs)) for name, runs in scores.items()))


@lru_cache(1024)
def _shared(scores: tuple[tuple[str, Sequence[float | None]], ...]) -> _OfCase:
    """The same object for cases that score the same: there may be a hundred thousand."""
    return dict(scores)
