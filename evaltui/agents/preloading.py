"""Imports libraries before the agent is known. Runs only in the child process.

The modules must be the same that the agent would have imported: from the same files, and in the same
environment, since libraries read it while they are imported.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import NoReturn

from .bootstrap import command
from .orphans import kill_descendants
from .own_code import is_own_code
from .own_modules import load_env_file, own_folders
from .protocol import Message

# A step of an agent's import that can be repeated: the name of a library's module to import; `module:class`
# for a pydantic model of a library to complete; or the name and the value of an environment variable that the
# agent's own code set at that point, None for a variable that it removed.
PreloadStep = str | list[str | None]

Text = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Environment:
    """Records the changes that the agent's own code makes to the environment while it is imported."""

    def __init__(self) -> None:
        self.changes: dict[str, str | None] = {}
        self._changes_in_order: list[tuple[frozenset[str], PreloadStep]] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        # `os.environ` calls these functions; there is no other hook.
        put, unset = os.putenv, os.unsetenv

        def putenv(name: Text, value: Text, /) -> None:
            self._note(os.fsdecode(name), os.fsdecode(value))
            put(name, value)

        def unsetenv(name: Text, /) -> None:
            self._note(os.fsdecode(name), None)
            unset(name)

        os.putenv, os.unsetenv = putenv, unsetenv
        try:
            yield
        finally:
            os.putenv, os.unsetenv = put, unset

    def _note(self, name: str, value: str | None) -> None:
        if os.environ.get(name) == value or not _is_called_by_agent(sys._getframe(2)):
            return
        self.changes[name] = value
        self._changes_in_order.append((frozenset(sys.modules.copy()), [name, value]))

    def steps(self) -> list[PreloadStep]:
        """The steps of this process so far: modules imported, variables set, models completed."""
        steps: list[PreloadStep] = []
        changes = deque(self._changes_in_order)
        for name, module in sys.modules.copy().items():
            if name == "__main__" or not _is_of_library(module):
                continue
            while changes and name not in changes[0][0]:
                steps.append(changes.popleft()[1])
            steps.append(name)
        steps += [change for _, change in changes]
        return [*steps, *_models_in_use()]


def _is_called_by_agent(frame: FrameType | None) -> bool:
    """Whether the agent's code runs, directly or through a function of a library; False while a library is
    being imported."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        if is_own_code(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


class Preloaded:
    """Library modules that were imported in this process before its agent.

    A step that fails now is left to the code that needs it.
    """

    def __init__(self, agent_dir: Path, steps: Sequence[PreloadStep]) -> None:
        self._steps = steps
        self._folder = _working_folder()
        self._environ = dict(os.environ)
        load_env_file(agent_dir)
        environ = dict(os.environ)
        before = {*sys.modules}
        self._changes: dict[str, str | None] = {}
        for step in steps:
            if isinstance(step, str):
                # Some modules raise SystemExit when they are imported at the wrong time.
                with contextlib.suppress(BaseException):
                    run_import_step(step)
            else:
                name, value = step
                assert name is not None
                self._changes[name] = value
                _set(name, value)
        for name in self._changes:
            _set(name, environ.get(name))
        new = {name: module for name, module in sys.modules.copy().items() if name not in before}
        self._names = {name for name in new if "." not in name}
        self._is_clean = not any(_is_user_code(module) for module in new.values())

    def is_usable_for(self, agent_dir: Path, module: str) -> bool:
        """Whether an agent would have got the same modules, as far as is known before its import.

        False where a library has imported the user's code, and where the agent has a module with the name of
        a library.
        """
        return self._is_clean and not any(
            self._names & _names_in(folder) for folder in own_folders(agent_dir, module)
        )

    def matches_environment(self, environment: Environment) -> bool:
        """Whether the import of the agent has set the same variables as the preloaded steps."""
        return environment.changes == self._changes

    def steps(self, environment: Environment) -> list[PreloadStep]:
        """The preloaded steps, and the further modules and models of this process."""
        preloaded = {step for step in self._steps if isinstance(step, str)}
        new = (step for step in environment.steps() if isinstance(step, str) and step not in preloaded)
        return [*self._steps, *new]

    def start_over(self, channel: int, load: Message) -> NoReturn:
        """Replaces this process by a host without preloaded modules, which goes on with the message
        `load`."""
        kill_descendants()
        if self._folder is not None:
            os.chdir(self._folder)
        os.set_inheritable(channel, True)
        arguments = command(sys.executable, "host", str(channel), json.dumps(load))
        os.execve(sys.executable, arguments, self._environ)


def run_import_step(step: str) -> None:
    """Imports a module, or completes a model, by its name in `PreloadStep`."""
    module, _, model = step.partition(":")
    imported = importlib.import_module(module)
    if model and not vars(imported)[model].__pydantic_complete__:
        vars(imported)[model].model_rebuild(raise_errors=False, _types_namespace={})


def _models_in_use() -> Iterator[str]:
    """The complete models of libraries. Completing one at its first use takes longer than a turn of an
    agent."""
    pydantic = sys.modules.get("pydantic")
    waiting = [] if pydantic is None else pydantic.BaseModel.__subclasses__()
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        module = sys.modules.get(model.__module__)
        is_there = module is not None and vars(module).get(model.__name__) is model
        if is_there and model.__pydantic_complete__ and _is_of_library(module):
            yield f"{model.__module__}:{model.__name__}"


def _working_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        # The folder was removed.
        return None


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _is_of_library(module: object) -> bool:
    folder = _folder_of(module)
    return folder is not None and not _is_user_folder(folder)


def _is_user_code(module: object) -> bool:
    folder = _folder_of(module)
    return folder is not None and _is_user_folder(folder)


def _folder_of(module: object) -> str | None:
    # Reads `vars`, since `getattr` may run code of the module.
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    # There are thousands of modules: a `Path` of each would take longer than a turn of an agent.
    return os.path.dirname(file) if isinstance(file, str) else None  # noqa: PTH120


@cache
def _is_user_folder(folder: str) -> bool:
    return is_own_code(os.path.join(folder, "module.py"))  # noqa: PTH118


def _names_in(folder: Path) -> set[str]:
    """The names of the modules and packages in a folder."""
    names: set[str] = set()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name, dot, suffix = entry.name.partition(".")
            is_module = suffix in ("py", "so") or suffix.endswith(".so")
            if is_module or (not dot and (folder / name / "__init__.py").is_file()):
                names.add(name)
    return names
