"""Records the files that the agent's process opens. Runs only in the child process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from .own_code import own_files
from .protocol import Message

_Stamp = tuple[int, ...]

_CHANGES = {"os.rename", "os.remove", "os.truncate"}


class OpenedFiles:
    """The user's own files that Python code has opened in this process since this object was created."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: set[str] = set()
        # Time and size of each database before it was opened: writes to it are not audited.
        self._databases: dict[str, _Stamp] = {}
        self._reported: dict[str, set[str]] = {"read": set(), "written": set()}
        # The hook cannot be removed and is called for every audited event, so it must be fast.
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            access = args[2] & os.O_ACCMODE
            if access != os.O_WRONLY:
                self._add(self._read, args[0])
            if access != os.O_RDONLY:
                self._add(self._written, args[0])
        elif event == "sqlite3.connect":
            self._add(self._read, args[0])
            if path := _absolute(args[0]):
                self._databases.setdefault(path, _stamp(path))
        elif event in _CHANGES:
            for path in args[:2]:
                self._add(self._written, path)

    def _add(self, paths: set[str], path: object) -> None:
        if absolute := _absolute(path):
            paths.add(absolute)

    def new_paths(self) -> Message:
        """The paths that were not returned before, by `read` and `written`; a kind without new paths is left
        out."""
        self._written |= {path for path, before in self._databases.items() if _stamp(path) != before}
        result: Message = {}
        for use, paths in (("read", self._read), ("written", self._written)):
            reported = self._reported[use]
            new = paths - reported
            reported |= new
            paths -= new
            if new and (own := sorted({os.path.normpath(_source(path)) for path in own_files(new)})):
                result[use] = own
        return result


def _absolute(path: object) -> str:
    """The absolute path; "" where the argument is no path of a file."""
    # An exception here would be raised where the agent opens the file.
    if isinstance(path, bytes | Path):
        path = os.fsdecode(path)
    if type(path) is str and "\0" not in path:
        # The working folder may change later, or may not exist now.
        with suppress(OSError):
            return path if path[:1] == "/" else str(Path.cwd() / path)
    return ""


def _stamp(database: str) -> _Stamp:
    """Time and size of a database and of its write-ahead log. Empty files do not count, since readers create
    an empty log too."""
    stamp = []
    for path in (database, f"{database}-wal"):
        with suppress(OSError):
            stat = Path(path).stat()
            stamp += [stat.st_mtime_ns, stat.st_size] if stat.st_size else []
    return tuple(stamp)


def _source(path: str) -> str:
    """The source file of a compiled module; any other file itself."""
    if "/__pycache__/" not in path:
        return path
    try:
        return source_from_cache(path)
    except ValueError:
        return path
