"""The import name of an agent, and the folders of its project's modules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .folders import agent_folder, is_entered, project_root

_RELATIVE_IMPORT = re.compile(r"^[ \t]*from[ \t]*(\.+)[ \t]*[\w.]*[ \t]+import\b", re.MULTILINE)
# Folders of one agent that are looked through.
_MAX_FOLDERS = 200


@dataclass(frozen=True)
class ImportName:
    """The name and folders for importing an agent."""

    name: str
    """The name of its package or module: `desk`, `my_app.agents.desk`."""
    first: tuple[Path, ...]
    """Folders that are searched for modules first."""
    last: tuple[Path, ...]
    """Folders that are searched for modules last, as those of a project that is not installed."""
    project: Path | None
    """The root of the project, whose modules and packages come after all others."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """All folders, in their order."""
        return (*self.first, *self.last, *filter(None, [self.project]))


def import_name(agent_dir: Path, module: str = "") -> ImportName:
    """How an agent is imported: as `module`, if it is addressed so, else as `adk web` does, by the name of
    its folder; by its full name where it imports relatively from the packages above the folder."""
    path, own = agent_dir.resolve(), agent_folder(agent_dir.resolve())
    root = import_root(path)
    name = module or (full_name(path) if _imports_from_above(path, root) else _last_name(path))
    project = project_root(own)
    holder = _holder(path, name)
    first = [] if holder is None else [holder]
    if not (own / "__init__.py").is_file():
        # As for a script, its own modules go before libraries; those of a package may be called as they are.
        first.append(own)
    last = [own.parent, own, root, *([project / "src"] if project and (project / "src").is_dir() else [])]
    return ImportName(
        name, tuple(first), tuple(dict.fromkeys(folder for folder in last if folder not in first)), project
    )


def import_root(agent_dir: Path) -> Path:
    """The folder that holds the topmost package of those that an agent is in: the `src` of its project for an
    agent that is in there, else the first folder above the agent without an `__init__.py`."""
    root = agent_dir.resolve().parent
    project = project_root(root)
    while (root / "__init__.py").is_file():
        root = root.parent
    return project / "src" if project is not None and root.is_relative_to(project / "src") else root


def _holder(path: Path, name: str) -> Path | None:
    """The folder that holds the first part of a dotted name; None where the path is called otherwise."""
    parts = name.split(".")
    above = [_last_name(path), *(parent.name for parent in path.parents)][: len(parts)]
    return path.parents[len(parts) - 1] if above[::-1] == parts else None


def full_name(agent_dir: Path) -> str:
    """The dotted name of an agent's package or module as seen from its import root."""
    path = agent_dir.resolve()
    return ".".join([*path.parent.relative_to(import_root(path)).parts, _last_name(path)])


def _last_name(path: Path) -> str:
    return path.stem if path.is_file() else path.name


def _imports_from_above(path: Path, root: Path) -> bool:
    """Whether an agent's modules import relatively from a package that its own name does not tell."""
    if root == path.parent:
        return False
    if path.is_file():
        return _most_dots(path) > 0
    return any(_most_dots(file) > dots for file, dots in _modules_below(path))


def _modules_below(folder: Path) -> Iterator[tuple[Path, int]]:
    """The modules in a folder and below it, each with the number of dots that lead to the folder."""
    for number, (place, folders, names) in enumerate(os.walk(folder)):
        here = Path(place)
        folders[:] = [name for name in folders if number < _MAX_FOLDERS and is_entered(here / name)]
        dots = len(here.relative_to(folder).parts) + 1
        yield from ((here / name, dots) for name in names if name.endswith(".py"))


def _most_dots(file: Path) -> int:
    """The number of dots in the relative import that leads furthest up; 0 for none."""
    text = ""
    with suppress(OSError):
        text = file.read_text(encoding="utf-8", errors="replace")
    return max(map(len, _RELATIVE_IMPORT.findall(text)), default=0)
