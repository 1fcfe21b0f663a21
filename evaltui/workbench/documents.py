"""Eval sets to be shown and run, with the config that scores them; read again when a file has changed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.problems import EvalSetError
from evaltui.files.config_files import config_file

if TYPE_CHECKING:
    from evaltui.files.eval_set_file import EvalSetFile

_Stamp = tuple[object, ...]


class Documents:
    """Opens sets and keeps them. `open` is slow (models are built) and may be called from any thread.

    A `config` is one for all sets, instead of their own.
    """

    def __init__(self, config: Path | None = None) -> None:
        self._config = config
        self._open: dict[Path, tuple[_Stamp, EvalSetFile]] = {}
        self._edited: dict[Path, EvalSetFile] = {}
        self._lock = threading.Lock()

    def known(self, path: Path) -> EvalSetFile | None:
        """The set if it has been opened and its files are as they were then."""
        if path in self._edited:
            return self._edited[path]
        stamp, opened = self._open.get(path, ((), None))
        return opened if stamp == self._stamp(path) else None

    def last(self, path: Path) -> EvalSetFile | None:
        """The set as it was when it was last opened."""
        if path in self._edited:
            return self._edited[path]
        return self._open[path][1] if path in self._open else None

    def edited(self, path: Path, opened: EvalSetFile) -> None:
        """From now on the set is what it is in the editor, whatever is on disk."""
        self._edited[path] = opened

    def is_edited(self, path: Path) -> bool:
        return path in self._edited

    def forget(self, path: Path) -> None:
        """From now on the set is again what is on disk."""
        self._edited.pop(path, None)

    def open(self, path: Path) -> EvalSetFile:
        """Never raises for what is in the files: problems are part of what it returns."""
        # One at a time: two threads that build models only slow each other down.
        with self._lock:
            if opened := self.known(path):
                return opened
            stamp = self._stamp(path)
            opened = _read(path, self._config)
            self._open[path] = stamp, opened
            return opened

    def _stamp(self, path: Path) -> _Stamp:
        config = config_file(path, self._config)
        return stamp_of(path), (config, stamp_of(config))


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Differs when the file was written; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _read(path: Path, explicit: Path | None) -> EvalSetFile:
    # These build on pydantic, which the first frame does not wait for.
    from evaltui.files.configs import find_config
    from evaltui.files.reading_apart import read_apart

    read = read_apart(path)
    try:
        return read.scored_by(find_config(path, explicit))
    except EvalSetError as error:
        return read.scored_by(error)
