"""Judges on changes that no computed metric noticed: what they would cost, and their verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import TypeVar

from evaltui.agents.call_recorder import CallRecorder
from evaltui.agents.errors import RunStoppedError
from evaltui.core.cost.metering import spent_by
from evaltui.core.cost.prices import load_table
from evaltui.core.gaps.gaps import ToJudge
from evaltui.core.gaps.judged_changes import JudgedCase
from evaltui.core.gaps.mutants import RecordedCase
from evaltui.core.metrics.preflight import withheld_metrics
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.model.modes import Modes
from evaltui.core.model.spending import Spending
from evaltui.project.agent_address import AgentAddress
from evaltui.project.run_settings import RunSettings
from evaltui.project.settings import secrets_of
from evaltui.runner.execution import gate_of
from evaltui.runner.gate import Estimates, Stop
from evaltui.runner.metric_checks import checked
from evaltui.runner.plan import RunPlan
from evaltui.runner.recording_files import OF_GAPS, SCORED, recordings_path
from evaltui.runner.run_recordings import SetRecordings
from evaltui.runner.scoring import LocalScoring, ScoringKind
from evaltui.runner.verdicts import CaseJudge, Judges, Verdicts
from evaltui.runs.gaps import CasesInRun, GapsOfRuns

_Hosts = TypeVar("_Hosts", bound=LocalScoring)


class _UnaskedHosts(LocalScoring):
    """Hosts that start no process and answer nothing."""

    @cached_property
    def questions(self) -> list[tuple[str, int]]:
        """The model and the characters of each question."""
        return []

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        self.questions.append((message["judge"], len(message["prompt"])))
        raise RunStoppedError


class GapJudges:
    """Judges the changes of a search that are left to judges.

    Their answers are recorded beside those of runs, which are used, too. `note` gets remarks for the user.
    """

    def __init__(
        self,
        searched: GapsOfRuns,
        agent: AgentAddress,
        settings: RunSettings,
        note: Callable[[str], None],
    ) -> None:
        sets = tuple(item.plan for item in searched.cases.in_runs)
        self._plan = RunPlan(agent, sets, settings)
        self._searched = searched
        self._note = note
        self._secrets = secrets_of(agent.folder)
        # By the files of the sets.
        self._sets: dict[Path, SetRecordings] = {}
        self._gate = gate_of(self._plan)

    @property
    def stopped(self) -> Stop | None:
        """Why further questions were not asked; None where all were."""
        return self._gate.stopped if self._gate else None

    @cached_property
    def _checked(self) -> RunPlan:
        """The plan with the metrics that cannot run here; in a replay, the recording decides."""
        return self._plan if self._plan.settings.record == "replay" else checked(self._plan)

    def _hosts(self, kind: type[_Hosts]) -> _Hosts:
        plan, settings = self._plan, self._plan.settings
        return kind(
            plan.agent,
            settings.parallel,
            settings.timeout,
            lambda *printed: None,
            self._gate,
            on_start=self._note,
        )

    async def to_judge(self) -> ToJudge | None:
        """The changes that judges look at, and what asking takes, without recorded answers. None for no such
        changes. Raises EvalSetError for recordings that cannot be read."""
        hosts, changes = self._hosts(_UnaskedHosts), 0
        judges = Verdicts(self._plan, hosts).judges
        for item, case_id, recorded in self._searched.unjudged():
            recordings = await self._recordings(item)
            judge = CaseJudge(judges, self._recorder(recordings, case_id, recorded))
            judged = JudgedCase(self._with_withheld(item, recorded), judge)
            for mutant in self._searched.search.mutants_to_judge(recorded, case_id):
                changes += await judged.sees(mutant)
            if recordings is not None:
                recordings.forget()
        if not changes:
            return None
        models = tuple(dict.fromkeys(model for model, _ in hosts.questions))
        usd = await asyncio.to_thread(self._price, hosts.questions)
        return ToJudge(self._searched.search.judged_metrics, changes, len(hosts.questions), models, usd)

    async def judge(self) -> None:
        """Asks judges about all changes that are left to them, several cases at once; then none is left.

        Raises EvalSetError for recordings that cannot be read.
        """
        search, plan = self._searched.search, self._plan
        search.spent = Spending()
        hosts = self._hosts(LocalScoring)
        judges = Verdicts(plan, hosts).judges
        try:
            if plan.settings.budget is not None:
                # Not when the first call waits for its price.
                await asyncio.to_thread(load_table)
            async with asyncio.TaskGroup() as tasks:
                for item, case_id, recorded in self._searched.unjudged():
                    recordings = await self._recordings(item)
                    await hosts.room.enter()
                    case = self._judge(judges, recordings, item, case_id, recorded)
                    tasks.create_task(case).add_done_callback(lambda _: hosts.room.leave())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            if self._gate is not None:
                self._gate.close()
            await asyncio.gather(hosts.close(), *(recordings.save() for recordings in self._sets.values()))

    async def _judge(
        self,
        judges: Judges,
        recordings: SetRecordings | None,
        item: CasesInRun,
        case_id: CaseId,
        recorded: RecordedCase,
    ) -> None:
        search = self._searched.search
        judge = CaseJudge(judges, self._recorder(recordings, case_id, recorded))
        judged = JudgedCase(self._with_withheld(item, recorded), judge)
        mutants = search.mutants_to_judge(recorded, case_id)
        verdicts = [await judged.verdict(mutant) for mutant in mutants]
        if judge.is_left and (stop := self.stopped):
            verdicts = [
                replace(verdict, reason=f"not asked: {stop.reason}") if verdict.reason else verdict
                for verdict in verdicts
            ]
        search.judge(case_id, verdicts)
        spent = await spent_by(judge.calls, self._plan.prices_of(item.plan))
        search.spent = (search.spent or Spending()) + spent
        if recordings is not None:
            recordings.end(case_id.eval_id, recorded.repeat, complete=True, judged=judge.finished)

    async def _recordings(self, item: CasesInRun) -> SetRecordings | None:
        """The recordings of a set, read once; None where nothing is recorded or replayed."""
        plan, modes = item.plan, Modes(self._plan.settings.record)
        if modes.is_off or plan.path is None:
            return None
        if plan.path not in self._sets:
            path, of_run = (
                recordings_path(plan.path, plan.eval_set_id, folder)
                for folder in (OF_GAPS, SCORED if item.file.header.of_traces else "")
            )
            recordings = SetRecordings(path, plan.path, modes, self._note, [of_run])
            await recordings.open()
            self._sets[plan.path] = recordings
        return self._sets[plan.path]

    def _recorder(
        self, recordings: SetRecordings | None, case_id: CaseId, recorded: RecordedCase
    ) -> CallRecorder | None:
        if recordings is None:
            return None
        return recordings.judging(case_id.eval_id, recorded.repeat, self._secrets)

    def _with_withheld(self, item: CasesInRun, recorded: RecordedCase) -> RecordedCase:
        """The case without the metrics that cannot run here."""
        withheld = withheld_metrics(self._checked.checks, item.plan.case_path)
        return replace(recorded, expected=replace(recorded.expected, withheld=withheld))

    def _price(self, questions: Sequence[tuple[str, int]]) -> float | None:
        load_table()
        prices, estimates, now = self._plan.prices_of(*self._plan.sets), Estimates(), datetime.now(UTC)
        dollars = [prices.price_of(model, estimates.tokens(model, size), now) for model, size in questions]
        priced = [usd for usd in dollars if usd is not None]
        return fsum(priced) if len(priced) == len(dollars) else None
