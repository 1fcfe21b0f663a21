"""`evaluate` and related public functions: files or models in, results out, without a command or a screen."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.agents.errors import AgentBrokenError, RequestFailedError, RunStoppedError, late_error
from evaltui.agents.model_gate import ModelGate
from evaltui.agents.protocol import FilesOpened, Message
from evaltui.core.compare.run_result import RunResult
from evaltui.core.model.config import EvalConfig, PassIf
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.events import Json
from evaltui.core.model.limits import limits_of
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode, ToolMode
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.project.agent_address import AgentAddress
from evaltui.project.eval_sets import InitialSession
from evaltui.project.run_settings import DEFAULT_PARALLEL, DEFAULT_TIMEOUT, ConfigChoice, RunSettings
from evaltui.runner.execution import run_plan
from evaltui.runner.gated_requests import GatedRequest, answered
from evaltui.runner.host import OnConsole, OnEvent, OnRecorded
from evaltui.runner.metric_checks import checked
from evaltui.runner.plan import Noted, OnUpdate, RunPlan, Update
from evaltui.runner.run_recordings import open_recordings
from evaltui.runner.starting import HostSettings, StartedHost, started_loading
from evaltui.runs.adk_document import gcs_manager, is_gcs, save_results
from evaltui.runs.execution import LoggedRun, changes_during, logged_files
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
from evaltui.runs.sets import warnings_of
from evaltui.runs.store import RunStore

if TYPE_CHECKING:
    from evaltui.agents.loading import AgentObject


# Seconds.
_GRACE = 1.0
_CLOSE_TIMEOUT = 5.0


class InProcessHost:
    """Runs cases on an agent object, in the event loop that it is made in."""

    alive = True
    """No case ends it without ending this process."""
    files: frozenset[Any] = frozenset()
    opened = FilesOpened()
    """Unknown: this process opens files for others, too."""

    def __init__(self, agent: AgentObject) -> None:
        self._agent = agent
        self._running: set[asyncio.Task[Message]] = set()
        self._closing = asyncio.Event()
        self._loaded: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        # Opened and closed in one task: connections of toolsets ask for that.
        self._serving = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            self._loaded.set_result(await self._agent.open())
        except AgentBrokenError as broken:
            self._loaded.set_exception(broken)
            self._loaded.exception()
            return
        await self._closing.wait()
        await self._agent.close()

    async def loaded(self, timeout: float) -> Json:
        """Wait for the AgentInfo as JSON. Raises AgentBrokenError, also after `timeout` seconds."""
        done, _ = await asyncio.wait({self._loaded}, timeout=timeout)
        if not done:
            raise AgentBrokenError(late_error(f"the agent was not opened within {timeout:g} s"))
        return self._loaded.result()

    def listen(self, on_console: OnConsole) -> None:
        """The agent prints where this process prints."""

    async def request(
        self,
        message: Message,
        timeout: float,
        on_event: OnEvent = lambda text: None,
        on_recorded: OnRecorded = lambda line: None,
        gated: GatedRequest | None = None,
    ) -> Message:
        """Run a case for at most `timeout` seconds; those that its model calls wait at `gated` do not count.

        Raises RequestFailedError, also after the time-out. Code that ignores being cancelled goes on, without
        further events. Raises RunStoppedError, too.
        """
        is_over = False
        gate = _gate_of(gated) if gated else None
        task = asyncio.create_task(
            self._agent.run(
                message,
                lambda text: None if is_over else on_event(text),
                lambda line: None if is_over else on_recorded(line),
                gate,
            )
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            if await answered(task, timeout, gated):
                return task.result()
            raise await self._given_up(task, f"no response within {timeout:g} s")
        except (asyncio.CancelledError, RunStoppedError):
            await self._given_up(task, "")
            raise
        finally:
            is_over = True
            if gate is not None:
                gate.close()
            if gated is not None:
                gated.close()

    async def _given_up(self, task: asyncio.Task[Message], late: str) -> RequestFailedError:
        """Cancels a case; returns the error with its place."""
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=_GRACE)
        # Nobody waits for it again.
        self._running.discard(task)
        if not done:
            goes_on = "; the agent ignores that it is cancelled, and goes on in this process"
            return RequestFailedError(late_error(late + goes_on))
        failed = None if task.cancelled() else task.exception()
        if isinstance(failed, RequestFailedError):
            error = failed.error
            return RequestFailedError(late_error(late, error.traceback, error.where))
        return RequestFailedError(late_error(late))

    async def close(self) -> None:
        """Let the agent close what it opened; nothing happens where that was done."""
        await self.kill()
        self._closing.set()
        if not self._loaded.done():
            self._serving.cancel()
        done, _ = await asyncio.wait({self._serving}, timeout=_CLOSE_TIMEOUT)
        if not done:
            self._serving.cancel()
            warnings.warn(
                f"the agent was not closed within {_CLOSE_TIMEOUT:g} s", RuntimeWarning, stacklevel=2
            )
        elif not self._serving.cancelled() and (error := self._serving.exception()) is not None:
            # The results are in by then.
            warnings.warn(f"the agent could not be closed: {error!r}", RuntimeWarning, stacklevel=2)

    async def kill(self) -> None:
        """Cancel the cases that are under way."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=_GRACE)


def _gate_of(gated: GatedRequest) -> ModelGate:
    """The gate of a request as the agent's side sees it. Its threads may make calls as well."""
    loop = asyncio.get_running_loop()

    def send(call: Json) -> None:
        loop.call_soon_threadsafe(gated.on_message, call, lambda answer: gate.on_go(**answer))

    gate = ModelGate(gated.patterns, send, shares_loop=True)
    return gate


async def start_in_process(agent: Any, address: AgentAddress, timeout: float) -> StartedHost:
    """Open an agent object. `timeout` is that of a case, in seconds. Raises ValueError for an object that is
    no agent."""
    from evaltui.agents.loading import AgentObject

    settings = HostSettings(address, timeout)
    host = InProcessHost(await AgentObject.of(agent, address.name, settings.started))
    loading = started_loading(host.loaded(settings.import_limit))
    return StartedHost(settings, host, loading, host.close)


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
    evaluation = evaluate(agent, eval_sets, config, **options)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(evaluation)
    evaluation.close()
    raise RuntimeError("an event loop runs here already: await evaluate(...) instead of evaluate_sync(...)")


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
            [list(repeat.actual) for repeat in case_result.repeats],
            [repeat.error or _refusal(repeat) for repeat in case_result.repeats],
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
        for note in await asyncio.to_thread(warnings_of, plan.sets):
            publish(Noted(note))
            _warn(note)
        result = await _result(agent, plan, publish)
        if log is not None:
            # One that was stopped can be resumed as one that was interrupted.
            log.end(None if result.stopped else result.status)
        header = RunHeader(files=files) if log is None else log.header
        changed, notes = await asyncio.to_thread(changes_during, plan, header)
        if log is not None:
            log.files_changed(changed)
        for note in notes:
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
