"""What one `evaltui run` runs, keeps and reports."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaltui.commands.choosing import ChosenSet, choose
from evaltui.commands.preflight import announce
from evaltui.commands.progress import Progress
from evaltui.commands.reporting import ReportTarget, write_reports
from evaltui.commands.resume import Begun, Known, carried, choose_again, known_results
from evaltui.commands.usage import UsageError
from evaltui.core.compare.run_comparison import Circumstances, Comparison, RunSummary, compare, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import DEFAULT_CRITERIA
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RunResult, Status, worst_status
from evaltui.core.recordings.choices import DEFAULT_MODE
from evaltui.core.recordings.counts import CallCounts
from evaltui.files.agent_files import files_of
from evaltui.files.folders import app_name
from evaltui.files.secrets import secrets_of
from evaltui.files.workspace import SelectionError
from evaltui.reports.model import RunReport, verdict
from evaltui.runner.parent.interrupts import INTERRUPTED
from evaltui.runner.parent.metric_facts import checked
from evaltui.runner.parent.pool import StartedHost
from evaltui.runner.plan import (
    AgentBroken,
    AgentLoaded,
    CaseDone,
    Happened,
    Noted,
    RepeatDone,
    RunPlan,
    Update,
    run_plan,
)
from evaltui.runs.adk_document import eval_set_result
from evaltui.runs.adk_results import write_adk_result
from evaltui.runs.history import find_run, open_run
from evaltui.runs.logged_run import LoggedRun
from evaltui.runs.set_info import SetInfo

HAD_ERRORS = 3


@dataclass(frozen=True)
class Ending:
    """What a run is reported as, and what its exit code says."""

    targets: Sequence[ReportTarget]
    exit_zero: bool
    baseline: RunSummary | None = None
    fail_on_regression: bool = False


@dataclass(frozen=True)
class Resumed:
    """The run that this one goes on with, and which runs of cases are taken over from it."""

    begun: Begun
    known: Known


def prepare(options: argparse.Namespace, targets: Sequence[ReportTarget], begun: Begun | None = None) -> Job:
    """Read what is selected, or what an earlier run was begun with.

    Raises SelectionError, EvalSetError or UsageError for what cannot be run.
    """
    chosen = choose_again(begun, options) if begun else choose(options)
    resumed = Resumed(begun, known_results(begun, chosen, options)) if begun else None
    plan = RunPlan(
        agent_dir=options.agent_dir,
        sets=tuple(one.plan for one in chosen),
        runs=options.runs,
        pass_if=options.pass_if,
        parallel=options.parallel,
        workers=options.workers,
        timeout=options.timeout,
        agent_name=options.agent,
        adk_verdicts=options.adk_verdicts,
        known=resumed.known if resumed else {},
        record=options.record or DEFAULT_MODE,
        tools=options.tools,
    )
    plan = checked(plan)
    announce(plan.checks, options.require)
    ending = Ending(targets, options.exit_zero, _baseline(options), options.fail_on_regression)
    files = {"config": options.config, "initial_session": options.initial_session}
    header = {name: str(path.resolve()) for name, path in files.items() if path}
    return Job(plan, chosen, ending, header, resumed)


def _baseline(options: argparse.Namespace) -> RunSummary | None:
    if options.baseline is None:
        if options.fail_on_regression:
            raise UsageError("--fail-on-regression needs --baseline RUN to compare with")
        return None
    try:
        return open_run(find_run(options.agent_dir, options.baseline)).summary
    except SelectionError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"--baseline: {error}") from error


class Job:
    """One run on the command line: shows progress, keeps the log, writes the reports."""

    def __init__(
        self,
        plan: RunPlan,
        chosen: Sequence[ChosenSet],
        ending: Ending,
        header: Mapping[str, Any],
        resumed: Resumed | None,
    ) -> None:
        self._plan = plan
        self._chosen = chosen
        self._ending = ending
        self._header = header
        self._resumed = resumed
        self._results: list[CaseResult] = []
        self._agent: Mapping[str, Any] = {}
        self._broken: ErrorInfo | None = None
        self._notes: list[str] = []
        self._calls = CallCounts()
        self._progress = Progress(sys.stderr, plan.case_count)
        self._log: LoggedRun | None = None

    async def run(self, first: StartedHost) -> int:
        """The exit code; interrupted, what is finished by then is reported."""
        started = datetime.now(UTC)
        self._start_log(started)
        interrupted = False
        try:
            result = await run_plan(self._plan, self._take, first=first)
        except asyncio.CancelledError:
            interrupted = True
            result = RunResult(tuple(self._results), worst_status(case.status for case in self._results))
            self._notes.append(
                f"interrupted: {len(self._results)} of {self._plan.case_count} cases were finished"
            )
        finally:
            self._progress.end()
        self._keep(lambda log: log.close(None if interrupted else result.status))
        seconds = time.monotonic() - first.settings.started
        report = self._without_secrets(self._report(result, started, seconds))
        report = _kept_for_adk(report, self._plan.agent_dir)
        all_written = write_reports(report, self._ending.targets)
        if interrupted:
            return INTERRUPTED
        code = 0 if self._ending.exit_zero else self._exit_code(report)
        # Who asked for a report must not take its absence for a pass.
        return code if all_written else code or HAD_ERRORS

    def _without_secrets(self, report: RunReport) -> RunReport:
        """The report as it may be written; what was scored stays what it was."""
        secrets = secrets_of(self._plan.agent_dir)
        texts = (one.path.read_text(encoding="utf-8", errors="replace") for one in report.sets)
        if self._log is None or self._log.has_masked or any(map(secrets.may_be_in, texts)):
            return secrets.masked(report)
        # Thousands of cases need not be looked through: the log has, and found nothing.
        return replace(report, notes=secrets.masked(report.notes), checks=secrets.masked(report.checks))

    def _start_log(self, started: datetime) -> None:
        resumed = self._resumed
        try:
            begun = {"resumed": resumed.begun.id} if resumed else {}
            self._log = LoggedRun.start(self._plan, started, {**self._header, **begun})
            if resumed:
                self._log.carry_over(resumed.begun.path, set(carried(resumed.known)))
        except OSError as error:
            self._notes.append(f"this run is not kept: {error}")
        if resumed:
            done = len(list(carried(resumed.known)))
            self._notes.append(f"goes on with run {resumed.begun.id}, of which {done} results were kept")

    def _exit_code(self, report: RunReport) -> int:
        if report.comparison is not None and self._ending.fail_on_regression:
            return 1 if report.comparison.regressions else 0
        return exit_code(report.result)

    def _take(self, update: Update) -> None:
        match update:
            case CaseDone(result):
                self._results.append(result)
            case AgentLoaded(info):
                self._agent = info
            case AgentBroken(error):
                self._broken = error
            case Happened(event):
                self._calls.take(event)
            case RepeatDone(result=result):
                self._calls.take_result(result)
            case Noted(text):
                self._notes.append(text)
        self._keep(lambda log: log.take(update))
        self._progress.take(update)

    def _keep(self, write: Callable[[LoggedRun], None]) -> None:
        """A log that cannot be written is worth a note; the run goes on."""
        if self._log is None:
            return
        try:
            write(self._log)
        except OSError as error:
            self._notes.append(f"Run log incomplete: {error}")
            self._log = None

    def _report(self, result: RunResult, started: datetime, seconds: float) -> RunReport:
        return RunReport(
            result=result,
            agent=self._agent.get("name", self._plan.agent_dir.resolve().stem),
            started=started,
            seconds=seconds,
            sets=tuple(_set_info(one, self._plan.path_of(one.plan)) for one in self._chosen),
            log=str(self._log.path) if self._log is not None else None,
            parallel=self._plan.parallel,
            notes=tuple(self._notes),
            comparison=self._comparison(result),
            record=self._plan.record,
            calls=self._calls,
            checks=self._plan.checks,
        )

    def _comparison(self, result: RunResult) -> Comparison | None:
        if self._ending.baseline is None:
            return None
        paths = [(one, self._plan.path_of(one.plan)) for one in self._chosen]
        cases = {case.id: summarize(case) for case in result.cases}
        selected = {CaseId(path, case.eval_id) for one, path in paths for case in one.plan.cases}
        summary = RunSummary(
            id=self._log.path.stem if self._log is not None else "this run",
            cases=cases,
            unfinished=frozenset(selected - cases.keys()),
            whole=frozenset(path for one, path in paths if one.plan.whole),
            circumstances=Circumstances(
                files=files_of(self._plan.agent_dir),
                agent=self._agent.get("name", ""),
                model=self._agent.get("model", ""),
                configs={
                    path: one.plan.config.model_dump(mode="json", exclude_defaults=True)
                    for one, path in paths
                },
                adk_verdicts=self._plan.adk_verdicts,
            ),
        )
        return compare(self._ending.baseline, summary)


def _kept_for_adk(report: RunReport, agent_dir: Path) -> RunReport:
    """Leave the results where `adk web` looks for them; where that fails, the report gets a note."""
    try:
        for info, cases in report.by_set():
            if cases:
                write_adk_result(agent_dir, eval_set_result(app_name(agent_dir), info, cases, time.time()))
    except OSError as error:
        return replace(report, notes=(*report.notes, f"no result file for adk web: {error}"))
    return report


def exit_code(result: RunResult) -> int:
    """0 all passed (FLAKY by its policy), 1 some case failed, 3 errors or unevaluated ones and no failure."""
    verdicts = {verdict(case) for case in result.cases}
    if Status.FAILED in verdicts:
        return 1
    return 0 if verdicts == {Status.PASSED} else 3


def _set_info(one: ChosenSet, path: str) -> SetInfo:
    return SetInfo(
        eval_set_id=one.plan.eval_set_id,
        path=one.path,
        config_path=one.config.path,
        effective=one.config.config.model_dump(mode="json", exclude_defaults=True),
        defaulted=tuple(DEFAULT_CRITERIA) if one.config.defaulted else (),
        cases={case.eval_id: case for case in one.plan.cases},
        passed_over=one.config.passed_over,
        case_path=path,
    )
