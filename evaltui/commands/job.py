"""What one `evaltui run` runs, keeps and reports."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from evaltui.commands.progress import Progress
from evaltui.commands.reporting import ReportTarget, write_reports
from evaltui.commands.usage import UsageError
from evaltui.core.config import DEFAULT_CRITERIA
from evaltui.core.outcome import CaseResult, ErrorInfo, RunResult, Status, gravest
from evaltui.files.adk_results import app_name, write_adk_result
from evaltui.files.configs import ConfigInUse, find_config
from evaltui.files.eval_sets import load_eval_set
from evaltui.files.runs import find_run, read_run
from evaltui.files.workspace import open_workspace, select
from evaltui.reports.adk_result import eval_set_result
from evaltui.reports.model import RunReport, SetInfo, verdict
from evaltui.reports.run_log import LoggedRun
from evaltui.runner.plan import (
    AgentBroken,
    AgentLoaded,
    CaseDone,
    RunPlan,
    SetPlan,
    Update,
    run_plan,
)
from evaltui.runner.pool import StartedHost

INTERRUPTED = 130


@dataclass(frozen=True)
class ChosenSet:
    """A set that is run, and where it and its config came from."""

    path: Path
    plan: SetPlan
    config: ConfigInUse


def prepare(options: argparse.Namespace, targets: Sequence[ReportTarget]) -> Job:
    """Read what is selected. Raises SelectionError, EvalSetError or UsageError for what cannot be run."""
    chosen = _choose(options)
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
    )
    return Job(plan, chosen, targets, exit_zero=options.exit_zero)


def _choose(options: argparse.Namespace) -> list[ChosenSet]:
    agent_dir: Path = options.agent_dir
    explicit = find_config(agent_dir, options.config) if options.config else None
    workspace = open_workspace(agent_dir)
    chosen = []
    for entry, case_ids in select(workspace, options.selectors):
        eval_set = load_eval_set(entry.path, options.initial_session)
        config = explicit or find_config(entry.path)
        cases = tuple(case for case in eval_set.eval_cases if case_ids is None or case.eval_id in case_ids)
        plan = SetPlan(eval_set.eval_set_id, cases, config.config)
        chosen.append(ChosenSet(entry.path, plan, config))
    return _only_failed(agent_dir, chosen) if options.failed else chosen


def _only_failed(agent_dir: Path, chosen: Sequence[ChosenSet]) -> list[ChosenSet]:
    last = find_run(agent_dir, "last")
    if last is None:
        raise UsageError(f"--failed: no earlier run of {agent_dir} is known")
    passed = {
        (result["eval_set_id"], result["eval_id"])
        for result in read_run(last).results
        if result["status"] == Status.PASSED
    }
    left = []
    for one in chosen:
        cases = tuple(case for case in one.plan.cases if (one.plan.eval_set_id, case.eval_id) not in passed)
        if cases:
            left.append(replace(one, plan=replace(one.plan, cases=cases)))
    if not left:
        raise UsageError(
            "--failed: every selected case succeeded in the last run, so there is nothing to run"
        )
    return left


class Job:
    """One run on the command line: shows progress, keeps the log, writes the reports."""

    def __init__(
        self,
        plan: RunPlan,
        chosen: Sequence[ChosenSet],
        targets: Sequence[ReportTarget],
        *,
        exit_zero: bool,
    ) -> None:
        self._plan = plan
        self._chosen = chosen
        self._targets = targets
        self._exit_zero = exit_zero
        self._results: list[CaseResult] = []
        self._agent = plan.agent_dir.resolve().stem
        self._broken: ErrorInfo | None = None
        self._notes: list[str] = []
        self._progress = Progress(sys.stderr, plan.case_count)
        self._log: LoggedRun | None = None

    async def run(self, first: StartedHost) -> int:
        """The exit code; interrupted, what is finished by then is reported."""
        started = datetime.now(UTC)
        try:
            self._log = LoggedRun.start(self._plan, started)
        except OSError as error:
            self._notes.append(f"this run is not kept: {error}")
        interrupted = False
        try:
            result = await run_plan(self._plan, self._take, first=first)
        except asyncio.CancelledError:
            interrupted = True
            result = RunResult(tuple(self._results), gravest(case.status for case in self._results))
            self._notes.append(
                f"interrupted: {len(self._results)} of {self._plan.case_count} cases were finished"
            )
        finally:
            self._progress.end()
        if self._log is not None:
            self._log.close(None if interrupted else result.status)
        seconds = time.monotonic() - first.settings.started
        report = _kept_for_adk(self._report(result, started, seconds), self._plan.agent_dir)
        write_reports(report, self._targets)
        if interrupted:
            return INTERRUPTED
        return 0 if self._exit_zero else exit_code(result)

    def _take(self, update: Update) -> None:
        match update:
            case CaseDone(result):
                self._results.append(result)
            case AgentLoaded(info):
                self._agent = info["name"]
            case AgentBroken(error):
                self._broken = error
        if self._log is not None:
            self._log.take(update)
        self._progress.take(update)

    def _report(self, result: RunResult, started: datetime, seconds: float) -> RunReport:
        return RunReport(
            result=result,
            agent=self._agent,
            started=started,
            seconds=seconds,
            sets=tuple(_set_info(one) for one in self._chosen),
            log=str(self._log.path) if self._log is not None else None,
            parallel=self._plan.parallel,
            runs=self._plan.runs or 1,
            notes=tuple(self._notes),
        )


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


def _set_info(one: ChosenSet) -> SetInfo:
    return SetInfo(
        eval_set_id=one.plan.eval_set_id,
        path=one.path,
        config_path=one.config.path,
        effective=one.config.config.model_dump(mode="json", exclude_defaults=True),
        defaulted=tuple(DEFAULT_CRITERIA) if one.config.defaulted else (),
        cases={case.eval_id: case for case in one.plan.cases},
    )
