"""A run service without processes, for screens that need only a result.

`Workbench(folder, run_service=FakeRuns())`: what is selected, scored and told is real; only what the agent
does is made up, and nothing is kept on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.conversation.replay import steps_of_invocation
from evaltui.core.model.case_id import CaseId, case_fingerprint
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.events import Event, split_step
from evaltui.core.model.modes import modes_of
from evaltui.core.model.outcome import ErrorInfo, RepeatResult, Status, worst_status
from evaltui.core.recordings.given import agent_input_fingerprint
from evaltui.core.scoring import Expected, failed_repeat, score_repeat
from evaltui.runner.plan import (
    AgentLoaded,
    CaseDone,
    CaseStarted,
    Happened,
    OnUpdate,
    RepeatDone,
    RunPlan,
    SetPlan,
)
from evaltui.runner.starting import StartedHost
from evaltui.runs.execution import ExecutedRun, LoggedRun, LogGrew, OnRunUpdate, RunSelected
from evaltui.runs.selection import RunRequest, select
from evaltui.runs.sets import SetSource

# What the agent does in a run of a case, counted from 0; an exception it raises is the error of the case.
Act = Callable[[EvalCase, int], list[Invocation]]

INFO = {"name": "fake", "framework": "native", "model": "scripted", "tools": []}


def as_expected(case: EvalCase, repeat: int) -> list[Invocation]:
    """Does what the case expects."""
    return list(case.conversation or [])


def says(text: str) -> Act:
    """Calls nothing and gives this answer in every turn."""
    answer = {"role": "model", "parts": [{"text": text}]}

    def act(case: EvalCase, repeat: int) -> list[Invocation]:
        turns = (turn.model_dump(include={"user_content"}) for turn in case.conversation or [])
        done = {"final_response": answer, "intermediate_data": {"tool_uses": []}}
        return [Invocation.model_validate({**turn, **done}) for turn in turns]

    return act


class FakeRuns:
    """A `RunService`. `requests` are those that were asked for; a run waits for `go_on` before each case."""

    def __init__(self, act: Act = as_expected, info: dict[str, Any] = INFO) -> None:
        self.act = act
        self.requests: list[RunRequest] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self._info = info

    async def __call__(
        self,
        request: RunRequest,
        sets: SetSource,
        on_update: OnRunUpdate,
        start_host: Callable[[], StartedHost],
    ) -> ExecutedRun:
        self.requests.append(request)
        selected = await asyncio.to_thread(select, request, sets)
        on_update(RunSelected(selected))
        on_update(AgentLoaded(self._info))
        statuses = []
        for one in selected.plan.sets:
            for case in one.cases:
                await self.go_on.wait()
                statuses.append(await self._run(selected.plan, one, case, on_update))
        status = worst_status(statuses) if statuses else None
        file = LoggedRun.start(None, selected.plan, selected.header, print).close()
        return ExecutedRun(0.0, status, None, file)

    async def follow(self, plan: RunPlan, on_update: OnUpdate, **_: object) -> Status:
        """Stands for `follow_plan`: everything else of a run, its log too, is real."""
        on_update(AgentLoaded(self._info))
        cases = [(one, case) for one in plan.sets for case in one.cases]
        return worst_status([await self._run(plan, one, case, on_update) for one, case in cases])

    async def _run(
        self, plan: RunPlan, one: SetPlan, case: EvalCase, on_update: Callable[[Any], None]
    ) -> Status:
        path = one.case_path
        named = CaseId(path, case.eval_id)
        repeats: dict[int, RepeatResult] = dict(plan.earlier.get(named, {}))
        rule = plan.repeat_rule(one, named)
        on_update(LogGrew(None, None))
        while due := rule.due(repeats):
            number = next(iter(due))
            on_update(CaseStarted(named, one.eval_set_id, number))
            result, events = await self._act(one, case, number)
            for event in events:
                placed = {"path": path, "set": one.eval_set_id, "case": case.eval_id, "repeat": number}
                on_update(Happened(replace(event, **placed)))
            modes = modes_of(plan.settings.record, plan.settings.tools, one.config.evaltui.tools)
            prints = {"expects": case_fingerprint(case), "given": agent_input_fingerprint(case, modes)}
            repeats[number] = replace(result, **prints)
            on_update(RepeatDone(named, one.eval_set_id, number, repeats[number]))
        in_order = [repeats[number] for number in sorted(repeats)]
        pass_if = plan.pass_if_of(one)
        done = case_over_repeats(
            one.eval_set_id, case.eval_id, in_order, pass_if, path, plan.settings.confidence
        )
        on_update(CaseDone(done))
        return done.status

    async def _act(self, one: SetPlan, case: EvalCase, number: int) -> tuple[RepeatResult, list[Event]]:
        expected = Expected(one.eval_set_id, case, one.config)
        try:
            actual = self.act(case, number)
        except Exception as error:
            info = ErrorInfo(type(error).__name__, str(error), kind=None)
            return failed_repeat(expected, info, [], 0.0), []
        return await score_repeat(expected, actual, final_state=None, custom=None), list(_events(actual))


def _events(actual: list[Invocation]) -> Iterator[Event]:
    for turn, invocation in enumerate(actual):
        user, *others = steps_of_invocation(invocation, turn)
        yield Event("user", user.content, turn=turn)
        for step in others:
            yield from split_step(step)


class NoHost:
    """Stands for a host process that was started."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.host = self

    async def end(self) -> None:
        pass

    async def kill(self) -> None:
        pass


def run_without_processes(monkeypatch: pytest.MonkeyPatch, act: Act = as_expected) -> FakeRuns:
    """`evaltui run` in this process starts no other; what the agent does is made up."""
    fake = FakeRuns(act)
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", fake.follow)
    monkeypatch.setattr("evaltui.commands.run.spawn_host", NoHost)
    monkeypatch.setattr(
        "evaltui.commands.run.start_host", lambda settings, host=None, workers=None: host or NoHost(settings)
    )
    return fake
