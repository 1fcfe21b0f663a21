"""Eval sets as models, with the config that scores them; read again when a file has changed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.problems import EvalSetError, Problem, Severity
from evaltui.files.folders import CONFIG_NAME

if TYPE_CHECKING:
    from evaltui.core.evalset import EvalCase, EvalSet
    from evaltui.files.configs import ConfigInUse

_Stamp = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True)
class OpenSet:
    """An eval set as it can be shown and run: `eval_set` and `config` are None where they have errors."""

    path: Path
    eval_set: EvalSet | None
    config: ConfigInUse | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    def case(self, eval_id: str) -> EvalCase | None:
        cases = self.eval_set.eval_cases if self.eval_set else []
        return next((case for case in cases if case.eval_id == eval_id), None)


class Documents:
    """Opens sets and keeps them. `open` is slow (models are built) and may be called from any thread."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[_Stamp, OpenSet]] = {}
        self._lock = threading.Lock()

    def known(self, path: Path) -> OpenSet | None:
        """The set if it has been opened and its files are as they were then."""
        stamp, opened = self._open.get(path, ((), None))
        return opened if stamp == _stamp(path) else None

    def last(self, path: Path) -> OpenSet | None:
        """The set as it was when it was last opened."""
        return self._open[path][1] if path in self._open else None

    def open(self, path: Path) -> OpenSet:
        """Never raises for what is in the files: problems are part of what it returns."""
        # One at a time: two threads that build models only slow each other down.
        with self._lock:
            if opened := self.known(path):
                return opened
            stamp = _stamp(path)
            opened = _read(path)
            self._open[path] = stamp, opened
            return opened


def _stamp(path: Path) -> _Stamp:
    return tuple(_file_stamp(file) for file in (path, path.parent / CONFIG_NAME))


def _file_stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _read(path: Path) -> OpenSet:
    # Both build on pydantic, which the first frame does not wait for.
    from evaltui.files.configs import find_config
    from evaltui.files.eval_sets import read_eval_set

    loaded = read_eval_set(path)
    try:
        config = find_config(path)
    except EvalSetError as error:
        return OpenSet(path, loaded.eval_set, None, (*loaded.problems, *error.problems))
    return OpenSet(path, loaded.eval_set, config, (*loaded.problems, *config.problems))
