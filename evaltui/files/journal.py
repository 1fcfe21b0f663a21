"""The recovery journal: the unsaved edits of a document, kept as they happen.

One file for each edited document in `.evaltui/recovery`, in lines of JSON. The first one says which file is
edited, and the fingerprint of what was on disk. The text before the first edit has a line of its own, which
may come after edits: that of a large document takes some tenths of a second to pack, and nobody waits for
it. Until it is there, the file on disk is that text as long as it has the fingerprint. Each other line is
an edit; an undo is one more edit.
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
VERSION = 2
_VERSION_WITH_BASE_IN_HEADER = 1

# Of an eval set, fast compression leaves a tenth.
_COMPRESSION = 1

_PARTS = 500

# Characters. The text of a larger document is packed in a thread.
_LARGE = 1_000_000


class Journal:
    """The journal of one document that is being edited. Killed at any moment, it leaves what was appended."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._size = 0
        self._lock = threading.Lock()
        # Lines that there was no room for, in order.
        self._waiting: list[bytes] = []

    @classmethod
    def open(cls, agent_dir: Path, path: Path, base: JsonDocument, on_disk: Fingerprint | None) -> Journal:
        """Begin a journal for a document, `base` being what it was before the first edit.

        `on_disk` is the fingerprint of the file if that is the base, else None. Raises OSError where the
        agent's folder cannot be written.
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
            "fingerprint": on_disk,
        }
        try:
            journal._write(_line(header))
            if base.size <= _LARGE:
                journal._write(_packed(base))
        except OSError:
            journal.discard()
            raise
        if base.size > _LARGE:
            threading.Thread(target=journal._write_base, args=(base,)).start()
        return journal

    def _write_base(self, base: JsonDocument) -> None:
        line = _packed(base)
        # Where there is no room for it, it is written before the next edit.
        with suppress(OSError):
            self._write(line)

    def append(self, label: str, splices: Sequence[Splice]) -> None:
        """Keep an edit that was done, or the inverse splices of one that was undone.

        Raises OSError where it cannot be written; then it is written before the next one.
        """
        changes = [(splice.start, splice.old, splice.new) for splice in splices]
        self._write(_line({"label": label, "t": datetime.now(UTC).isoformat(), "splices": changes}))

    def discard(self) -> None:
        """Remove the journal: the edits were saved or thrown away."""
        with self._lock:
            self.path.unlink(missing_ok=True)
            self._file.close()

    def _write(self, line: bytes) -> None:
        with self._lock:
            if self._file.closed:
                return
            self._waiting.append(line)
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


def _packed(base: JsonDocument) -> bytes:
    """The line with the text that the edits are of."""
    packer, parts = zlib.compressobj(_COMPRESSION), base.chunks.parts
    # Never all of a large text at once.
    some = ("".join(parts[start : start + _PARTS]) for start in range(0, len(parts), _PARTS))
    packed = [packer.compress(text.encode()) for text in some]
    return _line({"base": base64.b64encode(b"".join([*packed, packer.flush()])).decode("ascii")})


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"


@dataclass(frozen=True)
class RecoveredEdit:
    """One edit of a journal, or the undoing of one."""

    label: str
    when: datetime
    splices: tuple[Splice, ...]


@dataclass(frozen=True)
class Recovered:
    """The unsaved edits of a process that is gone."""

    journal: Path
    path: Path
    """The file that was edited, absolute."""
    steps: tuple[RecoveredEdit, ...]
    """At least one."""
    base_text: str | None
    """What was edited. None where the process was killed before it was kept and the file has changed since:
    nothing can be restored then."""
    text: str
    """What the user had; "" where nothing can be restored."""
    matches: bool
    """Whether the file still is what was edited; else `text` and its present text can be merged on that."""

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
    header, *lines = list(_whole_lines(file)) or [{}]
    version = header.get("version")
    if version not in (VERSION, _VERSION_WITH_BASE_IN_HEADER) or _is_in_use(file, header):
        return None
    path = Path(header["path"])
    present = _content(path)
    packed = [line["base"] for line in (header, *lines) if "base" in line]
    edits = [line for line in lines if "base" not in line]
    if packed:
        base_text = zlib.decompress(base64.b64decode(packed[0])).decode()
    elif present is not None and fingerprint(present) == header["fingerprint"]:
        base_text = present
    else:
        base_text = None
    if not edits:
        journal.unlink()
        return None
    if base_text is None:
        return Recovered(journal, path, tuple(map(_step, edits)), None, "", matches=False)
    text, steps = _replayed(base_text, edits)
    if text in (base_text, present):
        journal.unlink()
        return None
    return Recovered(journal, path, steps, base_text, text, present == base_text)


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


def _step(line: dict[str, Any]) -> RecoveredEdit:
    splices = tuple(Splice(*change) for change in line["splices"])
    return RecoveredEdit(line["label"], datetime.fromisoformat(line["t"]), splices)


def _replayed(base_text: str, edits: Iterable[dict[str, Any]]) -> tuple[str, tuple[RecoveredEdit, ...]]:
    """The text that the edits made, and those of them that fit it."""
    document = JsonDocument(base_text)
    steps: list[RecoveredEdit] = []
    for step in map(_step, edits):
        try:
            document.splice(step.splices)
        except ValueError:
            break
        steps.append(step)
    return document.text, tuple(steps)


def _content(path: Path) -> str | None:
    """What a file holds; None where it is gone or is not text."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
