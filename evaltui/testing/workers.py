"""The workers of pytest-xdist: each runs a shard of the cases, and reads the results of the others.

Every session with workers loads this: nothing of evaltui is imported here.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock
import pytest

_SESSION_ENDED = "ended"


@dataclass(frozen=True)
class Shards:
    """The shards of a run, as one of the workers sees them."""

    session: Path
    """The folder of the session, on the machine of its controller."""
    run: int
    """Number of the run in the session: the same in every worker."""
    worker: int
    """From 1; above `count` for one that replaces a crashed worker, which runs no cases."""
    count: int
    """How many shards there are, at most one for each worker."""
    _locks: dict[int, filelock.FileLock] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Has a folder for each shard."""
        return self.session / str(self.run)

    @property
    def own(self) -> int | None:
        """The number of the shard that this worker runs; None where there is none left for it."""
        return self.worker if self.worker <= self.count else None

    @property
    def others(self) -> set[int]:
        """The numbers of the shards that other workers run."""
        return {*range(1, self.count + 1)} - {self.own}

    def results_dir(self, number: int) -> Path:
        """The folder of the run that a shard is."""
        return self.folder / f"shard-{number}"

    def file(self, number: int) -> Path | None:
        """The run file of a shard; None where there is none yet."""
        return next(iter(run_files(self.results_dir(number))), None)

    def _lock(self, number: int) -> filelock.FileLock:
        self.folder.mkdir(exist_ok=True)
        if number not in self._locks:
            self._locks[number] = filelock.FileLock(self.folder / f"{number}.lock", thread_local=False)
        return self._locks[number]

    def start(self) -> None:
        """The own shard is being run until `end`, or until this process is gone."""
        if self.own is not None:
            self._lock(self.own).acquire()

    def end(self) -> None:
        if self.own is not None:
            self._lock(self.own).release()

    def is_over(self, number: int) -> bool:
        """Whether the worker of another shard has run it, or is gone. Each begins before the first test."""
        try:
            with self._lock(number).acquire(timeout=0):
                return True
        except filelock.Timeout:
            return False

    @property
    def is_session_over(self) -> bool:
        """Whether the session ends before its last test."""
        return (self.session / _SESSION_ENDED).exists()


def run_files(folder: Path) -> list[Path]:
    """The files of the runs below a folder, in the order of their shards."""
    return sorted(folder.rglob("[0-9]*.sqlite"))


class Controller:
    """The plugin of the process that controls the workers: puts their shards together in the end."""

    def __init__(self, config: pytest.Config, merge: Callable[[pytest.Session, Path], None]) -> None:
        """`merge` makes one run of a session's shards in a folder."""
        self._config, self._merge = config, merge
        self._folder = Path(tempfile.mkdtemp(prefix="evaltui-"))
        self._workers = 0

    def worker_input(self) -> dict[str, Any]:
        """The values that the next worker begins with."""
        self._workers += 1
        return {"evaltui_folder": str(self._folder), "evaltui_number": self._workers}

    def pytest_runtest_logreport(self) -> None:
        session = self._config.pluginmanager.get_plugin("session")
        if session is not None and (session.shouldfail or session.shouldstop):
            self._end_session()

    def _end_session(self) -> None:
        (self._folder / _SESSION_ENDED).touch()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        self._end_session()
        # The workers end meanwhile.
        result = yield
        for folder in sorted(self._folder.glob("[0-9]*"), key=lambda path: int(path.name)):
            self._merge(session, folder)
        return result

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
