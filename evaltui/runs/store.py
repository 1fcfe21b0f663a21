"""Where the runs of an agent are stored, and which stay."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
RUNS = "runs"
SESSIONS = "sessions"
"""The folder of a listener's sessions: each is a run of its own and would crowd out the others."""
_NAMES = "names.json"


@dataclass(frozen=True)
class RunStore:
    """The runs of an agent: their logs, and the names that were given to them."""

    agent_dir: Path
    """Folder or file of the agent."""
    results_dir: Path | None = None
    """The folder that somebody chose for the runs of every agent; None for `.evaltui` of each."""
    kind: str = RUNS
    """RUNS or SESSIONS, the name of their folder."""
    module: str = ""
    """The dotted name of the agent whose newest run `last` stands for; "" where it stands for that of any."""
    url: str = ""
    """The same of an agent behind a network."""

    @classmethod
    def of(cls, agent_dir: Path, settings: RunSettings, module: str = "", url: str = "") -> RunStore:
        return cls(agent_dir, settings.results_dir, module=module, url=url)

    @classmethod
    def of_sessions(cls, agent_dir: Path) -> RunStore:
        """The sessions that a listener received. They stay with the agent: each has what users said."""
        return cls(agent_dir, None, SESSIONS)

    @cached_property
    def folder(self) -> Path:
        """The folder of the logs, whether or not there is one."""
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
        """The agent of the runs, and where they are: `agents/desk`, `desk.agent (agents/desk)`,
        `agents/desk in out/agents/desk`."""
        place = f" in {seen_from_here(self.folder)}" if self.results_dir is not None else ""
        agent = self.url or self.module
        return f"{agent} ({self.agent_dir}){place}" if agent else f"{self.agent_dir}{place}"

    @cached_property
    def folder_of_user(self) -> Path:
        """The folder of runs that could not be stored in `folder`: in the user's state folder."""
        agent = agent_folder(self.agent_dir).resolve() / agent_file(self.agent_dir)
        digest = hashlib.sha256(os.fsencode(agent)).hexdigest()[:12]
        return platformdirs.user_state_path("evaltui") / self.kind / f"{agent.name}-{digest}"

    def make(self) -> Path:
        """The folder of the runs, created if missing. Raises OSError."""
        if self.results_dir is None:
            folder = agent_folder(self.agent_dir)
            return make_own_folder(folder, *filter(None, (self.kind, agent_file(self.agent_dir))))
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def make_folder_of_user(self) -> Path:
        """`folder_of_user`, created if missing. Raises OSError."""
        self.folder_of_user.parent.mkdir(parents=True, exist_ok=True)
        make_private_folder(self.folder_of_user)
        return self.folder_of_user

    def files(self) -> list[Path]:
        """The file of every run, the oldest one first."""
        folders = [self.folder_of_user]
        own = own_folder(self.agent_dir)
        if self.results_dir or not any(folder.is_symlink() for folder in (own, own / self.kind, self.folder)):
            folders.append(self.folder)
        # The folder of sessions has the spool of the listener, too.
        files = (path for folder in folders for path in folder.glob(f"[0-9]*{SUFFIX}") if path.is_file())
        # Ids begin with the time.
        return sorted(files, key=lambda path: path.name)

    def latest(self) -> Path | None:
        return next(reversed(self.files()), None)

    def names(self) -> dict[str, str]:
        """The names that were given to runs, with the ids of these; none where they cannot be read."""
        try:
            return self._read_names()
        except OSError:
            return {}

    def _read_names(self) -> dict[str, str]:
        """Raises OSError for a file that cannot be read: taken for empty, it would cost runs their names, and
        with them the runs."""
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
        """Gives the run of an id a name, which another run that had it loses. Raises OSError."""
        self.make()
        file = self._names_file
        # Another process may name a run meanwhile.
        with locked([file]):
            names = self._read_names() | {name: run}
            write_privately(file, json.dumps(names, indent=2, ensure_ascii=False) + "\n")

    @contextmanager
    def naming(self) -> Iterator[set[str]]:
        """The ids of the runs that have a name; none is given meanwhile. Raises OSError."""
        with locked([self._names_file]):
            yield set(self._read_names().values())
