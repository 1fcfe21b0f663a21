"""Eval sets to be shown and run, with the config that scores them; read again when a file has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.files.config_files import config_file

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase, EvalSet
    from evaltui.core.model.stored_cases import StoredCase, StoredCases
    from evaltui.files.configs import ConfigInUse

_Stamp = tuple[object, ...]


@dataclass(frozen=True)
class OpenSet:
    """An eval set as it can be shown and run: `eval_set` and `config` are None where they have errors.

    `eval_set` is what the file says of the set as a whole; its cases are in `cases`, not in there.
    """

    path: Path
    eval_set: EvalSet | None
    config: ConfigInUse | None
    problems: tuple[Problem, ...]
    cases: StoredCases
    _numbers: dict[str, int] = field(repr=False)

    @classmethod
    def of(
        cls,
        path: Path,
        eval_set: EvalSet | None,
        config: ConfigInUse | None,
        problems: Iterable[Problem],
        cases: StoredCases,
    ) -> OpenSet:
        numbers = {head.eval_id: number for number, head in enumerate(cases.heads)}
        return cls(path, eval_set, config, tuple(problems), cases, numbers)

    @property
    def stored(self) -> tuple[StoredCase, ...]:
        return self.cases.stored

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    def case(self, eval_id: str) -> EvalCase | None:
        number = self._numbers.get(eval_id)
        return None if number is None else self.cases[number]

    def stored_case(self, eval_id: str) -> StoredCase | None:
        """The case without a model of it; the same object as long as the case is the same."""
        number = self._numbers.get(eval_id)
        return None if number is None else self.stored[number]


class Documents:
    """Opens sets and keeps them. `open` is slow (models are built) and may be called from any thread.

    A `config` is one for all sets, instead of their own.
    """

    def __init__(self, config: Path | None = None) -> None:
        self._config = config
        self._open: dict[Path, tuple[_Stamp, OpenSet]] = {}
        self._edited: dict[Path, OpenSet] = {}
        self._lock = threading.Lock()

    def known(self, path: Path) -> OpenSet | None:
        """The set if it has been opened and its files are as they were then."""
        if path in self._edited:
            return self._edited[path]
        stamp, opened = self._open.get(path, ((), None))
        return opened if stamp == self._stamp(path) else None

    def last(self, path: Path) -> OpenSet | None:
        """The set as it was when it was last opened."""
        if path in self._edited:
            return self._edited[path]
        return self._open[path][1] if path in self._open else None

    def edited(self, path: Path, opened: OpenSet) -> None:
        """From now on the set is what it is in the editor, whatever is on disk."""
        self._edited[path] = opened

    def forget(self, path: Path) -> None:
        """From now on the set is again what is on disk."""
        self._edited.pop(path, None)

    def open(self, path: Path) -> OpenSet:
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


def _read(path: Path, explicit: Path | None) -> OpenSet:
    # These build on pydantic, which the first frame does not wait for.
    from evaltui.files.configs import find_config
    from evaltui.workbench.reading_apart import read_apart

    read = read_apart(path)
    config: ConfigInUse | None = None
    try:
        config = find_config(path, explicit)
        of_config: Sequence[Problem] = config.problems
    except EvalSetError as error:
        of_config = error.problems
    return OpenSet.of(path, read.eval_set, config, (*read.problems, *of_config), read.cases)
