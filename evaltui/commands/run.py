"""`evaltui run`: select, run, report."""

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
from evaltui.commands.reporting import ReportTarget, UsageError, parse_targets, write_reports
from evaltui.core.config import DEFAULT_CRITERIA, EvalConfig
from evaltui.core.outcome import CaseResult, RunResult, Status, gravest
from evaltui.core.problems import EvalSetError
from evaltui.files.configs import ConfigInUse, find_config
from evaltui.files.eval_sets import load_eval_set
from evaltui.files.runs import find_run, read_run
from evaltui.files.workspace import SelectionError, agents_in, open_workspace, select
from evaltui.reports.model import RunReport, SetInfo, verdict
from evaltui.reports.run_log import LoggedRun
from evaltui.runner.plan import AgentLoaded, CaseDone, RunPlan, SetPlan, Update, run_plan

WRONG_USE = 2
INTERRUPTED = 130


@dataclass(frozen=True)
class _Chosen:
    """A set that is run, and where it and its config came from."""

    path: Path
    plan: SetPlan
    config: ConfigInUse


def run(options: argparse.Namespace) -> int:
    """Run what the options select; returns the exit code."""
    try:
        targets = parse_targets(options.report)
        chosen = _choose(options)
    except (UsageError, SelectionError, EvalSetError) as error:
        for line in str(error).splitlines():
            print(f"evaltui run: {line}", file=sys.stderr)
        return WRONG_USE
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
    return _run_and_report(plan, chosen, targets, exit_zero=options.exit_zero)


def _choose(options: argparse.Namespace) -> list[_Chosen]:
    agent_dir: Path = options.agent_dir
    if not agent_dir.exists():
        raise UsageError(f"{agent_dir} does not exist")
    if several := agents_in(agent_dir):
        raise UsageError(f"{agent_dir} holds several agents: {', '.join(several)}; name one of them")
    explicit = find_config(agent_dir, options.config) if options.config else None
    workspace = open_workspace(agent_dir, options.selectors)
    chosen = []
    for entry, case_ids in select(workspace, options.selectors):
        eval_set = load_eval_set(entry.path, options.initial_session)
        config = explicit or find_config(entry.path)
        cases = tuple(case for case in eval_set.eval_cases if case_ids is None or case.eval_id in case_ids)
        plan = SetPlan(eval_set.eval_set_id, cases, config.config)
        chosen.append(_Chosen(entry.path, plan, config))
    return _only_failed(agent_dir, chosen) if options.failed else chosen


def _only_failed(agent_dir: Path, chosen: Sequence[_Chosen]) -> list[_Chosen]:
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
        raise UsageError("--failed: every selected case passed in the last run, so there is nothing to run")
    return left


def _run_and_report(
    plan: RunPlan, chosen: Sequence[_Chosen], targets: Sequence[ReportTarget], *, exit_zero: bool
) -> int:
    started = datetime.now(UTC)
    began = time.monotonic()
    results: list[CaseResult] = []
    agent_name = plan.agent_dir.resolve().stem
    progress = Progress(sys.stderr, plan.case_count)
    notes: list[str] = []
    try:
        log = LoggedRun.start(plan, started)
    except OSError as error:
        log = None
        notes.append(f"this run is not kept: {error}")

    def take(update: Update) -> None:
        nonlocal agent_name
        match update:
            case CaseDone(result):
                results.append(result)
            case AgentLoaded(info):
                agent_name = info["name"]
        if log is not None:
            log.take(update)
        progress.take(update)

    interrupted = False
    try:
        result = asyncio.run(run_plan(plan, take))
    except KeyboardInterrupt:
        interrupted = True
        result = RunResult(tuple(results), gravest(case.status for case in results))
        notes.append(f"interrupted: {len(results)} of {plan.case_count} cases were finished")
    finally:
        progress.end()
        if log is not None:
            log.close()
    report = RunReport(
        result=result,
        agent=agent_name,
        started=started,
        seconds=time.monotonic() - began,
        sets=tuple(_set_info(one) for one in chosen),
        log=str(log.path) if log is not None else None,
        parallel=plan.parallel,
        runs=plan.runs or 1,
        notes=tuple(notes),
    )
    write_reports(report, targets)
    if interrupted:
        return INTERRUPTED
    return 0 if exit_zero else exit_code(result)


def exit_code(result: RunResult) -> int:
    """0 all passed (FLAKY by its policy), 1 some case failed, 3 errors or unevaluated ones and no failure."""
    verdicts = {verdict(case) for case in result.cases}
    if Status.FAILED in verdicts:
        return 1
    return 0 if verdicts == {Status.PASSED} else 3


def _set_info(one: _Chosen) -> SetInfo:
    config: EvalConfig = one.config.config
    return SetInfo(
        eval_set_id=one.plan.eval_set_id,
        path=one.path,
        config_path=one.config.path,
        effective=config.model_dump(mode="json", exclude_defaults=True),
        defaulted=tuple(DEFAULT_CRITERIA) if one.config.defaulted else (),
    )
