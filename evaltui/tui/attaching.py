"""Files that are attached to what a user says."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import NamedTuple

from evaltui.text.values import show_size

TITLE = "Attach a file"
HINT = "its path, from where evaltui was started"
_MOST = 20 * 1024 * 1024


class Attached(NamedTuple):
    """A file as it was when it was read."""

    name: str
    mime_type: str
    payload: bytes

    @property
    def said(self) -> str:
        return f"attached {self.name} ({self.mime_type}, {show_size(len(self.payload))})"


def cannot_attach(text: str) -> str | None:
    """Why the file with this path cannot be attached, as a sentence."""
    path = Path(text).expanduser()
    try:
        if not path.is_file():
            return "there is no such file"
        if path.stat().st_size > _MOST:
            return f"it is larger than {show_size(_MOST)}"
    except (OSError, ValueError) as error:
        return str(error)
    return None


def read_attached(text: str) -> Attached:
    """The file with this path. Raises OSError."""
    path = Path(text).expanduser()
    mime_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Attached(path.name, mime_type, path.read_bytes())
