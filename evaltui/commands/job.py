"""A run from the command line: its request, its progress and its reports."""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.commands.baselines import (
    Baseline,
    alpha_of,
    baseline_of,
    comparison_with,
    later_run,
    require_effect,
    run_exit_code,
)
from evaltui.commands.chosen_cases import chosen_cases
from evaltui.commands.exit_codes import HAD_ERRORS, WRONG_USE
from evaltui.commands.metrics import announce
from evaltui.commands.output import ReportTarget, UsageError, stored_durations, write_reports, write_stderr
from evaltui.commands.progress import Progress
from evaltui.commands.repeat_arguments import confidence_of
from evaltui.commands.resumed import refusing, run_to_resume
from evaltui.commands.variants import refusing_variant
from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.project.agent_address import AgentAddress
from evaltui.project.run_settings import ConfigChoice
from evaltui.project.settings import secrets_of
from evaltui.reports.matrix_report import changes_in, notes_in
from evaltui.reports.stored import stored_report
from evaltui.runner.interrupts import INTERRUPTED
from evaltui.runner.plan import Noted
from evaltui.runner.starting import StartedHost
from evaltui.runs.execution import LogGrew, RunSelected, RunUpdate
from evaltui.runs.execution import run as run_and_keep
from evaltui.runs.history import StoredRun, read_run
from evaltui.runs.report import RunReport
from evaltui.runs.resuming import read_resumption, read_selection, resumable_header
from evaltui.runs.run_writer import RunLogError
from evaltui.runs.selection import RunRequest, SelectedRun, resume_request
from evaltui.runs.sets import FileSets
from evaltui.runs.shards import DurationsError, read_durations
from evaltui.text.values import visible

# New objects after which garbage is looked for: a case makes hundreds, which are soon gone without that.
_GARBAGE = 10_000


def prepare(options: argparse.Namespace, targets: Sequence[ReportTarget], request: RunRequest) -> Job:
    """The job that the options select, or the rest of an earlier run.

    Raises SelectionError, EvalSetError or UsageError for what cannot be run.
    """
    return job_of(options, targets, *completed_request(options, request))


def read_for_matrix(options: argparse.Namespace, request: RunRequest) -> tuple[RunRequest, FileSets]:
    """The request that all variants share, with its sets and configs read. Raises what `prepare` raises."""
    request, sets = completed_request(options, request)
    for path in request.cases:
        sets.open(path)
    return request, sets


def job_of(
    options: argparse.Namespace, targets: Sequence[ReportTarget], request: RunRequest, sets: FileSets
) -> Job:
    """The job of a request. Raises SelectionError or UsageError for a baseline that does not fit it."""
    baseline = baseline_of(options, later_run(request))
    # A run that is resumed without a baseline keeps its own, so that regressions are no later baseline.
    request = replace(request, baseline=baseline.run.id if baseline else request.baseline)
    return Job(options, targets, request, sets, baseline)


def completed_request(options: argparse.Namespace, request: RunRequest) -> tuple[RunRequest, FileSets]:
    """The request completed with the options, and the sets of its cases. Raises what `prepare` raises."""
    if options.resume or options.retry_errors:
        path = run_to_resume(options, request.store, of_traces=request.traces is not None)
        return resumed(options, request, path)
    choice = _config_choice(options)
    sets = FileSets(options.agent_dir, options.config, options.initial_session, choice)
    chosen = chosen_cases(options)
    request = replace(
        request,
        cases={eval_set.path: eval_ids for eval_set, eval_ids in chosen},
        only_failed=options.failed,
        settings=replace(request.settings, confidence=confidence_of(options), config_choice=choice),
        shard=options.shard,
        seconds=_durations(options),
        ship_env=options.ship_env,
    )
    return request, sets


def _config_choice(options: argparse.Namespace) -> ConfigChoice:
    """With ADK's verdicts, `adk eval` reads the config of a single set that is named by its file."""
    if not options.adk_verdicts:
        return "nearest"
    # Several words may name cases of one file.
    files = {word if Path(word).exists() else word.partition(":")[0] for word in options.selectors}
    return "beside" if len(files) < 2 and all(Path(file).exists() for file in files) else "defaults"


def _durations(options: argparse.Namespace) -> dict[CaseId, float]:
    file: Path | None = options.durations
    if file is None:
        return {}
    if options.shard is None:
        raise UsageError("--durations needs --shard I/N to divide the cases")
    try:
        return read_durations(file)
    except FileNotFoundError:
        # As in the first job ever, which finds none in its cache.
        write_stderr(f"evaltui run: {visible(str(file))} does not exist; the cases are divided by a hash")
        return {}
    except (OSError, DurationsError) as error:
        raise UsageError(f"--durations: {error}") from error


def resumed(
    options: argparse.Namespace,
    request: RunRequest,
    path: Path,
    *,
    of_other_variant: bool = False,
    sets: FileSets | None = None,
) -> tuple[RunRequest, FileSets]:
    """The request for the rest of a run, or for all of its cases in another variant.

    Raises what `prepare` raises.

    `sets` are those of another run of the same matrix, which were read before any of its agents started.
    """
    of_traces = request.traces is not None
    with refusing(options, path):
        header = resumable_header(path, of_traces=of_traces)
        if sets is None:
            config, session = (
                Path(file) if file else None for file in (header.config, header.initial_session)
            )
            sets = FileSets(options.agent_dir, config, session, header.settings.config_choice)
        if of_other_variant:
            resumption = read_selection(request.agent, path, sets)
        else:
            resumption = read_resumption(request.agent, path, sets, options.retry_errors, of_traces=of_traces)
    request = resume_request(request, resumption)
    return replace(request, ship_env=options.ship_env), sets


@dataclass(frozen=True)
class FinishedVariant:
    """A finished run of a matrix, as the report of the matrix shows it."""

    summary: RunSummary
    agent: str
    log: str | None
    changes: tuple[Mapping[str, str], ...]
    """Changes that the host made to the agent: `what`, `old` and `new`."""
    comparison: Comparison | None
    stopped: str = ""
    """The sentence why some of its cases have no result; "" where it was not stopped."""
    notes: tuple[str, ...] = ()


class Job:
    """One run on the command line: shows progress, writes the reports."""

    def __init__(
        self,
        options: argparse.Namespace,
        targets: Sequence[ReportTarget],
        request: RunRequest,
        sets: FileSets,
        baseline: Baseline | None,
    ) -> None:
        self._options = options
        self._targets = targets
        self._request = request
        self._sets = sets
        self._baseline = baseline
        # What is said on standard error begins with it.
        self._command = "run" if request.traces is None else "score"
        self._progress: Progress | None = None
        self.finished: FinishedVariant | None = None
        """The entry in the report of a matrix; None while the run is going on."""

    @property
    def agent(self) -> AgentAddress:
        return self._request.agent

    async def run(self, start_host: Callable[[], StartedHost] | None) -> int:
        """Runs the job and returns the exit code; after an interrupt the finished cases are reported.

        Without `start_host` no agent is run.
        """
        painting = asyncio.create_task(self._paint())
        try:
            with refusing_variant(self.agent):
                executed = await run_and_keep(self._request, self._sets, self._on_update, start_host)
        except RunLogError as error:
            write_stderr(f"evaltui {self._command}: {visible(str(error))}")
            return HAD_ERRORS
        finally:
            painting.cancel()
            if self._progress is not None:
                self._progress.end()
        # Reports of many cases need the memory of these.
        del self._sets
        if executed.problem:
            write_stderr(f"evaltui {self._command}: {executed.problem}. Continue with --resume last")
        run = read_run(executed.file)
        report = self._report(run)
        if self._request.matrix:
            self.finished = FinishedVariant(
                run.summary,
                report.agent,
                report.log,
                changes_in(executed.file),
                report.comparison,
                executed.file.header.stopped,
                notes_in(executed.file),
            )
        all_written = write_reports(report, self._targets, self._command)
        all_written &= stored_durations(self._options.store_durations, report.summaries, self._command)
        if executed.status is None:
            return HAD_ERRORS if executed.problem else INTERRUPTED
        if executed.stopped is not None and executed.stopped.is_refusal:
            return WRONG_USE
        code = 0 if self._options.exit_zero else self._exit_code(report)
        # Who asked for a report must not take its absence for a pass.
        return code if all_written else code or HAD_ERRORS

    async def _paint(self) -> None:
        """Repaints the progress while nothing happens, so that its clock goes on."""
        while True:
            await asyncio.sleep(1.0)
            if self._progress is not None:
                self._progress.tick()

    def _exit_code(self, report: RunReport) -> int:
        return run_exit_code(
            self._options,
            report.summaries,
            report.comparison,
            report.unscored,
            self._command,
            is_shard=self._request.shard is not None,
        )

    def _on_update(self, update: RunUpdate) -> None:
        match update:
            case RunSelected(selected):
                self._on_selected(selected)
                return
            case LogGrew():
                return
            case Noted(text, at_once=True):
                # On a terminal the line of the progress has it.
                if not sys.stderr.isatty():
                    write_stderr(f"evaltui {self._command}: {text}")
        if self._progress is not None:
            self._progress.on_update(update)

    def _on_selected(self, selected: SelectedRun) -> None:
        """Raises UsageError where a required metric cannot run, or no failure could be a regression."""
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        gc.enable()
        configs = (eval_set.config_in_use for eval_set in selected.plan.sets)
        for problem in (problem for config in configs if config.defaulted for problem in config.problems):
            print(f"evaltui {self._command}: {visible(problem.located())}", file=sys.stderr)
        of_shards = [check.metric for check in selected.undivided.checks] if selected.undivided else ()
        announce(selected.plan.checks, self._options.require, of_shards)
        if self._baseline is not None and self._options.fail_on_regression:
            require_effect(self._baseline.run, selected, alpha_of(self._options))
        variant = self.agent.variant
        title = variant.variant.name if variant and self._request.matrix else ""
        self._progress = Progress(sys.stderr, selected.plan.case_count, title)

    def _report(self, run: StoredRun) -> RunReport:
        secrets = secrets_of(self._request.agent_dir)
        report = stored_report(run, secrets)
        if self._baseline is None:
            return report
        comparison = secrets.masked(comparison_with(self._baseline, run.summary, self._options))
        notes = filter(None, [self._baseline.note])
        return replace(report, notes=(*notes, *report.notes), comparison=comparison)
