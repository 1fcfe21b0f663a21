"""Run logs: what happened in a run, written line by line as it happens, and read back.

A log begins with a header. Then come events, the result of every run of a case (`repeat_result`) and of every
case (`case_result`) as they happen. A log that was closed ends with an index, which has the case results once
more, and a footer that says where: so that of a large log only the part that is asked for is read.
Lines that are about a case name its file (see `CaseId`); logs of earlier versions name its set only.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import platform
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import FileIO
from pathlib import Path
from typing import Any

from evaltui.core.compare.run_comparison import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import GRAVEST_FIRST, Status
from evaltui.core.secrets import Secrets
from evaltui.files.atomic import private
from evaltui.files.folders import make_own_folder, own_folder
from evaltui.files.run_header import RunHeader, header_from_json
from evaltui.files.secrets import secrets_of
from evaltui.text.wording import in_words

VERSION = 3
# Those that are read; the first one told cases by set id only.
_VERSIONS = (2, VERSION)
SUFFIX = ".jsonl"
RUNS = "runs"

Json = dict[str, Any]

# Events come by the thousand: they are written together, at most this many seconds late.
_FLUSH_EVERY = 0.2
# How the lines begin that are not events: the many events need not be parsed to be passed over.
_HEADER = b'{"kind":"header"'
_AGENT = b'{"kind":"agent"'
_REPEAT = b'{"kind":"repeat_result"'
_RESULT = b'{"kind":"case_result"'
_INDEX = b'{"kind":"index"'
_FOOTER = b'{"kind":"footer"'
_OUR_LINE = (_HEADER, _REPEAT, _RESULT, _INDEX, _FOOTER)
_IDS = ("kind", "path", "set", "case", "eval_set_id", "eval_id")
_SET_IDS = ("path", "eval_set_id", "eval_ids")
# The footer is shorter than this.
_END = 4096


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
    def create(cls, agent_dir: Path, header: Json) -> RunLog:
        """Begin `.evaltui/runs/<utc>-<hex>.jsonl` in the agent's folder with a header line.

        The header gets the versions, and the time of the start unless `header` has one. Raises OSError
        where the folder cannot be written.
        """
        folder = make_own_folder(agent_dir, RUNS)
        now = datetime.now(UTC)
        stamp = now.strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = folder / f"{stamp}Z-{uuid.uuid4().hex[:6]}{SUFFIX}"
        log = cls(path, FileIO(path, "x", opener=private), secrets_of(agent_dir))
        # Released when the process ends, however it ends: see `is_being_written`.
        with suppress(OSError):
            fcntl.flock(log._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        versions = {"version": VERSION, "evaltui": _own_version(), "python": platform.python_version()}
        log._write({"kind": "header", **versions, "started": now.isoformat(), **header})
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
        self._write(event)
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
        text = _dumped(line)
        masked = self._secrets.in_json(text, lambda data: _dumped(_with_ids(data, line)))
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


def _dumped(line: Json) -> str:
    return json.dumps(line, separators=(",", ":"))


def _with_ids(masked: Json, line: Json) -> Json:
    """A masked line with what it is about, by which it is found again."""
    ids = {name: line[name] for name in _IDS if name in line}
    if line.get("kind") == "header":
        sets = zip(masked.get("sets", ()), line.get("sets", ()), strict=True)
        ids["sets"] = [new | {name: old[name] for name in _SET_IDS} for new, old in sets]
    return masked | ids


def _named(case: CaseId, eval_set_id: str) -> Json:
    return {"path": case.path, "set": eval_set_id, "case": case.eval_id}


def _own_version() -> str:
    try:
        return version("evaltui")
    except PackageNotFoundError:
        return "not installed"


def is_being_written(path: Path) -> bool:
    """Whether the run of a log is still going on, in this process or in another one.

    Not every file system can tell. Raises OSError for what cannot be opened.
    """
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return isinstance(error, BlockingIOError)
    return False


@dataclass(frozen=True)
class LoggedCase:
    """The result of a case as a log has it, and where in the log the rest of it is, in bytes: the stretch
    that has its events, None where it has none, and the results of its runs."""

    id: CaseId
    summary: CaseSummary
    events: tuple[int, int] | None = None
    repeats_at: tuple[int, ...] = ()


@dataclass(frozen=True)
class StoredRun:
    """A log that was read: its header, the results of its cases in the order in which they were finished, and
    its footer, None where the run did not come to its end."""

    path: Path
    header: RunHeader
    results: tuple[LoggedCase, ...]
    footer: Footer | None = None

    @property
    def id(self) -> str:
        return self.path.name.removesuffix(SUFFIX)

    @property
    def complete(self) -> bool:
        return self.footer is not None

    def events(self) -> Iterator[Json]:
        """The events in the order in which they were written, read from the file."""
        for line in _lines(self.path):
            if not line.startswith(_OUR_LINE):
                yield from _parsed(self.path, line)


@dataclass(frozen=True)
class Footer:
    """How a run ended; `seconds` is wall time, None where nobody knows."""

    status: Status
    seconds: float | None = None


def read_run(path: Path) -> StoredRun:
    """The header and the results of a log, without its events.

    A last line that was cut off is left out. Raises OSError, and ValueError for a file that is not a run
    log, was written by another version, or is damaged.
    """
    header = read_header(path)
    results: dict[CaseId, LoggedCase] = {}
    for line in read_index(path).splitlines(keepends=True):
        for row in _parsed(path, line):
            one = _logged_case(path, header, row)
            # A case may have been finished again. Of twins in an earlier log the worst result stands.
            known = results.get(one.id) if (one.summary.eval_set_id, one.id.eval_id) in header.twins else None
            if known is None or _gravity(known) >= _gravity(one):
                results[one.id] = one
    return StoredRun(path, header, tuple(results.values()), _footer(path))


def _gravity(case: LoggedCase) -> int:
    """0 for what is gravest."""
    status = case.summary.status
    return GRAVEST_FIRST.index(status) if status in GRAVEST_FIRST else len(GRAVEST_FIRST)


def _logged_case(path: Path, header: RunHeader, row: Json) -> LoggedCase:
    with _damage(path, "a result of a case"):
        summary = CaseSummary.from_json(row)
        events, repeats_at = row.get("events"), row.get("repeats_at", [])
        if events is not None and not (_are_places(events) and len(events) == 2 and events[0] <= events[1]):
            raise ValueError(f"{events!r} is no stretch of a log")
        if not _are_places(repeats_at):
            raise ValueError(f"{repeats_at!r} are no places in a log")
        case = header.id_of(summary.path, summary.eval_set_id, summary.eval_id)
        summary = replace(summary, path="" if case.path == summary.eval_set_id else case.path)
        return LoggedCase(case, summary, events and (events[0], events[1]), tuple(repeats_at))


def _are_places(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


@contextmanager
def _damage(path: Path, what: str) -> Iterator[None]:
    """What is wrong in a log, as a sentence that names it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {what} cannot be read: {error}") from error


def _without_kind(line: Json) -> Json:
    return {name: value for name, value in line.items() if name != "kind"}


def read_header(path: Path) -> RunHeader:
    """Raises OSError, and ValueError for a file that is not a run log or was written by another version."""
    with path.open("rb") as file:
        line = file.readline()
    data = next(_parsed(path, line), None) if line.startswith(_HEADER) else None
    if data is None:
        raise ValueError(f"{path} is not a run log")
    if data.get("version") not in _VERSIONS:
        raise ValueError(f"{path} was written by another version of evaltui ({data.get('evaltui')})")
    with _damage(path, "its header"):
        return header_from_json(path, _without_kind(data))


def read_agent(path: Path) -> Json:
    """What the run found out of its agent; {} where it did not get to import it. Raises OSError."""
    with _mapped(path) as log:
        line = next(_found(log, _AGENT), b"")
    return _without_kind(next(_parsed(path, line), {}))


def _footer(path: Path) -> Footer | None:
    data = _read_footer(path)
    # One of an interrupted run says only where its index is.
    if data is None or "status" not in data:
        return None
    with _damage(path, "its footer"):
        seconds = data.get("seconds")
        if seconds is not None and type(seconds) not in (int, float):
            raise ValueError(f"seconds is {seconds!r}")
        return Footer(Status(data["status"]), seconds)


def _read_footer(path: Path) -> Json | None:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
        last = file.read().splitlines(keepends=True)[-1:]
    if not last or not last[0].startswith(_FOOTER):
        return None
    return next(_parsed(path, last[0]), None)


def read_index(path: Path) -> bytes:
    """The results of a log's cases as lines of JSON: its index, or what has been finished so far.

    Raises OSError, and ValueError for a log that is damaged.
    """
    footer = _read_footer(path)
    if footer is not None and "index" in footer:
        index = footer["index"]
        if not (_are_places(index) and len(index) == 2 and index[0] <= index[1] <= path.stat().st_size):
            raise ValueError(f"{path} is damaged: it has no index at {index!r}")
        start, end = index
        with path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)
    with _mapped(path) as log:
        return b"".join(_found(log, _RESULT))


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """A log as bytes that are read where they are looked at."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            yield log


def _found(log: mmap.mmap | bytes, beginning: bytes) -> Iterator[bytes]:
    """The lines that begin so."""
    at = log.find(b"\n" + beginning)
    while at >= 0:
        end = log.find(b"\n", at + 1)
        yield log[at + 1 : end + 1 if end >= 0 else len(log)]
        at = log.find(b"\n" + beginning, end) if end >= 0 else -1


def result_of(
    path: Path, header: RunHeader, index: bytes, case: CaseId, eval_set_id: str
) -> LoggedCase | None:
    """The result of one case from a log's index, the last one where there are several; None without one.

    The id of its set is for logs of earlier versions. Raises ValueError for a log that is damaged.
    """
    # Inside a text the quotes are escaped: what is found is the beginning of a result.
    name, value = ("eval_set_id", eval_set_id) if header.by_label else ("path", case.path)
    named = f'"{name}":{json.dumps(value)},"eval_id":{json.dumps(case.eval_id)},'.encode()
    at = index.rfind(named)
    if at < 0:
        return None
    line = index[index.rfind(b"\n", 0, at) + 1 : index.find(b"\n", at) + 1]
    found = next((_logged_case(path, header, row) for row in _parsed(path, line)), None)
    return found if found is not None and found.id == case else None


def repeats_of(path: Path, case: LoggedCase) -> list[Json]:
    """The results of the runs of a case.

    Raises OSError, and ValueError for a log that is damaged.
    """
    results = []
    with path.open("rb") as file:
        for place in case.repeats_at:
            file.seek(place)
            for data in _parsed(path, file.readline()):
                if data.get("kind") != "repeat_result" or not isinstance(data.get("result"), dict):
                    raise ValueError(f"{path} is damaged: it has no result of {case.id.eval_id} at {place}")
                results.append(data["result"])
    return results


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def events_between(
    path: Path, stretch: tuple[int, int], case: CaseId, eval_set_id: str
) -> dict[int, list[Json]]:
    """The events of one case by repeat, from a stretch of a log in bytes, both ends being ends of lines.

    A repeat that was tried again after a crash has the events of its last try only. Raises OSError, and
    ValueError for a log that is damaged.
    """
    start, end = stretch
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read(end - start).splitlines(keepends=True)
    # Other cases ran at the same time: their lines need not be parsed.
    named = f'"case":{json.dumps(case.eval_id)}'.encode()
    repeats: dict[int, list[Json]] = {}
    for line in lines:
        if named not in line or line.startswith(_OUR_LINE):
            continue
        for data in _parsed(path, line):
            # Lines of earlier versions do not name the file.
            path_of_line = data.get("path", case.path)
            if (path_of_line, data.get("set"), data.get("case")) != (case.path, eval_set_id, case.eval_id):
                continue
            repeat = _repeat_number(path, data)
            if data.get("kind") == "case_started":
                repeats[repeat] = []
            else:
                repeats.setdefault(repeat, []).append(data)
    return repeats


def event_of(path: Path, data: Json) -> Event:
    """An event of a log. Raises ValueError for what is none."""
    with _damage(path, "an event"):
        for name, value in data.items():
            if not isinstance(value, _KINDS_IN_EVENTS.get(name, object)):
                raise ValueError(f"{name} is {in_words(value)}")
        return Event.from_json(data)


_NUMBER = (int, float)
_KINDS_IN_EVENTS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("kind", "agent", "id", "parent", "branch"), str),
    **dict.fromkeys(("content", "usage", "data"), dict),
    **dict.fromkeys(("duration", "t"), _NUMBER),
    "turn": int,
}


def _repeat_number(path: Path, data: Json) -> int:
    repeat = data.get("repeat", 0)
    if type(repeat) is not int or repeat < 0:
        raise ValueError(f"{path} is damaged: {repeat!r} is no number of a run")
    return repeat


@dataclass(frozen=True)
class CaseLine:
    """A line of a log that is about a run of a case: `case_started`, an event, or a `repeat_result`."""

    case: CaseId
    eval_set_id: str
    repeat: int
    data: Json

    @property
    def kind(self) -> str:
        return str(self.data.get("kind"))


def lines_of_cases(path: Path) -> Iterator[CaseLine]:
    """Everything in a log that is about a run of a case.

    A last line that was cut off is left out. Raises OSError, and ValueError for a log that is damaged.
    """
    header = read_header(path)
    for line in _lines(path):
        if line.startswith((_HEADER, _RESULT, _INDEX, _FOOTER)) or b'"case":' not in line:
            continue
        for data in _parsed(path, line):
            if "case" not in data:
                continue
            eval_set_id = data.get("set", "")
            with _damage(path, "a line"):
                case = header.id_of(data.get("path"), eval_set_id, data["case"])
                if data.get("kind") == "repeat_result" and not isinstance(data.get("result"), dict):
                    raise ValueError("it has no result")
            yield CaseLine(case, eval_set_id, _repeat_number(path, data), data)


def _parsed(path: Path, line: bytes) -> Iterator[Json]:
    """A line as an object; nothing for one that was cut off."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        if line.endswith(b"\n"):
            raise ValueError(f"{path} is damaged: {line[:60]!r} is not JSON") from None
        # The last line, cut off when the process was killed.
        return
    if not isinstance(data, dict):
        raise ValueError(f"{path} is damaged: {line[:60]!r} is not an object")
    yield data


def latest_run(agent_dir: Path) -> Path | None:
    """The log of the run that was started last."""
    return next(reversed(run_logs(agent_dir)), None)


def runs_folder(agent_dir: Path) -> Path:
    return own_folder(agent_dir) / RUNS


def run_logs(agent_dir: Path) -> list[Path]:
    """The logs of every run of an agent, the oldest one first."""
    folder = runs_folder(agent_dir)
    if own_folder(agent_dir).is_symlink() or folder.is_symlink():
        return []
    # Ids begin with the time.
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_file())
