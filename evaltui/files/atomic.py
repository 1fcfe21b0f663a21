"""Files that get all of their new content or none of it, and never over what others wrote meanwhile."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
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
                    message = f"another process is saving in {folder}"
                    raise TimeoutError(errno.ETIMEDOUT, message) from None
                time.sleep(_WAIT)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise


_PREFIX, _SUFFIX = ".evaltui-", ".tmp"
# Seconds. Where the lock does not hold for other users, their saves are over by then.
_OLD = 3600.0
_MOST_TRIES = 50

# Source: renameat2(2).
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class NotAsComparedError(Exception):
    """A file is not what it was compared with; `theirs` is what it holds, None where there is none."""

    def __init__(self, path: Path, theirs: bytes | None) -> None:
        super().__init__(str(path))
        self.path = path
        self.theirs = theirs


def read_regular(path: Path) -> bytes:
    """The content of a file. Raises OSError, also for a folder, a pipe and a device, which would not end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _require_regular(os.fstat(descriptor).st_mode)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _require_regular(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError("a folder has this name")
    what = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise OSError(f"{what} has this name, not a file")


@dataclass(frozen=True)
class Change:
    """New content of a file that holds `before`; None: there is no such file yet."""

    path: Path
    before: bytes | None
    data: bytes


def private(path: str, flags: int) -> int:
    """An `opener` for files that only their user may read."""
    return os.open(path, flags, 0o600)


def write_privately(path: Path, text: str | Iterable[str]) -> None:
    """As `write_atomically`, for a file that only its user may read; a link in its place is replaced.

    The text may come in pieces.
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
    """Write a file in UTF-8, new or in place of whatever is there. Raises OSError; then it is as it was."""
    for _ in range(_MOST_TRIES):
        with saving_in([path]):
            try:
                before = read_regular(path)
            except FileNotFoundError:
                before = None
            with suppress(NotAsComparedError):
                write_all([Change(path, before, text.encode())])
                return
    raise OSError(f"{path} keeps changing on disk")


@contextmanager
def saving_in(paths: Sequence[Path]) -> Iterator[None]:
    """Holds the locks of the folders that files are in; what killed saves left there goes. Raises OSError."""
    with ExitStack() as stack:
        for folder in sorted({_target(path).parent for path in paths}):
            for_all = stack.enter_context(locked(folder))
            _clean(folder, only_old=not for_all)
        yield


def _target(path: Path) -> Path:
    """Of a symbolic link the file that it leads to."""
    return Path(os.path.realpath(path))


def _clean(folder: Path, *, only_old: bool) -> None:
    """Remove our temporary files: whoever holds the lock of the folder is the only one to have any."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)):
                continue
            with suppress(OSError):
                if not only_old or time.time() - entry.stat(follow_symlinks=False).st_mtime > _OLD:
                    Path(entry.path).unlink()


def write_all(changes: Sequence[Change]) -> None:
    """Write files, all of them or none; the locks of their folders are held.

    Files keep mode, owner, group and hard links; of symbolic links the file that they lead to is written. A
    reader, or a crash, never sees half of a file, but for one that has hard links or is a mount: that one is
    written in place. Raises NotAsComparedError and OSError; then the files are as they were.
    """
    waiting: list[_Replacement] = []
    done: list[_Replacement] = []
    try:
        # One by one: where one fails, those before it are cleaned up.
        waiting.extend(map(_prepared, changes))
        # Those that cannot be replaced at once come last: they are the ones that may fail.
        for replacement in sorted(waiting, key=lambda one: one.temporary is None):
            replacement.put()
            done.append(replacement)
    except BaseException:
        for replacement in reversed(done):
            replacement.take_back()
        raise
    finally:
        for replacement in waiting:
            replacement.clean_up()
    for folder in {replacement.target.parent for replacement in waiting}:
        sync_folder(folder)


@dataclass
class _Replacement:
    """A change that is on its way. `temporary` has the new content, and after an exchange the old one.

    Without `temporary` the file is written in place.
    """

    change: Change
    target: Path
    temporary: Path | None
    exchanged: bool = field(default=False)

    def put(self) -> None:
        before = self.change.before
        if self.temporary is None:
            self._put_in_place()
        elif before is None:
            self._put_new(self.temporary)
        else:
            self._compare(self.target, before)
            try:
                self._put_for(self.temporary, before)
            except FileNotFoundError:
                raise NotAsComparedError(self.change.path, None) from None
            except OSError as error:
                # A file that is mounted cannot be replaced.
                if error.errno not in (errno.EBUSY, errno.EXDEV):
                    raise
                self._put_in_place()

    def _put_new(self, temporary: Path) -> None:
        try:
            os.link(temporary, self.target)
        except FileExistsError:
            raise NotAsComparedError(self.change.path, _content(self.target)) from None
        except OSError:
            # A file system without hard links.
            if os.path.lexists(self.target):
                raise NotAsComparedError(self.change.path, _content(self.target)) from None
            temporary.rename(self.target)

    def _put_for(self, temporary: Path, before: bytes) -> None:
        if not _exchange(temporary, self.target):
            temporary.replace(self.target)
            return
        # What came between the comparison and this moment is in the file that came out.
        out = _content(temporary)
        if out != before:
            _exchange(temporary, self.target)
            raise NotAsComparedError(self.change.path, out)
        self.exchanged = True

    def _put_in_place(self) -> None:
        before, data = self.change.before, self.change.data
        assert before is not None
        with self.target.open("r+b", buffering=0) as file:
            if file.read() != before:
                raise NotAsComparedError(self.change.path, _content(self.target))
            try:
                _fill(file.fileno(), data)
            except OSError:
                with suppress(OSError):
                    _fill(file.fileno(), before)
                raise

    def _compare(self, path: Path, before: bytes) -> None:
        if (now := _content(path)) != before:
            raise NotAsComparedError(self.change.path, now)

    def take_back(self) -> None:
        """As it was before, unless others have changed it since."""
        with suppress(OSError):
            if _content(self.target) != self.change.data:
                return
            if self.change.before is None:
                self.target.unlink()
            elif self.exchanged and self.temporary is not None:
                _exchange(self.temporary, self.target)
            elif self.temporary is None:
                with self.target.open("r+b", buffering=0) as file:
                    _fill(file.fileno(), self.change.before)
            else:
                _written_beside(self.target, self.change.before).replace(self.target)

    def clean_up(self) -> None:
        if self.temporary is not None:
            with suppress(OSError):
                self.temporary.unlink(missing_ok=True)


def _prepared(change: Change) -> _Replacement:
    """Raises OSError where it cannot be written, with a sentence about the file itself."""
    target = _target(change.path)
    try:
        found = target.stat()
    except FileNotFoundError:
        found = None
    if found is not None:
        _require_regular(found.st_mode)
        if not found.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise PermissionError(f"{target.name} is read-only; run `chmod u+w {target.name}`")
        if found.st_nlink > 1:
            return _Replacement(change, target, None)
    try:
        return _Replacement(change, target, _written_beside(target, change.data))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            message = f"the folder {target.parent} cannot be written ({error.strerror})"
            raise PermissionError(message) from error
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(change.path)) from error


def _written_beside(target: Path, data: bytes) -> Path:
    """A file with this content, on the disk, in the folder of another one: from there a move is one step."""
    temporary = target.with_name(f"{_PREFIX}{uuid.uuid4().hex}{_SUFFIX}")
    try:
        with temporary.open("xb", buffering=0) as file:
            with suppress(FileNotFoundError):
                make_alike(file.fileno(), target.stat())
            _fill(file.fileno(), data)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return temporary


def make_alike(descriptor: int, like: os.stat_result) -> None:
    """Owner and group as far as one may give them, and the mode."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        except OSError:
            with suppress(OSError):
                os.fchown(descriptor, -1, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def _fill(descriptor: int, data: bytes) -> None:
    """Have exactly this in a file, on the disk; the file is never empty meanwhile."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None


@cache
def _renameat2() -> Callable[..., int] | None:
    """The C library's function, which gives the number of an error or 0; None on systems without it."""
    if sys.platform != "linux":
        return None
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return function and (lambda *names: function(*names) and ctypes.get_errno())


def _exchange(one: Path, other: Path) -> bool:
    """Each file gets the other's name, in one step; False where that cannot be done here. Raises OSError."""
    function = _renameat2()
    if function is None:
        return False
    names = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    if (code := function(*names, _RENAME_EXCHANGE)) == 0:
        return True
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))


def sync_folder(folder: Path) -> None:
    """Bring to the disk that a file in it was replaced; not every file system can do that to a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
