"""Run logs: what happened in a run, written line by line as it happens, and read back."""

from __future__ import annotations

import json
import platform
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

from evaltui.files.folders import OWN_FOLDER, agent_folder, make_own_folder
from evaltui.files.workspace import SelectionError

VERSION = 1

Json = dict[str, Any]

# Events come by the thousand: they are written together, at most this many seconds late.
_FLUSH_EVERY = 0.2


class RunLog:
    """A log that is being written. Killed at any moment, it leaves a log that `read_run` reads.

    `size` is in bytes, with what has not reached the disk yet.
    """

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path = path
        self.size = 0
        self._file = file
        self._flushed = time.monotonic()

    @classmethod
    def create(cls, agent_dir: Path, header: Json) -> RunLog:
        """Begin `.evaltui/runs/<utc>-<hex>.jsonl` in the agent's folder with a header line.

        The header gets the versions, and the time of the start unless `header` has one. Raises OSError
        where the folder cannot be written.
        """
        folder = _runs_folder(agent_dir)
        make_own_folder(agent_dir)
        folder.mkdir(exist_ok=True)
        now = datetime.now(UTC)
        stamp = now.strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = folder / f"{stamp}Z-{uuid.uuid4().hex[:6]}.jsonl"
        log = cls(path, path.open("x", encoding="utf-8", newline="\n"))
        versions = {"version": VERSION, "evaltui": _own_version(), "python": platform.python_version()}
        log._write({"kind": "header", **versions, "started": now.isoformat(), **header})
        log._flush()
        return log

    def event(self, event: Json) -> None:
        """Add an event; it reaches the disk soon."""
        self._write(event)
        if time.monotonic() - self._flushed > _FLUSH_EVERY:
            self._flush()

    def result(self, case_result: Json) -> None:
        """Add the result of a case; it reaches the disk at once."""
        self._write({"kind": "case_result", **case_result})
        self._flush()

    def close(self, footer: Json | None = None) -> None:
        """End the log. With a footer the run is complete, without one it was interrupted."""
        if footer is not None:
            self._write({"kind": "footer", **footer})
        self._file.close()

    def _write(self, line: Json) -> None:
        # JSON escapes all but ASCII, so a character is a byte.
        self.size += self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _flush(self) -> None:
        self._file.flush()
        self._flushed = time.monotonic()


def _own_version() -> str:
    try:
        return version("evaltui")
    except PackageNotFoundError:
        return "not installed"


@dataclass(frozen=True)
class StoredRun:
    """A log that was read. `footer` is None where the run did not come to its end."""

    path: Path
    header: Json
    results: tuple[Json, ...]
    footer: Json | None = None

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def complete(self) -> bool:
        return self.footer is not None

    def events(self) -> Iterator[Json]:
        """The events in the order in which they were written, read from the file again."""
        for line in _lines(self.path):
            if not line.startswith(_OUR_LINE):
                yield from _parsed(self.path, line)


# How the lines begin that are not events: the many events need not be parsed to be passed over.
_OUR_LINE = ('{"kind":"header"', '{"kind":"case_result"', '{"kind":"footer"')


def read_run(path: Path) -> StoredRun:
    """The header and the results of a log, without its events.

    A last line that was cut off is left out. Raises OSError, and ValueError for a file that is not a run
    log or was written by another version.
    """
    header: Json | None = None
    footer: Json | None = None
    results: list[Json] = []
    for line in _lines(path):
        if not line.startswith(_OUR_LINE):
            if header is None:
                break
            continue
        for data in _parsed(path, line):
            match data.pop("kind"):
                case "header":
                    header = data
                case "case_result":
                    results.append(data)
                case "footer":
                    footer = data
    if header is None:
        raise ValueError(f"{path} is not a run log")
    if header.get("version") != VERSION:
        raise ValueError(f"{path} was written by another version of evaltui ({header.get('evaltui')})")
    return StoredRun(path, header, tuple(results), footer)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
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
        if named not in line:
            continue
        for data in _parsed(path, line.decode()):
            if (data.get("set"), data.get("case")) != (eval_set_id, eval_id):
                continue
            repeat = data.get("repeat", 0)
            if data["kind"] == "case_started":
                repeats[repeat] = []
            else:
                repeats.setdefault(repeat, []).append(data)
    return repeats


def _parsed(path: Path, line: str) -> Iterator[Json]:
    try:
        data = json.loads(line)
    except ValueError:
        if line.endswith("\n"):
            raise ValueError(f"{path} is damaged: {line[:60]!r} is not JSON") from None
        # The last line, cut off when the process was killed.
        return
    yield data


def find_run(agent_dir: Path, ref: str) -> Path | None:
    """The log that a path, `last`, an id or a unique beginning of one stands for; None where there is none.

    Raises SelectionError for a beginning that several runs have.
    """
    if ref == "last":
        return latest_run(agent_dir)
    if ref.endswith(".jsonl") and Path(ref).is_file():
        return Path(ref)
    found = [path for path in run_logs(agent_dir) if path.stem.startswith(ref)]
    exact = [path for path in found if path.stem == ref]
    if len(found) > 1 and not exact:
        raise SelectionError(
            f"{ref!r} begins the ids of {len(found)} runs: {found[0].stem}, {found[1].stem}, …"
        )
    return next(iter(exact or found), None)


def latest_run(agent_dir: Path) -> Path | None:
    """The log of the run that was started last."""
    return next(reversed(run_logs(agent_dir)), None)


def _runs_folder(agent_dir: Path) -> Path:
    return agent_folder(agent_dir) / OWN_FOLDER / "runs"


def run_logs(agent_dir: Path) -> list[Path]:
    """The logs of every run of an agent, the oldest one first."""
    # Ids begin with the time.
    return sorted(_runs_folder(agent_dir).glob("*.jsonl"))
