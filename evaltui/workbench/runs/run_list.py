"""The list of stored runs, the newest first, and the two sides of a comparison."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.project.agent_files import FilesNow
from evaltui.runs.adk_results import open_run_file
from evaltui.runs.listing import (
    FailedCase,
    RunRow,
    failures,
    newest_first,
    read_row,
    run_differences,
    stored_runs,
)
from evaltui.runs.store import RunStore, run_id
from evaltui.text.keys import key_of
from evaltui.views.served import other_models
from evaltui.workbench.agent.background import Lookups
from evaltui.workbench.messages import Messages, RunsRead

# Nobody reads further.
_MAX_FAILURES = 40


class Side(NamedTuple):
    """A run in a comparison."""

    path: Path
    title: str


class RunDetails(NamedTuple):
    """The details of a run, for which its cases are read."""

    failures: tuple[FailedCase, ...] = ()
    """The first cases that did not pass."""
    notes: tuple[str, ...] = ()
    """Models that another one answered for."""


class Sides(NamedTuple):
    """The two runs of a comparison."""

    base: Side
    candidate: Side


class RunTarget(NamedTuple):
    """A run to open, with a case in it; or a run to resume."""

    path: Path
    """File of the run."""
    title: str
    case: CaseId | None = None
    """The case to show; None for the run as a whole."""
    eval_set_id: str = ""
    """Set of the case."""
    resumes: bool = False
    """Whether the run is resumed."""


class RunList:
    """The list of stored runs; `store` returns the current run store."""

    def __init__(self, store: Callable[[], RunStore], messages: Messages) -> None:
        self._store = store
        self._messages = messages
        self.paths: Sequence[Path] | None = None
        self._names: Mapping[str, tuple[str, ...]] = {}
        self._before: Mapping[Path, Path] = {}
        self._files: FilesNow | None = None
        self._rows = Lookups(self._read_row, messages, RunsRead)
        # By run and how many of its cases were done.
        self._details = Lookups[tuple[Path, int], RunDetails](
            lambda key: _read_details(key[0]), messages, RunsRead, at_once=1
        )

    async def load(self) -> None:
        """Lists the runs; rows stay until they are read again."""
        paths, self._names, self._files = await asyncio.to_thread(self._find_runs)
        # Names and the agent's files may have changed.
        self._rows.outdate()
        self._list(paths)
        # Which files google-adk has left is told by what is in them, and they may be large.
        self._list(await asyncio.to_thread(stored_runs, self._store()))

    def _list(self, paths: Sequence[Path]) -> None:
        self.paths, self._before = paths, dict(pairwise(paths))
        self._messages.publish(RunsRead())

    def row(self, path: Path) -> RunRow | None:
        """A run's row; None while it is being read."""
        return self._rows.get(path)

    def changed_in(self, path: Path) -> tuple[str, ...]:
        """The differences of a run from the previous one, as far as they are known."""
        row, before = self.row(path), self._before.get(path)
        row_before = self.row(before) if before else None
        return run_differences(row_before, row) if row and row_before else ()

    def sides_of(self, path: Path, marked: Path | None) -> Sides | str:
        """A run and the run to compare it with: the marked base, else the previous run; or why there is
        none."""
        row, paths = self.row(path), self.paths or ()
        base = marked if marked in paths else self._before.get(path)
        if row is None:
            return "Reading the run…"
        if row.problem:
            return f"Run log unreadable: {row.problem}"
        if base is None:
            return f"No earlier run   {key_of('set_base')} set as base"
        if base == path:
            return "This is the base; select another run"
        of_base = self.row(base)
        return Sides(Side(base, of_base.title if of_base else base.name), Side(path, row.title))

    def read_again(self) -> None:
        """Reads the progress of the running runs again."""
        for path in [path for path, row in self._rows.values.items() if row.ending == "going on"]:
            self._rows.outdate(path)
            self._rows.get(path)

    def details_of(self, row: RunRow) -> RunDetails | None:
        """The details of a run; None while they are being read."""
        return self._details.get((row.path, row.totals.cases))

    async def close(self) -> None:
        """Cancels the reading."""
        await self._rows.close()
        await self._details.close()

    # In a thread

    def _find_runs(self) -> tuple[list[Path], dict[str, tuple[str, ...]], FilesNow]:
        store = self._store()
        return newest_first(store.files()), store.names_by_run(), FilesNow(store.agent_dir)

    def _read_row(self, path: Path) -> RunRow:
        return read_row(path, self._names.get(run_id(path), ()), self._files)


def _read_details(path: Path) -> RunDetails:
    """In a thread."""
    notes: tuple[str, ...] = ()
    with suppress(OSError, ValueError):
        notes = tuple(other_models(case.summary for case in open_run_file(path).cases))
    return RunDetails(failures(path, _MAX_FAILURES), notes)


def refuses_to_resume(row: RunRow) -> str | None:
    """Why nothing of a run is left to run, as far as its row tells."""
    if row.is_of_adk:
        return "ADK result files cannot be resumed"
    if row.ending == "going on":
        return "Run in progress"
    is_complete = row.ending == "over" and not row.stopped and not row.not_run
    return "Nothing to resume: run is complete" if is_complete else None
