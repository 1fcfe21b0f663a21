"""Atomic writing of files that are too long for memory."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from evaltui.documents.files import make_alike, sync_folder

# A name of a file may have bytes that are no UTF-8.
_ERRORS = "backslashreplace"


@contextmanager
def written_at_once(path: Path) -> Iterator[TextIO]:
    """A text file of any length: whoever reads it meanwhile finds what was there. Left by an exception, it is
    as it was.

    A pipe or a device is written as it is, and so is a file in a folder that takes no new ones: left by an
    exception, that one is empty. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK)):
        with _in_place(target) as file:
            yield file
        return
    # Of another name than those that a save cleans up.
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        try:
            file = temporary.open("x", encoding="utf-8", errors=_ERRORS)
        except PermissionError as error:
            message = f"the folder {target.parent} cannot be written ({error.strerror})"
            raise PermissionError(message) from error
        with file:
            with suppress(FileNotFoundError):
                make_alike(file.fileno(), target.stat())
            yield file
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


@contextmanager
def _in_place(target: Path) -> Iterator[TextIO]:
    with target.open("w", encoding="utf-8", errors=_ERRORS) as file:
        try:
            yield file
        except BaseException:
            if target.is_file():
                file.truncate(0)
            raise


def _replace(temporary: Path, target: Path) -> None:
    try:
        temporary.replace(target)
    except OSError as error:
        # A file that is mounted cannot be replaced.
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        shutil.copyfile(temporary, target)
