"""The scores that a filter compares: of results in files those of the index, the others read when needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.filtering import Scores, scores_of
from evaltui.workbench.kept_results import ResultInFile
from evaltui.workbench.state import CaseOutcome

if TYPE_CHECKING:
    from evaltui.workbench.set_totals import Thresholds

# Results that are read before what is known of them is shown.
_AT_ONCE = 1000


class ReadScores:
    """Scores of results in files; `changed` is called when some have been read."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._known: dict[CaseId, tuple[ResultInFile, Scores]] = {}
        self._wanted: dict[CaseId, ResultInFile] = {}
        self._task: asyncio.Task[None] | None = None

    @cached_property
    def _thresholds(self) -> Thresholds:
        # The first frame shows none.
        from evaltui.workbench.set_totals import Thresholds

        return Thresholds()

    def of(self, case: CaseId, scored: CaseOutcome) -> Scores:
        """What a case scored, as far as that is known without reading its result."""
        kept = scored.kept
        if not isinstance(kept, ResultInFile):
            return scores_of(kept)
        more = partial(self._read, case, kept)
        if kept.runs > 1:
            # The index has means, and what is shown are the scores of one of its repeats.
            return Scores(more=more)
        return Scores(self._deciding(scored, kept), kept.scores, more)

    def forget(self) -> None:
        """No filter compares scores any more."""
        self._known.clear()
        self._wanted.clear()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _deciding(self, scored: CaseOutcome, kept: ResultInFile) -> float | None:
        passes = self._thresholds.passes
        if kept.status == "PASSED":
            return next(iter(kept.scores.values()), None)
        if kept.status != "FAILED":
            return None
        failed = (score for name, score in kept.scores.items() if not passes(scored.config, name, score))
        return next(failed, None)

    def _read(self, case: CaseId, kept: ResultInFile) -> Scores | None:
        """None while it is being read."""
        known = self._known.get(case)
        if known is not None and known[0] is kept:
            return known[1]
        self._wanted[case] = kept
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return None

    async def _work(self) -> None:
        # All that is wanted is told first.
        await asyncio.sleep(0)
        while self._wanted:
            some = dict(islice(self._wanted.items(), _AT_ONCE))
            read = await asyncio.to_thread(_scores_in, some)
            for case, kept in some.items():
                if self._wanted.get(case) is kept:
                    del self._wanted[case]
                    self._known[case] = kept, read[case]
            self._changed()


def _scores_in(files: dict[CaseId, ResultInFile]) -> dict[CaseId, Scores]:
    """In a thread."""
    found = ((case, kept.read()) for case, kept in files.items())
    return {case: Scores() if isinstance(result, str) else scores_of(result) for case, result in found}
