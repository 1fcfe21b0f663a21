"""`evaltui score`: scores conversations in recorded traces, without running an agent."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.commands.job import prepare
from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    agent_of,
    run_targets,
    settings_of,
)
from evaltui.commands.recorded import conversations_of, require_some
from evaltui.commands.resumed import refusing, run_to_resume
from evaltui.documents.files import is_there
from evaltui.documents.own_folder import OWN_FOLDER
from evaltui.project.agents import is_agent
from evaltui.project.folders import agent_file, project_root
from evaltui.runner.interrupts import run_interruptible
from evaltui.runs.resuming import resumable_header
from evaltui.runs.scoring import TracesToScore, files_to_resume, trace_files
from evaltui.runs.selection import RunRequest
from evaltui.runs.store import RUNS, SUFFIX, RunStore
from evaltui.traces.reading import files_in, read_files
from evaltui.traces.span import UnreadableTraceError

if TYPE_CHECKING:
    from evaltui.project.run_settings import RunSettings


def score(options: argparse.Namespace) -> int:
    """Scores the traces of the options and reports; returns the exit code."""
    targets = run_targets(options.report)
    if not (options.traces or _resumes(options)):
        raise UsageError("the following arguments are required: TRACE")
    options.agent_dir = options.agent_dir or _home(options)
    if not options.agent_dir.exists():
        raise UsageError(f"--home: {options.agent_dir} does not exist")
    return run_interruptible(_score(options, targets))


async def _score(options: argparse.Namespace, targets: Sequence[ReportTarget]) -> int:
    # What is imported and read now stays; looking for garbage among it takes a fifth of the time.
    gc.disable()

    agent, settings = agent_of(options), settings_of(options)
    files, traces = _resumed(options, settings) if _resumes(options) else _named(options)
    read = conversations_of(read_files(files), (traces.case_from,) if traces.case_from else ())
    require_some(read, traces.files)
    traces = replace(traces, conversations=read.conversations, warnings=read.warnings, lost=read.lost)
    job = prepare(options, targets, RunRequest(agent, settings=settings, traces=traces))
    return await job.run(None)


def _resumes(options: argparse.Namespace) -> bool:
    return bool(options.resume or options.retry_errors)


def _named(options: argparse.Namespace) -> tuple[Sequence[Path], TracesToScore]:
    """The files of the options, and how to score them; their conversations are not read yet."""
    try:
        files, named = list(files_in(options.traces)), tuple(map(str, options.traces))
    except UnreadableTraceError as error:
        raise UsageError(str(error)) from error
    # Before they are read: what is added to them meanwhile makes them others.
    digests = trace_files(options.agent_dir, files)
    return files, TracesToScore((), named, options.case_from or "", options.only_paired, digests=digests)


def _resumed(options: argparse.Namespace, settings: RunSettings) -> tuple[Sequence[Path], TracesToScore]:
    """The same of the run to resume. Raises UsageError where its files have changed."""
    path = run_to_resume(options, RunStore.of(options.agent_dir, settings), of_traces=True)
    with refusing(options, path):
        header = resumable_header(path, of_traces=True)
        files = files_to_resume(options.agent_dir, header)
    return files, TracesToScore(
        (), header.traces, header.case_from, header.only_paired, digests=header.trace_files
    )


def _home(options: argparse.Namespace) -> Path:
    """The agent folder of the run: of the log to resume, of the first eval set, or the current one."""
    log = Path(options.resume or "").absolute()
    file = agent_file(log.parent)
    runs = log.parents[1] if file else log.parent
    if log.suffix == SUFFIX and runs.parts[-2:] == (OWN_FOLDER, RUNS) and log.is_file():
        return runs.parents[1] / file
    for word in options.selectors[:1]:
        path = Path(word)
        path = path if is_there(path) else Path(word.rpartition(":")[0])
        if word and is_there(path):
            return next((folder for folder in _around(path) if is_agent(folder)), Path())
    return Path()


def _around(file: Path) -> Iterator[Path]:
    folder = file if file.is_dir() else file.parent
    root = project_root(folder) or folder.absolute()
    yield folder
    yield from (above for above in folder.absolute().parents if above.is_relative_to(root))
