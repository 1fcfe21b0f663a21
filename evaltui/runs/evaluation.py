"""`evaluate` and related public functions: files or models in, results out, without a command or a screen."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from evaltui.core.compare.run_result import RunResult
from evaltui.core.model.config import EvalConfig, PassIf
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.limits import limits_of
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode, ToolMode
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.project.eval_sets import InitialSession
from evaltui.project.run_settings import DEFAULT_PARALLEL, DEFAULT_TIMEOUT, ConfigChoice, RunSettings
from evaltui.runner.execution import run_plan
from evaltui.runner.in_process import start_in_process
from evaltui.runner.metric_checks import checked
from evaltui.runner.plan import Noted, OnUpdate, RunPlan, Update
from evaltui.runner.run_recordings import open_recordings
from evaltui.runs.adk_document import gcs_manager, is_gcs, save_results
from evaltui.runs.execution import LoggedRun, logged_files, notes_on_changes
from evaltui.runs.given import (
    ConfigArgument,
    EvalSetsArgument,
    address_of,
    check_settings,
    make_confidence,
    read_config_argument,
    select_by_tags,
    set_plans,
    start_variant_host,
    variant_plan,
)
from evaltui.runs.run_header import RunHeader
from evaltui.runs.store import RunStore

Result = TypeVar("Result")


async def evaluate(
    agent: Any,
    eval_sets: EvalSetsArgument = None,
    config: ConfigArgument = None,
    *,
    runs: int | None = None,
    pass_if: PassIf | None = None,
    confidence: float | None = None,
    max_runs: int | None = None,
    parallel: int = DEFAULT_PARALLEL,
    workers: int | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    agent_name: str | None = None,
    python: str | None = None,
    home: str | Path | None = None,
    initial_session: InitialSession = None,
    adk_verdicts: bool = False,
    record: RecordMode = DEFAULT_MODE,
    tools: ToolMode | None = None,
    limits: Mapping[str, Mapping[str, float]] | None = None,
    budget: str | None = None,
    allow_unmetered: bool = False,
    tags: Sequence[str] = (),
    not_tags: Sequence[str] = (),
    variant: str = "",
    results_dir: str | Path | None = None,
    on_update: OnUpdate | None = None,
) -> RunResult:
    """Runs an agent with eval sets and scores its behavior. The agent is a folder, a file, a module name or a
    URL, run in processes with this Python or with `python`; or an object, run in this event loop, with `home`
    as the folder of its eval sets. Sets are files, folders, ids, models or JSON data; None for all sets of
    the agent. A config is a model, a file or data; by default each set's own. `limits` are by model:
    `{"gemini-*": {"rpm": 600}}`. Other arguments are as on the command line. Raises EvalSetError for an
    invalid set, config or recording, ValueError for an empty selection, invalid settings, and an agent or
    Python that does not exist, TypeError for wrong types."""
    plan = plan_for(
        agent,
        eval_sets,
        config,
        agent_name=agent_name,
        python=python,
        home=home,
        initial_session=initial_session,
        runs=runs,
        pass_if=pass_if,
        confidence=make_confidence(confidence, max_runs),
        parallel=parallel,
        workers=workers,
        timeout=timeout,
        adk_verdicts=adk_verdicts,
        record=record,
        tools=tools,
        limits=limits,
        budget=budget,
        allow_unmetered=allow_unmetered,
    )
    return await _run_and_keep(
        agent, select_by_tags(plan, tags, not_tags), variant, python, on_update, results_dir
    )


async def _run_and_keep(
    agent: Any,
    plan: RunPlan,
    variant: str,
    python: str | None,
    on_update: OnUpdate | None,
    results_dir: str | Path | None,
) -> RunResult:
    check_settings({"results_dir": results_dir, "variant": variant})
    with variant_plan(plan, variant, python) as plan:
        # Before anything is run, to find out whether it can be reached.
        manager = gcs_manager(str(results_dir)) if is_gcs(results_dir) else None
        keep_in = None if results_dir is None or manager else Path(results_dir)
        result = await run_planned(agent, plan, on_update, keep_in)
        if manager is not None:
            await asyncio.to_thread(save_results, manager, plan, result)
        return result


def plan_for(
    agent: Any,
    eval_sets: EvalSetsArgument,
    config: ConfigArgument,
    *,
    agent_name: str | None = None,
    python: str | None = None,
    home: str | Path | None = None,
    initial_session: InitialSession = None,
    limits: Mapping[str, Mapping[str, float]] | None = None,
    **settings: Any,
) -> RunPlan:
    """The plan of a run, with the arguments of `evaluate`; `settings` are fields of `RunSettings`.

    Raises the errors of `evaluate`.
    """
    check_settings({**settings, "agent_name": agent_name, "python": python, "home": home, "limits": limits})
    address = address_of(agent, agent_name, python, home)
    if address.in_process and settings.get("workers") not in (None, 1):
        raise ValueError("workers: an agent object runs in this process alone")
    # As google-adk's AgentEvaluator.
    choice: ConfigChoice = "beside" if settings.get("adk_verdicts") else "nearest"
    plans = set_plans(address, eval_sets, read_config_argument(config), initial_session, choice)
    settings |= {"workers": 1} if address.in_process else {}
    return RunPlan(
        address, plans, RunSettings(**settings, config_choice=choice, limits=limits_of(limits or {}))
    )


def evaluate_sync(
    agent: Any, eval_sets: EvalSetsArgument = None, config: ConfigArgument = None, **options: Any
) -> RunResult:
    """Calls `evaluate` outside of an event loop; `options` are its other arguments.

    Raises RuntimeError inside an event loop.
    """
    return _without_loop(evaluate(agent, eval_sets, config, **options))


@dataclass(frozen=True)
class CaseResponses:
    """Responses of an agent in a case, without a verdict."""

    eval_case: EvalCase
    responses: list[list[Invocation]]
    """The finished turns of each repeat."""
    errors: list[ErrorInfo | None]
    """The error of each repeat; None for a complete one."""
    eval_set_id: str = ""

    def __repr__(self) -> str:
        failed = [f"{number}: {error}" for number, error in enumerate(self.errors, start=1) if error]
        shown = "; ".join((f"{self.eval_case.eval_id} ×{len(self.responses)}", *failed))
        return f"<{type(self).__name__} {shown}>"


async def generate_responses(
    agent: Any,
    eval_sets: EvalSetsArgument = None,
    config: ConfigArgument = None,
    *,
    repeat_num: int = 3,
    **options: Any,
) -> list[CaseResponses]:
    """Runs an agent with eval sets, each case `repeat_num` times, without scoring; returns its responses by
    case.

    Of `config`, only the simulated users are used. `options` are those of `evaluate` that do not concern
    scores. Raises the errors of `evaluate`, and RuntimeError where a budget leaves cases without a response.
    """
    on_update = options.pop("on_update", None)
    plan = plan_for(agent, eval_sets, config, runs=repeat_num, **options)
    unscored = tuple(
        replace(
            eval_set, config_in_use=replace(eval_set.config_in_use, config=_without_criteria(eval_set.config))
        )
        for eval_set in plan.sets
    )
    result = await run_planned(agent, replace(plan, sets=unscored), on_update)
    if result.stopped:
        raise RuntimeError(result.stopped)
    cases = [case for eval_set in plan.sets for case in eval_set.cases]
    return [
        CaseResponses(
            case,
            [list(eval_set.actual) for eval_set in case_result.repeats],
            [eval_set.error or _refusal(eval_set) for eval_set in case_result.repeats],
            case_result.eval_set_id,
        )
        for case, case_result in zip(cases, result.cases, strict=True)
    ]


def _without_criteria(config: EvalConfig) -> EvalConfig:
    block = config.evaltui.model_copy(update={"criteria": {}, "optional": []})
    return config.model_copy(update={"criteria": {}, "custom_metrics": None, "evaltui": block})


def _refusal(repeat: RepeatResult) -> ErrorInfo | None:
    """Why a case was not run; None where it was."""
    reasons = (metric.reason for metric in repeat.metrics if metric.status is Status.NOT_EVALUATED)
    errors = (ErrorInfo("NotRun", reason, kind=ErrorKind.CONFIG) for reason in reasons)
    return None if repeat.actual else next(errors, None)


def _start_log(plan: RunPlan, results_dir: Path, files: Mapping[str, str]) -> LoggedRun:
    """The log of a run from Python; a log that cannot be completed gives a warning and is not named. Raises
    OSError."""
    settings = replace(plan.settings, results_dir=results_dir.absolute())
    store = RunStore.of(plan.agent_dir, settings)
    return LoggedRun.start(store, plan, RunHeader(settings=settings, files=files), _warn)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


async def run_planned(
    agent: Any, plan: RunPlan, on_update: OnUpdate | None = None, results_dir: Path | None = None
) -> RunResult:
    """Runs a plan, in this process if its agent is an object; the run is stored in `results_dir`, None for no
    file."""
    plan = checked(plan)
    files = await asyncio.to_thread(logged_files, plan)
    log = None if results_dir is None else _start_log(plan, results_dir, files)

    def publish(update: Update) -> None:
        if log is not None:
            log.write(update)
        if on_update is not None:
            on_update(update)

    try:
        result = await _result(agent, plan, publish)
        if log is not None:
            # One that was stopped can be resumed as one that was interrupted.
            log.end(None if result.stopped else result.status)
        header = RunHeader(files=files) if log is None else log.header
        for note in await asyncio.to_thread(lambda: list(notes_on_changes(plan, header))):
            publish(Noted(note))
            _warn(note)
    finally:
        if log is not None:
            log.close()
    return replace(result, log=log.path) if log is not None else result


async def _result(agent: Any, plan: RunPlan, on_update: OnUpdate) -> RunResult:
    if not plan.agent.in_process:
        recordings = await open_recordings(plan, lambda text: on_update(Noted(text)))
        first = await start_variant_host(plan) if plan.agent.variant else None
        return await run_plan(plan, on_update, first=first, recordings=recordings)
    started = await start_in_process(agent, plan.agent, plan.settings.timeout)
    try:
        return await run_plan(plan, on_update, first=started)
    finally:
        await started.end()


def _without_loop(evaluation: Coroutine[Any, Any, Result]) -> Result:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(evaluation)
    evaluation.close()
    raise RuntimeError("an event loop runs here already: await evaluate(...) instead of evaluate_sync(...)")
