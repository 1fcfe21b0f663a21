"""`evaltui report`: reports of runs that are stored, several of them as one."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evaltui.commands.addressing import agent_and_runs
from evaltui.commands.baselines import baseline_of, comparison_with
from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    complain,
    matrix_targets,
    parse_targets,
    settings_of,
    write_matrix,
    write_reports,
    write_stderr,
)
from evaltui.core.secrets import Secrets
from evaltui.project.settings import secrets_of
from evaltui.reports.matrix_report import stored_matrix_report
from evaltui.reports.stored import stored_report
from evaltui.runs.baselines import stored_run
from evaltui.runs.history import find_run, open_run
from evaltui.runs.matrices import StoredMatrix, find_matrix, matrix_of_logs, open_matrix
from evaltui.runs.merging import merge
from evaltui.runs.report import RunReport
from evaltui.runs.run_writer import RunWriter
from evaltui.runs.store import SUFFIX, RunStore, run_id
from evaltui.text.figures import short_list

_HINT = "--report html=report.html writes a page for a browser; see `evaltui report --help`"


def report(options: argparse.Namespace) -> int:
    """Write the reports; returns the exit code."""
    try:
        targets = parse_targets(options.report)
        named, runs = agent_and_runs(options.runs)
        options.agent_dir = named or Path()
        store = RunStore.of(options.agent_dir, settings_of(options))
        secrets = secrets_of(options.agent_dir)
        if len(runs) == 1 and runs[0] != "last" and (matrix := find_matrix(store, runs[0])) is not None:
            return _report_matrix(matrix, targets, options, secrets)
        paths = list(dict.fromkeys(find_run(store, run) for run in runs or ["last"]))
        if (matrix := matrix_of_logs(paths)) is not None:
            return _report_matrix(matrix, targets, options, secrets)
        baseline = baseline_of(options, stored_run(store, *paths))
        with tempfile.TemporaryDirectory(prefix="evaltui-") as folder:
            log = paths[0] if len(paths) == 1 else _merged(paths, Path(folder), secrets)
            run = open_run(log)
            made = stored_report(run, secrets)
            if {*runs} <= {"last"}:
                # Which sub-agent, module or variant that was of need not be known.
                header = run.file.header
                kind = header.kind.agent._replace(in_process=False)
                notes = [f"run of {words}"] if (words := ", ".join(kind.in_words)) else []
                if header.matrix and header.variant:
                    command = f"evaltui report {store.as_arguments} {header.matrix}"
                    notes.append(f"only variant {header.variant.name} of a matrix: `{command}` has all")
                made = replace(made, notes=(*notes, *made.notes))
            if len(paths) > 1:
                made = _of_several(made, paths)
            if baseline is not None:
                comparison = comparison_with(baseline, run.summary, options)
                made = replace(
                    made,
                    comparison=secrets.masked(comparison),
                    notes=(*filter(None, [baseline.note]), *made.notes),
                )
            all_written = write_reports(made, targets, "report")
    except (OSError, ValueError) as error:
        return complain("report", error)
    if not options.report and sys.stderr.isatty():
        write_stderr(f"evaltui report: {_HINT}")
    return 0 if all_written else HAD_ERRORS


def _report_matrix(
    stored: StoredMatrix, targets: Sequence[ReportTarget], options: argparse.Namespace, secrets: Secrets
) -> int:
    """Raises UsageError, OSError, ValueError."""
    if options.baseline:
        raise UsageError("--baseline: these runs are a matrix, which has a base of its own")
    made = stored_matrix_report(open_matrix(stored), secrets)
    return 0 if write_matrix(made, matrix_targets(targets), "report") else HAD_ERRORS


def _merged(paths: Sequence[Path], folder: Path, secrets: Secrets) -> Path:
    """A merged log of all runs."""
    log = folder / f"merged{SUFFIX}"
    merge(paths, lambda header: RunWriter(log, header, secrets))
    return log


def _of_several(made: RunReport, paths: Sequence[Path]) -> RunReport:
    runs = short_list([run_id(path) for path in paths])
    return replace(made, log=None, notes=(f"runs put together: {runs}", *made.notes))
