"""Processor seconds for a case of an ADK agent with two model calls and one tool call per turn: in a loop of
ADK's own Runner, or in a run of evaltui, its own process and the host's together.

Prints the seconds per case; imports and the first cases do not count.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import psutil

from evaltui.agents.loading import import_agent
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import Status
from evaltui.project.agent_address import AgentAddress
from evaltui.project.configs import ConfigInUse
from evaltui.project.eval_sets import load_eval_set
from evaltui.project.run_settings import RunSettings
from evaltui.runner.execution import follow_plan
from evaltui.runner.plan import CaseDone, RunPlan, SetPlan, Update
from evaltui.runs.execution import LoggedRun
from evaltui.runs.run_header import RunHeader
from evaltui.runs.store import RunStore

WARM_UP = 50


async def bare(agent_dir: Path, path: Path) -> float:
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    runner = InMemoryRunner(agent=import_agent(agent_dir), app_name="bare")
    cases = load_eval_set(path).eval_cases
    began = 0.0
    for number, case in enumerate(cases):
        if number == WARM_UP:
            began = time.process_time()
        session = await runner.session_service.create_session(app_name="bare", user_id="u")
        for turn in case.conversation or ():
            message = types.Content.model_validate(turn.user_content.model_dump(exclude_none=True))
            async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
                pass
        await runner.session_service.delete_session(app_name="bare", user_id="u", session_id=session.id)
    return (time.process_time() - began) / (len(cases) - WARM_UP)


def _spent() -> float:
    """Processor seconds of this process and of those below it."""
    here = psutil.Process()
    times = [one.cpu_times() for one in (here, *here.children(recursive=True))]
    return sum(one.user + one.system for one in times)


async def ours(agent_dir: Path, path: Path) -> float:
    eval_set = load_eval_set(path)
    one = SetPlan(
        path.name, eval_set.eval_set_id, eval_set.eval_cases, ConfigInUse(None, EvalConfig.default()), path
    )
    plan = RunPlan(AgentAddress(agent_dir), (one,), RunSettings(workers=1))
    log = LoggedRun.start(RunStore(agent_dir), plan, RunHeader(settings=plan.settings), print)
    done: list[CaseDone] = []
    clock: list[float] = []

    def on_update(update: Update) -> None:
        log.write(update)
        if isinstance(update, CaseDone):
            done.append(update)
            if len(done) in (WARM_UP, len(one.cases)):
                clock.append(_spent())

    status = await follow_plan(plan, on_update)
    log.end(status)
    log.close()
    if status is not Status.PASSED:
        raise SystemExit(f"the run was {status}")
    return (clock[1] - clock[0]) / (len(done) - WARM_UP)


side = {"bare": bare, "evaltui": ours}[sys.argv[1]]
print(asyncio.run(side(Path(sys.argv[2]), Path(sys.argv[3]))))
