"""Files of runs made by hand, changed, and cut off as a killed run leaves them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_summary import CaseSummary, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status, worst_status
from evaltui.project.run_settings import RunSettings
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter, begin_run
from evaltui.runs.store import RunStore


def selected(name: str, eval_ids: Iterable[str], *, whole: bool = False) -> SelectedSet:
    """An eval set of a run, scored by no criterion."""
    return SelectedSet(f"{name}.evalset.json", name, tuple(eval_ids), {}, whole)


def summary(name: str, eval_id: str, status: str, **fields: Any) -> CaseSummary:
    """The result of a case of such a set."""
    return CaseSummary(name, eval_id, Status(status), path=f"{name}.evalset.json", **fields)


def store_run(
    agent: Path,
    sets: Iterable[SelectedSet],
    cases: Iterable[CaseSummary],
    ending: Ending | None = Ending(Status.PASSED, 1.5),  # noqa: B008
    **header: Any,
) -> Path:
    """A run of an agent with these results; without an ending it was interrupted."""
    run = begin_run(RunStore(agent), RunHeader(tuple(sets), **header))
    for case in cases:
        add_case(run, case)
    run.close(ending)
    return run.path


def store_repeats(
    agent: Path,
    sets: Mapping[str, str],
    cases: Mapping[CaseId, Sequence[RepeatResult]],
    settings: RunSettings = RunSettings(runs=1),  # noqa: B008
    **header: Any,
) -> Path:
    """A run with these repeats; `sets` are ids of sets by path. It was interrupted where a case has fewer
    repeats than the settings ask for, and such a case has no result."""
    ids = {path: [case.eval_id for case in cases if case.path == path] for path in sets}
    selected_sets = [SelectedSet(path, sets[path], tuple(ids[path]), {}) for path in sets if ids[path]]
    given = RunHeader(tuple(selected_sets), settings=settings, agent_dir=str(agent), **header)
    run = begin_run(RunStore(agent), given)
    statuses = []
    for case, repeats in cases.items():
        for number, repeat in enumerate(repeats):
            run.add_repeat(case, sets[case.path], number, repeat)
        if len(repeats) == settings.runs:
            pass_if = settings.pass_if or "all"
            result = case_over_repeats(sets[case.path], case.eval_id, repeats, pass_if, case.path)
            run.add_case(summarize(result), result)
            statuses.append(result.status)
    is_whole = len(statuses) == len(cases)
    run.close(Ending(worst_status(statuses), 1.5) if is_whole else None)
    return run.path


def add_case(run: RunWriter, case: CaseSummary) -> int:
    """Add a case of which only the figures are known; returns its number."""
    return run.add_case(case, CaseResult.not_run(case.id, case.eval_set_id))


def change(file: Path, *statements: str) -> None:
    """Execute SQL on the file of a run."""
    with closing(sqlite3.connect(file)) as db, db:
        for statement in statements:
            db.execute(statement)


def interrupt(file: Path, results: int) -> Path:
    """Leave of a run what it has when it is killed after so many results of repeats."""
    change(
        file,
        "UPDATE run SET status = NULL, seconds = NULL",
        f"DELETE FROM repeats WHERE rowid NOT IN (SELECT rowid FROM repeats ORDER BY rowid LIMIT {results})",
        "DELETE FROM scores WHERE (case_id, repeat) NOT IN (SELECT case_id, repeat FROM repeats)",
        "UPDATE cases SET status = NULL, summary = NULL "
        "WHERE runs > (SELECT count(*) FROM repeats WHERE case_id = cases.id)",
    )
    return file


def count(file: Path, table: str) -> int:
    """How many results of `repeats` or `cases` the file of a run has, also while the run goes on."""
    with closing(sqlite3.connect(file, timeout=60)) as db:
        query = f"SELECT count(*) FROM {table} WHERE status IS NOT NULL"
        number: int = db.execute(query).fetchone()[0]
        return number


def serialized(*statements: str) -> bytes:
    """A database as its file is."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in (*statements, "CREATE TABLE a (b)"):
            db.execute(statement)
        return db.serialize()


_APPLICATION = int.from_bytes(b"eval")
FOREIGN = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "text": b"hello\n",
    "a database of something else": serialized("CREATE TABLE run (number)"),
    "without a run": serialized(f"PRAGMA application_id = {_APPLICATION}"),
    "of a later version": serialized(f"PRAGMA application_id = {_APPLICATION}", "PRAGMA user_version = 99"),
}
"""What a file of a run may have in it that is none, or none for this version."""
