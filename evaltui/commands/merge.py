"""`evaltui merge`: the logs of several runs as one run."""

from __future__ import annotations

import argparse
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from evaltui.commands.addressing import agent_and_runs
from evaltui.commands.baselines import baseline_of, comparison_with, run_exit_code
from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import (
    UsageError,
    complain,
    parse_targets,
    settings_of,
    stored_durations,
    width,
    write_lines,
    write_reports,
)
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.compare.totals import totals_of
from evaltui.documents.files import target_of
from evaltui.project.folders import agent_file, may_be_agent
from evaltui.project.settings import secrets_of
from evaltui.reports.console import counts_text, note_line
from evaltui.reports.stored import stored_report
from evaltui.runs.baselines import stored_run
from evaltui.runs.history import find_run, missing_case_notes, open_run, prune
from evaltui.runs.merging import MergedRun, MergeError, merge
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import RunWriter, begin_run
from evaltui.runs.store import SUFFIX, RunStore
from evaltui.text.figures import counted, show_duration
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.views.comparison import comparison_lines


def merge_runs(options: argparse.Namespace) -> int:
    """Merge, say what is missing, and return the exit code of the whole run."""
    try:
        named, logs = agent_and_runs(options.logs)
        if not logs:
            raise UsageError(f"{named} is the agent; name the run logs after it, such as {named}/*{SUFFIX}")
        targets = parse_targets(options.report)
        options.agent_dir = named or Path()
        settings = settings_of(options)
        store = RunStore.of(options.agent_dir, settings)
        _check(named, options.output, store)
        paths = [find_run(store, log) for log in logs]
        baseline = baseline_of(options, stored_run(store, *paths))
        stored = named is not None or options.output is None
        merged = _merge(paths, store if stored else None, options, baseline.run.id if baseline else "")
        if stored:
            prune(store, settings.keep_runs, [*paths, merged.log])
    except (OSError, ValueError) as error:
        return complain("merge", error)
    log = options.output or merged.log
    whole = open_run(log)
    run = whole.summary
    comparison = comparison_with(baseline, run, options)
    on_baseline = [baseline.note] if baseline and baseline.note else []
    secrets = secrets_of(options.agent_dir)
    file = whole.file
    if options.report:
        made = stored_report(whole, secrets)
        made = replace(made, comparison=secrets.masked(comparison), notes=(*on_baseline, *made.notes))
        all_written = write_reports(made, targets, "merge")
    else:
        all_written = True
        notes = (*on_baseline, *file.notes, *missing_case_notes(run, file))
        lines: list[Line] = [*map(note_line, notes)]
        if comparison:
            lines = [*comparison_lines(secrets.masked(comparison), width()), *lines]
        write_lines([*lines, _sum(run, merged, log, len(paths))])
    all_written &= stored_durations(options.store_durations, run.results.values(), "merge")
    code = run_exit_code(options, run.cases.values(), comparison, file.header.unscored, "merge")
    return code if all_written else code or HAD_ERRORS


def _check(named: Path | None, output: Path | None, store: RunStore) -> None:
    if output is not None and not output.parent.is_dir():
        raise UsageError(f"-o: the folder {output.parent} does not exist")
    if output is not None and output.exists() and not output.is_file():
        raise UsageError(f"-o: {output} is not a regular file")
    if output is not None and output.suffix != SUFFIX:
        raise UsageError(f"-o: {output} does not end in {SUFFIX}, as the file of a run does")
    if named is None and output is not None:
        return
    folder = store.agent_dir
    if not may_be_agent(folder) and not store.folder.is_dir():
        where = "the current folder" if named is None else str(folder)
        raise UsageError(f"{where} has no agent to store the run with. Name AGENT_DIR, or a file with -o LOG")


def _merge(
    paths: Sequence[Path], store: RunStore | None, options: argparse.Namespace, baseline: str
) -> MergedRun:
    output: Path | None = options.output
    if output is None:
        assert store is not None
        return merge(paths, partial(_start_run, store), baseline)
    # Whoever reads the file meanwhile finds the whole log, or what was there. A link stays one.
    output = target_of(output)
    beside = output.with_name(f".evaltui-{uuid.uuid4().hex}.tmp")
    try:
        if store is not None:
            merged = merge(paths, partial(_start_run, store), baseline)
            shutil.copyfile(merged.log, beside)
        else:
            secrets = secrets_of(options.agent_dir)
            merged = merge(paths, lambda header: RunWriter(beside, header, secrets), baseline)
        beside.replace(output)
    finally:
        beside.unlink(missing_ok=True)
    return merged


def _start_run(store: RunStore, header: RunHeader) -> RunWriter:
    """Starts the merged run. Raises MergeError where the runs are of another agent."""
    if header.kind.file != agent_file(store.agent_dir):
        what = f"of {header.kind.file}: name that file" if header.kind.file else "of a folder: name that"
        raise MergeError(f"the runs are {what} before the logs, or use -o LOG alone")
    # The runs may be from other machines.
    return begin_run(store, replace(header, agent_dir=str(store.agent_dir)))


def _sum(run: RunSummary, merged: MergedRun, log: Path, logs: int) -> Line:
    head = counts_text(totals_of(run.cases.values()).by_status) or [("no case run", "warning")]
    took = f" in {show_duration(merged.seconds)}" if merged.seconds is not None else ""
    tail: Line = [(f"{took} · {counted(logs, 'run')}", ""), (f" · log {visible(str(log))}", "muted")]
    return [*head, *tail]
