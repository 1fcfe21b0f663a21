"""Libraries imported before the agent that needs them is known. Runs only in the child process.

What is imported beforehand must be what the agent would have got by itself: from the same files, and in the
same environment, since libraries read it while they are imported.
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

from ..bootstrap import command
from ..orphans import kill_descendants
from ..own_code import is_own_code
from ..protocol import Message
from .own_modules import load_env_file, own_folders

# What a host brought in, in order: the name of a library's module; `module:class` for one of its pydantic
# models that could be used by the end; or the name and the value of a variable that the agent's own code set
# in the environment at that point, None for one that it removed.
BroughtIn = str | list[str | None]

Text = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Environment:
    """What the agent's own code changes in the environment while it is imported."""

    def __init__(self) -> None:
        self.changes: dict[str, str | None] = {}
        self._noted: list[tuple[frozenset[str], BroughtIn]] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        # What `os.environ` calls; there is nothing else that could be told of it.
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
        self._noted.append((frozenset(sys.modules.copy()), [name, value]))

    def steps(self) -> list[BroughtIn]:
        """What this process has brought in so far."""
        steps: list[BroughtIn] = []
        noted = deque(self._noted)
        for name, module in sys.modules.copy().items():
            if name == "__main__" or not _is_of_library(module):
                continue
            while noted and name not in noted[0][0]:
                steps.append(noted.popleft()[1])
            steps.append(name)
        steps += [change for _, change in noted]
        return [*steps, *_models_in_use()]


def _is_called_by_agent(frame: FrameType | None) -> bool:
    """Whether the agent's code is at work, by itself or through a function of a library; not where a library
    is at work because it is being imported."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        if is_own_code(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


class Preloaded:
    """The modules of libraries that were imported in this process before its agent.

    Whatever cannot be imported now will be tried again by who needs it.
    """

    def __init__(self, agent_dir: Path, steps: Sequence[BroughtIn]) -> None:
        self._steps = steps
        self._folder = _working_folder()
        self._environ = dict(os.environ)
        load_env_file(agent_dir)
        environ = dict(os.environ)
        before = {*sys.modules}
        self._changes: dict[str, str | None] = {}
        for step in steps:
            if isinstance(step, str):
                # Some end the process when they are imported at the wrong time.
                with contextlib.suppress(BaseException):
                    bring_in(step)
            else:
                name, value = step
                assert name is not None
                self._changes[name] = value
                _set(name, value)
        for name in self._changes:
            _set(name, environ.get(name))
        new = {name: module for name, module in sys.modules.copy().items() if name not in before}
        self._names = {name for name in new if "." not in name}
        self._is_clean = not any(_is_own(module) for module in new.values())

    def suits(self, agent_dir: Path, module: str) -> bool:
        """Whether an agent would have got the same modules, as far as can be told before it is imported.

        Not where a library has imported something of the user's, and not where the agent has a module of
        the same name as a library.
        """
        return self._is_clean and not any(
            self._names & _names_in(folder) for folder in own_folders(agent_dir, module)
        )

    def suited(self, environment: Environment) -> bool:
        """Whether the agent, which is imported by now, has set its environment as these modules found it."""
        return environment.changes == self._changes

    def steps(self, environment: Environment) -> list[BroughtIn]:
        """What this process has brought in so far."""
        known = {step for step in self._steps if isinstance(step, str)}
        new = (step for step in environment.steps() if isinstance(step, str) and step not in known)
        return [*self._steps, *new]

    def start_over(self, channel: int, load: Message) -> NoReturn:
        """Become a host that has nothing preloaded, and goes on with this message."""
        kill_descendants()
        if self._folder is not None:
            os.chdir(self._folder)
        os.set_inheritable(channel, True)
        again = command(sys.executable, "host", str(channel), json.dumps(load))
        os.execve(sys.executable, again, self._environ)


def bring_in(step: str) -> None:
    """Import a module, or complete a model, by its name in `BroughtIn`."""
    module, _, model = step.partition(":")
    found = importlib.import_module(module)
    if model and not vars(found)[model].__pydantic_complete__:
        vars(found)[model].model_rebuild(raise_errors=False, _types_namespace={})


def _models_in_use() -> Iterator[str]:
    """The models of libraries that are complete: many are completed when they are used first, which takes
    longer than a turn of an agent."""
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
        # It was removed.
        return None


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _is_of_library(module: object) -> bool:
    folder = _folder_of(module)
    return folder is not None and not _is_own_folder(folder)


def _is_own(module: object) -> bool:
    folder = _folder_of(module)
    return folder is not None and _is_own_folder(folder)


def _folder_of(module: object) -> str | None:
    # Modules may do anything when they are asked for an attribute.
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    # There are thousands of them: a `Path` of each would take longer than a turn of an agent.
    return os.path.dirname(file) if isinstance(file, str) else None  # noqa: PTH120


@cache
def _is_own_folder(folder: str) -> bool:
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
