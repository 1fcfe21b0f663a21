"""Which executor runs a plan: hosts on this machine, or the workers of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

from evaltui.runner.parent.executor import Executor, ExecutorError
from evaltui.runner.parent.gate.gate import Gate
from evaltui.runner.parent.held_pool import HeldPool
from evaltui.runner.parent.pool import HostPool, Listener, LoadingHost
from evaltui.runner.parent.scoring_hosts import LocalScoring, ScoringHosts
from evaltui.runner.parent.starting import HostSettings
from evaltui.runner.plan import Noted, RunPlan, Scaled, WorkItem


def executor_of(
    plan: RunPlan,
    listener: Listener[WorkItem],
    began: float,
    first: LoadingHost | None,
    gate: Gate | None,
    on_update: Callable[[Noted | Scaled], None],
) -> tuple[Executor, ScoringHosts]:
    """What runs the items of this plan, and what computes their metrics; `began` is a `time.monotonic()`.

    Raises ExecutorError where what it needs is not installed.
    """
    on_console = partial(listener.printed, None)
    # Runs of an agent name its Python.
    on_start = (lambda text: on_update(Noted(text))) if plan.held is not None or plan.agent.url else None
    local = LocalScoring(
        plan.agent, plan.settings.parallel, plan.settings.timeout, on_console, gate, on_start=on_start
    )
    if plan.held is not None:
        return HeldPool(plan.held, {"name": plan.held_by} if plan.held_by else {}, listener), local
    settings = HostSettings(plan.agent, plan.settings.timeout, began)
    if first is not None:
        settings = replace(settings, folder=first.settings.folder, environ=first.settings.environ)
    if not plan.scheduler:
        return HostPool(settings, listener, plan.settings.parallel, plan.settings.workers, first, gate), local
    if why := missing():
        raise ExecutorError(why)
    from evaltui.runner.dask.executor import DaskExecutor

    executor = DaskExecutor(plan, settings, listener, first, gate, on_update)
    # The files of an agent behind a network are on this machine alone.
    return executor, local if plan.agent.url else executor.scoring


def missing() -> str:
    """Why no scheduler can be used; "" where one can."""
    if find_spec("distributed") is not None:
        return ""
    return "a scheduler needs the extra dask: pip install 'evaltui[dask]'"
