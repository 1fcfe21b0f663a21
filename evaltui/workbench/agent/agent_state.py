"""The state of the agent: its metadata, its processes, and the output that they have printed."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.agents.errors import AgentBrokenError
from evaltui.core.model.errors import NO_PYTHON, ErrorInfo, ErrorKind
from evaltui.project.agent_files import (
    UNKNOWN,
    AgentFiles,
    changed_files,
    is_of_user,
    is_read_only,
    print_of,
    used_files,
    was_written_since,
)
from evaltui.project.agent_source import agent_facts
from evaltui.project.folders import agent_folder
from evaltui.project.packages import PACKAGE, installed_packages
from evaltui.project.run_settings import SettingsError, run_settings
from evaltui.project.settings import env_values, secrets_of
from evaltui.runner.python_check import check_python
from evaltui.runner.starting import HostSettings, WarmHosts
from evaltui.runs.store import RunStore
from evaltui.workbench.messages import AgentChanged, FilesRead, Messages
from evaltui.workbench.state import READ_ONLY

if TYPE_CHECKING:
    from evaltui.agents.protocol import FilesOpened
    from evaltui.core.model.case_id import CaseId
    from evaltui.core.model.events import Json
    from evaltui.core.secrets import Secrets
    from evaltui.project.agent_address import AgentAddress
    from evaltui.project.agent_files import Contents
    from evaltui.project.interpreters import Interpreter
    from evaltui.project.watching import WatchedFiles
    from evaltui.runner.python_check import PythonCheck
    from evaltui.runner.starting import StartedHost


PYTHON = "Python"
"""Stands for its Python among the files of an agent that have changed."""


_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI")


def api_key(agent_dir: Path, model: str) -> tuple[str, str] | None:
    """The name of the variable that a Gemini model gets its key from, and where that is set.

    The name "" where none is set; None for other models, which need none or another one.
    """
    if not model.startswith("gemini"):
        return None
    if name := next((name for name in _KEYS if os.environ.get(name)), ""):
        return name, "environment"

    own = env_values(agent_dir)
    return next((name for name in _KEYS if own.get(name)), ""), ".env"


class AgentState:
    """An agent, and whether it can be imported.

    `options` are run-wide settings that go before those of the project. While `is_running` is true, cases run
    and no other process is started. `find_python` finds the current Python for the agent; None where it is
    not looked for again.
    """

    def __init__(
        self,
        address: AgentAddress,
        options: Mapping[str, Any],
        messages: Messages,
        is_running: Callable[[], bool],
        find_python: Callable[[], Interpreter] | None = None,
    ) -> None:
        self.address = address
        """The address of the agent, and the Python that it runs in."""
        try:
            settings, problem = run_settings(address.folder, options), ""
        except SettingsError as error:
            settings, problem = error.others, str(error)
        self.settings = settings
        """The run-wide settings, as they were when they could be read last."""
        self.settings_problem = problem
        """Why they cannot be used, as a sentence or several; "" where they can."""
        self.info: Json | None = None
        """The metadata of the agent (AgentInfo as JSON); None before it was imported."""
        self.error: ErrorInfo | None = None
        """Why the last import failed; None where it did not."""
        self.lacks_key = False
        """Whether its model would be asked without an API key."""
        self.loaded_in: float | None = None
        """Seconds that the last import took; None before the first, and for imports of a run."""
        self.code_version = 0
        """How often the agent's files have changed since the workbench was opened."""
        self.python_check: PythonCheck | None = None
        """Whether its Python has what it needs; None before that is known, and behind a network."""
        self.read_only = False
        """Whether no process of it may be started."""
        self.followed = False
        """Whether every change of its files is heard of."""
        self._options = options
        # The files that changed from each version of the code to the next, with their contents before.
        self._changes: list[Contents] = []
        self._comparing = asyncio.Lock()
        self._files: AgentFiles | None = None
        self._contents: Contents | None = None
        # The files of its project that runs of this sitting have opened, by their names.
        self._read: dict[str, Path] = {}
        # With the start of the last run that has written them.
        self._written: dict[str, float] = {}
        self._messages = messages
        self.is_running = is_running
        self._find_python = find_python
        self._learning: asyncio.Task[None] | None = None
        self._loads_again = False

    @property
    def dir(self) -> Path:
        """The agent's folder."""
        return self.address.folder

    @property
    def store(self) -> RunStore:
        """Where its runs are stored."""

        return RunStore.of(self.dir, self.settings)

    def watched_files(self, paths: Sequence[str | Path] = ()) -> WatchedFiles:
        """Its files and `paths` (files and folders), to follow their changes."""
        # It builds on a library that the first frame does not wait for.
        from evaltui.project.watching import WatchedFiles

        return WatchedFiles(self.dir, paths, only_env=bool(self.address.url))

    def read_settings(self) -> str:
        """Reads the run-wide settings and finds its Python, as they are now; returns why it cannot be run, in
        a line, "" where it can."""
        try:
            self.settings, self.settings_problem = run_settings(self.dir, self._options), ""
        except SettingsError as error:
            self.settings_problem = str(error)
            return self.settings_problem.splitlines()[0]
        return self.update_python()

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets that are masked in everything that is written."""

        return secrets_of(self.dir)

    @cached_property
    def warm_hosts(self) -> WarmHosts:
        """The processes that have imported the agent's libraries before they are needed.

        Raises PermissionError in a read-only workbench: they all come from here.
        """
        if self.read_only:
            raise PermissionError(READ_ONLY)

        return WarmHosts(self.address)

    def imported(self, info: Json) -> None:
        """Notes what an import of the agent has shown."""
        self.info, self.error = info, None
        self._look_for_key(str(info.get("model") or ""))
        self._messages.publish(AgentChanged())

    def _look_for_key(self, model: str) -> None:
        key = None if self.address.url else api_key(self.dir, model)
        self.lacks_key = key is not None and not key[0] and self.settings.record != "replay"

    def failed(self, error: ErrorInfo) -> None:
        """Notes why an import of the agent failed; its earlier metadata is still shown."""
        self.error = error
        self._messages.publish(AgentChanged())

    def code_changed(self, names: Iterable[str]) -> None:
        """Counts a change of these files of the agent: results from before are stale while any of them
        differs."""
        self._count_change(dict.fromkeys(names, UNKNOWN))

    def _count_change(self, before: Contents) -> None:
        self.code_version += 1
        # `.env` may be one of them.
        vars(self).pop("secrets", None)
        self._changes.append(before)

    async def compare_files(self, *, during_run: bool = False, after_run: bool = False) -> None:
        """Counts a change of the files that differ from when they were compared last, and of its Python, and
        reads the settings again unless a run goes on.

        Of a run, the agent has written some itself, see `is_read_only`. `during_run`, files that it may write
        are left to the comparison `after_run`.
        """

        async with self._comparing:
            if not during_run:
                self.read_settings()
            before, now = self._contents, await asyncio.to_thread(self._contents_now)
            self._contents = now
            changed = () if before is None else changed_files(before, now)
            if before is not None and (during_run or after_run):
                files = before, self._read, self._written
                others = {
                    name
                    for name in changed
                    if not (name == PYTHON or name.startswith(PACKAGE) or is_read_only(name, *files))
                }
                changed = tuple(name for name in changed if name not in others)
                if during_run:
                    seen = {name: now[name] for name in now.keys() - others}
                    self._contents = seen | {name: before[name] for name in before.keys() & others}
            if changed:
                # Which cases of a run had which content is unknown.
                earlier = {} if during_run or after_run else {**dict.fromkeys(changed, ""), **(before or {})}
                self._count_change({name: earlier.get(name, UNKNOWN) for name in changed})

    def opened(self, files: FilesOpened, since: float) -> None:
        """Notes the files that a run has opened, which began at a moment in seconds since the epoch: from now
        on, those that it has read are the agent's."""

        self._written |= dict.fromkeys(used_files(self.dir, files.written), since)
        new = {
            name: path for name, path in used_files(self.dir, files.read).items() if name not in self._read
        }
        self._read |= new
        if self._contents is not None and self._files is not None:
            self._note_contents(self._contents, self._files, new, since)
        self._messages.publish(FilesRead())

    def _note_contents(
        self, before: Contents, agent_files: AgentFiles, new: Mapping[str, Path], since: float
    ) -> None:
        """Adds the contents of `new` files to those of `before`."""
        others = {name: path for name, path in new.items() if name not in before}
        contents = agent_files.read(others)
        # What it held for the first cases is unknown.
        changed = {
            name for name in contents if name not in self._written and was_written_since(others[name], since)
        }
        self._contents = {**before, **contents, **dict.fromkeys(changed, UNKNOWN)}

    @property
    def read_files(self) -> Mapping[str, Path]:
        """The files that runs have read, by their names."""
        return self._read

    @property
    def read_contents(self) -> Contents:
        """The contents of `read_files` when they were read or compared last."""
        contents = self._contents or {}
        return {name: contents[name] for name in self.read_files if name in contents}

    def restored(self, names: Iterable[str], written: Mapping[str, float]) -> None:
        """Notes the names of the files that other runs have read, and of those that they have written, with
        the start of the run. Where they have changed, the results of these runs are stale already."""
        self._written |= {name: max(at, self._written.get(name, at)) for name, at in written.items()}
        folder = agent_folder(self.dir)
        new = {name: (folder / name).resolve() for name in names if name not in self._read}
        self._read |= new
        if self._contents is not None and self._files is not None:
            self._contents = {**self._contents, **self._files.read(new)}
        self._messages.publish(FilesRead())

    def writes(self, name: str) -> bool:
        """Whether the agent has written a file itself in a run of this sitting."""
        return name in self._written

    def _contents_now(self) -> Contents:
        """In a thread."""
        if self._files is None:
            self._files = AgentFiles(self.dir, only_env=bool(self.address.url))
        contents = self._files.contents([*self._read.values()])
        python = self.address.interpreter.path
        packages = {} if self.address.url else installed_packages(python)
        named = {f"{PACKAGE}{name}": version for name, version in packages.items()}
        return {**contents, **named, PYTHON: str(python)}

    def files_changed_since(self, version: int, started: float = 0.0) -> tuple[str, ...]:
        """Names of the files that differ from a version of the code, or may do so, without data that the
        agent has written itself in runs from a moment on."""
        before: dict[str, str] = {}
        for changed in self._changes[max(0, version) :]:
            before = {**changed, **before}
        now = self._contents or {}
        return tuple(
            name
            for name, text in before.items()
            if (UNKNOWN in (text, now.get(name)) or text != now.get(name, ""))
            and (is_of_user(name) or self._written.get(name, -1.0) < started)
        )

    def differs_from_run(self, name: str, content: str) -> bool:
        """Whether a file, when it was compared last, differs from its fingerprint in the log of a run."""
        now = (self._contents or {}).get(name, "")
        return self._contents is None or print_of(agent_folder(self.dir) / name, now) != content

    def update_python(self) -> str:
        """Finds the current Python of the agent, since environments are created and removed; returns why it
        cannot run there and what to do, as a sentence, "" where it can."""
        before = self.address
        if self._find_python is not None and not before.url:
            self.address = replace(self.address, interpreter=self._find_python())
        problem = self.address.problem
        if problem:
            self.failed(ErrorInfo(NO_PYTHON, problem, kind=ErrorKind.CONFIG))
        elif self.error is not None and self.error.type == NO_PYTHON and before != self.address:
            self.error = None
        return problem

    def start_host(self) -> StartedHost:
        """A process that imports the agent as it is now: the one that is kept warm, or a new one."""
        self.update_python()
        timeout = self.settings.timeout
        return self.warm_hosts.start(HostSettings(self.address, timeout))

    def keep_host_warm(self) -> None:
        """Prepares a process for the next run, with the libraries that the last one needed."""
        if not self.is_running() and not self.read_only:
            self.warm_hosts.prepare()

    def learn_tools(self) -> None:
        """Asks the agent in the background what tools it has, once."""
        if self.info is None and self._learning is None:
            self.load_again()

    def load_again(self) -> None:
        """Imports the agent in the background, unless a run does; once more where that is going on."""
        if self.read_only:
            return
        if self._learning is not None and not self._learning.done():
            self._loads_again = True
        elif not self.is_running():
            self._learning = asyncio.create_task(self._learn_tools())

    async def check_python(self) -> None:
        """Finds out whether its Python has what it needs, and its model a key, going by its source."""
        if not self.address.url and not self.read_only:
            self.python_check = await asyncio.to_thread(check_python, self.address)
            facts = await asyncio.to_thread(agent_facts, self.dir)
            if self.info is None:
                self._look_for_key(facts.model)
            self._messages.publish(AgentChanged())

    async def _learn_tools(self) -> None:

        began = time.monotonic()
        started = self.start_host()
        try:
            info = await started.loading
            self.loaded_in = time.monotonic() - began
            self.imported(info)
        except AgentBrokenError as broken:
            self.failed(broken.error)
            # Something may have been installed or removed.
            await self.check_python()
        finally:
            await started.end()
        if self._loads_again:
            # It was saved meanwhile.
            self._loads_again = False
            await self._learn_tools()

    async def close(self) -> None:
        """Ends the agent's processes."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.wait([self._learning])
        if not self.read_only:
            await self.warm_hosts.close()


MAX_LINES = 20_000
# A program can print megabytes without a line break.
MAX_LINE_LENGTH = 10_000
MAX_CHARACTERS = 8_000_000


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line that the agent has printed."""

    run: int
    """The number of the run; 0 for a conversation."""
    source: str
    """`stdout` or `stderr`"""
    text: str
    case: CaseId | None = None
    """The case; None where several ran and any may have printed it."""
    cut: int = 0
    """How many characters of the line were left out."""


class Console:
    """The last lines printed; of the first ones only how many were `dropped`.

    `total` counts all of them, `unread` those that came since they were last looked at.
    """

    def __init__(self) -> None:
        self._lines: deque[PrintedLine] = deque()
        self._characters = 0
        self._seen = 0
        self.total = 0

    def add(self, run: int, source: str, text: str, case: CaseId | None) -> None:
        line = PrintedLine(run, source, text[:MAX_LINE_LENGTH], case, max(0, len(text) - MAX_LINE_LENGTH))
        self._lines.append(line)
        self._characters += len(line.text)
        self.total += 1
        while len(self._lines) > MAX_LINES or self._characters > MAX_CHARACTERS:
            self._characters -= len(self._lines.popleft().text)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: int) -> PrintedLine:
        return self._lines[number]

    def __iter__(self) -> Iterator[PrintedLine]:
        return iter(self._lines)

    @property
    def dropped(self) -> int:
        return self.total - len(self._lines)

    @property
    def unread(self) -> int:
        return self.total - self._seen

    def mark_seen(self) -> None:
        """Everything printed so far has been seen."""
        self._seen = self.total
