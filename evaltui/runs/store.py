"""The folder of an agent's runs, and the names of runs."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import platformdirs

from evaltui.documents.files import locked, write_privately
from evaltui.documents.own_folder import make_own_folder, make_private_folder
from evaltui.project.folders import (
    agent_file,
    agent_folder,
    own_folder,
    place_in_repository,
    seen_from_here,
)
from evaltui.project.run_settings import RunSettings

SUFFIX = ".sqlite"
# Source: google-adk 2.13, LocalEvalSetResultsManager.
ADK_SUFFIX = ".evalset_result.json"
RUNS = "runs"
SESSIONS = "sessions"
"""The folder of received sessions, which are many runs and are kept apart from the others."""
_NAMES = "names.json"
STAMP = "%Y%m%dT%H%M%S.%f"
"""The time with which the name of a run's file begins, in milliseconds."""


def is_adk_result(path: Path) -> bool:
    """Whether a run's file is a result file of google-adk, by its name."""
    return path.name.endswith(ADK_SUFFIX)


def run_id(path: Path) -> str:
    """The id of a run, from the name of its file."""
    return path.name.removesuffix(ADK_SUFFIX).removesuffix(SUFFIX)


def start_in_name(path: Path) -> datetime:
    """The start of a run by the name of its file. Raises ValueError for another name."""
    return datetime.strptime(path.name[:19], STAMP).replace(tzinfo=UTC)


@dataclass(frozen=True)
class RunStore:
    """The stored runs of an agent, and their names."""

    agent_dir: Path
    """Folder or file of the agent."""
    results_dir: Path | None = None
    """A folder for the runs of every agent; None for `.evaltui` of each agent."""
    kind: str = RUNS
    """The kind of runs, which is the name of their folder: RUNS or SESSIONS."""
    module: str = ""
    """The module of the agent whose newest run is `last`; "" for any agent of the folder."""
    url: str = ""
    """The URL of the agent whose newest run is `last`; "" for any agent."""

    @classmethod
    def of(cls, agent_dir: Path, settings: RunSettings, module: str = "", url: str = "") -> RunStore:
        return cls(agent_dir, settings.results_dir, module=module, url=url)

    @classmethod
    def of_sessions(cls, agent_dir: Path) -> RunStore:
        """The store of received sessions, which is always in the agent's folder because they hold messages of
        users."""
        return cls(agent_dir, None, SESSIONS)

    @cached_property
    def folder(self) -> Path:
        """The folder of the logs, which may be missing."""
        file = agent_file(self.agent_dir)
        if self.results_dir is None:
            return own_folder(self.agent_dir) / self.kind / file
        # Agents of one repository, and of several, share a folder without sharing runs.
        return self.results_dir / place_in_repository(agent_folder(self.agent_dir), self.results_dir) / file

    @property
    def _names_file(self) -> Path:
        # In the folder of an agent, `.json` is its data, unless it is hidden.
        return self.folder / (_NAMES if self.results_dir is None else f".{_NAMES}")

    @property
    def title(self) -> str:
        """The agent of the runs and their folder: `agents/desk`, `desk.agent (agents/desk)`, `agents/desk in
        out/agents/desk`."""
        place = f" in {seen_from_here(self.folder)}" if self.results_dir is not None else ""
        agent = self.url or self.module
        return f"{agent} ({self.agent_dir}){place}" if agent else f"{self.agent_dir}{place}"

    @property
    def as_arguments(self) -> str:
        """The arguments of a command that name the agent and the folder of its runs."""
        words = [self.url or str(self.agent_dir)] if not self.module else ["-m", self.module]
        if self.url and self.agent_dir != Path():
            words += ["--home", str(self.agent_dir)]
        if self.results_dir is not None:
            words += ["--results-dir", seen_from_here(self.results_dir)]
        return shlex.join(words)

    @cached_property
    def folder_of_user(self) -> Path:
        """The folder in the user's state folder, for runs that could not be stored in `folder`."""
        agent = agent_folder(self.agent_dir).resolve() / agent_file(self.agent_dir)
        digest = hashlib.sha256(os.fsencode(agent)).hexdigest()[:12]
        return platformdirs.user_state_path("evaltui") / self.kind / f"{agent.name}-{digest}"

    def make(self) -> Path:
        """Creates the folder of the runs if it is missing, and returns it. Raises OSError."""
        if self.results_dir is None:
            folder = agent_folder(self.agent_dir)
            return make_own_folder(folder, *filter(None, (self.kind, agent_file(self.agent_dir))))
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def make_folder_of_user(self) -> Path:
        """Creates `folder_of_user` if it is missing, and returns it. Raises OSError."""
        self.folder_of_user.parent.mkdir(parents=True, exist_ok=True)
        make_private_folder(self.folder_of_user)
        return self.folder_of_user

    def files(self) -> list[Path]:
        """The file of every run, the oldest first."""
        folders = [self.folder_of_user]
        own = own_folder(self.agent_dir)
        if self.results_dir or not any(folder.is_symlink() for folder in (own, own / self.kind, self.folder)):
            folders.append(self.folder)
        # The folder of sessions has the spool of the listener, too.
        paths = (path for folder in folders for path in folder.glob(f"[0-9]*{SUFFIX}"))
        # Who reads a link to nowhere says that the run cannot be read.
        files = (path for path in paths if path.is_file() or path.is_symlink())
        # Ids begin with the time.
        return sorted(files, key=lambda path: path.name)

    def latest(self) -> Path | None:
        return next(reversed(self.files()), None)

    def names(self) -> dict[str, str]:
        """Names of runs with the ids of these runs; empty where they are unreadable."""
        try:
            return self._read_names()
        except OSError:
            return {}

    def names_by_run(self) -> dict[str, tuple[str, ...]]:
        """The names of each named run, the newest last, by its id."""
        names: dict[str, tuple[str, ...]] = {}
        for name, run in self.names().items():
            names[run] = (*names.get(run, ()), name)
        return names

    def _read_names(self) -> dict[str, str]:
        """Reads the names of runs.

        Raises OSError for an unreadable file: an empty result would lose the names.
        """
        file = self._names_file
        try:
            names = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise OSError(f"{file}: not JSON: {error}. Restore the file, or delete it") from error
        if not isinstance(names, dict):
            raise OSError(f"{file}: not an object of names. Restore the file, or delete it")
        return {str(name): str(run) for name, run in names.items()}

    def name(self, run: str, name: str) -> None:
        """Gives a run a name, which is removed from any other run. Raises OSError."""
        self.make()
        file = self._names_file
        # Another process may name a run meanwhile.
        with locked([file]):
            names = self._read_names() | {name: run}
            write_privately(file, json.dumps(names, indent=2, ensure_ascii=False) + "\n")

    @contextmanager
    def naming(self) -> Iterator[set[str]]:
        """Locks the names and yields the ids of the named runs. Raises OSError."""
        with locked([self._names_file]):
            yield set(self._read_names().values())
