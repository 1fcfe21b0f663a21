"""Run logs: what happened in a run, written line by line as it happens.

A log begins with a header. Then come events, the result of every run of a case (`repeat_result`) and of every
case (`case_result`) as they happen. A log that was closed ends with an index, which has the case results once
more, and a footer that says where: so that of a large log only the part that is asked for is read.
Lines that are about a case name its file (see `CaseId`); logs of earlier versions name its set only.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import FileIO
from pathlib import Path
from typing import Any, get_args

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import member, members_of
from evaltui.core.model.modes import RecordMode, ToolMode
from evaltui.core.model.tags import Tags
from evaltui.core.model.variants import Variant
from evaltui.core.secrets import Secrets
from evaltui.files.atomic import private
from evaltui.files.folders import OWN_FOLDER
from evaltui.files.settings import secrets_of
from evaltui.runs.shards import ShardsOfRun
from evaltui.runs.store import SUFFIX, RunStore
from evaltui.text.values import in_words

VERSION = 3

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
        self._secrets = secrets
        self.size = 0
        self._file = file
        self._unwritten: list[str] = []
        self._on_disk = 0
        self._flushed = time.monotonic()
        self._began: dict[CaseId, int] = {}
        self._repeats: dict[CaseId, dict[int, int]] = {}
        self._results: dict[CaseId, str] = {}

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

    def result(self, summary: CaseSummary) -> None:
        """Add the result of a case; it reaches the disk at once.

        It gets `events`, the stretch of the log that has all of the case's events, and `repeats_at`, where
        the results of its runs are, all in bytes.
        """
        case, row = summary.id, summary.to_json()
        if case in self._began:
            row["events"] = [self._began.pop(case), self.size]
        if repeats := self._repeats.pop(case, None):
            row["repeats_at"] = [repeats[number] for number in sorted(repeats)]
        self._results[case] = self._line(row)[1:]
        self._write_text(f'{{"kind":"case_result",{self._results[case]}\n')
        self._flush()

    def close(self, footer: Json | None = None) -> None:
        """End the log. With a footer the run is complete, without one it was interrupted."""
        start = self.size
        for row in self._results.values():
            self._write_text(f'{{"kind":"index",{row}\n')
        self._write({"kind": "footer", **(footer or {}), "index": [start, self.size]})
        self._flush()
        self._file.close()

    def _write(self, line: Json) -> None:
        self._write_text(self._line(line) + "\n")

    def _line(self, line: Json) -> str:
        return self._masked(_dumped(line))

    def _masked(self, text: str) -> str:
        masked = self._secrets.in_json(text, lambda data: _dumped(_with_ids(data, json.loads(text))))
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


def own_version() -> str:
    """The version of evaltui."""
    try:
        return version("evaltui")
    except PackageNotFoundError:
        return "not installed"


@dataclass(frozen=True)
class LoggedSet:
    """An eval set of a run, and which of its cases were selected.

    `path` is that of `CaseId`, `config` what scored it, None where nobody knows; `whole` where all of its
    cases were selected. `places` are theirs in the set, from 0, None where nobody knows. `tags` are those of
    the selected cases, by their ids.
    """

    path: str
    eval_set_id: str
    eval_ids: tuple[str, ...]
    config: Json | None = None
    whole: bool = False
    places: tuple[int, ...] | None = None
    tags: Tags = field(default_factory=dict)

    def to_json(self) -> Json:
        data: Json = {"path": self.path, "eval_set_id": self.eval_set_id, "eval_ids": list(self.eval_ids)}
        if self.tags:
            data["tags"] = {eval_id: list(tags) for eval_id, tags in self.tags.items()}
        if self.config is not None:
            data["config"] = self.config
        if self.places is not None and not self.whole:
            data["places"] = list(self.places)
        return data | ({"whole": True} if self.whole else {})


@dataclass(frozen=True)
class RunHeader:
    """`files` are the agent's with fingerprints of what they hold, `data` is all that the line says.

    Where it is `by_label`, the log is of an earlier version, which told cases by set id only. `twins` are the
    ids of set and case of those of which it cannot tell the file. `shards` are those of the selection that it
    holds, None where it was not divided. `variant` is the one that was run, None where none was asked for.
    """

    started: datetime
    sets: tuple[LoggedSet, ...]
    files: Mapping[str, str]
    data: Json
    by_label: bool = False
    twins: frozenset[tuple[str, str]] = frozenset()
    shards: ShardsOfRun | None = None
    variant: Variant | None = None

    @property
    def matrix(self) -> str:
        """The id that all runs of its matrix have; "" where it is of none."""
        return str(self.data.get("matrix") or "")

    @property
    def number(self) -> int | None:
        """Number of the run, from 1; None in a log of an earlier version."""
        return self.data.get("number")

    @property
    def in_process(self) -> bool:
        """Whether the agent was an object, run in the process that evaluated it."""
        return self.data.get("in_process") is True

    def selected(self) -> Iterator[tuple[CaseId, str]]:
        """The selected cases, each with its set id."""
        for one in self.sets:
            yield from ((CaseId(one.path, eval_id), one.eval_set_id) for eval_id in one.eval_ids)

    def id_of(self, path: Any, eval_set_id: Any, eval_id: Any) -> CaseId:
        """The case that a line is about, by what the line says. Raises ValueError for what is no text."""
        for value in (path or "", eval_set_id, eval_id):
            if not isinstance(value, str):
                raise ValueError(f"an id of a case is {in_words(value)}")
        if path:
            return CaseId(path, eval_id)
        found = next((one.path for one in self.sets if one.eval_set_id == eval_set_id), eval_set_id)
        is_twin = (eval_set_id, eval_id) in self.twins
        return CaseId(eval_set_id if is_twin else found, eval_id)


def header_from_json(log: Path, data: Json) -> RunHeader:
    """Raises ValueError where something is missing or of another kind than it is."""
    sets = data.get("sets", [])
    by_label = "selected" in data or not isinstance(sets, list)
    files = members_of(data, "files", str)
    for name, kind in _KINDS.items():
        if name in data:
            member(data, name, kind)
    if "runs" in data and data["runs"] < 1:
        raise ValueError(f"runs is {in_words(data['runs'])}")
    _check_choices(data)
    twins: frozenset[tuple[str, str]] = frozenset()
    if by_label:
        found = tuple(_sets_by_label(log, data))
        twins = frozenset(
            (one.eval_set_id, eval_id)
            for one in found
            for eval_id, count in Counter(one.eval_ids).items()
            if count > 1
        )
    else:
        found = tuple(_logged_set(one) for one in sets)
    started = datetime.fromisoformat(member(data, "started", str))
    shards = ShardsOfRun.from_json(member(data, "shards", dict)) if "shards" in data else None
    variant = Variant.from_json(member(data, "variant", dict)) if "variant" in data else None
    return RunHeader(started, found, files, data, by_label, twins, shards, variant)


# What the run was begun with, as far as it was asked for.
_KINDS = {"number": int, "runs": int} | dict.fromkeys(
    ("agent_name", "module", "url", "config", "initial_session", "matrix"), str
)


def _check_choices(data: Json) -> None:
    for name, choices in (("record", get_args(RecordMode)), ("tools", get_args(ToolMode))):
        if data.get(name) not in (None, *choices):
            raise ValueError(f"{name} is {in_words(data[name])}")
    match data.get("pass_if"):
        case None | "all" | "majority":
            pass
        case int() | float() as rate if 0 < rate <= 1:
            pass
        case other:
            raise ValueError(f"pass_if is {in_words(other)}")


def _logged_set(data: Any) -> LoggedSet:
    if not isinstance(data, dict):
        raise ValueError(f"an eval set is {in_words(data)}")
    config = member(data, "config", dict) if "config" in data else None
    path, eval_set_id = member(data, "path", str), member(data, "eval_set_id", str)
    eval_ids, whole = _texts(data, "eval_ids"), bool(data.get("whole"))
    places = tuple(range(len(eval_ids))) if whole else _places(data, len(eval_ids))
    tags = {eval_id: _texts(data["tags"], eval_id) for eval_id in member(data, "tags", dict, {})}
    return LoggedSet(path, eval_set_id, eval_ids, config, whole, places, tags)


def _places(data: Json, count: int) -> tuple[int, ...] | None:
    if "places" not in data:
        return None
    places = member(data, "places", list)
    if len(places) != count or not all(type(one) is int and one >= 0 for one in places):
        raise ValueError(f"places is {in_words(places)}, eval_ids has {count}")
    return tuple(places)


def _sets_by_label(log: Path, data: Json) -> Iterator[LoggedSet]:
    """Earlier versions kept the sets, and the selected cases, by set id."""
    selected, sets = member(data, "selected", dict, {}), members_of(data, "sets", dict)
    for eval_set_id in dict.fromkeys([*selected, *sets]):
        one = sets.get(eval_set_id, {})
        config = member(one, "config", dict) if "config" in one else None
        path = _as_seen(log, member(one, "path", str)) if "path" in one else eval_set_id
        eval_ids = _texts(selected, eval_set_id) if eval_set_id in selected else ()
        yield LoggedSet(path, eval_set_id, eval_ids, config, bool(one.get("whole")))


def _as_seen(log: Path, path: str) -> str:
    """Earlier versions wrote the whole path of a set that is not below the agent's folder."""
    own, runs = log.resolve().parent.parent, log.resolve().parent.name
    if not Path(path).is_absolute() or (own.name, runs) != (OWN_FOLDER, "runs"):
        return path
    return Path(os.path.relpath(path, own.parent)).as_posix()


def _texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = data.get(name)
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise ValueError(f"{name} is not a list of strings")
    return tuple(values)
