"""`evaltui run`: the agent's process starts first, and imports the agent once everything else is read."""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    agent_to_run,
    require_one_agent,
    run_targets,
    settings_of,
)
from evaltui.commands.variants import variants_of_options, with_variant
from evaltui.project.agent_address import AgentAddress
from evaltui.project.run_settings import OFF, RunSettings
from evaltui.runner.interrupts import run_interruptible
from evaltui.runner.starting import HostSettings, spawn_host, start_host
from evaltui.runs.store import RunStore

if TYPE_CHECKING:
    from evaltui.commands.job import Job


def run(options: argparse.Namespace) -> int:
    """Run what the options select and report; returns the exit code."""
    require_one_agent(options)
    if options.machines and not options.estimate:
        raise UsageError("--machines needs --estimate")
    if options.estimate and not options.watch:
        from evaltui.commands.estimate import write_estimate

        return write_estimate(options)
    targets = run_targets(options.report)
    if options.watch:
        from evaltui.commands.watch import watch

        return run_interruptible(watch(options))
    return run_interruptible(_run(options, targets, agent_to_run(options), settings_of(options)))


async def _run(
    options: argparse.Namespace,
    targets: Sequence[ReportTarget],
    agent: AgentAddress,
    settings: RunSettings,
) -> int:
    of_workers = {"--ship-env": options.ship_env, "--strict-env": options.strict_env}
    if settings.scheduler in (None, OFF) and any(of_workers.values()):
        name = next(name for name, value in of_workers.items() if value)
        raise UsageError(f"{name} needs --scheduler")
    variants = variants_of_options(options, settings)
    if len(variants) > 1:
        from evaltui.commands.matrix import run_matrix

        return await run_matrix(options, targets, agent, settings, variants)
    if options.resume or options.retry_errors:
        return await _resume(options, targets, agent, settings)
    with with_variant(options, agent, variants[0] if variants else None) as agent:
        host_settings = HostSettings(agent, settings.timeout)
        host = spawn_host(host_settings)
        # What is imported and read now stays; looking for garbage among it takes a fifth of the time.
        gc.disable()
        try:
            job = await asyncio.to_thread(_prepare, options, targets, agent, settings)
            return await job.run(lambda: start_host(host_settings, host))
        finally:
            await host.kill()


async def _resume(
    options: argparse.Namespace,
    targets: Sequence[ReportTarget],
    agent: AgentAddress,
    settings: RunSettings,
) -> int:
    from evaltui.commands.matrix_resume import resume_matrix
    from evaltui.commands.resumed import variant_of_resumed
    from evaltui.runs.matrices import find_matrix

    store = RunStore.of(agent.folder, settings, agent.module, agent.url)
    if (matrix := find_matrix(store, options.resume or "last")) is not None:
        return await resume_matrix(options, targets, agent, settings, matrix)
    with with_variant(options, agent, variant_of_resumed(options, store)) as agent:
        # Nothing is started before it is known that agent and sets are what they were.
        job = _prepare(options, targets, agent, settings)
        return await job.run(lambda: start_host(HostSettings(job.agent, settings.timeout)))


def _prepare(
    options: argparse.Namespace,
    targets: Sequence[ReportTarget],
    agent: AgentAddress,
    settings: RunSettings,
) -> Job:
    from evaltui.commands.job import prepare
    from evaltui.runs.selection import RunRequest

    return prepare(options, targets, RunRequest(agent, settings=settings))
