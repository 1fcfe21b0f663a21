"""`evaltui run --resume` of a matrix: the rest of each started variant, and the variants not started."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from evaltui.commands.baselines import baseline_of, comparison_with, run_exit_code, settled_baseline
from evaltui.commands.job import FinishedVariant, job_of, resumed
from evaltui.commands.matrix import not_started, run_variants, targets_of_matrix
from evaltui.commands.output import ReportTarget, UsageError
from evaltui.commands.resumed import NothingLeftError, require_own_options, resume_option
from evaltui.commands.variants import with_variant
from evaltui.core.model.limits import Amount
from evaltui.core.model.variants import Variant
from evaltui.project.agent_address import AgentAddress
from evaltui.project.run_settings import RunSettings
from evaltui.project.variants import hidden_in
from evaltui.reports.matrix_report import changes_in, notes_in
from evaltui.runner.gate import SharedByGates
from evaltui.runner.starting import HostSettings, start_host
from evaltui.runs.baselines import stored_run
from evaltui.runs.history import open_run
from evaltui.runs.matrices import StoredMatrix
from evaltui.runs.resuming import run_spending
from evaltui.runs.selection import RunRequest
from evaltui.runs.sets import FileSets
from evaltui.runs.store import RunStore


async def resume_matrix(
    options: argparse.Namespace,
    targets: Sequence[ReportTarget],
    agent: AgentAddress,
    settings: RunSettings,
    stored: StoredMatrix,
) -> int:
    """Runs the rest of a matrix and reports all of it; returns the worst exit code.

    Raises UsageError, also where nothing is left.
    """
    targets = targets_of_matrix(options, targets)
    require_own_options(options, of_traces=False)
    option = resume_option(options)
    rest = _Rest(options, agent, settings, stored)
    variants = rest.variants
    for variant in variants:
        if name := hidden_in(variant):
            raise UsageError(f"{option}: the value of {name} is secret, so the run log does not have it")
    if options.baseline is not None:
        options.baseline = settled_baseline(
            options.baseline, rest.store, variants, stored.id, stored.logs[0].header.kind
        )
    # Nothing is started before it is known that agents and sets are what they were.
    left = [await asyncio.to_thread(rest.is_left, variant) for variant in variants]
    if not any(left):
        what = "all of its runs are complete" if options.resume else "no run has errors to retry"
        raise UsageError(f"{option}: matrix {stored.id}: Nothing to resume: {what}")
    await asyncio.to_thread(rest.count_spent)
    return await run_variants(variants, rest.run, targets, agent, stored.id, rest.shared)


class _Rest:
    """The variants and cases of a matrix that have not run."""

    def __init__(
        self, options: argparse.Namespace, agent: AgentAddress, settings: RunSettings, stored: StoredMatrix
    ) -> None:
        self._options = options
        self._agent = agent
        self._settings = settings
        self._stored = stored
        self._logs = {log.name: log for log in stored.logs}
        self._sets: FileSets | None = None
        self.store = RunStore.of(agent.folder, settings)
        self.shared = SharedByGates()
        """The state that all resumed runs share."""

    @property
    def variants(self) -> list[Variant]:
        """All variants of the matrix; a started one as its run recorded it. Raises UsageError."""
        first = self._stored.logs[0].header
        try:
            declared = {variant.name: variant for variant in first.variants}
        except ValueError as error:
            raise UsageError(f"{resume_option(self._options)}: {self._stored.paths[0]}: {error}") from error
        started = {name: log.header.variant for name, log in self._logs.items() if log.header.variant}
        return list({**declared, **started}.values())

    def is_left(self, variant: Variant) -> bool:
        """Whether there are cases to run. Raises UsageError, SelectionError, EvalSetError."""
        with with_variant(self._options, self._agent, variant) as changed:
            try:
                self._request(changed, variant)
            except NothingLeftError:
                return False
        return True

    def count_spent(self) -> None:
        """Counts the spending of all earlier runs against the budget. Raises UsageError."""
        if self._settings.budget is None:
            return
        try:
            spent = map(run_spending, self._stored.paths)
            self.shared.spent = sum(spent, Amount())
        except (OSError, ValueError) as error:
            raise UsageError(f"{resume_option(self._options)}: {error}") from error

    async def run(self, variant: Variant) -> tuple[FinishedVariant | None, int]:
        if variant.name not in self._logs and self.shared.is_used_up:
            return not_started(self._options)
        with with_variant(self._options, self._agent, variant) as changed:
            try:
                request, sets = await asyncio.to_thread(self._request, changed, variant)
            except NothingLeftError:
                return await asyncio.to_thread(self._finished, variant)
            job = job_of(self._options, (), request, sets)
            code = await job.run(lambda: start_host(HostSettings(job.agent, self._settings.timeout)))
            return job.finished, code

    def _request(self, changed: AgentAddress, variant: Variant) -> tuple[RunRequest, FileSets]:
        log = self._logs.get(variant.name)
        request = RunRequest(changed, settings=self._settings, shared=self.shared)
        path = log.path if log else self._stored.paths[0]
        request, self._sets = resumed(
            self._options, request, path, of_other_variant=log is None, sets=self._sets
        )
        return request, self._sets

    def _finished(self, variant: Variant) -> tuple[FinishedVariant, int]:
        """The entry of a run that was complete before."""
        path = self._logs[variant.name].path
        opened = open_run(path)
        run = opened.summary
        base = baseline_of(self._options, stored_run(self.store, path))
        comparison = comparison_with(base, run, self._options)
        code = run_exit_code(self._options, run.cases.values(), comparison, (), "run")
        notes = notes_in(opened.file)
        changes = changes_in(opened.file)
        finished = FinishedVariant(run, run.circumstances.agent, str(path), changes, comparison, notes=notes)
        return finished, 0 if self._options.exit_zero else code
