"""The agents of a project, a workspace or a folder, recognised without importing them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from evaltui.core.model.json_values import value_at
from evaltui.project.folders import has_agent_file, is_entered, is_of_tests, is_project, subfolders
from evaltui.project.settings import tables_in

# Of a project, however its packages are nested; and of a folder that is none and holds everything.
_DEPTH = 4
_MAX_FOLDERS = 2_000


def agents_in(folder: Path) -> list[str]:
    """The agents in a folder, as paths in it (`shopbot`, `src/shopbot`); none where it is an agent itself.

    In a project, agents of deeper folders count only without agents above. Members of a uv workspace count,
    and, in a folder without agents of its own, each project in it.
    """
    if not folder.is_dir() or is_agent(folder):
        return []
    agents = _Search().agents_in(folder)
    return sorted(agent.relative_to(folder).as_posix() for agent in agents)


def agents_named(name: str, agents: Sequence[str]) -> list[str]:
    """The agents for a name: a path of `agents_in`, or the end of one (`shopbot`), with dots or slashes."""
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
        self._left = _MAX_FOLDERS

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
    tables = tables_in(folder / "pyproject.toml")
    excluded = set(_matching(folder, value_at(tables, ("tool", "uv", "workspace", "exclude"))))
    members = _matching(folder, value_at(tables, ("tool", "uv", "workspace", "members")))
    return sorted(
        {member for member in members if (member / "pyproject.toml").is_file()} - excluded - {folder}
    )


def _matching(folder: Path, patterns: object) -> Iterator[Path]:
    """The folders that match the glob patterns of a workspace; none for invalid patterns."""
    for pattern in patterns if isinstance(patterns, list) else []:
        with suppress(ValueError, NotImplementedError, TypeError, AttributeError):
            for match in folder.glob(pattern.rstrip("/")):
                within = match.relative_to(folder)
                if all(is_entered(folder / above) for above in (within, *within.parents[:-1])):
                    yield match


_ROOTS = {"root_agent", "get_agent_async"}
_WORD = re.compile(r"\b(root_agent|get_agent_async|agent|app)\b|import \*")


def is_agent(folder: Path) -> bool:
    """Whether a folder has an agent's file, or its `__init__.py` defines or imports `root_agent`,
    `get_agent_async`, an App as `app`, or a module `agent` with one of them.

    A module `agent` of another package is taken for one, but in a folder of tests.
    """
    if has_agent_file(folder):
        return True
    file = folder / "__init__.py"
    if (text := _text(file)) is None or not _WORD.search(text):
        return False
    try:
        nodes = list(_statements(ast.parse(text).body))
    except (SyntaxError, ValueError):
        # It is being edited.
        return not is_of_tests(folder) or "root_agent" in text
    return _has_root(nodes, text) or any(_imports_agent(node, folder) for node in nodes)


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those in an `if`, a `try` or a `with` included."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _has_root(nodes: list[ast.stmt], text: str) -> bool:
    for node in nodes:
        names = set(_names(node))
        if names & _ROOTS or ("app" in names and _makes_app(node)):
            return True
        if "__getattr__" in names and "root_agent" in text:
            return True
    return False


def _names(node: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (
                inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)
            )
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)


def _makes_app(node: ast.stmt) -> bool:
    """Whether a statement calls `App`: web frameworks have an `app` of another class."""
    match node:
        case ast.Assign(value=ast.Call(func=made)) | ast.AnnAssign(value=ast.Call(func=made)):
            return (made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")) == "App"
    return False


def _imports_agent(node: ast.stmt, folder: Path) -> bool:
    """Whether a statement imports a module `agent` that offers an agent, or all names of one that does."""
    if not isinstance(node, ast.ImportFrom) or node.level != 1:
        return (
            "agent" in _names(node)
            and isinstance(node, ast.Import | ast.ImportFrom)
            and not is_of_tests(folder)
        )
    parts = node.module.split(".") if node.module else []
    base = folder.joinpath(*parts)
    modules = [folder / "agent"] if parts[:1] == ["agent"] else []
    modules += [base / alias.name for alias in node.names if (alias.asname or alias.name) == "agent"]
    modules += [base] if parts and any(alias.name == "*" for alias in node.names) else []
    return any(map(_module_has_root, modules))


def _module_has_root(module: Path) -> bool:
    for file in (module / "__init__.py", module.with_name(f"{module.name}.py")):
        if (text := _text(file)) is not None:
            try:
                return _has_root(list(_statements(ast.parse(text).body)), text)
            except (SyntaxError, ValueError):
                return True
    return False
