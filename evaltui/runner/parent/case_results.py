"""Runs of cases on their way to the results of a run: which are to be made, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltui.core.compare.repeat_rules import RepeatRule
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.model.outcome import CaseResult, RepeatResult, RunResult, Status, worst_status
from evaltui.runner.plan import CaseDone, OnUpdate, RunPlan, WorkItem


@dataclass(slots=True)
class _Progress:
    """What is known of one case so far."""

    rule: RepeatRule
    known: Mapping[int, RepeatResult]
    """Those that an earlier run has results of, which may be read when they are asked for."""
    repeats: dict[int, RepeatResult] = field(default_factory=dict)
    """Those that were asked for; only while it is being run, as are the known ones."""
    awaited: int = 0
    """How many runs were asked for."""
    last: int = -1
    """The highest number of a run that was asked for."""
    status: Status | None = None
    result: CaseResult | None = None

    def ask(self, number: int) -> None:
        """This run is to be made."""
        self.awaited += 1
        self.last = max(self.last, number)

    @property
    def all_repeats(self) -> dict[int, RepeatResult]:
        """By number."""
        return {**self.known, **self.repeats}

    @property
    def is_over(self) -> bool:
        """Whether no run of it is open."""
        return len(self.repeats) == self.awaited


class CaseResults:
    """Puts the repeats of each case together and tells its result. `items` are what the plan begins with;
    `keeps` results for that of the run."""

    def __init__(self, plan: RunPlan, items: Sequence[WorkItem], on_update: OnUpdate, *, keeps: bool) -> None:
        self._plan = plan
        self._on_update = on_update
        self._keeps = keeps
        self.asked: list[WorkItem] = []
        """Those that are to be run at first."""
        self._progress: dict[int, _Progress] = {}
        self._known: dict[int, WorkItem] = {}
        for item in items:
            known = plan.known.get(item.case, {})
            if (progress := self._progress.get(item.number)) is None:
                rule = plan.repeat_rule(item.set, item.case)
                progress = self._progress[item.number] = _Progress(rule, known)
            if item.repeat in known:
                self._known[item.number] = item
            else:
                progress.ask(item.repeat)
                self.asked.append(item)
        self._open = len(self._progress)

    @property
    def most(self) -> int:
        """How many items there will be at most."""
        if self._plan.confidence is None:
            return len(self.asked)
        return sum(one.rule.most for one in self._progress.values())

    @property
    def may_ask(self) -> bool:
        """Whether further items may follow from what comes of those that were asked for."""
        return self._plan.confidence is not None and self._open > 0

    def tell_known(self) -> None:
        """Tells the results of cases that an earlier run has brought to their end."""
        for number, item in self._known.items():
            if self._progress[number].is_over:
                self._end(item)

    def add(self, item: WorkItem, result: RepeatResult) -> tuple[list[WorkItem], float]:
        """A run of a case is over; those that are to be made besides, and how urgent they are."""
        progress = self._progress[item.number]
        progress.repeats[item.repeat] = result
        all_of_it = progress.all_repeats
        more = [number for number in progress.rule.due(all_of_it) if number > progress.last]
        for number in more:
            progress.ask(number)
        return [replace(item, repeat=number) for number in more], progress.rule.urgency(all_of_it)

    def end_if_over(self, item: WorkItem) -> bool:
        """Tells the result of the case if no run of it is open; whether that is so."""
        is_over = self._progress[item.number].is_over
        if is_over:
            self._end(item)
        return is_over

    def _end(self, item: WorkItem) -> None:
        progress, plan = self._progress[item.number], self._plan
        repeats = [one for _, one in sorted(progress.all_repeats.items())]
        path, eval_id = item.case
        result = case_over_repeats(
            item.set.eval_set_id,
            eval_id,
            repeats,
            plan.pass_if_of(item.set),
            path,
            plan.confidence if plan.held is None else None,
        )
        progress.status = result.status
        progress.repeats, progress.known = {}, {}
        if self._keeps:
            progress.result = result
        self._open -= 1
        self._on_update(CaseDone(result))

    def result(self) -> RunResult:
        """The result of the run, of the cases that are over."""
        cases = tuple(one.result for one in self._progress.values() if one.result is not None)
        return RunResult(cases, self.status(), self._plan.agent.in_process)

    def status(self) -> Status:
        """The worst status of the cases that are over."""
        return worst_status(one.status for one in self._progress.values() if one.status is not None)
