"""The recovery journal: the unsaved edits of a document, kept as they happen.

One file for each edited document in `.evaltui/recovery`: a line with what was edited and its text before the
first edit, then a line for each edit. An undo is one more edit.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import threading
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.splices import Splice
from evaltui.files.atomic import private
from evaltui.files.folders import make_own_folder, own_folder
from evaltui.files.saving import Fingerprint, fingerprint

RECOVERY = "recovery"
VERSION = 1

# Of an eval set, fast compression leaves a tenth.
_COMPRESSION = 1


# Characters. The text of a larger document is packed in a thread: nobody waits for it with the first edit.
_LARGE = 1_000_000


class Journal:
    """The journal of one document that is being edited. Killed at any moment, it leaves what was appended;
    of a large document, some tenths of a second after the first edit."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._size = 0
        self._lock = threading.Lock()
        self._beginning: threading.Thread | None = None
        # Lines that there was no room for, or no beginning yet, in order.
        self._waiting: list[bytes] = []

    @classmethod
    def open(cls, agent_dir: Path, path: Path, base: JsonDocument) -> Journal:
        """Begin a journal for a document, `base` being what it was before the first edit.

        Raises OSError where the agent's folder cannot be written.
        """
        folder = make_own_folder(agent_dir, RECOVERY)
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%S}Z-{uuid.uuid4().hex[:6]}.jsonl"
        file = open(folder / name, "xb", buffering=0, opener=private)  # noqa: SIM115
        # Held as long as the process lives, which no other sign tells as surely.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        journal = cls(Path(file.name), file)
        header = {
            "version": VERSION,
            "path": str(path.absolute()),
            "pid": os.getpid(),
            "started": now.isoformat(),
        }
        if base.size > _LARGE:
            journal._beginning = threading.Thread(target=journal._begin_apart, args=(header, base))
            journal._beginning.start()
            return journal
        try:
            journal._write(_packed(header, base))
        except OSError:
            journal.discard()
            raise
        return journal

    def _begin_apart(self, header: dict[str, Any], base: JsonDocument) -> None:
        first = _packed(header, base)
        with self._lock:
            self._waiting.insert(0, first)
            self._beginning = None
            # Where it cannot be written, it is written before the next line.
            with suppress(OSError):
                self._write_waiting()

    def append(self, label: str, splices: Sequence[Splice]) -> None:
        """Keep an edit that was done, or the inverse splices of one that was undone.

        Raises OSError where it cannot be written; then it is written before the next one.
        """
        changes = [(splice.start, splice.old, splice.new) for splice in splices]
        self._write(_line({"label": label, "t": datetime.now(UTC).isoformat(), "splices": changes}))

    def discard(self) -> None:
        """Remove the journal: the edits were saved or thrown away."""
        if beginning := self._beginning:
            beginning.join()
        self.path.unlink(missing_ok=True)
        self._file.close()

    def _write(self, line: bytes) -> None:
        with self._lock:
            self._waiting.append(line)
            if self._beginning is None:
                self._write_waiting()

    def _write_waiting(self) -> None:
        while self._waiting:
            self._write_line(self._waiting[0])
            del self._waiting[0]

    def _write_line(self, line: bytes) -> None:
        data = memoryview(line)
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            # Behind half of a line nothing could be read again.
            os.ftruncate(self._file.fileno(), self._size)
            self._file.seek(self._size)
            raise
        self._size += len(line)


def _packed(header: dict[str, Any], base: JsonDocument) -> bytes:
    """The first line, with the text that the edits are of."""
    text = base.text
    packed = base64.b64encode(zlib.compress(text.encode(), _COMPRESSION)).decode("ascii")
    return _line({**header, "fingerprint": fingerprint(text), "base": packed})


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"


@dataclass(frozen=True)
class Step:
    """One edit of a journal, or the undoing of one."""

    label: str
    when: datetime
    splices: tuple[Splice, ...]


@dataclass(frozen=True)
class Recovered:
    """The unsaved edits of a process that is gone.

    `matches` tells whether the file still is what was edited, `base_text`; else `text` (what the user had)
    and the file's present text can be merged on it.
    """

    journal: Path
    path: Path
    base_text: str
    base: Fingerprint
    text: str
    steps: tuple[Step, ...]
    matches: bool

    @property
    def when(self) -> datetime:
        """When the last edit was made, in UTC."""
        return self.steps[-1].when

    def discard(self) -> None:
        """Remove the journal: the edits were taken over or are not wanted."""
        self.journal.unlink(missing_ok=True)


def recoverable(agent_dir: Path) -> list[Recovered]:
    """The unsaved edits that processes left behind that are gone, the oldest journal first.

    Journals with nothing to recover are removed: no edit, all undone, or saved just before the end.
    """
    found = []
    # The names begin with the time.
    folder = own_folder(agent_dir) / RECOVERY
    if own_folder(agent_dir).is_symlink() or folder.is_symlink():
        return []
    for journal in sorted(folder.glob("*.jsonl")):
        # One that is damaged must not keep the others, or the program, from starting.
        with suppress(OSError, ValueError, zlib.error), journal.open("rb") as file:
            recovered = _read(journal, file)
            if recovered is not None:
                found.append(recovered)
    return found


def _read(journal: Path, file: IO[bytes]) -> Recovered | None:
    lines = _whole_lines(file)
    header = next(lines, None)
    if header is None or header.get("version") != VERSION or _is_in_use(file, header):
        return None
    base_text = zlib.decompress(base64.b64decode(header["base"])).decode()
    text, steps = _replayed(base_text, lines)
    path = Path(header["path"])
    present = _content(path)
    if text in (base_text, present):
        journal.unlink()
        return None
    matches = present == base_text
    return Recovered(journal, path, base_text, Fingerprint(header["fingerprint"]), text, steps, matches)


def _whole_lines(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """The lines up to the first that is torn: what comes after cannot be relied on."""
    for line in file:
        if not line.endswith(b"\n"):
            return
        try:
            data = json.loads(line)
        except ValueError:
            return
        if not isinstance(data, dict):
            return
        yield data


def _is_in_use(file: IO[bytes], header: dict[str, Any]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        # A file system without locks.
        import psutil

        return psutil.pid_exists(header["pid"])
    return False


def _replayed(base_text: str, lines: Iterable[dict[str, Any]]) -> tuple[str, tuple[Step, ...]]:
    """The text that the edits made, and those of them that fit it."""
    document = JsonDocument(base_text)
    steps: list[Step] = []
    for line in lines:
        splices = tuple(Splice(*change) for change in line["splices"])
        try:
            document.splice(splices)
        except ValueError:
            break
        steps.append(Step(line["label"], datetime.fromisoformat(line["t"]), splices))
    return document.text, tuple(steps)


def _content(path: Path) -> str | None:
    """What a file holds; None where it is gone or is not text."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
