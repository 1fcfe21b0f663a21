"""Folders that are agents, recognised by their files and source, without importing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from evaltui.files.folders import has_agent_file, is_of_tests

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
