"""Makes the modules of the agent's project importable in a host. Runs only in the child process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType

from ..project.folders import agent_folder, env_file, loads_env_file
from ..project.import_names import ImportName, import_name
from .own_code import is_own_code


class _FromSource(SourceFileLoader):
    """Always compiles from source: two saves of one size within a second leave a stale `.pyc`."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code = self.source_to_code(self.get_data(path), path)
        assert isinstance(code, CodeType)
        return code


def _own_folder_finder(folder: str) -> FileFinder:
    if not folder or not Path(folder).is_dir() or not is_own_code(str(Path(folder) / "x.py")):
        raise ImportError(f"{folder} is not the user's own code")
    return FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, SOURCE_SUFFIXES))


class _ProjectFinder:
    """Finds modules at the root of a project that no other finder finds, and folders that hold modules."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, [str(self.root)]) if path is None else None
        if spec is None or spec.loader is not None:
            return spec
        # A folder of data may have the name of a library that is not installed.
        return spec if any((self.root / fullname).glob("*.py")) else None


# The import names of the agents of this process, by folder.
_imported_as: dict[Path, ImportName] = {}


def use_own_modules(agent_dir: Path, module: str = "") -> None:
    """Makes the modules of the agent's project importable, in their current state, and sets the agent's
    environment.

    `module` is the name to import the agent by, "" for the usual one. A second call changes nothing.
    """
    load_env_file(agent_dir)
    _imported_as.setdefault(agent_folder(agent_dir.resolve()), import_name(agent_dir, module))
    if _own_folder_finder not in sys.path_hooks:
        sys.path_hooks.insert(0, _own_folder_finder)
        sys.path_importer_cache.clear()
    imported_as = name_of(agent_dir)
    first = list(map(str, imported_as.first))
    if sys.path[: len(first)] != first:
        sys.path[:0] = first
    sys.path += [folder for folder in map(str, imported_as.last) if folder not in sys.path]
    roots = [finder.root for finder in sys.meta_path if isinstance(finder, _ProjectFinder)]
    if imported_as.project is not None and imported_as.project not in roots:
        sys.meta_path.append(_ProjectFinder(imported_as.project))


def name_of(agent_dir: Path) -> ImportName:
    """The import name of an agent, after `use_own_modules`."""
    return _imported_as[agent_folder(agent_dir.resolve())]


def own_folders(agent_dir: Path, module: str) -> tuple[Path, ...]:
    """The folders that are searched first for the agent's own modules."""
    return import_name(agent_dir, module.partition(":")[0]).first


# A conflict of git, or a pointer of Git LFS.
_NO_VARIABLES = re.compile(r"^<<<<<<< .*|\Aversion https://git-lfs\b.*", re.MULTILINE)


def load_env_file(agent_dir: Path) -> None:
    """Sets the variables of an agent's `.env`. Raises AgentLoadError where python-dotenv is not installed."""
    # As in google-adk 2.13: variables that are set already win, but within the file its own values do.
    if not loads_env_file():
        return
    if (file := env_file(agent_dir)) is not None:
        from .adapters.base import AgentLoadError

        if not file.is_file():
            raise AgentLoadError(f"{file}: link to {file.readlink()}, which does not exist. Remove it")
        try:
            from dotenv import load_dotenv
        except ModuleNotFoundError as error:
            raise AgentLoadError(
                f"{file}: python-dotenv is not installed for this Python. Run pip install python-dotenv, "
                "or set ADK_DISABLE_LOAD_DOTENV=1 to ignore the file"
            ) from error
        environ = dict(os.environ)
        try:
            # python-dotenv reads the other lines of such a file.
            if mark := _NO_VARIABLES.search(file.read_text(encoding="utf-8")):
                raise ValueError(f"{mark[0]} is no variable. Resolve the conflict, or run `git lfs pull`")
            load_dotenv(file, override=True)
        except (OSError, ValueError) as error:
            raise AgentLoadError(f"{file}: cannot be read: {error}") from error
        os.environ.update({name: value for name, value in environ.items() if os.environ[name] != value})
