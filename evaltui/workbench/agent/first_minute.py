"""The first steps with an agent: one without eval cases, and one that cannot be loaded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.errors import NO_PYTHON, ErrorInfo
from evaltui.project.agent_source import SourcePlace, frame_place
from evaltui.project.folders import agent_folder
from evaltui.project.interpreters import Interpreter
from evaltui.project.packages import install_command, package_of
from evaltui.text.values import nearest_word
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import AgentChanged, Messages, WorkbenchMessage

if TYPE_CHECKING:
    from evaltui.project.watching import Changed

# Cases of a starter.
_STARTER_CASES = 3
_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")


def is_first_minute(sets: OpenSets) -> bool:
    """Whether there is no case yet, and no unreadable file that may have some."""
    if not sets.is_read or any(eval_set.cases for eval_set in sets.listed):
        return False
    return not any(sets.errors(eval_set) for eval_set in sets.listed)


def has_few_cases(sets: OpenSets) -> bool:
    """Whether there are no more cases than a starter has."""
    return sum(len(eval_set.cases) for eval_set in sets.listed) <= _STARTER_CASES


def error_place(agent: AgentState, error: ErrorInfo) -> SourcePlace | None:
    """The place to mend in an agent that cannot be loaded: the failing line, else its first file; None
    without any, and where the cause is its Python or it is behind a network."""
    if agent.address.url or error.type == NO_PYTHON:
        return None

    agent_dir = agent.dir
    if (place := frame_place(agent_dir, error.traceback)) is not None:
        return place
    files = (agent_dir,) if agent_dir.is_file() else (agent_dir / "agent.py", agent_dir / "__init__.py")
    return next((SourcePlace(path, 1) for path in files if path.is_file()), None)


class MissingModule(NamedTuple):
    """A module that the agent imports and that cannot be found: of a package, or of the agent itself."""

    module: str
    command: str
    """The shell command that installs its package; "" where the module is probably the agent's own."""
    own_module: str
    """The agent's own module with the most similar name; "" for no similar name."""


def missing_package(agent_dir: Path, error: ErrorInfo, interpreter: Interpreter) -> MissingModule | None:
    """The missing module that prevents the import of the agent; None for another error."""
    match = _MISSING_MODULE.search(error.message)
    if "needs google-adk" in error.message:
        module = "google.adk"
    elif error.type == "ModuleNotFoundError" and match:
        module = match[1]
    else:
        return None

    folder = agent_folder(agent_dir).resolve()
    top = module.split(".")[0]
    own = [path.stem for path in folder.glob("*.py")]
    nearest_module = nearest_word(module.split(".")[-1], own) or ""
    if nearest_module or top == folder.name:
        return MissingModule(module, "", nearest_module)
    package = package_of(module)
    return MissingModule(module, install_command(folder, package, interpreter.path), "")


class RetryOnSave:
    """Imports the agent again after each save while it cannot be imported.

    It does nothing while `watch_mode` returns true: watch mode does the same.
    """

    def __init__(self, agent: AgentState, watch_mode: Callable[[], bool], messages: Messages) -> None:
        self._agent = agent
        self._watch_mode = watch_mode
        self._messages = messages
        self.is_watching = False
        """Whether the files are watched, so that every save is seen."""
        self._task: asyncio.Task[None] | None = None
        messages.subscribe(self._follow, AgentChanged)

    def _follow(self, _: WorkbenchMessage) -> None:
        """Starts or stops watching the files."""
        should_watch = self._agent.error is not None and not self._watch_mode()
        if should_watch and self._task is None:
            self._task = asyncio.create_task(self._watch())
        elif not should_watch and self._task is not None:
            self._task.cancel()
            self._task = None
            self.is_watching = False

    def _on_ready(self) -> None:
        self.is_watching = True

    async def _watch(self) -> None:
        async def saved(change: Changed) -> None:
            if change.code:
                self._agent.load_again()

        try:
            await self._agent.watched_files().follow(saved, self._on_ready)
        except OSError as error:
            self._messages.say(f"Cannot watch the agent's folder: {error}. F5 retries")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
