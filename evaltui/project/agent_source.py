"""An agent's source, read without importing it: its framework, its model and the lines of its parts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from evaltui.core.model.errors import ErrorInfo
from evaltui.documents.own_folder import path_inside
from evaltui.project.agent_files import folders_of
from evaltui.project.folders import agent_folder
from evaltui.project.workspace import is_set, set_files

_FRAME = re.compile(r'^\s*File "(?P<path>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_YAML_MODEL = re.compile(r"^model:\s*['\"]?([^'\"\s#]+)", re.MULTILINE)
_ROOTS = ("root_agent", "app", "get_agent_async")
# A single file may lie in a folder that holds everything its user has.
_MAX_FILES = 500


class SourcePlace(NamedTuple):
    """A line of a file."""

    path: Path
    line: int
    """1-based."""

    def shown(self, agent_dir: Path) -> str:
        """The place as text, relative to the agent's folder if it is inside: `agent.py:12`."""
        name = path_inside(agent_folder(agent_dir), self.path) or str(self.path.resolve())
        return f"{name}:{self.line}"


@dataclass(frozen=True)
class AgentFacts:
    """Facts from the source of an agent without importing it; "" for unknown ones."""

    framework: str = ""
    model: str = ""
    sets: int = 0
    """The number of its eval sets."""
    problem: str = ""
    """Why its source cannot be read; "" where it can."""


def agent_facts(agent_dir: Path) -> AgentFacts:
    """Framework and model, going by imports and arguments, and the number of eval sets."""
    sets = len({path.resolve() for path in set_files(agent_dir) if is_set(path)})
    for _, tree in _trees([path for path in _main_files(agent_dir) if path.is_file()]):
        if framework := _framework(tree):
            return AgentFacts(framework, _model(tree), sets)
    with suppress(OSError, UnicodeDecodeError):
        match = _YAML_MODEL.search((agent_dir / "root_agent.yaml").read_text(encoding="utf-8"))
        return AgentFacts("ADK agent", match[1] if match else "", sets)
    return AgentFacts(sets=sets, problem=_problem(agent_dir))


def _problem(agent_dir: Path) -> str:
    """The first syntax problem in an agent's files: `agent.py:1: invalid syntax`; "" for none."""
    for path in _main_files(agent_dir):
        try:
            if path.is_file():
                ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            return f"{path.name}:{error.lineno}: {error.msg}"
        except (OSError, ValueError) as error:
            return f"{path.name}: {error}"
    return ""


def _main_files(agent_dir: Path) -> list[Path]:
    if agent_dir.is_file():
        return [agent_dir]
    return [agent_dir / "agent.py", agent_dir / "__init__.py"]


def _trees(paths: list[Path]) -> Iterator[tuple[Path, ast.Module]]:
    for path in paths:
        with suppress(OSError, ValueError, SyntaxError):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


# By what their agents import.
_FRAMEWORKS = {
    "google.adk": "ADK agent",
    "agents": "OpenAI agent",
    "pydantic_ai": "Pydantic AI agent",
    "langgraph": "LangGraph graph",
    "langchain": "LangGraph graph",
    "evaltui": "native agent",
}


def _framework(tree: ast.Module) -> str:
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    for home, framework in _FRAMEWORKS.items():
        if any(f"{name}.".startswith(f"{home}.") for name in modules):
            return framework
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return "function" if any(isinstance(n, functions) and n.name == "root_agent" for n in tree.body) else ""


def _model(tree: ast.Module) -> str:
    """The model of the last agent in a file: the root agent stands below those that it needs."""
    constants = {
        target.id: str(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = sorted((n for n in ast.walk(tree) if isinstance(n, ast.Call)), key=lambda n: -n.lineno)
    for value in (word.value for call in calls for word in call.keywords if word.arg == "model"):
        match value:
            case ast.Constant(value=str(name)):
                return name
            case ast.Name(id=name) if name in constants:
                return constants[name]
            case ast.Call(func=ast.Name(id=name)):
                return "scripted model" if name.startswith("Scripted") else name
    return ""


# Places


def root_place(agent_dir: Path) -> SourcePlace | None:
    """The line that defines the root agent; None where no file of the agent does."""
    for path, tree in _trees(_main_files(agent_dir)):
        for node in tree.body:
            if _names(node) & set(_ROOTS):
                return SourcePlace(path, node.lineno)
    yaml = agent_dir / "root_agent.yaml"
    return SourcePlace(yaml, 1) if yaml.is_file() else None


def _names(node: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def instruction_place(agent_dir: Path, agent_name: str) -> SourcePlace | None:
    """Where the instruction of an agent stands, or else the agent; None where no file names it."""
    for path, tree in _trees(_own_files(agent_dir)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                words = {word.arg: word.value for word in node.keywords}
                name = words.get("name")
                if isinstance(name, ast.Constant) and name.value == agent_name:
                    return SourcePlace(path, words.get("instruction", node).lineno)
    return None


def function_place(agent_dir: Path, name: str) -> SourcePlace | None:
    """Where a function of this name is defined in the agent's folder."""
    for path, tree in _trees(_own_files(agent_dir)):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                return SourcePlace(path, node.lineno)
    return None


def frame_place(agent_dir: Path, traceback: str) -> SourcePlace | None:
    """The innermost frame of a traceback in the agent's folder; None where none is in there."""
    return next((place for place in frames_of(traceback)[::-1] if is_own(agent_dir, place)), None)


def error_line(agent_dir: Path, error: ErrorInfo) -> SourcePlace | None:
    """The line of the agent's code for an error, by its traceback or place; None for an error elsewhere."""
    if place := frame_place(agent_dir, error.traceback):
        return place
    name, _, line = error.where.partition(" in ")[0].rpartition(":")
    place = SourcePlace(agent_folder(agent_dir).resolve() / name, int(line) if line.isdecimal() else 0)
    return place if name and place.line and is_own(agent_dir, place) else None


def frames_of(traceback: str) -> list[SourcePlace]:
    """The places in the frames of a traceback, in order, with existing or missing files."""
    return [SourcePlace(Path(frame["path"]), int(frame["line"])) for frame in _FRAME.finditer(traceback)]


def is_own(agent_dir: Path, place: SourcePlace) -> bool:
    """Whether a place is in a file of the agent's folder."""
    return place.path.is_relative_to(agent_folder(agent_dir).resolve()) and place.path.is_file()


def _own_files(agent_dir: Path) -> list[Path]:
    main = _main_files(agent_dir)
    others = [path for folder in folders_of(agent_folder(agent_dir)) for path in sorted(folder.glob("*.py"))]
    return [*main, *(path for path in others if path not in main)][:_MAX_FILES]


def source_lines(place: SourcePlace, count: int = 6) -> list[tuple[int, str]]:
    """Lines around a place with their numbers; [] for an unreadable file."""
    try:
        lines = place.path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    first = max(0, min(place.line - 1 - count // 2, len(lines) - count))
    return [(number + 1, lines[number]) for number in range(first, min(first + count, len(lines)))]
