"""Run logs: what happened in a run, written line by line as it happens.

A log begins with a header. Then come events, the result of every run of a case (`repeat_result`) and of every
case (`case_result`) as they happen. Now and then comes a part of an index, which has the case results once
more, and at the end of a log that was closed the last part and a footer: so that of a large log only what is
asked for is read, while it grows as well (see `log_index`).
Lines that are about a case name its file (see `CaseId`); logs of earlier versions name its set only.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.budget import Amount
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.secrets import Secrets
from evaltui.files.atomic import private
from evaltui.files.packages import own_version
from evaltui.files.settings import secrets_of
from evaltui.runs.log_index import IndexParts
from evaltui.runs.run_totals import AddedResults
from evaltui.runs.store import SUFFIX, RunStore

VERSION = 4

# Events come by the thousand: they are written together, at most this many seconds late.
_FLUSH_EVERY = 0.2
_IDS = ("kind", "path", "set", "case", "eval_set_id", "eval_id", "shards")
_SET_IDS = ("path", "eval_set_id", "eval_ids", "tags")


class RunLog:
    """A log that is being written. Killed at any moment, it leaves a log that `read_run` reads.

    `size` is in bytes, with what has not reached the disk yet. Whatever raises an OSError, as on a full disk,
    has ended the log behind its last whole line: it is that of a run that was interrupted. Secrets are
    masked, except in ids of sets and cases: `has_masked` tells whether there were any.
    """

    def __init__(self, path: Path, file: FileIO, secrets: Secrets) -> None:
        self.path = path
        self.has_masked = False
        self.secrets = secrets
        self.size = 0
        self._file = file
        self._unwritten: list[str] = []
        self._on_disk = 0
        self._flushed = time.monotonic()
        self._began: dict[CaseId, int] = {}
        self._repeats: dict[CaseId, dict[int, int]] = {}
        self._index = IndexParts()
        self._added = AddedResults()

    @classmethod
    def create(cls, store: RunStore, header: Json) -> RunLog:
        """Begin `<utc>-<hex>.jsonl` in a store with a header line.

        The header gets the versions, the time of the start unless `header` has it, and the number: that of
        `header` unless another run has it already. Raises OSError where the folder cannot be written.
        """
        folder = store.make()
        with _locked(folder):
            return cls._create(store, folder, header)

    @classmethod
    def _create(cls, store: RunStore, folder: Path, header: Json) -> RunLog:
        number = max(header.get("number") or 0, store.next_number())
        now = datetime.now(UTC)
        stamp = now.strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = folder / f"{stamp}Z-{uuid.uuid4().hex[:6]}{SUFFIX}"
        begun = {"started": now.isoformat(), "number": number}
        return cls.create_at(path, {**begun, **header, "number": number}, secrets_of(store.agent_dir))

    @classmethod
    def create_at(cls, path: Path, header: Json, secrets: Secrets) -> RunLog:
        """Begin a log in a new file with a header line, which gets the versions. Raises OSError."""
        log = cls(path, FileIO(path, "x", opener=private), secrets)
        # Released when the process ends, however it ends: see `is_being_written`.
        with suppress(OSError):
            fcntl.flock(log._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        versions = {"version": VERSION, "evaltui": own_version(), "python": platform.python_version()}
        log._write({"kind": "header", **versions, **header})
        try:
            log._flush()
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise
        return log

    def started(self, case: CaseId, eval_set_id: str, repeat: int) -> None:
        """A run of a case begins, or begins anew after a crash: what came of it before does not count."""
        self._began.setdefault(case, self.size)
        self.event({"kind": "case_started", **_named(case, eval_set_id), "repeat": repeat})

    def event(self, event: Json) -> None:
        """Add an event; it reaches the disk soon."""
        self.event_text(_dumped(event))

    def event_text(self, event: str) -> None:
        """The same, of an event that is JSON text already."""
        self._write_text(self._masked(event) + "\n")
        if time.monotonic() - self._flushed > _FLUSH_EVERY:
            self._flush()

    def repeat(self, case: CaseId, eval_set_id: str, repeat: int, result: Json) -> None:
        """Add the result of one run of a case; it reaches the disk at once."""
        self._repeats.setdefault(case, {})[repeat] = self.size
        named = _named(case, eval_set_id)
        self._write({"kind": "repeat_result", **named, "repeat": repeat, "result": result})
        self._flush()

    def result(self, summary: CaseSummary) -> int:
        """Add the result of a case; it reaches the disk at once. Returns where its line is, in bytes.

        It gets `events`, the stretch of the log that has all of the case's events, and `repeats_at`, where
        the results of its runs are, all in bytes.
        """
        case, row = summary.id, summary.to_json()
        if case in self._began:
            row["events"] = [self._began.pop(case), self.size]
        if repeats := self._repeats.pop(case, None):
            row["repeats_at"] = [repeats[number] for number in sorted(repeats)]
            if "events" in row:
                # Nothing happens in a case after its last run: that of a resumed one may be far above.
                row["events"][1] = max(repeats.values())
        members, place = self._line(row)[1:], self.size
        self._write_text(f'{{"kind":"case_result",{members}\n')
        self._index.add(case, members)
        self._added.add(summary)
        if self._index.is_due(self.size):
            self._write({"kind": "checkpoint", **self._write_index()})
        self._flush()
        return place

    def spent(self, amount: Amount) -> None:
        """Add what model calls have spent that no result counts; it reaches the disk at once."""
        self._write({"kind": "spent", **amount.to_json()})
        self._flush()

    def close(self, footer: Json | None = None) -> None:
        """End the log. With a footer the run is complete, without one it was interrupted."""
        totals = {} if self._added.is_unclear else {"totals": self._added.totals().to_json()}
        self._write({"kind": "footer", **(footer or {}), **totals, **self._write_index()})
        self._flush()
        self._file.close()

    def _write_index(self) -> Json:
        """Add what is not in it yet; returns where the index is now."""
        lines, where = self._index.part(self.size)
        for line in lines:
            self._write_text(line)
        return where

    def _write(self, line: Json) -> None:
        self._write_text(self._line(line) + "\n")

    def _line(self, line: Json) -> str:
        return self._masked(_dumped(line))

    def _masked(self, text: str) -> str:
        masked = self.secrets.in_json(text, lambda data: _dumped(_with_ids(data, json.loads(text))))
        self.has_masked |= masked is not text
        return masked

    def _write_text(self, text: str) -> None:
        self._unwritten.append(text)
        # JSON escapes all but ASCII, so a character is a byte.
        self.size += len(text)

    def _flush(self) -> None:
        data = memoryview("".join(self._unwritten).encode("ascii"))
        self._unwritten.clear()
        written = 0
        try:
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError:
            self._end_at(self._on_disk + bytes(data[:written]).rfind(b"\n") + 1)
            raise
        self._on_disk += written
        self._flushed = time.monotonic()

    def _end_at(self, size: int) -> None:
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), size)
        with suppress(OSError):
            self._file.close()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time. Not every file system can lock a folder."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


_dumped = json.JSONEncoder(separators=(",", ":")).encode


def _with_ids(masked: Json, line: Json) -> Json:
    """A masked line with what it is about, by which it is found again."""
    ids = {name: line[name] for name in _IDS if name in line}
    if line.get("kind") == "header":
        sets = zip(masked.get("sets", ()), line.get("sets", ()), strict=True)
        ids["sets"] = [new | {name: old[name] for name in _SET_IDS if name in old} for new, old in sets]
    return masked | ids


def _named(case: CaseId, eval_set_id: str) -> Json:
    return {"path": case.path, "set": eval_set_id, "case": case.eval_id}
