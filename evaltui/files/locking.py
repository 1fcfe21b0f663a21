"""The lock of a folder: one process at a time saves in it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

# Seconds. A save holds the lock for some milliseconds.
_LONGEST_WAIT = 10.0
_WAIT = 0.005


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Keeps other processes from saving in a folder. Raises OSError.

    Gives whether it holds for every process on the machine; else it holds for those of this user.
    """
    descriptor, for_all = _lock(folder)
    try:
        yield for_all
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> tuple[int, bool]:
    """The lock of a folder as a descriptor; closing it, or the end of the process, gives the lock back.

    It is on the folder itself: nothing is left behind, and users who share the folder share the lock. Where
    the file system has no such locks (NFS among them) it is on a file in the user's cache.
    """
    try:
        return _locked_descriptor(os.open(folder, os.O_RDONLY), folder), True
    except (FileNotFoundError, NotADirectoryError, TimeoutError):
        raise
    except OSError:
        locks = platformdirs.user_cache_path("evaltui") / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        file = locks / hashlib.sha256(os.fsencode(folder)).hexdigest()
        return _locked_descriptor(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), folder), False


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
