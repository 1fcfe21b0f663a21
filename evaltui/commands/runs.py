"""`evaltui runs` and `evaltui compare`: the stored runs of an agent, and the comparison of two."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from evaltui.commands.baselines import alpha_of, regression_exit_code
from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import (
    UsageError,
    complain,
    parse_targets,
    require_one_agent,
    settings_of,
    width,
    write_lines,
    write_result,
    write_stderr,
)
from evaltui.core.compare.run_comparison import Comparison, compare
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import SelectionError
from evaltui.documents.json_text import why_unreadable
from evaltui.project.settings import secrets_of
from evaltui.reports.console import counts_text
from evaltui.reports.json_report import comparison_json
from evaltui.runs.history import StoredRun, find_run, name_run, open_run
from evaltui.runs.listing import RunRow, read_row, results_of_adk
from evaltui.runs.run_writer import next_number
from evaltui.runs.store import RunStore, run_id
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_local, show_number
from evaltui.text.json_pieces import json_pieces
from evaltui.text.lines import Line, cut
from evaltui.text.values import visible
from evaltui.views.comparison import comparison_lines
from evaltui.views.run import run_mark, selection_text

_SHOWN = 20


def runs(options: argparse.Namespace) -> int:
    """Print the newest runs, the newest first, or name one; 2 where there is no such agent or run."""
    agent_dir: Path = options.agent_dir
    try:
        settings = settings_of(options)
        store = RunStore.of(agent_dir, settings, options.module, options.url)
        if store.folder.is_dir() and not os.access(store.folder, os.R_OK | os.X_OK):
            raise UsageError(f"{store.folder}: {why_unreadable(store.folder, PermissionError())}")
        # Runs of an agent object are near no agent's files.
        if not store.files():
            require_one_agent(options)
        if options.name:
            run, name = options.name
            print(f"{name}: {name_run(store, run, name)}")
            return 0
    except OSError as error:
        return complain("runs", error)
    write_lines([*_list(store, width()), *_not_listed(store, settings.keep_runs)])
    return 0


def _not_listed(store: RunStore, keep: int) -> Iterator[Line]:
    """Lines for deleted runs, by the gaps in their numbers, and for logs that are too old to read."""
    deleted = next_number(store) - 1 - len(store.files())
    if deleted > 0:
        gone = counted(deleted, "run")
        yield [(f"{gone} deleted. keep-runs {keep}: the newest stay, and besides them", "muted")]
        yield [("named runs, baselines and the last run of each case", "muted")]
    if old := len(list(store.folder.glob("*.jsonl"))):
        of_before = "of a version before the first release, not read. Delete them"
        yield [(f"{counted(old, 'log')} (*.jsonl) {of_before}", "muted")]


def _list(store: RunStore, cells: int) -> Iterator[Line]:
    logs, of_adk = store.files()[::-1], results_of_adk(store.agent_dir)
    names = store.names_by_run()
    for path in logs[:_SHOWN]:
        yield from _lines(read_row(path, names.get(run_id(path), ())), cells)
    if not logs and not of_adk:
        yield [(f"no runs of {visible(store.title)} yet", "")]
    if len(logs) > _SHOWN:
        yield [
            (f"and {show_number(len(logs) - _SHOWN)} older ones in {visible(str(logs[0].parent))}", "muted")
        ]
    # google-adk does not keep as much of them.
    for path in of_adk[:_SHOWN]:
        yield from _lines(read_row(path), cells)


def _lines(row: RunRow, cells: int) -> Iterator[Line]:
    if row.problem:
        yield [("! ", "error"), (f"{visible(row.id)}  cannot be read", "")]
        yield [(f"    {visible(row.problem)}", "muted")]
        return
    began = f" {visible(row.id)}  {show_local(row.started)}  "
    if row.is_of_adk:
        yield cut([run_mark(row), (f"{began}google-adk", "")], cells)
        yield cut([("    ", ""), *_counts(row)], cells)
        return
    named = f"{visible(', '.join(row.names))}  " if row.names else ""
    number: Line = [(f" run {row.number or UNKNOWN:<4}", "bold")]
    yield cut([run_mark(row), *number, (began, ""), (_ended(row), "")], cells)
    kind = "".join(f" · {visible(word)}" for word in row.kind.in_words)
    yield cut(
        [
            ("    ", ""),
            (named, "bold"),
            *_counts(row),
            (f"{kind}{_variant(row)} · {selection_text(row)}", "muted"),
        ],
        cells,
    )


def _ended(row: RunRow) -> str:
    if row.status is None:
        return "still running" if row.ending == "going on" else "stopped" if row.stopped else "interrupted"
    status = row.status.lower().replace("_", " ")
    return status if row.seconds is None else f"{status:13}  {show_duration(row.seconds)}"


def _counts(row: RunRow) -> Line:
    line = counts_text(row.totals.counts)
    if left := row.selected - row.totals.cases:
        line += [(", ", "")] if line else []
        line.append((f"{left} not finished", "warning"))
    return line


def _variant(row: RunRow) -> str:
    """` · variant pro of matrix 20261122T140501Z-3fb2c1`; "" for a run without a variant."""
    matrix = f" of matrix {row.matrix}" if row.matrix else ""
    return visible(f" · variant {row.variant.name}{matrix}") if row.variant else ""


VERSION = 1


def compare_runs(options: argparse.Namespace) -> int:
    """Print or write the comparison; returns the exit code."""
    targets = parse_targets(options.report, ("console", "json"))
    store = RunStore.of(options.agent_dir, settings_of(options), options.module, options.url)
    base, candidate = (_open(options, store, ref) for ref in (options.base, options.candidate))
    # Logs of earlier versions may hold secrets.
    comparison = secrets_of(options.agent_dir).masked(
        compare(base.summary, candidate.summary, alpha_of(options))
    )
    write_result(
        targets,
        lambda: json_pieces(_document(comparison, base, candidate)),
        partial(comparison_lines, comparison),
    )
    if not options.fail_on_regression:
        return 0
    code = regression_exit_code(comparison, "compare")
    unscored = candidate.file.header.unscored
    if unscored and not code:
        title = f"evaltui compare: --fail-on-regression: {candidate.summary.title}"
        write_stderr(*(f"{title}: {visible(text)}" for text in unscored))
    return code or (HAD_ERRORS if unscored else 0)


def _open(options: argparse.Namespace, store: RunStore, ref: str) -> StoredRun:
    try:
        return open_run(find_run(store, ref))
    except SelectionError:
        # Above an agent there are no runs of it.
        require_one_agent(options)
        raise
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error


def _document(comparison: Comparison, base: StoredRun, candidate: StoredRun) -> Json:
    document = comparison_json(comparison)
    document["base"] |= _run(base)
    document["candidate"] |= _run(candidate)
    return {"version": VERSION, **document}


def _run(run: StoredRun) -> dict[str, str | float | None]:
    status: Status | None = run.status
    return {
        "path": str(run.path),
        "started": run.started.isoformat(),
        "status": status.value if status else None,
        "seconds_in_all": run.seconds,
    }
