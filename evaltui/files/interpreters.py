"""The Python that an agent runs in: that of its project, so that evaltui need not be installed there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaltui.files.folders import agent_folder, project_root, seen_from_here
from evaltui.files.run_settings import run_settings
from evaltui.files.settings import remember_python, remembered_python

OLDEST = (3, 11)
# What `--python` takes for the Python that is found without it.
AUTO = "auto"
# Seconds.
_PATIENCE = 10.0
_EXECUTABLES = ("bin/python", "bin/python3", "Scripts/python.exe")


class InterpreterError(ValueError):
    """No Python is where one was asked for, or it is too old; the message is a sentence."""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and why it is the one."""

    path: Path
    """Its executable, as it was found: of a virtual environment, the link in it."""
    reason: str
    """What it was found by, such as `.venv` or `--python`; "" for the one that evaltui runs in."""

    @property
    def executable(self) -> Path | None:
        """What hosts are started with; None where evaltui itself runs in this Python."""
        is_own = not self.reason or _environment(self.path) == _environment(Path(sys.executable))
        return None if is_own else self.path


OWN = Interpreter(Path(sys.executable), "")


def find_interpreter(agent_dir: Path, asked: str | None = None) -> Interpreter:
    """The Python for an agent: the one that was `asked` for, else `python` under `[tool.evaltui]`, else the
    one remembered for it, else the environment of the project, else the active one, else evaltui's own.

    Asked for is an executable, the folder of an environment, or a command; `auto` passes over the
    remembered one. Raises InterpreterError, and SettingsError for a table that is wrong.
    """
    folder = agent_folder(agent_dir).resolve()
    if asked not in (None, AUTO):
        return _checked(_given(asked, Path(), "--python"), "--python")
    settings = run_settings(agent_dir)
    if (python := settings.python) is not None and (file := settings.file) is not None:
        return _checked(
            _given(python, file.parent, f"{seen_from_here(file)}: tool.evaltui.python"), file.name
        )
    if asked is None and (remembered := remembered_python(agent_dir)) is not None and remembered.is_file():
        return _checked(remembered, "--python")
    for environment, reason in _environments(folder, os.environ):
        if (executable := _executable(environment)) is not None:
            return _checked(executable, reason)
    return OWN


def choose_interpreter(agent_dir: Path, asked: str | None = None) -> Interpreter:
    """As `find_interpreter`; what was asked for is remembered for the agent if its folder can be written."""
    found = find_interpreter(agent_dir, asked)
    if asked is not None:
        with suppress(OSError):
            remember_python(agent_dir, None if asked == AUTO else found.path)
    return found


def _environments(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """The environments that an agent may belong to, and what says so; the nearest first."""
    root = project_root(folder)
    if root is not None and (name := environ.get("UV_PROJECT_ENVIRONMENT")):
        yield root / name, "UV_PROJECT_ENVIRONMENT"
    for one in (folder, *folder.parents):
        yield one / ".venv", ".venv"
    if root is not None and (root / "poetry.lock").is_file() and (found := _poetry(root)) is not None:
        yield found, "Poetry"
    if active := environ.get("VIRTUAL_ENV"):
        yield Path(active), "VIRTUAL_ENV"
    # The base environment is active wherever conda is installed, whatever the project.
    if (active := environ.get("CONDA_PREFIX")) and environ.get("CONDA_DEFAULT_ENV") != "base":
        yield Path(active), "conda"


def _poetry(root: Path) -> Path | None:
    if shutil.which("poetry") is None:
        return None
    try:
        done = subprocess.run(
            ["poetry", "env", "info", "--path"], cwd=root, capture_output=True, text=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None


def _given(text: str, base: Path, place: str) -> Path:
    """The executable that somebody named. Raises InterpreterError, which begins with the place."""
    path = base / Path(text).expanduser()
    if path.is_file():
        return path
    if path.is_dir() and (executable := _executable(path)) is not None:
        return executable
    if os.sep not in text and (command := shutil.which(text)) is not None:
        return Path(command)
    raise InterpreterError(
        f"{place}: no Python at {text}. Give an executable, a virtual environment or a command"
    )


def _executable(environment: Path) -> Path | None:
    return next((path for name in _EXECUTABLES if (path := environment / name).is_file()), None)


def _checked(executable: Path, reason: str) -> Interpreter:
    """Raises InterpreterError for a Python that is too old, or that cannot be started."""
    path = executable.absolute()
    found = Interpreter(path, reason)
    version = OLDEST if found.executable is None else python_version(path)
    if version < OLDEST:
        had, wanted = ".".join(map(str, version)), ".".join(map(str, OLDEST))
        raise InterpreterError(
            f"{path}: Python {had} is too old (from {reason}). Agents need {wanted} or later"
        )
    return found


def _environment(executable: Path) -> Path:
    """The virtual environment of an executable; the executable itself where it is of none."""
    environment = executable.absolute().parent.parent
    if (environment / "pyvenv.cfg").is_file():
        return environment.resolve()
    return executable.resolve()


def python_version(executable: Path) -> tuple[int, ...]:
    """Such as `(3, 12)`. Raises InterpreterError for a Python that cannot be started."""
    if (version := _noted_version(executable.parent.parent / "pyvenv.cfg")) is not None:
        return version
    command = [str(executable), "-I", "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        major, minor = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InterpreterError(f"{executable}: cannot be started as a Python ({error})") from error
    return major, minor


def _noted_version(config: Path) -> tuple[int, ...] | None:
    """What an environment says of its version when it was made; None where it does not."""
    try:
        lines = [line.partition("=") for line in config.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return None
    noted = {name.strip(): value.strip() for name, _, value in lines}
    text = noted.get("version_info") or noted.get("version", "")
    parts = text.split(".")[:2]
    return tuple(map(int, parts)) if len(parts) == 2 and all(map(str.isdigit, parts)) else None
