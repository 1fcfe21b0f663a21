"""`evaltui run` with several variants: one after the other, each a run of its own, reported as a matrix."""

from __future__ import annotations

import argparse
import asyncio
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evaltui.commands.exit_codes import HAD_ERRORS, INTERRUPTED, SOME_FAILED, WRONG_USE
from evaltui.commands.job import prepare
from evaltui.commands.matrix_output import matrix_targets, write_matrix
from evaltui.commands.output import UsageError
from evaltui.commands.variants import require_variant, with_variant
from evaltui.core.compare.matrix import matrix_of
from evaltui.core.model.variants import Variant
from evaltui.files.agent_address import AgentAddress
from evaltui.files.run_settings import RunSettings
from evaltui.files.settings import secrets_of
from evaltui.reports.matrix_report import MatrixReport
from evaltui.runner.parent.pool import HostSettings, StartedHost, start_host
from evaltui.runner.parent.supervisor import IMPORT_TIMEOUT
from evaltui.runs.matrices import usual_base
from evaltui.text.figures import some_of

if TYPE_CHECKING:
    from evaltui.commands.job import Job
    from evaltui.commands.output import ReportTarget

# Of the exit codes of several runs, the first one that is there.
WORST_FIRST = (INTERRUPTED, WRONG_USE, SOME_FAILED, HAD_ERRORS, 0)
# What the agent object itself has to fit, which shows only once it is imported.
_IN_AGENT = {"model", "instruction", "config", "env"}
_CHECKED_AT_ONCE = 2
_NOT_OF_A_MATRIX = {
    "failed": "--failed: each variant has failed cases of its own",
    "store_durations": "--store-durations: each variant takes its own time",
}


@dataclass
class _Runs:
    """The variants that were run so far."""

    jobs: list[Job] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    left: list[Variant] = field(default_factory=list)

    @property
    def code(self) -> int:
        return next(code for code in WORST_FIRST if code in self.codes)


async def run_matrix(
    options: argparse.Namespace,
    targets: Sequence[ReportTarget],
    agent: AgentAddress,
    settings: RunSettings,
    variants: Sequence[Variant],
) -> int:
    """Run the variants and report them together; the worst of their exit codes. Raises UsageError."""
    for name, why in _NOT_OF_A_MATRIX.items():
        if getattr(options, name):
            raise UsageError(f"{why}. Run one --variant at a time")
    targets = matrix_targets(targets)
    began, started = time.monotonic(), datetime.now(UTC)
    await _check(options, agent, settings, variants)
    matrix = f"{started.strftime('%Y%m%dT%H%M%S')}Z-{uuid.uuid4().hex[:6]}"
    runs = _Runs(left=list(variants))
    with suppress(asyncio.CancelledError):
        await _run_all(options, agent, settings, matrix, runs)
    if runs.left:
        runs.codes.append(INTERRUPTED)
    report = _report(matrix, runs, started, time.monotonic() - began)
    if report is None:
        return runs.code
    all_written = write_matrix(secrets_of(agent.folder).masked(report), targets, "run")
    return runs.code if all_written else runs.code or HAD_ERRORS


async def _check(
    options: argparse.Namespace, agent: AgentAddress, settings: RunSettings, variants: Sequence[Variant]
) -> None:
    """Raises UsageError before anything is run where a variant does not fit the agent."""
    slots = asyncio.Semaphore(_CHECKED_AT_ONCE)

    async def check(variant: Variant) -> None:
        async with slots:
            with with_variant(options, agent, variant) as changed:
                if not any(change.kind in _IN_AGENT for change in variant.changes):
                    return
                host = _start_host(changed, settings)
                try:
                    await require_variant(host)
                finally:
                    await host.host.kill()

    checks = await asyncio.gather(*map(check, variants), return_exceptions=True)
    wrong = [one for one in checks if one is not None]
    if other := next((one for one in wrong if not isinstance(one, UsageError)), None):
        raise other
    if wrong:
        raise UsageError("\n".join(map(str, wrong)))


async def _run_all(
    options: argparse.Namespace, agent: AgentAddress, settings: RunSettings, matrix: str, runs: _Runs
) -> None:
    while runs.left:
        with with_variant(options, agent, runs.left[0]) as changed:
            job, code = await _run_one(options, changed, settings, matrix)
        del runs.left[0]
        runs.jobs.append(job)
        runs.codes.append(code)
        if code == INTERRUPTED:
            return


async def _run_one(
    options: argparse.Namespace, agent: AgentAddress, settings: RunSettings, matrix: str
) -> tuple[Job, int]:
    """The run of a variant that is over, and its exit code."""
    first = _start_host(agent, settings)
    try:
        job = await asyncio.to_thread(_prepare, options, agent, settings, matrix)
    except BaseException:
        await first.host.kill()
        raise
    return job, await job.run(lambda: first)


def _prepare(options: argparse.Namespace, agent: AgentAddress, settings: RunSettings, matrix: str) -> Job:
    return prepare(options, (), agent, settings, matrix=matrix)


def _start_host(agent: AgentAddress, settings: RunSettings) -> StartedHost:
    return start_host(HostSettings(agent, settings.timeout, IMPORT_TIMEOUT, time.monotonic()))


def _report(matrix: str, runs: _Runs, started: datetime, seconds: float) -> MatrixReport | None:
    """None where no variant was begun."""
    done = [job.finished for job in runs.jobs if job.finished is not None]
    if not done:
        return None
    left = some_of([variant.name for variant in runs.left])
    notes = (f"interrupted: not run: {left}",) if runs.left else ()
    summaries = [one.summary for one in done]
    comparisons = tuple(one.comparison for one in done)
    return MatrixReport(
        matrix,
        matrix_of(summaries, usual_base(summaries)),
        next(one.agent for one in done),
        started,
        seconds,
        tuple(one.log for one in done),
        tuple(one.changes for one in done),
        comparisons if any(comparisons) else (),
        notes,
    )
