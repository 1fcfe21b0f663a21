"""Files too long to be in memory, which get all of their new content or none of it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from evaltui.files.atomic import make_alike, sync_folder


@contextmanager
def written_at_once(path: Path) -> Iterator[TextIO]:
    """A text file of any length: whoever reads it meanwhile finds what was there. Left by an exception, it is
    as it was. A pipe or a device is written as it is. Raises OSError."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as file:
            yield file
        return
    # Of another name than those that a save cleans up.
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        try:
            file = temporary.open("x", encoding="utf-8")
        except PermissionError as error:
            message = f"the folder {target.parent} cannot be written ({error.strerror})"
            raise PermissionError(message) from error
        with file:
            with suppress(FileNotFoundError):
                make_alike(file.fileno(), target.stat())
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)
