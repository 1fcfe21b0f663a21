"""The environments that Poetry made for a project, by Poetry's own rules: Poetry itself is not started."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from evaltui.core.model.json_values import text_of, value_at
from evaltui.files.settings import read_toml

_MOST_NAME = 42
_NO_PACKAGE = "non-package-mode"


def poetry_environments(root: Path) -> list[Path]:
    """The environments of the project in a folder: the one that `poetry env use` has chosen, else all that
    there are outside of the folder, sorted."""
    folder = _folder_of_environments(root)
    name = _base_name(root)
    chosen = value_at(_toml(folder / "envs.toml"), (name, "minor"))
    if text_of(chosen):
        return [environment for environment in [folder / f"{name}-py{chosen}"] if environment.is_dir()]
    return sorted(environment for environment in folder.glob(f"{name}-py*") if environment.is_dir())


def _base_name(root: Path) -> str:
    """The beginning of the names of a project's environments: its name, and a hash of its path."""
    tables = _toml(root / "pyproject.toml")
    names = (value_at(tables, path) for path in (("project", "name"), ("tool", "poetry", "name")))
    name = next(filter(None, map(text_of, names)), _NO_PACKAGE)
    # As the names of packages are compared.
    name = re.sub(r"[-_.]+", "-", name).lower()
    place = os.path.normcase(os.path.realpath(root))
    digest = urlsafe_b64encode(hashlib.sha256(os.fsencode(place)).digest()).decode()[:8]
    return re.sub(r'[ $`!*@"\\\r\n\t]', "_", name)[:_MOST_NAME] + f"-{digest}"


def _folder_of_environments(root: Path) -> Path:
    settings = [_toml(root / "poetry.toml"), _toml(_config_folder() / "config.toml")]
    cache = os.environ.get("POETRY_CACHE_DIR") or _setting(settings, "cache-dir") or str(_cache_folder())
    folder = os.environ.get("POETRY_VIRTUALENVS_PATH") or _setting(settings, "virtualenvs", "path")
    if not folder:
        return Path(cache).expanduser() / "virtualenvs"
    return root / Path(folder.replace("{cache-dir}", cache).replace("{project-dir}", str(root))).expanduser()


def _setting(settings: list[Any], *path: str) -> str:
    """The first text at a path of some tables; "" where there is none."""
    return next(filter(None, (text_of(value_at(table, path)) for table in settings)), "")


def _toml(path: Path) -> Any:
    """A TOML file as data; None where it is missing or cannot be read."""
    try:
        return read_toml(path)
    except ValueError:
        return None


def _config_folder() -> Path:
    if folder := os.environ.get("POETRY_CONFIG_DIR"):
        return Path(folder).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "pypoetry"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pypoetry"


def _cache_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pypoetry"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pypoetry"
