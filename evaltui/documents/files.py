"""Atomic writing of files: all of the new content or none."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

import filelock
import platformdirs

# Seconds. A save holds the lock for some milliseconds.
_MAX_WAIT = 10.0
_WAIT = 0.005


@contextmanager
def locked(paths: Sequence[Path]) -> Iterator[None]:
    """Locks files against saving by other processes of this user. Raises OSError.

    The locks are in the user's cache, so that nothing is left beside the files.
    """
    folder = _lock_folder()
    names = {hashlib.sha256(os.fsencode(target_of(path))).hexdigest()[:32]: path for path in paths}
    with ExitStack() as stack:
        # In one order, so that two savers of the same files never wait for each other.
        for name in sorted(names):
            try:
                lock = filelock.FileLock(folder / f"{name}.lock")
                stack.enter_context(lock.acquire(_MAX_WAIT, poll_interval=_WAIT))
            except filelock.Timeout:
                message = f"another process is saving {names[name].name}"
                raise TimeoutError(errno.ETIMEDOUT, message) from None
        yield


def _lock_folder() -> Path:
    folder = platformdirs.user_cache_path("evaltui") / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    # A home that cannot be written, as in a container.
    folder = Path(tempfile.gettempdir()) / f"evaltui-locks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def target_of(path: Path) -> Path:
    """The file that a path means, behind symbolic links."""
    return Path(os.path.realpath(path))


Stamp = tuple[int, int, int, int]


def stamp_in(status: os.stat_result) -> Stamp:
    """A value that changes when a file is written or replaced, even by one of its size and time; the third
    number is its size."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


# Nanoseconds. Clocks of file systems stand still for some milliseconds: what was written just now may be
# written again and look the same.
_JUST_NOW = 100_000_000


def is_settled(stamp: Stamp) -> bool:
    """Whether a file that changes after this moment will have another stamp."""
    return time.time_ns() - max(stamp[:2]) > _JUST_NOW


def read_regular(path: Path, size: int = -1) -> bytes:
    """The content of a file, or its first bytes. Raises OSError, also for a folder, a pipe and a device,
    which would not end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _require_regular(os.fstat(descriptor).st_mode)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(size)
    finally:
        os.close(descriptor)


def _require_regular(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError("a folder has this name")
    what = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise OSError(f"{what} has this name, not a file")


def private(path: str, flags: int) -> int:
    """An `opener` for files that only their user may read."""
    return os.open(path, flags, 0o600)


def write_privately(path: Path, text: str | Iterable[str]) -> None:
    """Writes a file that only its user can read, replacing any existing file or link.

    The text may come in pieces. Raises OSError; then the file is unchanged.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="", opener=private) as file:
            file.writelines([text] if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_atomically(path: Path, text: str) -> None:
    """Writes a file in UTF-8, replacing an existing one. Raises OSError; then the file is unchanged."""
    with locked([path]):
        replace_all({path: text.encode()})


def replace_all(contents: dict[Path, bytes], compare: Callable[[Path], None] = lambda path: None) -> None:
    """Writes several files, all or none; they keep mode, owner, group and links.

    A reader, or a crash, never sees half of a file. `compare` is called for each file at the last moment, and
    raises to prevent all writes. Raises OSError; then all files are unchanged.
    """
    temporaries: dict[Path, Path] = {}
    replaced: dict[Path, bytes | None] = {}
    try:
        for path, data in contents.items():
            temporaries[target_of(path)] = _temporary_copy(target_of(path), data)
        for path, (target, temporary) in zip(contents, temporaries.items(), strict=True):
            before = read_regular(target) if target.exists() else None
            compare(path)
            temporary.replace(target)
            replaced[path] = before
    except BaseException:
        for path, before in replaced.items():
            _restore(target_of(path), contents[path], before)
        raise
    finally:
        for temporary in temporaries.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    for folder in {target.parent for target in temporaries}:
        sync_folder(folder)


def _restore(target: Path, written: bytes, before: bytes | None) -> None:
    """Restores the earlier content of a file, unless it was changed since."""
    with suppress(OSError):
        if read_regular(target) != written:
            return
        if before is None:
            target.unlink()
        else:
            _temporary_copy(target, before).replace(target)


def _temporary_copy(target: Path, data: bytes) -> Path:
    """A synced temporary file with a content beside another file, ready to replace it by one move.

    Raises OSError, with a sentence, where the other file cannot be replaced.
    """
    temporary = target.with_name(f".evaltui-{uuid.uuid4().hex}.tmp")
    like = target.stat() if target.exists() else None
    if like is not None:
        _require_regular(like.st_mode)
        if not like.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise PermissionError(f"{target.name} is read-only; run `chmod u+w {target.name}`")
    try:
        with temporary.open("xb") as file:
            if like is not None:
                make_alike(file.fileno(), like)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            message = f"the folder {target.parent} cannot be written ({error.strerror})"
            raise PermissionError(message) from error
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
    return temporary


def make_alike(descriptor: int, like: os.stat_result) -> None:
    """Copies owner and group, as far as permitted, and the mode."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        except OSError:
            with suppress(OSError):
                os.fchown(descriptor, -1, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def sync_folder(folder: Path) -> None:
    """Syncs the folder of a replaced file; not every file system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# A name of a file may have bytes that are no UTF-8.
_ERRORS = "backslashreplace"


@contextmanager
def written_at_once(path: Path) -> Iterator[TextIO]:
    """Opens a text file of any length for writing; other readers see the old content until the end.

    After an exception, the file is unchanged. A pipe or a device is written directly. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if path.exists() and not target.exists():
        # An open pipe such as /dev/fd/63 is a link to no path.
        target = path
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8", errors=_ERRORS) as file:
            yield file
        return
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
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


def typed_path(text: str) -> Path:
    """The path in a text that somebody typed. `~` of a user who is not there stays."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_there(path: Path) -> bool:
    """Whether a file or folder exists at a path; False for an impossible name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
