"""`evaltui run` with several variants: one after the other, each a run of its own, reported as a matrix."""

from __future__ import annotations

import argparse
import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from evaltui.commands.baselines import settled_baseline
from evaltui.commands.exit_codes import HAD_ERRORS, INTERRUPTED, SOME_FAILED, WRONG_USE
from evaltui.commands.job import FinishedVariant, job_of, read_for_matrix
from evaltui.commands.output import ReportTarget, UsageError, complain, matrix_targets, write_matrix
from evaltui.commands.variants import refusing_variant, with_variant
from evaltui.core.compare.matrix import Matrix, matrix_of
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.variants import Variant
from evaltui.project.agent_address import AgentAddress
from evaltui.project.run_settings import RunSettings
from evaltui.project.settings import secrets_of
from evaltui.project.variants import without_secrets
from evaltui.reports.matrix_report import MatrixReport, notes_on_runs
from evaltui.runner.gate import SharedByGates
from evaltui.runner.starting import HostSettings, require_variant, start_host
from evaltui.runs.matrices import usual_base
from evaltui.runs.run_kind import RunKind
from evaltui.runs.selection import RunRequest
from evaltui.runs.store import RunStore
from evaltui.text.figures import short_list

# Of the exit codes of several runs, the first one that is there.
WORST_FIRST = (INTERRUPTED, WRONG_USE, SOME_FAILED, HAD_ERRORS, 0)
# What the agent object itself has to fit, which shows only once it is imported.
_IN_AGENT = {"model", "instruction", "config", "env"}
_CHECKED_AT_ONCE = 2


RunVariant = Callable[[Variant], Awaitable[tuple[FinishedVariant | None, int]]]
"""Runs a variant; what the report says of it, and its exit code. The report says nothing of one that is not
begun because the budget is spent. Raises UsageError or SelectionError for one that cannot be run."""


@dataclass
class _Runs:
    """The variants that were run so far."""

    left: list[Variant]
    not_started: list[Variant] = field(default_factory=list)
    """The variants that the spent budget left out."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why other variants could not be run, by name."""
    finished: list[FinishedVariant] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)

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
    targets = targets_of_matrix(options, targets)
    started = datetime.now(UTC)
    matrix = f"{started.strftime('%Y%m%dT%H%M%S')}Z-{uuid.uuid4().hex[:6]}"
    if options.baseline is not None:
        store = RunStore.of(agent.folder, settings)
        kind = RunKind.of(agent, adk_verdicts=options.adk_verdicts)
        options.baseline = settled_baseline(options.baseline, store, variants, matrix, kind)
    shared = SharedByGates()
    request = RunRequest(
        agent,
        settings=settings,
        matrix=matrix,
        variants=tuple(map(without_secrets, variants)),
        shared=shared,
    )
    # Once, before an agent is imported: it could change them for the next variant.
    request, sets = await asyncio.to_thread(read_for_matrix, options, request)
    await _check(options, agent, settings, variants)

    async def run_one(variant: Variant) -> tuple[FinishedVariant | None, int]:
        if shared.is_used_up:
            return not_started(options)
        with with_variant(options, agent, variant) as changed:
            job = await asyncio.to_thread(job_of, options, (), replace(request, agent=changed), sets)
            code = await job.run(lambda: start_host(HostSettings(changed, settings.timeout)))
            return job.finished, code

    return await run_variants(variants, run_one, targets, agent, matrix, shared)


def not_started(options: argparse.Namespace) -> tuple[None, int]:
    """No result, and the exit code of a variant for which no budget is left."""
    return None, 0 if options.exit_zero else HAD_ERRORS


def targets_of_matrix(options: argparse.Namespace, targets: Sequence[ReportTarget]) -> Sequence[ReportTarget]:
    """The targets of a matrix. Raises UsageError for an output that only single runs have."""
    if options.store_durations:
        raise UsageError("--store-durations: each variant takes its own time. Run one --variant at a time")
    return matrix_targets(targets)


async def run_variants(
    variants: Sequence[Variant],
    run_one: RunVariant,
    targets: Sequence[ReportTarget],
    agent: AgentAddress,
    matrix: str,
    shared: SharedByGates,
) -> int:
    """Run variants one after the other and report them together; the worst of their exit codes."""
    began, started = time.monotonic(), datetime.now(UTC)
    runs = _Runs(left=list(variants))
    with suppress(asyncio.CancelledError):
        await _run_all(run_one, runs)
    if runs.left:
        runs.codes.append(INTERRUPTED)
    for why in dict.fromkeys(runs.refused.values()):
        names = [name for name, other in runs.refused.items() if other == why]
        complain("run", why if len(names) == len(variants) else f"variant {short_list(names)}: {why}")
    if not runs.finished:
        return runs.code
    report = _report(matrix, runs, started, time.monotonic() - began, shared)
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
                host = start_host(HostSettings(changed, settings.timeout))
                try:
                    with refusing_variant(changed):
                        await require_variant(host)
                finally:
                    await host.host.kill()

    checks = await asyncio.gather(*map(check, variants), return_exceptions=True)
    wrong = [error for error in checks if error is not None]
    if other := next((error for error in wrong if not isinstance(error, UsageError)), None):
        raise other
    if wrong:
        raise UsageError("\n".join(map(str, wrong)))


async def _run_all(run_one: RunVariant, runs: _Runs) -> None:
    while runs.left:
        variant = runs.left[0]
        try:
            finished, code = await run_one(variant)
        except (UsageError, SelectionError) as error:
            # Such as a gate without effect. It says nothing of the others.
            runs.refused[variant.name] = str(error)
            finished, code = None, WRONG_USE
        del runs.left[0]
        if finished:
            runs.finished.append(finished)
        elif variant.name not in runs.refused:
            runs.not_started.append(variant)
        runs.codes.append(code)
        if code == INTERRUPTED:
            return


def _notes(matrix: Matrix, matrix_id: str, runs: _Runs, shared: SharedByGates) -> Iterator[str]:
    yield from notes_on_runs(matrix, [run.notes for run in runs.finished])
    if runs.not_started and shared.ledger is not None:
        names = short_list([variant.name for variant in runs.not_started])
        yield f"not run: {names}: budget of {shared.ledger.budget} reached, {shared.ledger} spent"
    yield from (f"not run: {name}: {why}" for name, why in runs.refused.items())
    if runs.left:
        yield f"interrupted: not run: {short_list([variant.name for variant in runs.left])}"
    if INTERRUPTED in runs.codes:
        yield f"`--resume {matrix_id}` runs the rest"
    elif shared.is_used_up and (runs.not_started or any(run.stopped for run in runs.finished)):
        yield f"`--resume {matrix_id}` with a higher --budget runs the rest"


def _report(
    matrix_id: str, runs: _Runs, started: datetime, seconds: float, shared: SharedByGates
) -> MatrixReport:
    done = runs.finished
    summaries = [run.summary for run in done]
    not_run = [*runs.refused, *(variant.name for variant in (*runs.not_started, *runs.left))]
    matrix = matrix_of(summaries, usual_base(summaries), not_run)
    return MatrixReport(
        matrix_id,
        matrix,
        next(run.agent for run in done),
        started,
        seconds,
        tuple(run.log for run in done),
        tuple(run.changes for run in done),
        tuple(run.comparison for run in done),
        tuple(_notes(matrix, matrix_id, runs, shared)),
    )
