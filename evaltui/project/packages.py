"""The packages of a Python: their folders, and commands that install others."""

from __future__ import annotations

import json
import sys
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from .folders import project_root

# Of packages that are not called like their modules.
_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "google": "google-adk",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
# What uv and pipx leave in the environments of tools.
_OF_TOOLS = ("uv-receipt.toml", "pipx_metadata.json")
_SHARED = "include-system-site-packages = true"
_LIBRARIES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "lib/python3/dist-packages")


def site_packages(executable: Path) -> list[Path]:
    """The library folders of a Python, judged by its files: its environment's, then those that this shares
    with the system and the user."""
    environment = executable.absolute().parent.parent
    try:
        config = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        config = _SHARED
    system = executable.resolve().parent.parent
    # Debian has a folder of its own for what pip installs.
    shared = [system, system / "local", Path("~/.local").expanduser()]
    environments = [environment] if _SHARED not in config else [environment, *shared]
    folders = (*_LIBRARIES, "Lib/site-packages")
    paths = (path for place in environments for name in folders for path in sorted(place.glob(name)))
    return list(dict.fromkeys(path for path in paths if path.is_dir()))


PACKAGE = "package "
"""Begins the names of packages among the files of an agent that have changed."""


def installed_packages(executable: Path) -> dict[str, str]:
    """The versions of the packages of a Python by their names, judged by its files, without evaltui.

    With the version of a package that came from a repository or an archive is its commit or its hash.
    """
    # The libraries that come first count.
    libraries = reversed(site_packages(executable))
    folders = [folder for library in libraries for folder in sorted(library.glob("*.dist-info"))]
    names = {folder: folder.stem.partition("-")[0] for folder in folders}
    return {name: _version(folder) for folder, name in names.items() if name != "evaltui"}


def _version(folder: Path) -> str:
    version = folder.stem.partition("-")[2]
    try:
        origin = json.loads((folder / "direct_url.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return version
    places = [("vcs_info", "commit_id"), ("archive_info", "hash")]
    return " ".join([version, *(str(origin[kind].get(key)) for kind, key in places if kind in origin)])


def package_of(module: str) -> str:
    """The package that most probably has a module: `google-adk` for `google.adk.agents`."""
    if module.startswith("google.") and not module.startswith("google.adk"):
        return "-".join(module.split(".")[:2])
    top = module.split(".")[0]
    return _PACKAGES.get(top, top)


def install_command(folder: Path, package: str, executable: Path) -> str:
    """The shell command that installs a package for the agent in a folder."""
    root = project_root(folder) or folder
    workspace = uv_root(root)
    if (workspace / "uv.lock").is_file():
        return f"uv add {package}" if workspace == root else f"uv add --package {_name_of(root)} {package}"
    if (root / "poetry.lock").is_file():
        return f"poetry add {package}"
    if any((executable.absolute().parent.parent / name).is_file() for name in _OF_TOOLS):
        # That environment is evaltui's alone, made anew with each update: the project gets one of its own.
        if (root / "pyproject.toml").is_file():
            return f"uv add {package}"
        return f"python3 -m venv .venv && .venv/bin/pip install {package}"
    return _pip_command(executable, package)


def _pip_command(executable: Path, package: str) -> str:
    python = quote(str(executable))
    if any((libraries / "pip").is_dir() for libraries in site_packages(executable)):
        return f"{python} -m pip install {package}"
    # As in environments that uv has made.
    return f"uv pip install --python {python} {package}"


_MODULES_OF_EXTRAS = {
    "serve": ("aiohttp", "textual_serve"),
    "traces": ("aiohttp", "google.rpc", "opentelemetry.proto"),
}


class MissingExtraError(Exception):
    """An extra of evaltui is not installed; the message names the command that installs it."""


def require_extra(extra: Literal["serve", "traces"]) -> None:
    """Raises MissingExtraError where a package of an extra is missing."""
    for module in _MODULES_OF_EXTRAS[extra]:
        try:
            is_missing = find_spec(module) is None
        except ModuleNotFoundError:
            is_missing = True
        if is_missing:
            raise MissingExtraError(f"{module} is not installed. Run {extra_command(extra)}")


def extra_command(extra: str) -> str:
    """The shell command that installs an extra of evaltui beside evaltui."""
    package = quote(f"evaltui[{extra}]")
    for name, command in zip(_OF_TOOLS, ("uv tool install", "pipx install --force"), strict=True):
        if (Path(sys.prefix) / name).is_file():
            return f"{command} {package}"
    return _pip_command(Path(sys.executable), package)


def remake_command(folder: Path) -> str:
    """The shell command that makes the environment of a folder's project."""
    root = project_root(folder) or folder
    if (uv_root(root) / "uv.lock").is_file():
        return "uv sync" if uv_root(root) == root else "uv sync --all-packages"
    if (root / "poetry.lock").is_file():
        return "poetry install"
    return "python3 -m venv --clear .venv"


def uv_root(project: Path) -> Path:
    """Where uv keeps the lock file and the environment of a project: the root of its workspace, itself if it
    is in none."""
    return next(
        (parent for parent in project.parents if "workspace" in _table(parent, "tool", "uv")), project
    )


def _name_of(project: Path) -> str:
    name = _table(project, "project").get("name")
    return name if isinstance(name, str) else project.name


def _table(folder: Path, *names: str) -> dict[str, Any]:
    """A table of a folder's pyproject.toml; an empty one where that does not have it, or cannot be read."""
    try:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        table: Any = tomllib.loads(text)
    except (OSError, ValueError):
        return {}
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


@cache
def own_version() -> str:
    """The version of evaltui."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("evaltui")
    except PackageNotFoundError:
        return "not installed"
