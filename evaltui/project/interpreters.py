"""The Python for an agent: that of its project, where evaltui need not be installed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs

from evaltui.core.model.json_values import text_or_empty, value_at
from evaltui.project.folders import agent_folder, project_root, seen_from_here
from evaltui.project.packages import remake_command, uv_root
from evaltui.project.run_settings import SettingsError, run_settings
from evaltui.project.settings import remember_python, remembered_python, tables_in

OLDEST = (3, 11)
# What `--python` takes for the Python that is found without it.
AUTO = "auto"
# Seconds.
_PATIENCE = 10.0
_REMEDY = "Make the environment anew"
_REMEDY_OLD = "make the environment with one, or give one with --python"
_EXECUTABLES = ("bin/python", "bin/python3", "Scripts/python.exe")


class InterpreterError(ValueError):
    """A Python is missing or too old; the message is a sentence with a remedy."""

    page = "agents"
    """The page of the guide that helps."""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and the reason why it is used."""

    path: Path
    """Its executable, as it was found: of a virtual environment, the link in it."""
    reason: str
    """The setting or folder that names it, such as `.venv` or `--python`; "" for evaltui's own."""
    refusal: str = ""
    """Why no agent can run in it, with a remedy, as a sentence; "" where one can."""

    @property
    def problem(self) -> str:
        """The `refusal`, and where no file has its version, what it answers when it is started: the only
        start before an agent, a metric function or a judge function runs in it."""
        if self.refusal or self.executable is None:
            return self.refusal
        try:
            return _too_old(self, python_version(self.path))
        except InterpreterError as error:
            return str(error)

    @property
    def executable(self) -> Path | None:
        """The executable for hosts; None where evaltui itself runs in this Python."""
        return None if not self.reason or self.is_in_environment_of(OWN) else self.path

    def is_in_environment_of(self, other: Interpreter) -> bool:
        """Whether both are of one virtual environment, or one executable outside of any."""
        return _environment(self.path) == _environment(other.path)


OWN = Interpreter(Path(sys.executable), "")


def find_interpreter(agent_dir: Path, python: str | None = None) -> Interpreter:
    """The Python for an agent: the parameter `python`, else `python` under `[tool.evaltui]`, else the
    remembered one, else the environment of the project, else the active one, else evaltui's own.

    The parameter is an executable, the folder of an environment, or a command; `auto` passes over the
    remembered one. It is not started, see `Interpreter.problem`. Raises InterpreterError, and SettingsError
    for a table that is wrong.
    """
    folder = agent_folder(agent_dir).resolve()
    if python not in (None, AUTO):
        return _checked(_executable_at(python, Path(), "--python"), "--python")
    settings = run_settings(agent_dir)
    if (configured := settings.python) is not None and (file := settings.file) is not None:
        return _checked(
            _executable_at(configured, file.parent, f"{seen_from_here(file)}: tool.evaltui.python"), file.name
        )
    if python is None and (remembered := remembered_python(agent_dir)) is not None and remembered.is_file():
        return _checked(remembered, "--python")
    for environment, reason in _environments(folder, os.environ):
        if (executable := _executable(environment)) is not None:
            return _checked(executable, reason)
        if _is_broken(environment):
            raise InterpreterError(
                f"{environment}: its Python is missing (from {reason}). {_REMEDY}: {remake_command(folder)}"
            )
    return OWN


def choose_interpreter(agent_dir: Path, python: str | None = None) -> Interpreter:
    """The Python for an agent; `python` is remembered for it if its folder can be written.

    Raises InterpreterError where `python` cannot be used.
    """
    chosen = None if python in (None, AUTO) else find_interpreter(agent_dir, python)
    if chosen is not None and chosen.problem:
        raise InterpreterError(chosen.problem)
    if python is not None:
        with suppress(OSError):
            remember_python(agent_dir, None if chosen is None else chosen.path)
    return chosen or look_for_interpreter(agent_dir, python)


def interpreter_to_compare(agent_dir: Path, python: str | None = None) -> Interpreter:
    """The Python for an agent of which nothing is started, as something to compare with those of its runs."""
    try:
        return Interpreter(find_interpreter(agent_dir, python).path, "")
    except (InterpreterError, SettingsError):
        return OWN


def look_for_interpreter(agent_dir: Path, python: str | None = None) -> Interpreter:
    """The Python for an agent; where none can be used, evaltui's own with the `refusal`.

    Wrong settings give evaltui's own: no agent runs with them."""
    try:
        interpreter = find_interpreter(agent_dir, python)
    except InterpreterError as error:
        return Interpreter(OWN.path, "", str(error))
    except SettingsError:
        return OWN
    problem = interpreter.problem
    return Interpreter(OWN.path, "", problem) if problem else interpreter


def _environments(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """The environments that an agent may belong to, each with its reason; the nearest first."""
    root = project_root(folder)
    if root is not None and (name := environ.get("UV_PROJECT_ENVIRONMENT")):
        yield uv_root(root) / name, "UV_PROJECT_ENVIRONMENT"
    for level in (folder, *folder.parents):
        yield level / ".venv", ".venv"
    if root is not None:
        yield from ((environment, "Poetry") for environment in _of_poetry(root))
    if active := environ.get("VIRTUAL_ENV"):
        yield Path(active), "VIRTUAL_ENV"
    # The base environment is active wherever conda is installed, whatever the project.
    if (active := environ.get("CONDA_PREFIX")) and environ.get("CONDA_DEFAULT_ENV") != "base":
        yield Path(active), "conda"


def _of_poetry(root: Path) -> list[Path]:
    """Poetry's environment; none where Poetry has none. Raises InterpreterError for several."""
    environments = poetry_environments(root) if (root / "poetry.lock").is_file() else []
    if len(environments) > 1:
        names = " and ".join(map(str, environments))
        raise InterpreterError(
            f"{root} has several environments of Poetry, {names}. Choose with `poetry env use` or --python"
        )
    return environments


def _executable_at(text: str, base: Path, place: str) -> Path:
    """The executable that a path or command means. Raises InterpreterError, which begins with the place."""
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
    return next(filter(Path.is_file, _candidates(environment)), None)


def _is_broken(environment: Path) -> bool:
    """Whether a folder is an environment without a Python, such as one with a dangling link."""
    return (environment / "pyvenv.cfg").is_file() or any(map(os.path.lexists, _candidates(environment)))


def _candidates(environment: Path) -> Iterator[Path]:
    return (environment / name for name in _EXECUTABLES)


def _checked(executable: Path, reason: str) -> Interpreter:
    """Raises InterpreterError for a Python that is not executable, or by its files too old."""
    path = executable.absolute()
    interpreter = Interpreter(path, reason)
    if not os.access(path, os.X_OK):
        raise InterpreterError(f"{path}: not executable (from {reason}). {_REMEDY}, or give another --python")
    version = None if interpreter.executable is None else noted_version(path)
    if version is not None and (problem := _too_old(interpreter, version)):
        raise InterpreterError(problem)
    return interpreter


def _too_old(interpreter: Interpreter, version: tuple[int, ...]) -> str:
    """The sentence for a version that is too old; "" for a later one."""
    if version >= OLDEST:
        return ""
    has, oldest = ".".join(map(str, version)), ".".join(map(str, OLDEST))
    place = f"{interpreter.path}: Python {has} is too old (from {interpreter.reason})"
    return f"{place}. Agents need {oldest} or later: {_REMEDY_OLD}"


def _environment(executable: Path) -> Path:
    """The virtual environment of an executable; the executable itself outside of any."""
    environment = executable.absolute().parent.parent
    if (environment / "pyvenv.cfg").is_file():
        return environment.resolve()
    return executable.resolve()


def _written(path: Path) -> int:
    """The time of a file's last write, in nanoseconds; 0 without a file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def python_version(executable: Path) -> tuple[int, ...]:
    """The version, such as `(3, 12)`, from a file or the started Python. Raises InterpreterError."""
    if (version := noted_version(executable)) is not None:
        return version
    return _asked_version(executable, _written(executable))


@lru_cache
def _asked_version(executable: Path, _written: int) -> tuple[int, ...]:
    command = [str(executable), "-I", "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        major, minor = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise InterpreterError(f"{executable}: cannot be started as a Python ({why})") from error
    return major, minor


def noted_version(executable: Path) -> tuple[int, ...] | None:
    """The version in the `pyvenv.cfg` of an environment, such as `(3, 12)`; None for none."""
    config = executable.parent.parent / "pyvenv.cfg"
    try:
        lines = [line.partition("=") for line in config.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return None
    noted = {name.strip(): value.strip() for name, _, value in lines}
    text = noted.get("version_info") or noted.get("version", "")
    parts = text.split(".")[:2]
    return tuple(map(int, parts)) if len(parts) == 2 and all(map(str.isdigit, parts)) else None


_MAX_NAME = 42
_NO_PACKAGE = "non-package-mode"


def poetry_environments(root: Path) -> list[Path]:
    """The environments of the project in a folder: the one that `poetry env use` has chosen, else all that
    there are outside of the folder, sorted."""
    folder = _folder_of_environments(root)
    name = _base_name(root)
    chosen = value_at(tables_in(folder / "envs.toml"), (name, "minor"))
    if text_or_empty(chosen):
        return [environment for environment in [folder / f"{name}-py{chosen}"] if environment.is_dir()]
    return sorted(environment for environment in folder.glob(f"{name}-py*") if environment.is_dir())


def _base_name(root: Path) -> str:
    """The beginning of the names of a project's environments: its name, and a hash of its path."""
    tables = tables_in(root / "pyproject.toml")
    names = (value_at(tables, path) for path in (("project", "name"), ("tool", "poetry", "name")))
    name = next(filter(None, map(text_or_empty, names)), _NO_PACKAGE)
    # As the names of packages are compared.
    name = re.sub(r"[-_.]+", "-", name).lower()
    place = os.path.normcase(os.path.realpath(root))
    digest = urlsafe_b64encode(hashlib.sha256(os.fsencode(place)).digest()).decode()[:8]
    return re.sub(r'[ $`!*@"\\\r\n\t]', "_", name)[:_MAX_NAME] + f"-{digest}"


def _folder_of_environments(root: Path) -> Path:
    # Poetry asks for its folders in the same words.
    config = os.environ.get("POETRY_CONFIG_DIR") or platformdirs.user_config_path(
        "pypoetry", appauthor=False, roaming=True
    )
    settings = [tables_in(root / "poetry.toml"), tables_in(Path(config).expanduser() / "config.toml")]
    cache = os.environ.get("POETRY_CACHE_DIR") or _setting(settings, "cache-dir")
    cache = cache or platformdirs.user_cache_dir("pypoetry", appauthor=False)
    folder = os.environ.get("POETRY_VIRTUALENVS_PATH") or _setting(settings, "virtualenvs", "path")
    if not folder:
        return Path(cache).expanduser() / "virtualenvs"
    return root / Path(folder.replace("{cache-dir}", cache).replace("{project-dir}", str(root))).expanduser()


def _setting(settings: list[Any], *path: str) -> str:
    """The first text at a path of several tables; "" for none."""
    return next(filter(None, (text_or_empty(value_at(table, path)) for table in settings)), "")
