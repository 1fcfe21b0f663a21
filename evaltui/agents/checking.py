"""Finds the packages that an agent imports, without importing it: `bootstrap.py checking AGENT MODULE`.

Prints a line of JSON, see `runner/python_check.py`.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from ..project.folders import env_file, loads_env_file
from .own_code import is_own_code
from .own_modules import use_own_modules

# Files of an agent that are read, at most.
_MAX_FILES = 500
# The names of `evaltui` that need libraries, and these libraries.
_NATIVE = {"Agent", "ScriptedModel", "ToolContext", "Rule"}
_NATIVE_NEEDS = ("google.genai", "pydantic")


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    reads_env = loads_env_file() and env_file(folder) is not None
    # The agent's environment is not set: only what is installed counts.
    os.environ["ADK_DISABLE_LOAD_DOTENV"] = "1"
    use_own_modules(folder, sys.argv[2].partition(":")[0])
    names = dict.fromkeys(_imports(folder))
    if reads_env:
        names["dotenv"] = None
    missing = [name for name in names if _find(name) is None]
    report = {
        "version": sys.version.split()[0],
        "adk": _version_of_adk(),
        "uses_adk": any(f"{name}.".startswith("google.adk.") for name in names),
        "missing": missing,
    }
    sys.stdout.write(f"{json.dumps(report)}\n")


def _version_of_adk() -> str:
    """The version of the google-adk that would be imported; "" where there is none."""
    try:
        return metadata.version("google-adk")
    except metadata.PackageNotFoundError:
        return ""


def _imports(agent: Path) -> Iterator[str]:
    """The modules that the agent's files always import: outside of a `try`, an `if` and a function."""
    if (agent / "root_agent.yaml").is_file():
        yield "google.adk"
    files = [agent] if agent.is_file() else [agent / "__init__.py", agent / "agent.py"]
    waiting = [file for file in files if file.is_file()]
    seen = set(waiting)
    while waiting and len(seen) < _MAX_FILES:
        file = waiting.pop(0)
        for name, own in _imported_by(file, agent):
            if name:
                yield name
            own_file = own if own is not None else _own_file(name)
            if own_file is not None and own_file not in seen:
                seen.add(own_file)
                waiting.append(own_file)


def _imported_by(file: Path, agent: Path) -> Iterator[tuple[str, Path | None]]:
    """The imports of a file: the full name of a module, or "" and the file of a module beside it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        # The error is reported when the file is imported.
        return
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or "", None
            yield from (("", _own_file(f"{node.module}.{alias.name}")) for alias in node.names)
            if node.module == "evaltui" and not _NATIVE.isdisjoint(alias.name for alias in node.names):
                yield from ((name, None) for name in _NATIVE_NEEDS)
        elif isinstance(node, ast.ImportFrom):
            above = file.parents[node.level - 1] if node.level <= len(file.parents) else agent
            base = above.joinpath(*(node.module or "").split("."))
            for place in (base, *(base / alias.name for alias in node.names)):
                for candidate in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                    if candidate.is_file():
                        yield "", candidate


def _own_file(name: str) -> Path | None:
    spec = _find(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin) if is_own_code(spec.origin) else None


def _find(name: str) -> ModuleSpec | None:
    """The spec of a module, or of the library package above it, whose content only the package knows. Nothing
    is imported."""
    parent: ModuleSpec | None = None
    full = ""
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        try:
            spec = (
                find_spec(part)
                if parent is None
                else PathFinder.find_spec(full, list(parent.submodule_search_locations or ()))
            )
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            # A namespace shows all its parts; a package may provide modules that have no file.
            is_namespace = parent is None or (parent.origin is None and parent.submodule_search_locations)
            return None if is_namespace else parent
        parent = spec
        if parent.origin is not None and not is_own_code(parent.origin):
            return parent
    return parent
