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
from evaltui.runs.gaps import SetInRun, find_gaps, sets_in_runs
from evaltui.runs.store import RunStore
from evaltui.text.figures import short_list, show_rate
from evaltui.text.json_pieces import json_pieces
from evaltui.text.lines import draw


def gaps(options: argparse.Namespace) -> int:
    """Writes the gaps of the selected sets; returns the exit code."""
    try:
        targets = parse_targets(options.report, ("console", "json"))
        sets = _sets(options)
        report = asyncio.run(find_gaps(options.agent_dir, sets))
    except (UsageError, SelectionError, EvalSetError, OSError, ValueError) as error:
        return complain("gaps", error)
    for target in targets:
        write_text(_rendered(report, sets, target), target)
    if not report.changes:
        write_stderr("evaltui gaps: nothing to change: no passing case with calls, responses or state")
        return HAD_ERRORS
    rate = report.noticed / report.changes
    if options.fail_under is not None and rate < options.fail_under:
        write_stderr(f"evaltui gaps: {show_rate(rate)} noticed, below --fail-under {options.fail_under:g}")
        return SOME_FAILED
    return 0


def _sets(options: argparse.Namespace) -> list[SetInRun]:
    """The selected sets that have a run. Raises SelectionError where none has."""
    store = RunStore.of(options.agent_dir, settings_of(options), options.module, options.url)
    if not store.files():
        require_one_agent(options)
    chosen = select(open_workspace(options.agent_dir), options.selectors)
    selected = {eval_set.case_path: (eval_set.path, eval_ids) for eval_set, eval_ids in chosen}
    sets = list(sets_in_runs(options.agent_dir, store, selected, options.run or ""))
    if not sets:
        runs = f"run {options.run}" if options.run else f"no run of {store.title}"
        does = "has no" if options.run else "has"
        remedy = f"Run it first: `evaltui run {options.agent_dir}`"
        raise SelectionError(f"{runs} {does} results of {short_list(list(selected))}. {remedy}")
    in_runs = {item.plan.case_path for item in sets}
    for path in selected.keys() - in_runs:
        write_stderr(f"evaltui gaps: {path}: no run has its results; left out")
    return sets


def _rendered(report: GapReport, sets: list[SetInRun], target: ReportTarget) -> Iterable[str]:
    if target.format == "json":
        runs = {item.plan.case_path: item.file.id for item in sets}
        return json_pieces(gaps_json(report, runs))
    color = target.path is None and colored()
    runs_in_words = list(dict.fromkeys(item.run for item in sets))
    lines = gap_lines(report, runs_in_words, report_width(target))
    return (f"{draw(line, color=color)}\n" for line in lines)
