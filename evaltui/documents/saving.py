"""Saving files without overwriting changes from outside."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NewType

from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.documents.files import locked, read_regular, replace_all
from evaltui.documents.json_text import decode
from evaltui.documents.nodes import BOM

Fingerprint = NewType("Fingerprint", str)


@dataclass(frozen=True)
class Source:
    """A file as it was read or written: its text, byte order mark included, and its fingerprint."""

    path: Path
    text: str
    fingerprint: Fingerprint


class ChangedOutsideError(Exception):
    """A file changed since it was read, or exists although it should be new; nothing was written.

    `theirs_text` is its content, None for a deleted file or no text. Saving with `fingerprint` as the seen
    one replaces it.
    """

    def __init__(self, path: Path, theirs: bytes | None) -> None:
        self.path = path
        self.theirs_text = None if theirs is None else _text_of(theirs)
        self.fingerprint = None if theirs is None else _fingerprint(theirs)
        what = "was deleted" if theirs is None else "was changed by another program"
        super().__init__(f"{path} {what} meanwhile; not saved")


def fingerprint(text: str) -> Fingerprint:
    """The fingerprint of a text that is stored in UTF-8."""
    return _fingerprint(text.encode())


def _fingerprint(data: bytes) -> Fingerprint:
    return Fingerprint(hashlib.sha256(data).hexdigest())


def fingerprint_of(path: Path) -> Fingerprint | None:
    """The fingerprint of a file's content; None where it cannot be read."""
    try:
        return _fingerprint(read_regular(path))
    except OSError:
        return None


def read_source(path: Path) -> Source:
    """Raises OSError, and EvalSetError for a file that is not UTF-8."""
    data = read_regular(path)
    text = decode(data)
    if isinstance(text, Problem):
        raise EvalSetError([replace(text, file=str(path))])
    return Source(path, BOM + text if data.startswith(BOM.encode()) else text, _fingerprint(data))


@dataclass(frozen=True)
class Write:
    """A text for a file with the fingerprint `seen`; None for a file that must not exist."""

    path: Path
    text: str
    seen: Fingerprint | None


def save(path: Path, text: str, seen: Fingerprint | None) -> Source:
    """Writes a file atomically if it still has the fingerprint `seen`; None for a file that must not exist.

    A file that already has this text is not written. Raises ChangedOutsideError for another fingerprint, and
    OSError; then the file is unchanged.
    """
    (source,) = save_together([Write(path, text, seen)])
    return source


def save_together(writes: Sequence[Write]) -> list[Source]:
    """Saves several files, all or none. Raises the errors of `save`."""
    with locked([write.path for write in writes]):
        return _saved(writes)


def _saved(writes: Sequence[Write]) -> list[Source]:
    contents = {write.path: write.text.encode() for write in writes}
    sources = [Source(write.path, write.text, _fingerprint(contents[write.path])) for write in writes]
    changed = {write.path: write for write in writes if not _has(write, contents[write.path])}

    def compare(path: Path) -> None:
        # Once more, at the last moment: not every program takes the lock.
        _has(changed[path], contents[path])

    replace_all({path: contents[path] for path in changed}, compare)
    return sources


def _has(write: Write, data: bytes) -> bool:
    """Whether a file has the new content already. Raises ChangedOutsideError where it was changed since."""
    try:
        theirs = read_regular(write.path)
    except FileNotFoundError:
        if write.seen is not None:
            raise ChangedOutsideError(write.path, None) from None
        return False
    if theirs != data and _fingerprint(theirs) != write.seen:
        raise ChangedOutsideError(write.path, theirs)
    return theirs == data


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
