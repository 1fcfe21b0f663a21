"""Run logs: what happened in a run, written line by line as it happens, and read back.

A log begins with a header. Then come events, the result of every run of a case (`repeat_result`) and of every
case (`case_result`) as they happen. A log that was closed ends with an index, which has the case results once
more, and a footer that says where: so that of a large log only the part that is asked for is read.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import platform
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import FileIO
from pathlib import Path
from typing import Any

from evaltui.files.folders import OWN_FOLDER, agent_folder, make_own_folder

VERSION = 2
SUFFIX = ".jsonl"

Json = dict[str, Any]
Key = tuple[str, str]

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
# The footer is shorter than this.
_END = 4096


class RunLog:
    """A log that is being written. Killed at any moment, it leaves a log that `read_run` reads.

    `size` is in bytes, with what has not reached the disk yet. Whatever raises an OSError, as on a full disk,
    has ended the log behind its last whole line: it is that of a run that was interrupted.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        self.path = path
        self.size = 0
        self._file = file
        self._unwritten: list[str] = []
        self._on_disk = 0
        self._flushed = time.monotonic()
        self._began: dict[Key, int] = {}
        self._repeats: dict[Key, dict[int, int]] = {}
        self._results: dict[Key, str] = {}

    @classmethod
    def create(cls, agent_dir: Path, header: Json) -> RunLog:
        """Begin `.evaltui/runs/<utc>-<hex>.jsonl` in the agent's folder with a header line.

        The header gets the versions, and the time of the start unless `header` has one. Raises OSError
        where the folder cannot be written.
        """
        folder = runs_folder(agent_dir)
        make_own_folder(agent_dir)
        folder.mkdir(exist_ok=True)
        now = datetime.now(UTC)
        stamp = now.strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = folder / f"{stamp}Z-{uuid.uuid4().hex[:6]}{SUFFIX}"
        log = cls(path, FileIO(path, "x"))
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

    def started(self, eval_set_id: str, eval_id: str, repeat: int) -> None:
        """A run of a case begins, or begins anew after a crash: what came of it before does not count."""
        self._began.setdefault((eval_set_id, eval_id), self.size)
        self.event({"kind": "case_started", "set": eval_set_id, "case": eval_id, "repeat": repeat})

    def event(self, event: Json) -> None:
        """Add an event; it reaches the disk soon."""
        self._write(event)
        if time.monotonic() - self._flushed > _FLUSH_EVERY:
            self._flush()

    def repeat(self, eval_set_id: str, eval_id: str, repeat: int, result: Json) -> None:
        """Add the result of one run of a case; it reaches the disk at once."""
        self._repeats.setdefault((eval_set_id, eval_id), {})[repeat] = self.size
        self._write(
            {"kind": "repeat_result", "set": eval_set_id, "case": eval_id, "repeat": repeat, "result": result}
        )
        self._flush()

    def result(self, case_result: Json) -> None:
        """Add the result of a case, with its ids and its status; it reaches the disk at once.

        It gets `events`, the stretch of the log that has all of the case's events, and `repeats_at`, where
        the results of its runs are, all in bytes.
        """
        key = case_result["eval_set_id"], case_result["eval_id"]
        # The ids first: `result_of` looks for them.
        row = {"eval_set_id": key[0], "eval_id": key[1], **case_result}
        if key in self._began:
            row["events"] = [self._began.pop(key), self.size]
        if repeats := self._repeats.pop(key, None):
            row["repeats_at"] = [repeats[number] for number in sorted(repeats)]
        self._results[key] = json.dumps(row, separators=(",", ":"))[1:]
        self._write_text(f'{{"kind":"case_result",{self._results[key]}\n')
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
        self._write_text(json.dumps(line, separators=(",", ":")) + "\n")

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
class StoredRun:
    """A log that was read: its header, the results of its cases in the order in which they were finished, and
    its footer, None where the run did not come to its end."""

    path: Path
    header: Json
    results: tuple[Json, ...]
    footer: Json | None = None

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


def read_run(path: Path) -> StoredRun:
    """The header and the results of a log, without its events.

    A last line that was cut off is left out. Raises OSError, and ValueError for a file that is not a run
    log or was written by another version.
    """
    header = read_header(path)
    footer = _read_footer(path)
    rows = (data for line in read_index(path).splitlines(keepends=True) for data in _parsed(path, line))
    # A case may have been finished again.
    results = {(row["eval_set_id"], row["eval_id"]): row for row in map(_without_kind, rows)}
    if footer is not None:
        footer = {name: value for name, value in _without_kind(footer).items() if name != "index"}
    return StoredRun(path, header, tuple(results.values()), footer or None)


def _without_kind(line: Json) -> Json:
    return {name: value for name, value in line.items() if name != "kind"}


def read_header(path: Path) -> Json:
    """Raises OSError, and ValueError for a file that is not a run log or was written by another version."""
    with path.open("rb") as file:
        line = file.readline()
    header = next(_parsed(path, line), None) if line.startswith(_HEADER) else None
    if header is None:
        raise ValueError(f"{path} is not a run log")
    if header.get("version") != VERSION:
        raise ValueError(f"{path} was written by another version of evaltui ({header.get('evaltui')})")
    return _without_kind(header)


def read_agent(path: Path) -> Json:
    """What the run found out of its agent; {} where it did not get to import it. Raises OSError."""
    with _mapped(path) as log:
        line = next(_found(log, _AGENT), b"")
    return _without_kind(next(_parsed(path, line), {}))


def _read_footer(path: Path) -> Json | None:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
        last = file.read().splitlines(keepends=True)[-1:]
    if not last or not last[0].startswith(_FOOTER):
        return None
    return next(_parsed(path, last[0]), None)


def read_index(path: Path) -> bytes:
    """The results of a log's cases as lines of JSON: its index, or what has been finished so far.

    Raises OSError.
    """
    footer = _read_footer(path)
    if footer is not None and "index" in footer:
        start, end = footer["index"]
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


def result_of(path: Path, index: bytes, key: Key) -> Json | None:
    """The result of one case from a log's index, the last one where there are several; None without one.

    Raises ValueError for a log that is damaged.
    """
    eval_set_id, eval_id = key
    # Inside a text the quotes are escaped: what is found is the beginning of a result.
    named = f'"eval_set_id":{json.dumps(eval_set_id)},"eval_id":{json.dumps(eval_id)},'.encode()
    at = index.rfind(named)
    if at < 0:
        return None
    line = index[index.rfind(b"\n", 0, at) + 1 : index.find(b"\n", at) + 1]
    return next(map(_without_kind, _parsed(path, line)), None)


def repeats_of(path: Path, row: Mapping[str, Any]) -> list[Json]:
    """The results of the runs of a case, given the result of the case.

    Raises OSError, and ValueError for a log that is damaged.
    """
    results = []
    with path.open("rb") as file:
        for place in row.get("repeats_at", ()):
            file.seek(place)
            line = file.readline()
            results += [data["result"] for data in _parsed(path, line) if data["kind"] == "repeat_result"]
    return results


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def events_between(path: Path, start: int, end: int, eval_set_id: str, eval_id: str) -> dict[int, list[Json]]:
    """The events of one case by repeat, from a stretch of a log in bytes, both ends being ends of lines.

    A repeat that was tried again after a crash has the events of its last try only. Raises OSError, and
    ValueError for a log that is damaged.
    """
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read(end - start).splitlines(keepends=True)
    # Other cases ran at the same time: their lines need not be parsed.
    named = f'"case":{json.dumps(eval_id)}'.encode()
    repeats: dict[int, list[Json]] = {}
    for line in lines:
        if named not in line or line.startswith(_OUR_LINE):
            continue
        for data in _parsed(path, line):
            if (data.get("set"), data.get("case")) != (eval_set_id, eval_id):
                continue
            repeat = data.get("repeat", 0)
            if data["kind"] == "case_started":
                repeats[repeat] = []
            else:
                repeats.setdefault(repeat, []).append(data)
    return repeats


def lines_of_cases(path: Path) -> Iterator[Json]:
    """Everything in a log that is about a run of a case: `case_started`, its events, its `repeat_result`.

    A last line that was cut off is left out. Raises OSError, and ValueError for a log that is damaged.
    """
    for line in _lines(path):
        if line.startswith((_HEADER, _RESULT, _INDEX, _FOOTER)) or b'"case":' not in line:
            continue
        for data in _parsed(path, line):
            if "case" in data:
                yield data


def _parsed(path: Path, line: bytes) -> Iterator[Json]:
    try:
        data = json.loads(line)
    except ValueError:
        if line.endswith(b"\n"):
            raise ValueError(f"{path} is damaged: {line[:60]!r} is not JSON") from None
        # The last line, cut off when the process was killed.
        return
    yield data


def latest_run(agent_dir: Path) -> Path | None:
    """The log of the run that was started last."""
    return next(reversed(run_logs(agent_dir)), None)


def runs_folder(agent_dir: Path) -> Path:
    return agent_folder(agent_dir) / OWN_FOLDER / "runs"


def run_logs(agent_dir: Path) -> list[Path]:
    """The logs of every run of an agent, the oldest one first."""
    # Ids begin with the time.
    return sorted(runs_folder(agent_dir).glob(f"*{SUFFIX}"))
