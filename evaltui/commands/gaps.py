"""`evaltui gaps`: changes of recorded conversations that eval sets do not notice, and what no case covers."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable

from evaltui.commands.exit_codes import HAD_ERRORS, SOME_FAILED
from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    colored,
    complain,
    parse_targets,
    report_width,
    require_one_agent,
    settings_of,
    write_stderr,
    write_text,
)
from evaltui.core.gaps.gaps import GapReport
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.project.workspace import open_workspace, select
from evaltui.reports.gaps_report import gap_lines, gaps_json
from evaltui.runs.gaps import MAX_RUNS, CasesInRuns, GapsOfRuns, cases_in_runs
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, short_list, show_rate
from evaltui.text.json_pieces import json_pieces
from evaltui.text.lines import draw


def gaps(options: argparse.Namespace) -> int:
    """Writes the gaps of the selected sets; returns the exit code."""
    try:
        targets = parse_targets(options.report, ("console", "json"))
        cases = _cases(options)
        report = asyncio.run(GapsOfRuns(options.agent_dir, cases).find())
    except (UsageError, SelectionError, EvalSetError, OSError, ValueError) as error:
        return complain("gaps", error)
    for target in targets:
        write_text(_rendered(report, cases, target), target)
    if not report.changes:
        write_stderr("evaltui gaps: nothing to change: no passing case with calls, responses or state")
        return HAD_ERRORS
    rate = report.noticed / report.changes
    if options.fail_under is not None and rate < options.fail_under:
        write_stderr(f"evaltui gaps: {show_rate(rate)} noticed, below --fail-under {options.fail_under:g}")
        return SOME_FAILED
    return 0


def _cases(options: argparse.Namespace) -> CasesInRuns:
    """The selected cases with their runs. Raises SelectionError where no run has any of them."""
    store = RunStore.of(options.agent_dir, settings_of(options), options.module, options.url)
    if not store.files():
        require_one_agent(options)
    selections = select(open_workspace(options.agent_dir), options.selectors)
    cases = cases_in_runs(options.agent_dir, store, selections, options.run or "")
    if not cases.in_runs:
        runs = f"run {options.run}" if options.run else f"last {counted(MAX_RUNS, 'run')}"
        sets = short_list([eval_set.case_path for eval_set, _ in selections])
        remedy = f"Run it first: `evaltui run {store.as_arguments}`"
        raise SelectionError(f"{store.title}: nothing of {sets} in the {runs}. {remedy}")
    return cases


def _rendered(report: GapReport, cases: CasesInRuns, target: ReportTarget) -> Iterable[str]:
    if target.format == "json":
        runs: dict[str, list[str]] = {}
        for item in cases.in_runs:
            runs.setdefault(item.plan.case_path, []).append(item.file.id)
        return json_pieces(gaps_json(report, runs))
    color = target.path is None and colored()
    lines = gap_lines(report, cases.runs, report_width(target))
    return (f"{draw(line, color=color)}\n" for line in lines)
