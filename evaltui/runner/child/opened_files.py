"""The files that the agent's process opens. Runs only in the child process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from ..own_code import own_files
from ..protocol import Message

_CHANGES = {"os.rename", "os.remove", "os.truncate"}


class OpenedFiles:
    """The user's own files that code in Python has opened in this process since this was made."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._told: dict[str, set[str]] = {"read": set(), "written": set()}
        # It cannot be removed, and is called for everything that is audited: nothing is looked at here.
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
            self._add(self._written, args[0])
        elif event in _CHANGES:
            for path in args[:2]:
                self._add(self._written, path)

    def _add(self, paths: set[str], path: object) -> None:
        # An exception would be raised where the file is opened.
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if type(path) is str and "\0" not in path:
            # The folder may be another one later, or gone now.
            with suppress(OSError):
                paths.add(path if path[:1] == "/" else str(Path.cwd() / path))

    def news(self) -> Message:
        """The paths that were not told yet, by `read` and `written`, as far as there are any."""
        news: Message = {}
        for use, paths in (("read", self._read), ("written", self._written)):
            told = self._told[use]
            new = paths - told
            told |= new
            paths -= new
            if new and (own := sorted({os.path.normpath(_source(path)) for path in own_files(new)})):
                news[use] = own
        return news


def _source(path: str) -> str:
    """The module that a compiled one is of, else the file itself."""
    if "/__pycache__/" not in path:
        return path
    try:
        return source_from_cache(path)
    except ValueError:
        return path
