"""`evaltui compare`: a run against an earlier one, both as they were kept."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from evaltui.commands.output import UsageError, colored, complain, require_one_agent
from evaltui.commands.reporting import ReportTarget, parse_targets, report_width, write_text
from evaltui.core.compare.comparison_lines import comparison_lines
from evaltui.core.compare.run_comparison import Comparison, compare
from evaltui.core.model.outcome import Status
from evaltui.files.settings import secrets_of
from evaltui.files.workspace import SelectionError
from evaltui.reports.json_report import comparison_json
from evaltui.runs.history import KeptRun, find_run, open_run
from evaltui.text.lines import draw

VERSION = 1


def compare_runs(options: argparse.Namespace) -> int:
    """Print or write the comparison; returns the exit code."""
    try:
        targets = parse_targets(options.report, ("console", "json"))
        base, candidate = (_open(options.agent_dir, ref) for ref in (options.base, options.candidate))
    except (UsageError, SelectionError) as error:
        return complain("compare", error)
    # Logs of earlier versions may hold secrets.
    comparison = secrets_of(options.agent_dir).masked(compare(base.summary, candidate.summary))
    for target in targets:
        write_text(_render(comparison, base, candidate, target), target)
    return 1 if options.fail_on_regression and comparison.regressions else 0


def _open(agent_dir: Path, ref: str) -> KeptRun:
    try:
        return open_run(find_run(agent_dir, ref))
    except SelectionError:
        # Above an agent there are no runs of it.
        require_one_agent(agent_dir)
        raise
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error


def _render(comparison: Comparison, base: KeptRun, candidate: KeptRun, target: ReportTarget) -> str:
    if target.format == "json":
        runs = {"base": _run(base), "candidate": _run(candidate)}
        document = comparison_json(comparison)
        for side, run in runs.items():
            document[side] |= run
        return json.dumps({"version": VERSION, **document}, indent=2, ensure_ascii=False) + "\n"
    color = target.path is None and colored()
    lines = comparison_lines(comparison, report_width(target))
    return "".join(f"{draw(line, color=color)}\n" for line in lines)


def _run(run: KeptRun) -> dict[str, str | float | None]:
    status: Status | None = run.status
    return {
        "path": str(run.path),
        "started": run.started.isoformat(),
        "status": status.value if status else None,
        "seconds_in_all": run.seconds,
    }
