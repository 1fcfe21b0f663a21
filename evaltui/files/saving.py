"""Saving a file that others may have changed since it was read: never over their work."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NewType

import platformdirs

from evaltui.core.document.document import JsonDocument
from evaltui.core.document.edits import Insert
from evaltui.core.problems import EvalSetError, JsonPath, Problem, Severity
from evaltui.core.spelling import spelt
from evaltui.files.atomic import write_atomically
from evaltui.files.json_text import decode, parse

Fingerprint = NewType("Fingerprint", str)

# Seconds. A save holds the lock for some milliseconds.
_LONGEST_WAIT = 10.0
_WAIT = 0.005


@dataclass(frozen=True)
class Source:
    """A file as it was read or written: its text, byte order mark included, and what tells its content."""

    path: Path
    text: str
    fingerprint: Fingerprint


class ChangedOutsideError(Exception):
    """A file is not as it was when it was read, or exists where it should be new; nothing was written.

    `theirs_text` is what it holds now, None where it was deleted or is not text any more. Saving with
    `fingerprint` as what was seen replaces that.
    """

    def __init__(self, path: Path, theirs_text: str | None, fingerprint: Fingerprint | None) -> None:
        self.path = path
        self.theirs_text = theirs_text
        self.fingerprint = fingerprint
        what = "was deleted" if fingerprint is None else "was changed by another program"
        super().__init__(f"{path} {what} since it was read; nothing was saved")


def fingerprint(text: str) -> Fingerprint:
    return _fingerprint(text.encode())


def _fingerprint(data: bytes) -> Fingerprint:
    return Fingerprint(hashlib.sha256(data).hexdigest())


def fingerprint_of(path: Path) -> Fingerprint | None:
    """Of what a file holds now; None where it cannot be read."""
    try:
        return _fingerprint(path.read_bytes())
    except OSError:
        return None


def read_source(path: Path) -> Source:
    """Raises OSError, and EvalSetError for a file that is not UTF-8."""
    data = path.read_bytes()
    text = decode(data)
    if isinstance(text, Problem):
        raise EvalSetError([replace(text, file=str(path))])
    return Source(path, data.decode("utf-8"), _fingerprint(data))


def save(path: Path, text: str, seen: Fingerprint | None) -> Source:
    """Write a file atomically, if it still is as it was seen; None: there must be no such file yet.

    A file that already has this text is left alone. Raises ChangedOutsideError where it is not as seen, and
    OSError; then it is as it was.
    """
    with _locked(path):
        return _checked_write(path, text, seen)


def _checked_write(path: Path, text: str, seen: Fingerprint | None) -> Source:
    data = text.encode()
    made = Source(path, text, _fingerprint(data))
    try:
        theirs = path.read_bytes()
    except FileNotFoundError:
        if seen is not None:
            raise ChangedOutsideError(path, None, None) from None
    else:
        if theirs == data:
            return made
        if _fingerprint(theirs) != seen:
            raise ChangedOutsideError(path, _text_of(theirs), _fingerprint(theirs))
    write_atomically(path, text)
    return made


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def add_case(path: Path, case_value: dict[str, Any]) -> Source:
    """Add a case at the end of an eval set file; of processes that do so at once, none loses another's case.

    Raises OSError, EvalSetError where the file is no eval set or has a case of the same id, and EditError
    where the case is not JSON data.
    """
    with _locked(path):
        source = read_source(path)
        document, cases_key = _eval_set(source)
        cases = document.value[cases_key]
        eval_id = case_value.get(spelt("eval_id", case_value))
        if any(isinstance(case, dict) and case.get(spelt("eval_id", case)) == eval_id for case in cases):
            raise _unusable(
                path, (cases_key,), f"already has a case {eval_id!r}; give the new one another id"
            )
        document.apply([Insert((cases_key,), len(cases), case_value)])
        return _checked_write(path, document.text, source.fingerprint)


def _eval_set(source: Source) -> tuple[JsonDocument, str]:
    """An eval set file as a document, and the key under which it has its cases."""
    # For the sentence: a document only says that a text is not JSON.
    data = parse(source.text)
    if isinstance(data, Problem):
        raise EvalSetError([replace(data, file=str(source.path))])
    cases_key = spelt("eval_cases", data) if isinstance(data, dict) else "eval_cases"
    if not isinstance(data, dict) or not isinstance(data.get(cases_key), list):
        raise _unusable(
            source.path, (cases_key,), "must be a list of cases; only an eval set can get another"
        )
    return JsonDocument(source.text), cases_key


def _unusable(path: Path, where: JsonPath, message: str) -> EvalSetError:
    return EvalSetError([Problem(Severity.ERROR, where, message, file=str(path))])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other processes from saving in the folder of a file. Raises OSError."""
    descriptor = _lock(Path(os.path.realpath(path)).parent)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """The lock of a folder as a descriptor; closing it, or the end of the process, gives the lock back.

    It is on the folder itself: nothing is left behind, and users who share the folder share the lock. Where
    the file system has no such locks (NFS among them) it is on a file in the user's cache.
    """
    try:
        return _locked_descriptor(os.open(folder, os.O_RDONLY), folder)
    except (FileNotFoundError, NotADirectoryError, TimeoutError):
        raise
    except OSError:
        locks = platformdirs.user_cache_path("evaltui") / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        file = locks / hashlib.sha256(os.fsencode(folder)).hexdigest()
        return _locked_descriptor(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), folder)


def _locked_descriptor(descriptor: int, folder: Path) -> int:
    end = time.monotonic() + _LONGEST_WAIT
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    message = f"another process has been saving in {folder} for too long"
                    raise TimeoutError(errno.ETIMEDOUT, message) from None
                time.sleep(_WAIT)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise
