"""Where in the folders of an agent files are looked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

CONFIG_NAME = "test_config.json"
OWN_FOLDER = ".evaltui"
RECORDINGS = "recordings"

_NEVER_ENTERED = {"node_modules", "__pycache__", "site-packages", "venv"}


def agent_folder(agent_dir: Path) -> Path:
    """The folder that an agent lives in: of a single file, the one that holds it."""
    return agent_dir.parent if agent_dir.is_file() else agent_dir


def env_file(agent_dir: Path) -> Path | None:
    """The `.env` that an agent gets: the nearest one upwards, as google-adk 2.13 looks for it."""
    agent_dir = agent_dir.resolve()
    found = (folder / ".env" for folder in (agent_dir, *agent_dir.parents))
    return next((path for path in found if path.is_file()), None)


def make_own_folder(agent_dir: Path) -> Path:
    """`.evaltui` in the agent's folder, kept out of git and made where there is none. Raises OSError."""
    folder = agent_folder(agent_dir) / OWN_FOLDER
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def is_agent(folder: Path) -> bool:
    """Whether a folder looks like an agent, going by its files: nothing is imported."""
    if (folder / "agent.py").is_file() or (folder / "root_agent.yaml").is_file():
        return True
    try:
        text = (folder / "__init__.py").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(r"\b(root_)?agent\b", text) is not None


def agents_in(folder: Path) -> list[str]:
    """The names of the agents that a folder holds; none where it is an agent itself."""
    if not folder.is_dir() or is_agent(folder):
        return []
    return sorted(one.name for one in subfolders(folder, ("*",)) if is_agent(one))


def parent_of(folder: Path) -> Path:
    """The folder above, also of `.` and `..`."""
    return folder.parent if folder.name not in ("", "..") else folder.resolve().parent


def subfolders(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The folders directly in a folder whose names match a pattern, without hidden ones and dependencies."""
    for one in _children(folder):
        if is_entered(one) and any(one.match(pattern) for pattern in patterns):
            yield one


def json_files(folder: Path) -> list[Path]:
    """The JSON files directly in a folder, sorted."""
    return [file for file in _children(folder) if file.suffix == ".json" and file.is_file()]


def json_files_below(folders: Iterable[Path]) -> Iterator[Path]:
    """The JSON files in folders and everything below; a folder that links to an earlier one is left out."""
    waiting = list(folders)[::-1]
    seen: set[Path] = set()
    while waiting:
        folder = waiting.pop()
        if folder.resolve() in seen:
            continue
        seen.add(folder.resolve())
        yield from json_files(folder)
        waiting += [one for one in _children(folder)[::-1] if is_entered(one)]


def is_entered(one: Path) -> bool:
    """Whether files are looked for in a folder: not in hidden ones, not in dependencies and caches."""
    return one.is_dir() and not one.name.startswith(".") and one.name not in _NEVER_ENTERED


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
