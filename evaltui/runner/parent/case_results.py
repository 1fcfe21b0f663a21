"""Runs of cases on their way to the results of a run: which are to be made, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from evaltui.core.compare.repeat_rules import RepeatRule
from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_result import RunResult
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status, worst_status
from evaltui.files.settings import secrets_of
from evaltui.runner.plan import CaseDone, OnUpdate, RunPlan, WorkItem


@dataclass(slots=True)
class _Progress:
    """What is known of a case of which a run is over, and others may be open."""

    rule: RepeatRule
    known: Mapping[int, RepeatResult]
    """Those that an earlier run has results of, which may be read when they are asked for."""
    awaited: int
    """How many runs were asked for."""
    last: int
    """The highest number of a run that was asked for; -1 where none was."""
    repeats: dict[int, RepeatResult] = field(default_factory=dict)
    """Those that were asked for and are over."""

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

    def __init__(self, plan: RunPlan, items: Iterable[WorkItem], on_update: OnUpdate, *, keeps: bool) -> None:
        self._plan = plan
        self._on_update = on_update
        self._keeps = keeps
        self._asked: list[WorkItem] = []
        # One of each case of which an earlier run has all results.
        self._known: list[WorkItem] = []
        # Of a hundred thousand cases only those have one that are being run.
        self._progress: dict[int, _Progress] = {}
        self._results: dict[int, CaseResult] = {}
        self._statuses: set[Status] = set()
        self._open = 0
        most = 0
        for _, of_case in groupby(items, key=lambda item: item.number):
            runs = list(of_case)
            known = plan.known.get(runs[0].case, {})
            asked = [item for item in runs if item.repeat not in known]
            self._asked += asked
            if not asked:
                self._known.append(runs[-1])
            self._open += 1
            most += plan.repeat_rule(runs[0].set, runs[0].case).most
        self.most = len(self._asked) if plan.settings.confidence is None else most
        """How many items there will be at most."""

    def take_asked(self) -> list[WorkItem]:
        """Those that are to be run at first; they are not kept here."""
        asked, self._asked = self._asked, []
        return asked

    @property
    def may_ask(self) -> bool:
        """Whether further items may follow from what comes of those that were asked for."""
        return self._plan.settings.confidence is not None and self._open > 0

    def tell_known(self) -> None:
        """Tells the results of cases that an earlier run has brought to their end."""
        for item in self._known:
            self._end(item)

    def _progress_of(self, item: WorkItem) -> _Progress:
        progress = self._progress.get(item.number)
        if progress is None:
            known, rule = self._plan.known.get(item.case, {}), self._plan.repeat_rule(item.set, item.case)
            asked = rule.due(known)
            progress = _Progress(rule, known, len(asked), max(asked, default=-1))
            self._progress[item.number] = progress
        return progress

    def add(self, item: WorkItem, result: RepeatResult) -> tuple[list[WorkItem], float]:
        """A run of a case is over; those that are to be made besides, and how urgent they are."""
        progress = self._progress_of(item)
        progress.repeats[item.repeat] = result
        all_of_it = progress.all_repeats
        more = [number for number in progress.rule.due(all_of_it) if number > progress.last]
        for number in more:
            progress.ask(number)
        return [replace(item, repeat=number) for number in more], progress.rule.urgency(all_of_it)

    def end_if_over(self, item: WorkItem) -> bool:
        """Tells the result of the case if no run of it is open; whether that is so."""
        is_over = self._progress_of(item).is_over
        if is_over:
            self._end(item)
        return is_over

    def _end(self, item: WorkItem) -> None:
        plan = self._plan
        repeats = [one for _, one in sorted(self._progress_of(item).all_repeats.items())]
        path, eval_id = item.case
        result = case_over_repeats(
            item.set.eval_set_id,
            eval_id,
            repeats,
            plan.pass_if_of(item.set),
            path,
            plan.settings.confidence if plan.held is None else None,
        )
        del self._progress[item.number]
        self._statuses.add(result.status)
        if self._keeps:
            self._results[item.number] = result
        self._open -= 1
        self._on_update(CaseDone(result))

    def result(self) -> RunResult:
        """The result of the run: every case of the plan, in its order."""
        cases = tuple(
            self._results.get(number) or CaseResult.not_run(case, label)
            for number, (case, label) in enumerate(self._plan.selected())
        )
        return RunResult(
            cases,
            worst_status(one.status for one in cases),
            self._plan.agent.in_process,
            secrets=secrets_of(self._plan.agent_dir),
        )

    def status(self) -> Status:
        """The worst status of the cases that are over."""
        return worst_status(self._statuses)
