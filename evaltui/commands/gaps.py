"""`evaltui gaps`: changes of recorded conversations that eval sets do not notice, and what no case covers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace

from evaltui.commands.exit_codes import HAD_ERRORS, SOME_FAILED
from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    agent_of,
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
from evaltui.runner.interrupts import run_interruptible
from evaltui.runs.gaps import MAX_RUNS, CasesInRuns, GapsOfRuns, cases_in_runs
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, short_list, show_rate
from evaltui.text.json_pieces import json_pieces
from evaltui.text.lines import draw
from evaltui.views.gaps import in_words, no_changes


def gaps(options: argparse.Namespace) -> int:
    """Writes the gaps of the selected sets; returns the exit code."""
    try:
        targets = parse_targets(options.report, ("console", "json"))
        _require_judges(options)
        cases = _cases(options)
        report = run_interruptible(_report(options, cases))
    except (UsageError, SelectionError, EvalSetError, OSError, ValueError) as error:
        return complain("gaps", error)
    for target in targets:
        write_text(_rendered(report, cases, target), target)
    if not report.changes + report.not_judged:
        _note("every change is left to judges: --judges asks them" if report.to_judge else no_changes(report))
        return HAD_ERRORS
    return 0 if options.fail_under is None else _compared(report, options.fail_under)


def _compared(report: GapReport, least: float) -> int:
    """The exit code for the rate of noticed changes; those that were not judged may be either."""
    changes = report.changes + report.not_judged
    rate, most = report.noticed / changes, (report.noticed + report.not_judged) / changes
    if most < least:
        at_most = "at most " if report.not_judged else ""
        _note(f"{at_most}{show_rate(most)} noticed, below --fail-under {least:g}")
        return SOME_FAILED
    if rate < least:
        _note(f"--fail-under {least:g} is not decided: {counted(report.not_judged, 'change')} not judged")
        return HAD_ERRORS
    return 0


_OF_JUDGES = ("record", "budget", "limits", "allow_unmetered")


def _require_judges(options: argparse.Namespace) -> None:
    """Raises UsageError for an option that is of judges alone, which are not asked."""
    for name in _OF_JUDGES:
        if not options.judges and getattr(options, name):
            raise UsageError(f"--{name.removesuffix('s').replace('_', '-')} needs --judges")


async def _report(options: argparse.Namespace, cases: CasesInRuns) -> GapReport:
    """Searches the cases, and asks judges if the options say so. Raises UsageError where these cannot be
    asked as they say."""
    searched = GapsOfRuns(options.agent_dir, cases)
    report = await searched.find()
    if not searched.search.unjudged:
        return report
    from evaltui.runs.judged_gaps import GapJudges

    judges = GapJudges(searched, agent_of(options), settings_of(options), _note)
    to_judge = await judges.to_judge()
    if not options.judges:
        return replace(report, to_judge=to_judge)
    if to_judge is not None:
        _note(f"judging {in_words(to_judge)}")
    await judges.judge()
    if (stop := judges.stopped) is not None:
        if stop.is_refusal:
            raise UsageError(stop.reason)
        _note(stop.reason)
    return searched.report()


def _note(text: str) -> None:
    write_stderr(f"evaltui gaps: {text}")


def _cases(options: argparse.Namespace) -> CasesInRuns:
    """The selected cases with their runs. Raises SelectionError where no run has any of them."""
    store = RunStore.of(options.agent_dir, settings_of(options), options.module, options.url)
    if not store.files():
        require_one_agent(options)
    selections = select(open_workspace(options.agent_dir), options.selectors)
    cases = cases_in_runs(agent_of(options), store, selections, options.run or "")
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
