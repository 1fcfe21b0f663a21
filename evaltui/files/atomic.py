"""Files that are there with all of their content or not at all."""

from __future__ import annotations

import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path


def private(path: str, flags: int) -> int:
    """An `opener` for files that only their user may read."""
    return os.open(path, flags, 0o600)


def write_privately(path: Path, text: str) -> None:
    """As `write_atomically`, for a file that only its user may read; a link in its place is replaced."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="", opener=private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_atomically(path: Path, text: str) -> None:
    """Write a file in UTF-8, new or in place of the one there; a reader, or a crash, never sees half of it.

    A file that is replaced keeps its mode; of a symbolic link the file that it leads to is replaced. Raises
    OSError, and then the file is as it was.
    """
    target = Path(os.path.realpath(path))
    # In the same folder, since a file cannot be moved from one disk to another in one step.
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Bring to the disk that a file in it was replaced; not every file system can do that to a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
