"""The runs that were kept, as a list, the newest first; and two of them held against each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from evaltui.core.compare.explain import summary
from evaltui.core.compare.run_comparison import KINDS, CaseChange, Comparison, Kind, compare, what_changed
from evaltui.core.model.outcome import Status
from evaltui.files.agent_files import files_of
from evaltui.runs.history import KeptRun, open_run, run_id
from evaltui.runs.listing import RunRow, changed_between, names_by_run, newest_first, read_row, stored_runs
from evaltui.runs.store import RunStore
from evaltui.text.keys import key_of

# At a time, so that what is looked at now does not wait for what was looked at before.
_MOST_AT_ONCE = 8
# Nobody reads further.
_MOST_FAILURES = 40


class Side(NamedTuple):
    """A run that is compared."""

    path: Path
    title: str


class Sides(NamedTuple):
    """Two runs that are compared."""

    base: Side
    candidate: Side


class FailedCase(NamedTuple):
    """A case of a run that did not pass."""

    eval_id: str
    status: Status
    why: str


class KeptRuns:
    """`store` says where they are now; `changed` is called when more is known."""

    def __init__(self, store: Callable[[], RunStore], changed: Callable[[], None]) -> None:
        self._store = store
        self._changed = changed
        self.paths: Sequence[Path] | None = None
        self._names: Mapping[str, tuple[str, ...]] = {}
        self._before: Mapping[Path, Path] = {}
        self._files: Mapping[str, str] = {}
        self._rows: dict[Path, RunRow] = {}
        # What they were before the list was read again.
        self._rows_before: dict[Path, RunRow] = {}
        self._wanted: dict[Path, None] = {}
        self._reading: asyncio.Task[None] | None = None
        # By run and how many of its cases were done; None while it is read.
        self._failed: dict[tuple[Path, int], Sequence[FailedCase] | None] = {}
        self._reading_failed: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Look which runs there are, the newest first; what is known of those that are over stays."""
        paths, self._names, self._files = await asyncio.to_thread(self._look)
        # Names and the agent's files may have changed.
        self._rows_before, self._rows = {**self._rows_before, **self._rows}, {}
        self._list(paths)
        # Which files google-adk has left is told by what is in them, and they may be large.
        self._list(await asyncio.to_thread(stored_runs, self._store()))

    def _list(self, paths: Sequence[Path]) -> None:
        self.paths, self._before = paths, dict(pairwise(paths))
        self._changed()

    def row(self, path: Path) -> RunRow | None:
        """What is known of a run; None while it is being read."""
        known = self._rows.get(path)
        if known is None:
            self._want(path)
        return known or self._rows_before.get(path)

    def _want(self, path: Path) -> None:
        # The last one wished for is looked at now.
        self._wanted.pop(path, None)
        self._wanted[path] = None
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())

    def previous(self, path: Path) -> RunRow | None:
        """The run before another one; None where there is none, or while it is being read."""
        before = self._before.get(path)
        return self.row(before) if before else None

    def changed_in(self, path: Path) -> tuple[str, ...]:
        """What is different in a run from the one before it, as far as that is known by now."""
        row, before = self.row(path), self.previous(path)
        return changed_between(before, row) if row and before else ()

    def sides_of(self, path: Path, marked: Path | None) -> Sides | str:
        """A run and what it is compared with: the marked base, else the run before it; or why there is
        none."""
        row, paths = self.row(path), self.paths or ()
        base = marked if marked in paths else self._before.get(path)
        if row is None:
            return "Reading the run…"
        if row.problem:
            return f"Run log unreadable: {row.problem}"
        if base is None:
            return f"No earlier run   {key_of('mark_base')} set as base"
        if base == path:
            return "This is the base; select another run"
        known = self.row(base)
        return Sides(Side(base, known.title if known else base.name), Side(path, row.title))

    def read_again(self) -> None:
        """Looks how far the runs are that go on."""
        for path, row in self._rows.items():
            if row.ending == "going on":
                self._want(path)

    async def _read(self) -> None:
        while self._wanted:
            newest = list(self._wanted)[-_MOST_AT_ONCE:]
            rows = await asyncio.to_thread(lambda paths: [self._read_row(path) for path in paths], newest)
            for row in rows:
                self._wanted.pop(row.path, None)
                self._rows[row.path] = row
            self._changed()

    def failed_in(self, row: RunRow) -> Sequence[FailedCase] | None:
        """The first cases that did not pass in a run, read when they are first asked for; None until then."""
        key = row.path, row.totals.done
        if key not in self._failed:
            self._failed[key] = None
            task = asyncio.create_task(self._read_failed(key))
            self._reading_failed.add(task)
            task.add_done_callback(self._reading_failed.discard)
        return self._failed[key]

    async def _read_failed(self, key: tuple[Path, int]) -> None:
        self._failed[key] = ()
        with suppress(OSError, ValueError):
            self._failed[key] = await asyncio.to_thread(_read_failed, key[0])
        self._changed()

    async def close(self) -> None:
        tasks = [*self._reading_failed, *([self._reading] if self._reading is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # In a thread

    def _look(self) -> tuple[list[Path], dict[str, tuple[str, ...]], dict[str, str]]:
        store = self._store()
        return newest_first(store.files()), names_by_run(store), files_of(store.agent_dir)

    def _read_row(self, path: Path) -> RunRow:
        names = self._names.get(run_id(path), ())
        return read_row(path, names, self._files)


def _read_failed(path: Path) -> tuple[FailedCase, ...]:
    """In a thread. Raises OSError, ValueError."""
    run = open_run(path)
    failed = [case for case, one in run.summary.results.items() if one.verdict is not Status.PASSED]
    return tuple(
        FailedCase(case.eval_id, run.summary.cases[case].status, summary(run.case(case)))
        for case in failed[:_MOST_FAILURES]
    )


# Of what did not change there is the most, and the least to see.
FOLDED_AT_FIRST: frozenset[Kind] = frozenset({"unchanged", "not run"})


@dataclass(frozen=True)
class Compared:
    base: KeptRun
    candidate: KeptRun
    comparison: Comparison

    @property
    def between(self) -> tuple[str, ...]:
        """What is different between the two besides what the agent did, in words."""
        return what_changed(self.base.summary, self.candidate.summary)


@dataclass(frozen=True)
class KindTitle:
    kind: Kind
    count: int
    folded: bool


ComparedRow = KindTitle | CaseChange


def compare_kept(base: Path, candidate: Path) -> Compared:
    """In a thread. Raises OSError, and ValueError for what cannot be read."""
    before, after = open_run(base), open_run(candidate)
    return Compared(before, after, compare(before.summary, after.summary))


def rows_of(comparison: Comparison, folded: Collection[Kind]) -> Iterator[ComparedRow]:
    """The kinds that there are, what matters most first, each with its cases unless it is folded."""
    for kind in KINDS:
        cases = comparison.of(kind)
        if cases:
            yield KindTitle(kind, len(cases), kind in folded)
            if kind not in folded:
                yield from cases
