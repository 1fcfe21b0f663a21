"""The agents of a project, a workspace or a folder, found by their files alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from evaltui.core.model.json_values import value_at
from evaltui.files.folders import is_entered, is_of_tests, is_project, subfolders
from evaltui.files.root_agents import is_agent
from evaltui.files.settings import read_toml

# Of a project, however its packages are nested; and of a folder that is none and holds everything.
_DEPTH = 4
_MOST_FOLDERS = 2_000


def agents_in(folder: Path) -> list[str]:
    """The agents that a folder holds, as paths in it (`shopbot`, `src/shopbot`); none where it is one itself.

    Of one project those in folders of folders only where there are none above. Of a uv workspace also those
    of its members, and of a folder without agents of its own those of each project in it.
    """
    if not folder.is_dir() or is_agent(folder):
        return []
    agents = _Search().agents_in(folder)
    return sorted(agent.relative_to(folder).as_posix() for agent in agents)


def agents_named(name: str, agents: Sequence[str]) -> list[str]:
    """The agents that a name may mean: one as `agents_in` has it, or the end of one (`shopbot`); dots may
    stand for slashes."""
    if name in agents:
        return [name]
    parts = PurePosixPath(name).parts
    dotted = tuple(name.split("."))
    return [agent for agent in agents if _ends_with(agent, parts) or _ends_with(agent, dotted)]


def _ends_with(path: str, parts: Sequence[str]) -> bool:
    return bool(parts) and PurePosixPath(path).parts[-len(parts) :] == tuple(parts)


class _Search:
    """A search that gives up after a number of folders."""

    def __init__(self) -> None:
        self._left = _MOST_FOLDERS

    def agents_in(self, folder: Path) -> set[Path]:
        members = workspace_members(folder)
        agents, projects = self._of_project(folder, members)
        for project in members or (projects if all(map(is_project, agents)) else []):
            if self._left > 0:
                agents |= {project} if is_agent(project) else self.agents_in(project)
        return agents

    def _of_project(self, folder: Path, members: Sequence[Path]) -> tuple[set[Path], list[Path]]:
        """The agents of a folder itself, and the other projects that were met before they were found."""
        level, projects = [folder], list[Path]()
        for _ in range(_DEPTH):
            inner = [
                child for parent in level for child in subfolders(parent, ("*",)) if child not in members
            ]
            self._left -= len(inner)
            projects += filter(is_project, inner)
            if agents := {child for child in inner if is_agent(child)}:
                return agents, projects
            level = [child for child in inner if not (is_of_tests(child) or is_project(child))]
            if self._left <= 0:
                break
        return set(), projects


def workspace_members(folder: Path) -> list[Path]:
    """The projects in a folder that are members of the uv workspace that it is the root of, sorted."""
    try:
        tables = read_toml(folder / "pyproject.toml")
    except ValueError:
        return []
    excluded = set(_matching(folder, value_at(tables, ("tool", "uv", "workspace", "exclude"))))
    members = _matching(folder, value_at(tables, ("tool", "uv", "workspace", "members")))
    return sorted(
        {member for member in members if (member / "pyproject.toml").is_file()} - excluded - {folder}
    )


def _matching(folder: Path, patterns: object) -> Iterator[Path]:
    """The folders that glob patterns of a workspace mean; those that cannot be read mean none."""
    for pattern in patterns if isinstance(patterns, list) else []:
        with suppress(ValueError, NotImplementedError, TypeError, AttributeError):
            for match in folder.glob(pattern.rstrip("/")):
                within = match.relative_to(folder)
                if all(is_entered(folder / above) for above in (within, *within.parents[:-1])):
                    yield match
