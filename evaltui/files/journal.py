"""The recovery journal: the unsaved edits of a document, kept as they happen.

One file for each edited document in `.evaltui/recovery`, in lines of JSON. The first one says which file is
edited, as seen from the agent's folder, and the fingerprint of what was on disk. A folder may come from
anywhere: no journal in it is offered for a file outside of it. The journals of such files are in the folder
of this user's state and name their agent. The text before the first edit has a line of its own, which
may come after edits: that of a large document takes some tenths of a second to pack, and nobody waits for
it. Until it is there, the file on disk is that text as long as it has the fingerprint. Each other line is
an edit; an undo is one more edit. Texts that are typed and not in the document are in a second file beside
the journal, which is replaced as they change.
"""

from __future__ import annotations

import base64
import codecs
import fcntl
import hashlib
import json
import os
import re
import threading
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any

import platformdirs

from evaltui.core.jsondoc.composed import changed_pieces, composed
from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.splices import Splice
from evaltui.core.model.problems import JsonPath
from evaltui.files.atomic import private
from evaltui.files.folders import (
    agent_folder,
    case_path,
    make_own_folder,
    make_private_folder,
    own_folder,
    path_inside,
)
from evaltui.files.saving import Fingerprint, fingerprint

RECOVERY = "recovery"
VERSION = 3
# Paths were absolute, and before that the base was in the header.
_EARLIER_VERSIONS = (1, 2)

# Of an eval set, fast compression leaves a tenth.
_COMPRESSION = 1

_PARTS = 500

# Characters. The text of a larger document is packed in a thread.
_LARGE = 1_000_000

# Bytes that are read at once; four characters of base64 are three of them.
_PIECE = 1 << 16

_BASE = re.compile(rb'"base":\s*"([A-Za-z0-9+/=]+)"')


@dataclass(frozen=True)
class Draft:
    """A text typed for a place in a case that the case does not have."""

    case: str
    """Id of the case."""
    at: JsonPath
    """The place in the data of the set."""
    part: str
    """Tells apart texts for the same place."""
    text: str
    problem: str
    """Why the text is not applied."""
    base: str = ""
    """The text that was there when it was typed; "" where that was not stored."""


class Journal:
    """The journal of one document that is being edited. Killed at any moment, it leaves what was appended."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._size = 0
        self._lock = threading.Lock()
        # Lines that there was no room for, in order.
        self._waiting: list[bytes] = []
        self._drafts: Sequence[Draft] = ()

    @classmethod
    def open(cls, agent_dir: Path, path: Path, base: JsonDocument, on_disk: Fingerprint | None) -> Journal:
        """Begin a journal for a document, `base` being what it was before the first edit.

        `on_disk` is the fingerprint of the file if that is the base, else None. Raises OSError where the
        agent's folder, or that of the user's state, cannot be written.
        """
        inside = path_inside(agent_dir, path)
        folder = _make_user_folder() if inside is None else make_own_folder(agent_dir, RECOVERY)
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%S}Z-{uuid.uuid4().hex[:6]}.jsonl"
        file = open(folder / name, "xb", buffering=0, opener=private)  # noqa: SIM115
        # Held as long as the process lives, which no other sign tells as surely.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        journal = cls(Path(file.name), file)
        header = {
            "version": VERSION,
            "path": str(path.absolute()) if inside is None else inside,
            "agent": str(agent_folder(agent_dir).resolve()) if inside is None else None,
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

    def write_drafts(self, drafts: Sequence[Draft]) -> None:
        """Replaces the stored drafts, after the edits without room until now. Raises OSError; the stored
        drafts stay then."""
        self._write()
        if drafts == self._drafts:
            return
        path = _drafts_file(self.path)
        if drafts:
            stored = {"t": datetime.now(UTC).isoformat(), "drafts": [asdict(draft) for draft in drafts]}
            new = _new_file(self.path)
            try:
                with open(new, "wb", buffering=0, opener=private) as file:
                    _write_all(file, _line(stored))
                new.replace(path)
            finally:
                new.unlink(missing_ok=True)
        else:
            path.unlink(missing_ok=True)
        self._drafts = drafts

    def discard(self) -> None:
        """Remove the journal: the edits were saved or thrown away."""
        with self._lock:
            _remove(self.path)
            self._file.close()

    def _write(self, *lines: bytes) -> None:
        with self._lock:
            if self._file.closed:
                return
            self._waiting += lines
            while self._waiting:
                self._write_line(self._waiting[0])
                del self._waiting[0]

    def _write_line(self, line: bytes) -> None:
        try:
            _write_all(self._file, line)
        except OSError:
            # Behind half of a line nothing could be read again.
            os.ftruncate(self._file.fileno(), self._size)
            self._file.seek(self._size)
            raise
        self._size += len(line)


def _write_all(file: IO[bytes], line: bytes) -> None:
    data = memoryview(line)
    while data:
        data = data[file.write(data) :]


def _drafts_file(journal: Path) -> Path:
    return journal.with_suffix(".drafts")


def _new_file(journal: Path) -> Path:
    """The drafts while they are written."""
    return journal.with_suffix(".new")


def _remove(journal: Path) -> None:
    """Removes a journal and its drafts, also half-written ones; drafts without a journal are nobody's."""
    for file in (journal, _drafts_file(journal), _new_file(journal)):
        file.unlink(missing_ok=True)


def _user_folder() -> Path:
    """The folder of this user's state, which no agent's folder brings along."""
    return platformdirs.user_state_path("evaltui")


def _make_user_folder() -> Path:
    """The folder of the journals of files outside their agents' folders. Raises OSError."""
    base = _user_folder()
    base.parent.mkdir(parents=True, exist_ok=True)
    for folder in (base, base / RECOVERY):
        make_private_folder(folder)
    return base / RECOVERY


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
    """The unsaved edits of a process that is gone. They stay in the journal until they are asked for."""

    journal: Path
    path: Path
    """The file that was edited, absolute."""
    name: str
    """The file as seen from the agent's folder."""
    labels: tuple[str, ...]
    """Those of the edits, in order; none where only drafts are left."""
    when: datetime
    """Time of the last edit or draft, in UTC."""
    fingerprint: Fingerprint | None
    """Of what was edited. None where the process was killed before it was kept and the file has changed
    since: nothing can be restored then."""
    matches: bool
    """Whether the file still is what was edited; else its present text can be merged with the edits."""
    packed: tuple[int, int] | None
    """Where in the journal the text is that was edited, in bytes; None where the file has it."""
    drafts: tuple[Draft, ...] = ()

    @property
    def drafts_file(self) -> Path:
        """The file with the drafts, as JSON."""
        return _drafts_file(self.journal)

    @property
    def can_be_restored(self) -> bool:
        """Whether the text that was edited exists; drafts alone need none."""
        return self.fingerprint is not None or not self.labels

    def steps(self) -> Iterator[RecoveredEdit]:
        """The edits, read one by one. Raises OSError."""
        with self.journal.open("rb") as file:
            yield from map(_step, (line for line, _ in _whole_lines(file) if "splices" in line))

    def base(self, like: JsonDocument | None = None) -> JsonDocument:
        """What was edited; `like` as in `JsonDocument`. Raises OSError, and ValueError where it is gone."""
        text = "".join(self.pieces())
        if self.packed is None and fingerprint(text) != self.fingerprint:
            raise ValueError("the file changed since and its old text is not stored")
        return JsonDocument(text, like)

    def pieces(self) -> Iterator[str]:
        """The text that was edited, some at a time."""
        with (self.path if self.packed is None else self.journal).open("rb") as file:
            read = (
                iter(lambda: file.read(_PIECE), b"") if self.packed is None else _unpacked(file, self.packed)
            )
            yield from codecs.iterdecode(read, "utf-8")

    def edited(self, base: JsonDocument) -> JsonDocument:
        """What the user had, made of what was edited with the edits that fit it. Raises OSError."""
        document = base.copy()
        for step in self.steps():
            try:
                document.splice(step.splices)
            except ValueError:
                break
        return document

    def discard(self) -> None:
        """Remove the journal: the edits were taken over or are not wanted."""
        _remove(self.journal)


def recoverable(agent_dir: Path) -> list[Recovered]:
    """The unsaved edits that processes left behind that are gone, the oldest journal first.

    Of an agent's folder only those of files in it, and only journals of this user. Journals with nothing to
    recover are removed: no draft, and no edit, all undone, or saved just before the end. No text is put
    together to find that out: with a large set, those of each journal are hundreds of megabytes.
    """
    offered = []
    on_disk = cache(_on_disk)
    for base in (own_folder(agent_dir), _user_folder()):
        folder = base / RECOVERY
        if base.is_symlink() or folder.is_symlink():
            continue
        # The names begin with the time.
        for journal in sorted(folder.glob("*.jsonl")):
            # One that is damaged must not keep the others, or the program, from starting.
            with suppress(OSError, ValueError):
                if not _is_own_file(journal.lstat()):
                    continue
                with journal.open("rb") as file:
                    recovered = _read(agent_dir, journal, file, on_disk)
                if recovered is not None:
                    offered.append(recovered)
    return sorted(offered, key=lambda one: one.journal.name)


def _is_own_file(stat: os.stat_result) -> bool:
    return S_ISREG(stat.st_mode) and stat.st_uid == os.getuid()


def _file_of(agent_dir: Path, journal: Path, header: dict[str, Any]) -> Path | None:
    """The file that a journal is of; None where that is another agent's, outside the folder, or no file."""
    folder = agent_folder(agent_dir).absolute()
    path = folder / header["path"]
    if journal.parent.parent == _user_folder():
        is_of_agent = header.get("agent") == str(folder.resolve()) and path_inside(agent_dir, path) is None
    else:
        is_of_agent = path_inside(agent_dir, path) is not None
    return path if is_of_agent and (path.is_file() or not os.path.lexists(path)) else None


def _read(
    agent_dir: Path, journal: Path, file: IO[bytes], on_disk: Callable[[Path], Fingerprint | None]
) -> Recovered | None:
    lines = _whole_lines(file)
    header, packed = next(lines, ({}, None))
    if header.get("version") not in (VERSION, *_EARLIER_VERSIONS) or _is_in_use(file, header):
        return None
    path = _file_of(agent_dir, journal, header)
    if path is None:
        return None
    labels: list[str] = []
    last = ""
    for line, place in lines:
        packed = packed or place
        if "splices" in line:
            labels.append(line["label"])
            last = line["t"]
    drafts, typed = _read_drafts(journal)
    if not labels and not drafts:
        _remove(journal)
        return None
    base = header["fingerprint"]
    present = on_disk(path)
    if packed is not None and base is None:
        base = _digest(_unpacked(file, packed))
    elif packed is None and base != present:
        base = None
    matches = base is not None and base == present
    when = datetime.fromisoformat(max(last, typed))
    name = case_path(agent_dir, path)
    recovered = Recovered(journal, path, name, tuple(labels), when, base, matches, packed, drafts)
    if not labels or base is None or not _is_nothing(recovered, present):
        return recovered
    if drafts:
        return replace(recovered, labels=())
    _remove(journal)
    return None


def _read_drafts(journal: Path) -> tuple[tuple[Draft, ...], str]:
    """The drafts of a journal, and when they were stored; none where they cannot be read."""
    path = _drafts_file(journal)
    try:
        if not _is_own_file(path.lstat()):
            return (), ""
        stored = json.loads(path.read_bytes())
        drafts = tuple(Draft(at=tuple(one.pop("at")), **one) for one in stored["drafts"])
        texts = [text for one in drafts for text in (one.case, one.part, one.text, one.problem, one.base)]
        if all(isinstance(text, str) for text in texts):
            return drafts, datetime.fromisoformat(stored["t"]).isoformat()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return (), ""


def _is_nothing(recovered: Recovered, present: Fingerprint | None) -> bool:
    """Whether nothing is left of the edits, or the file has them already."""
    grown = sum(len(one.new) - len(one.old) for step in recovered.steps() for one in step.splices)
    if recovered.matches and grown:
        # A text of another length: usually, that is all there is to know.
        return False
    try:
        left = composed(splice for step in recovered.steps() for splice in step.splices)
        changed = (text.encode() for text in changed_pieces(recovered.pieces(), left))
        return not left or _digest(changed) in (recovered.fingerprint, present)
    except ValueError:
        # Edits that do not fit: those before them may.
        return False


def _on_disk(path: Path) -> Fingerprint | None:
    """Of what a file holds, which is read in pieces; None where it is gone."""
    try:
        with path.open("rb") as file:
            return _digest(_read_on(file))
    except OSError:
        return None


def _read_on(file: IO[bytes]) -> Iterator[bytes]:
    """What a file holds, in pieces."""
    return iter(lambda: file.read(_PIECE), b"")


def _digest(pieces: Iterable[bytes]) -> Fingerprint:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return Fingerprint(digest.hexdigest())


def _whole_lines(file: IO[bytes]) -> Iterator[tuple[dict[str, Any], tuple[int, int] | None]]:
    """The lines up to the first that is torn: what comes after cannot be relied on. Each without the text
    that was edited, but with where in the file that is, if the line has it."""
    start = 0
    for line in file:
        end = start + len(line)
        # Within a text of JSON there is a backslash before each quote.
        found = _BASE.search(line)
        place = (start + found.start(1), start + found.end(1)) if found else None
        try:
            data = json.loads(line[: found.start(1)] + line[found.end(1) :] if found else line)
        except ValueError:
            return
        if not isinstance(data, dict) or not line.endswith(b"\n"):
            return
        yield data, place
        start = end


def _unpacked(file: IO[bytes], place: tuple[int, int]) -> Iterator[bytes]:
    """What is packed at a place of a journal, in pieces. Raises ValueError where it is damaged."""
    unpacker, (start, end) = zlib.decompressobj(), place
    file.seek(start)
    try:
        for at in range(start, end, _PIECE):
            packed = base64.b64decode(file.read(min(_PIECE, end - at)))
            while packed:
                yield unpacker.decompress(packed, _PIECE)
                packed = unpacker.unconsumed_tail
        yield unpacker.flush()
    except zlib.error as error:
        raise ValueError(f"its old text is damaged: {error}") from error


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
