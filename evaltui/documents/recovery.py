"""Recovery files: unsaved changes of a document, stored from each edit until it is saved.

Each edited document has three files in `.evaltui/unsaved`: NAME.base is the text before the first change;
NAME.json has the path of the file relative to the agent's folder, the changed chunks, and a typed text that
is not applied; NAME.lock is locked while the process lives. Because a folder may be untrusted, changes of a
file outside of it are never offered from it: they are stored in the user's state folder.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

import filelock
import platformdirs

from evaltui.documents.case_file import CaseFile, Change
from evaltui.documents.files import private
from evaltui.documents.formats import read_any_text
from evaltui.documents.own_folder import OWN_FOLDER, make_own_folder, make_private_folder, path_inside
from evaltui.documents.saving import Fingerprint, fingerprint, fingerprint_of

if TYPE_CHECKING:
    from filelock import BaseFileLock

UNSAVED = "unsaved"
VERSION = 1

_BASE, _LOCK, _CHANGES = ".base", ".lock", ".json"


@dataclass(frozen=True)
class Draft:
    """A typed text of a field that is not applied to the case."""

    case: str
    """Id of the case; "" for the text of the whole file."""
    row: tuple[str | int, ...]
    """Row of the field; () for the JSON of the case."""
    part: str
    """Field of the row."""
    text: str
    base: str
    """Text that the field had when typing began."""


class RecoveryFile:
    """The recovery file of an edited document. After a kill at any moment, it has the last completed
    write."""

    def __init__(self, path: Path, header: dict[str, Any], base: CaseFile, lock: BaseFileLock) -> None:
        self.path = path
        self.lock = lock
        """A lock that the process holds until it ends."""
        self._header = header
        self._base = base

    @classmethod
    def open(cls, folder: Path, path: Path, base: CaseFile, on_disk: Fingerprint | None) -> RecoveryFile:
        """Creates a recovery file for a file of an agent; `base` is its text before the first change.

        `on_disk` is the fingerprint of the file if its text is the base, else None. Raises OSError where
        neither the agent's folder nor the user's state folder is writable.
        """
        inside = path_inside(folder, path)
        own = _make_user_folder() if inside is None else make_own_folder(folder, UNSAVED)
        # The names begin with the time.
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}Z-{uuid.uuid4().hex[:6]}"
        lock = filelock.FileLock(own / (name + _LOCK), mode=0o600)
        lock.acquire(timeout=0)
        header = {
            "version": VERSION,
            "path": str(path.absolute()) if inside is None else inside,
            "agent": str(folder.resolve()) if inside is None else None,
            "fingerprint": on_disk,
        }
        recovery = cls(own / (name + _CHANGES), header, base, lock)
        try:
            _write(recovery.path.with_suffix(_BASE), base.text)
        except OSError:
            recovery.discard()
            raise
        return recovery

    def write(self, document: CaseFile, labels: Sequence[str], draft: Draft | None) -> None:
        """Replaces the stored document and typed text. `labels` name the edits. Raises OSError; then the
        stored data is unchanged."""
        change = Change.between(self._base, document)
        stored = {
            **self._header,
            "t": datetime.now(UTC).isoformat(),
            "labels": list(labels),
            "change": None if document.has_text_of(self._base) else _stored(change),
            "draft": asdict(draft) if draft else None,
        }
        _write(self.path, json.dumps(stored, separators=(",", ":")))

    def discard(self) -> None:
        """Removes the recovery file of saved or discarded changes."""
        self.lock.release()
        _remove(self.path)


def _write(path: Path, text: str) -> None:
    """Writes the changes; a kill leaves the old text or the new one, a power cut may leave neither."""
    new = path.with_suffix(".new")
    try:
        with open(new, "wb", opener=private) as file:
            file.write(text.encode())
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def _remove(path: Path) -> None:
    for suffix in (_CHANGES, _BASE, ".new", _LOCK):
        path.with_suffix(suffix).unlink(missing_ok=True)


def _stored(change: Change) -> dict[str, Any]:
    after = change.frames[1]
    if change.whole:
        return {"text": after.text}
    hunks = [
        (hunk.index, len(hunk.before), [(chunk.lead, chunk.case.text) for chunk in hunk.after])
        for hunk in change.hunks
    ]
    return {"head": after.head, "tail": after.tail, "hunks": hunks}


def _restored(base: CaseFile, stored: dict[str, Any] | None) -> CaseFile:
    """The document after a stored change of its base. Raises ValueError where the change is damaged."""
    if stored is None:
        return base
    if "text" in stored:
        return read_any_text(stored["text"], base)
    chunks = [chunk.lead + chunk.case.text for chunk in base.chunks]
    for index, count, after in reversed(stored["hunks"]):
        chunks[index : index + count] = [lead + text for lead, text in after]
    return base.read("".join((stored["head"], *chunks, stored["tail"])))


def _user_folder() -> Path:
    """The folder of this user's state, which no agent's folder brings along."""
    return platformdirs.user_state_path("evaltui") / UNSAVED


def _make_user_folder() -> Path:
    folder = _user_folder()
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for part in (folder.parent, folder):
        make_private_folder(part)
    return folder


@dataclass(frozen=True)
class Recovered:
    """The unsaved changes of a process that has ended; they stay until they are discarded."""

    file: Path
    """The recovery file, as JSON."""
    path: Path
    """The file that was edited, absolute."""
    name: str
    """The file as seen from the agent's folder, with `/`."""
    labels: tuple[str, ...]
    """Labels of the edits, in order; empty where only a draft is left."""
    when: datetime
    """Time of the last edit or draft, in UTC."""
    fingerprint: Fingerprint | None
    """Fingerprint of the file when it was edited; None for a new file."""
    matches: bool
    """Whether the file is unchanged since; else its present text can be merged with the edits."""
    draft: Draft | None = None

    def documents(self) -> tuple[CaseFile, CaseFile]:
        """The document before and after the edits. Raises OSError, and ValueError where it is damaged."""
        base = read_any_text(self.file.with_suffix(_BASE).read_bytes().decode())
        return base, _restored(base, json.loads(self.file.read_bytes())["change"])

    def discard(self) -> None:
        """Removes the recovery file."""
        _remove(self.file)


def recoverable(folder: Path) -> list[Recovered]:
    """The unsaved changes that ended processes left in an agent's folder, the oldest first.

    Only changes of files in the folder, and only recovery files of this user, count. Files with nothing to
    recover are deleted.
    """
    offered = []
    for own in (folder / OWN_FOLDER / UNSAVED, _user_folder()):
        if own.is_symlink() or own.parent.is_symlink():
            continue
        for lock in sorted(own.glob(f"*{_LOCK}")):
            # One that is damaged must not keep the others, or the program, from starting.
            with suppress(OSError, ValueError, TypeError, KeyError):
                recovered = _read(folder, lock.with_suffix(_CHANGES))
                if recovered is not None:
                    offered.append(recovered)
    return sorted(offered, key=lambda entry: entry.file.name)


def _read(folder: Path, file: Path) -> Recovered | None:
    if _is_in_use(file.with_suffix(_LOCK)):
        return None
    if not file.exists():
        # Killed before the first change was written.
        _remove(file)
        return None
    if not (_is_own(file) and _is_own(file.with_suffix(_BASE))):
        return None
    stored = json.loads(file.read_bytes())
    path = _path_of(folder, file, stored)
    if stored["version"] != VERSION or path is None:
        return None
    draft = stored["draft"] and Draft(**{**stored["draft"], "row": tuple(stored["draft"]["row"])})
    present, base = fingerprint_of(path), stored["fingerprint"]
    recovered = Recovered(
        file,
        path,
        Path(os.path.relpath(path, folder.absolute())).as_posix(),
        tuple(stored["labels"]) if stored["change"] is not None else (),
        datetime.fromisoformat(stored["t"]),
        base,
        matches=present is not None and present == base,
        draft=draft,
    )
    if draft or (recovered.labels and not _is_saved(recovered, present)):
        return recovered
    recovered.discard()
    return None


def _is_saved(recovered: Recovered, present: Fingerprint | None) -> bool:
    return not recovered.matches and fingerprint(recovered.documents()[1].text) == present


def _is_in_use(lock: Path) -> bool:
    if not _is_own(lock):
        return True
    try:
        with filelock.FileLock(lock, timeout=0):
            return False
    except filelock.Timeout:
        return True


def _is_own(file: Path) -> bool:
    stat = file.lstat()
    return S_ISREG(stat.st_mode) and stat.st_uid == os.getuid()


def _path_of(folder: Path, file: Path, stored: dict[str, Any]) -> Path | None:
    """The file that was edited; None where that is another agent's, outside the folder, or no file."""
    path = folder.absolute() / stored["path"]
    is_inside = path_inside(folder, path) is not None
    if file.parent == _user_folder():
        is_of_agent = stored["agent"] == str(folder.resolve()) and not is_inside
    else:
        is_of_agent = is_inside
    return path if is_of_agent and (path.is_file() or not os.path.lexists(path)) else None
