"""`evaluate`: files or models in, results out, without a command or a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaltui.core.model.config import EvalConfig, PassIf
from evaltui.core.model.eval_set import EvalSet
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode, ToolMode
from evaltui.core.model.outcome import RunResult
from evaltui.files.agent_address import AgentAddress
from evaltui.files.configs import find_config
from evaltui.files.eval_sets import load_eval_set
from evaltui.files.interpreters import OWN, find_interpreter
from evaltui.files.modules import find_module
from evaltui.runner.parent.execution import run_plan
from evaltui.runner.parent.metric_host import checked
from evaltui.runner.plan import OnUpdate, RunPlan, SetPlan


async def evaluate(
    agent_dir: str | Path,
    eval_sets: str | Path | EvalSet | Sequence[str | Path | EvalSet],
    config: EvalConfig | None = None,
    *,
    runs: int | None = None,
    pass_if: PassIf | None = None,
    parallel: int = 4,
    workers: int | None = None,
    timeout: float = 300.0,
    agent: str | None = None,
    python: str | None = None,
    initial_session: str | Path | None = None,
    adk_verdicts: bool = False,
    record: RecordMode = DEFAULT_MODE,
    tools: ToolMode | None = None,
    on_update: OnUpdate | None = None,
) -> RunResult:
    """Run an agent against eval sets, given as files or as models, and score what it does.

    The agent is a folder, a file or a dotted module name; it runs in processes of its own, of this Python or
    of another one (`python`, as `--python` takes it). Without a `config`, that of a file is the one that
    `find_config` finds, else ADK's defaults. `record` and `tools` say what is taken from recordings, which
    only files have. Raises EvalSetError for a set, a config or recordings that cannot be read, ValueError
    where there is nothing to run, and where the agent or its Python is not found.
    """
    given = [eval_sets] if isinstance(eval_sets, str | Path | EvalSet) else list(eval_sets)
    plan = RunPlan(
        _address(agent_dir, agent, python),
        tuple(_set_plan(one, config, initial_session) for one in given),
        runs=runs,
        pass_if=pass_if,
        parallel=parallel,
        workers=workers,
        timeout=timeout,
        adk_verdicts=adk_verdicts,
        record=record,
        tools=tools,
    )
    return await run_plan(checked(plan), on_update or (lambda _: None))


def _address(agent: str | Path, name: str | None, python: str | None) -> AgentAddress:
    """Raises ModuleNotThereError, InterpreterError."""
    module = "" if isinstance(agent, Path) or Path(agent).exists() else agent
    folder = find_module(module, None) if module else Path(agent)
    return AgentAddress(folder, name, find_interpreter(folder, python) if python else OWN, module)


def evaluate_sync(
    agent_dir: str | Path, eval_sets: str | Path | EvalSet | Sequence[str | Path | EvalSet], **options: Any
) -> RunResult:
    """As `evaluate`, where no event loop runs; `options` are its other arguments."""
    return asyncio.run(evaluate(agent_dir, eval_sets, **options))


def _set_plan(
    given: str | Path | EvalSet, config: EvalConfig | None, initial_session: str | Path | None
) -> SetPlan:
    if isinstance(given, EvalSet):
        eval_set = given
        return SetPlan(eval_set.eval_set_id, tuple(eval_set.eval_cases), config or EvalConfig.default())
    eval_set = load_eval_set(given, initial_session)
    found = None if config else find_config(Path(given))
    return SetPlan(
        eval_set.eval_set_id,
        tuple(eval_set.eval_cases),
        found.config if found else config or EvalConfig.default(),
        Path(given),
        whole=True,
        config_path=found.path if found else None,
    )
