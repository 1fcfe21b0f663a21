"""Scoring earlier results against the current case or its draft, without an agent or model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.messages import DraftChanged, Messages
from evaltui.workbench.result.scoring_again import Actual, Events, actual_of, score_again
from evaltui.workbench.state import CaseOutcome, RunRef, SameConfig

if TYPE_CHECKING:
    from evaltui.core.model.config import EvalConfig
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.core.secrets import Secrets
    from evaltui.project.eval_set_file import EvalSetFile

# Of many cases, results are shown in about so many steps: what shows them may go through all cases.
_STEPS = 50


class _Wish(NamedTuple):
    """A scheduled scoring: the result, and the case, the config and the set id to score it by."""

    scored: CaseOutcome
    stored: StoredCase
    config: EvalConfig
    eval_set_id: str


class Rescoring:
    """Scores results again in the background.

    `events_of` returns the events of a case, by repeat; `done` is called with new results, None where the
    events are unknown. `secrets` are masked where events come from a log. Only the last scheduled scoring of
    a case is done; a result that is already scored is not scored again.
    """

    def __init__(
        self,
        events_of: Callable[[CaseId], Events | None],
        done: Callable[[Sequence[tuple[CaseId, CaseOutcome | None]]], None],
        secrets: Callable[[], Secrets],
    ) -> None:
        self._events_of = events_of
        self._secrets = secrets
        self._done = done
        self._waiting: dict[CaseId, _Wish] = {}
        # The case that is being scored, None where its result is not wanted any more.
        self._scoring: CaseId | None = None
        # New results that are not shown yet; None where nobody knows what happened.
        self._scored: dict[CaseId, CaseOutcome | None] = {}
        self._task: asyncio.Task[None] | None = None
        self._actual: tuple[CaseId, RunRef, Actual] | None = None

    def score(
        self,
        results: Iterable[tuple[CaseId, CaseOutcome]],
        opened: EvalSetFile,
        config: EvalConfig,
        draft: StoredCase | None = None,
    ) -> None:
        """Schedules the scoring of results of a set's cases, replacing earlier schedules for them; results
        that would not change are skipped. Results of one case are scored by its draft."""
        is_same, eval_set_id = SameConfig(config), opened.eval_set_id
        for case, scored in results:
            self._waiting.pop(case, None)
            self._scored.pop(case, None)
            if self._scoring == case:
                self._scoring = None
            stored = draft or opened.case(case.eval_id)
            is_scored = not scored.unscored and is_same(scored.config)
            if stored is not None and not (is_scored and _is_case_of(scored, stored, eval_set_id)):
                self._waiting[case] = _Wish(scored, stored, config, eval_set_id)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work())

    def stop(self) -> None:
        """Drops all scheduled scorings, because other results are shown."""
        self._waiting.clear()
        self._scored.clear()
        self._scoring = None

    def is_waiting(self, case: CaseId) -> bool:
        """Whether a case is scheduled."""
        return case in self._waiting or case in self._scored or self._scoring == case

    async def finish(self) -> None:
        """Waits until all scheduled results have been scored."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while self._waiting:
            self._scoring = case = next(iter(self._waiting))
            scored, stored, config, eval_set_id = self._waiting.pop(case)
            actual, new = await self._actual_of(case, scored), None
            if actual is not None:
                secrets = self._secrets()
                new = await score_again(scored, actual, stored, config, secrets, eval_set_id)
            is_wanted, self._scoring = self._scoring == case, None
            if is_wanted:
                self._scored[case] = new
            if self._scored and len(self._scored) * _STEPS >= len(self._waiting):
                outcomes, self._scored = [*self._scored.items()], {}
                self._done(outcomes)
            # Keys come first.
            await asyncio.sleep(0)

    async def _actual_of(self, case: CaseId, scored: CaseOutcome) -> Actual | None:
        """The agent's turns, as invocations; cached for the last case."""
        if self._actual is None or self._actual[:2] != (case, scored.run):
            # A log may be long, and there may be thousands of cases.
            actual = await asyncio.to_thread(self._read, case)
            if actual is None:
                return None
            self._actual = case, scored.run, actual
        return self._actual[2]

    def _read(self, case: CaseId) -> Actual | None:
        """In a thread: the invocations; None where no events are stored."""
        events = self._events_of(case)
        return None if events is None else actual_of(events)


def _is_case_of(scored: CaseOutcome, stored: StoredCase, eval_set_id: str) -> bool:
    """Whether this case scored a result, also if its file was read again since."""
    if (scored.unscored and scored.ran is not None) or scored.figures.eval_set_id != eval_set_id:
        return False
    return stored is scored.stored or stored.says_the_same(scored.stored)


class DraftResult:
    """The result of a case by its draft, scored in the background. `events_of` and `secrets` are those of
    `Rescoring`."""

    def __init__(
        self,
        events_of: Callable[[CaseId], Events | None],
        messages: Messages,
        secrets: Callable[[], Secrets],
    ) -> None:
        self.case: CaseId | None = None
        """The case of the draft; None without one."""
        self.draft: StoredCase | None = None
        """The edited case."""
        self._result: CaseOutcome | None = None
        self._messages = messages
        self._rescoring = Rescoring(events_of, self._scored, secrets)

    @property
    def is_waiting(self) -> bool:
        """Whether the draft is about to be scored."""
        return self.case is not None and self._rescoring.is_waiting(self.case)

    def of(self, case: CaseId, scored: CaseOutcome) -> CaseOutcome | None:
        """The result of a case by its draft; None where the draft has no effect on it."""
        result = self._result if case == self.case else None
        return result if result is not None and result.run == scored.run else None

    def score(self, scored: CaseOutcome | None, opened: EvalSetFile | None) -> None:
        """Scores a result of the case by the draft; `opened` is None where the draft cannot be scored."""
        self._rescoring.stop()
        if self.case and self.draft and scored and opened and opened.config:
            self._rescoring.score([(self.case, scored)], opened, opened.config.config, self.draft)
        if self._result is not None and not self.is_waiting:
            self._result = None
            self._messages.publish(DraftChanged())

    def _scored(self, outcomes: Sequence[tuple[CaseId, CaseOutcome | None]]) -> None:
        for _, self._result in outcomes:
            self._messages.publish(DraftChanged())

    async def finish(self) -> None:
        """Waits until the draft has been scored."""
        await self._rescoring.finish()
