"""An archive of files in a folder of a worker, which stays there for as long as it is used."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import uuid
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# How a folder is opened: a link to one is none.
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True)
class UnpackedFiles:
    """The files, which no other process removes before they are released, or this process has ended."""

    folder: Path
    descriptor: int
    """The folder with its lock."""

    def release(self) -> None:
        """They are no longer used; they stay until another archive is unpacked beside them."""
        # Processes that were forked meanwhile have the descriptor, too.
        with suppress(OSError):
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        os.close(self.descriptor)


def unpacked(archive: bytes, below: Path, name: str) -> UnpackedFiles:
    """The files of a zip in the folder `name`, as they are in it: those that are there are not written again.

    What else is in `below` and is not used is removed. Raises OSError; then nothing is left.
    """
    below.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = below / name
    for other in below.iterdir():
        if other != folder:
            _remove_unused(other)
    files = _held(folder)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as source:
            for entry in source.infolist():
                place = folder / entry.filename
                if not (place.is_file() and place.stat().st_size == entry.file_size):
                    _write(place, source.read(entry), entry.external_attr >> 16)
    except BaseException:
        files.release()
        _remove_unused(folder)
        raise
    return files


def _held(folder: Path) -> UnpackedFiles:
    """The folder, made if there is none, with a lock that others may have at the same time."""
    while True:
        with suppress(FileExistsError):
            folder.mkdir()
        try:
            files = UnpackedFiles(folder, os.open(folder, _OPEN))
        except FileNotFoundError:
            continue
        # Where the file system has no locks, nothing can be removed either.
        with suppress(OSError):
            fcntl.flock(files.descriptor, fcntl.LOCK_SH)
        if _is_open(folder, files.descriptor):
            return files
        files.release()


def _remove_unused(folder: Path) -> None:
    """Remove a folder, unless some process holds it."""
    with suppress(OSError):
        descriptor = os.open(folder, _OPEN)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_open(folder, descriptor):
                shutil.rmtree(folder)
        finally:
            os.close(descriptor)


def _is_open(folder: Path, descriptor: int) -> bool:
    """Whether a descriptor is that of a folder; else another process has removed it, and maybe made it anew,
    while its lock was waited for."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    return False


def _write(place: Path, content: bytes, mode: int) -> None:
    """At once: another process may be reading the files."""
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.chmod(mode)
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)
