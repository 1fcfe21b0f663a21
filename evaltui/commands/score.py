"""`evaltui score`: conversations in recorded traces are scored; no agent is run, and none is needed."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    agent_of,
    complain,
    run_targets,
    settings_of,
)
from evaltui.core.model.problems import EvalSetError
from evaltui.files.folders import is_agent, project_root
from evaltui.files.workspace import SelectionError
from evaltui.runner.parent.interrupts import run_interruptible


def score(options: argparse.Namespace) -> int:
    """Score what the options name and report; returns the exit code."""
    try:
        targets = run_targets(options.report)
        options.agent_dir = options.agent_dir or _home(options.selectors)
        if not options.agent_dir.exists():
            raise UsageError(f"--home: {options.agent_dir} does not exist")
        return run_interruptible(_score(options, targets))
    except (UsageError, SelectionError, EvalSetError) as error:
        return complain("score", error)


async def _score(options: argparse.Namespace, targets: Sequence[ReportTarget]) -> int:
    # What is imported and read now stays; looking for garbage among it takes a fifth of the time.
    gc.disable()
    from evaltui.commands.job import prepare
    from evaltui.commands.recorded import some_conversations
    from evaltui.runs.scoring import TracesToScore

    named, case_from = tuple(map(str, options.traces)), options.case_from or ""
    with some_conversations(options.traces, (case_from,) if case_from else ()) as read:
        traces = TracesToScore(read.found, named, case_from, options.only_paired, read.warnings)
        job = prepare(options, targets, agent_of(options), settings_of(options), traces)
        return await job.run(None)


def _home(selectors: Sequence[str]) -> Path:
    """Where runs are kept: with the agent that the first eval set belongs to, else in the current folder."""
    for word in selectors[:1]:
        file = Path(word)
        file = file if file.exists() else Path(word.rpartition(":")[0])
        if word and file.exists():
            return next((folder for folder in _around(file) if is_agent(folder)), Path())
    return Path()


def _around(file: Path) -> Iterator[Path]:
    folder = file if file.is_dir() else file.parent
    root = project_root(folder) or folder.absolute()
    yield folder
    above = folder.absolute()
    while above != root and above.parent != above:
        above = above.parent
        yield above
