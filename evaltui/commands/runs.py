"""`evaltui runs`: which runs of an agent were kept, and how they ended."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaltui.commands.output import width, write_lines
from evaltui.commands.usage import UsageError, complain, require_one_agent
from evaltui.core.model.outcome import Status
from evaltui.files.workspace import SelectionError
from evaltui.reports.console import counts
from evaltui.reports.marks import GLYPHS, STYLES
from evaltui.runs.adk_results import adk_results, is_own
from evaltui.runs.history import name_run, open_run, run_id, run_names
from evaltui.runs.log import is_being_written, run_logs
from evaltui.runs.log_reader import StoredRun, read_run
from evaltui.text.lines import Line, cut
from evaltui.text.values import visible

_SHOWN = 20


def runs(options: argparse.Namespace) -> int:
    """Print the newest runs, the newest first, or name one; 2 where there is no such agent or run."""
    agent_dir: Path = options.agent_dir
    try:
        require_one_agent(agent_dir)
        if options.name:
            run, name = options.name
            print(f"{name}: {name_run(agent_dir, run, name)}")
            return 0
    except (UsageError, SelectionError, OSError) as error:
        return complain("runs", error)
    write_lines(_list(agent_dir, width()))
    return 0


def _list(agent_dir: Path, cells: int) -> Iterator[Line]:
    logs = run_logs(agent_dir)[::-1]
    names: dict[str, list[str]] = {}
    for name, run in run_names(agent_dir).items():
        names.setdefault(run, []).append(name)
    for log in logs[:_SHOWN]:
        try:
            yield from [cut(line, cells) for line in _run(read_run(log), names.get(log.stem, []))]
        except (OSError, ValueError) as error:
            yield [("! ", "red"), (f"{log.stem}  cannot be read", "")]
            yield [(f"    {visible(str(error))}", "dim")]
    if not logs and not any(not is_own(path) for path in adk_results(agent_dir)):
        yield [(f"no run of {visible(str(agent_dir))} was kept yet", "")]
    if len(logs) > _SHOWN:
        yield [(f"and {len(logs) - _SHOWN} older ones in {visible(str(logs[0].parent))}", "dim")]
    yield from _of_adk(agent_dir, cells)


def _of_adk(agent_dir: Path, cells: int) -> Iterator[Line]:
    """Results that google-adk itself has left; it does not keep as much of them."""
    own = [path for path in adk_results(agent_dir)[::-1] if not is_own(path)]
    for path in own[:_SHOWN]:
        try:
            run = open_run(path)
        except (OSError, ValueError) as error:
            yield [("! ", "red"), (f"{visible(run_id(path))}  cannot be read", "")]
            yield [(f"    {visible(str(error))}", "dim")]
            continue
        status = run.status or Status.NOT_EVALUATED
        began = f"{run.started.astimezone():%Y-%m-%d %H:%M}"
        head: Line = [(GLYPHS[status], STYLES[status]), (f" {visible(run.id)}  {began}  google-adk", "")]
        yield cut(head, cells)
        yield cut([("    ", ""), *counts([case.status for case in run.summary.cases.values()])], cells)


def _run(run: StoredRun, names: Sequence[str]) -> Iterator[Line]:
    started = run.header.started.astimezone()
    named = f"  {visible(', '.join(names))}" if names else ""
    yield [*_mark(run), (f" {run.id}  {started:%Y-%m-%d %H:%M}  ", ""), (_ended(run), ""), (named, "bold")]
    yield [("    ", ""), *_counts(run), (f" · {_selected(run)}", "dim")]


def _mark(run: StoredRun) -> Line:
    if run.footer is None:
        return [("…", "yellow")]
    status = run.footer.status
    return [(GLYPHS[status], STYLES[status])]


def _ended(run: StoredRun) -> str:
    if run.footer is None:
        return "still running" if is_being_written(run.path) else "interrupted"
    status = run.footer.status.lower().replace("_", " ")
    # Logs of earlier versions do not say how long it took.
    seconds = run.footer.seconds
    return status if seconds is None else f"{status:13}  {seconds:.1f} s"


def _counts(run: StoredRun) -> Line:
    line = counts([result.summary.status for result in run.results])
    left = sum(len(one.eval_ids) for one in run.header.sets) - len(run.results)
    if left:
        line += [(", ", "")] if line else []
        line.append((f"{left} not finished", "yellow"))
    return line


def _selected(run: StoredRun) -> str:
    """`lights (4 cases), thermostat:set_bedroom`"""
    shared = Counter(one.eval_set_id for one in run.header.sets)
    named = (
        f"{name}:{one.eval_ids[0]}" if len(one.eval_ids) == 1 else f"{name} ({len(one.eval_ids)} cases)"
        for one in run.header.sets
        for name in [one.eval_set_id if shared[one.eval_set_id] == 1 else one.path]
    )
    return visible(", ".join(named))
