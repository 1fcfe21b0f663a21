"""Runs of cases on their way to the results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.outcome import CaseResult, RepeatResult, RunResult, Status, worst_status
from evaltui.runner.plan import CaseDone, OnUpdate, RunPlan, WorkItem


@dataclass(slots=True)
class _Progress:
    """What is known of one case so far."""

    awaited: int = 0
    repeats: dict[int, RepeatResult] | None = None
    status: Status | None = None
    result: CaseResult | None = None


class CaseResults:
    """Puts the repeats of each case together and tells its result. `keeps` them for the result of the run."""

    def __init__(self, plan: RunPlan, items: Sequence[WorkItem], on_update: OnUpdate, *, keeps: bool) -> None:
        self._plan = plan
        self._on_update = on_update
        self._keeps = keeps
        self._progress = [_Progress() for _ in range(plan.case_count)]
        for item in items:
            self._progress[item.number].awaited += 1

    def put(self, item: WorkItem, verdict: RepeatResult) -> bool:
        """A run of a case is over; whether it was the last one of the case."""
        progress = self._progress[item.number]
        progress.repeats = {**(progress.repeats or {}), item.repeat: verdict}
        if len(progress.repeats) < progress.awaited:
            return False
        pass_if = self._plan.pass_if or item.set.config.evaltui.repeats.pass_if
        repeats = [progress.repeats[number] for number in sorted(progress.repeats)]
        path, eval_id = item.case
        result = case_over_repeats(item.set.eval_set_id, eval_id, repeats, pass_if, path)
        progress.status = result.status
        progress.repeats = None
        if self._keeps:
            progress.result = result
        self._on_update(CaseDone(result))
        return True

    def result(self) -> RunResult:
        """The result of the run, of the cases that are over."""
        cases = tuple(one.result for one in self._progress if one.result is not None)
        return RunResult(cases, self.status(), self._plan.agent.in_process)

    def status(self) -> Status:
        """The worst status of the cases that are over."""
        return worst_status(one.status for one in self._progress if one.status is not None)
