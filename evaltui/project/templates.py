"""The agents in evaltui's package: starters and demo."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from evaltui.documents.saving import ChangedOutsideError, Write, save_together
from evaltui.project.folders import SET_SUFFIXES
from evaltui.text.figures import counted, plural

StarterKind = Literal["native", "adk"]
KINDS: tuple[StarterKind, ...] = ("native", "adk")
FRAMEWORKS = {"native": "evaltui.Agent, no framework", "adk": "google-adk"}
INSTALL_ADK = "google-adk is not installed. Run pip install google-adk"

_REMARKS = {
    "agent.py": "the agent, two tools",
    "scripted_llm.py": "the scripted model, offline",
    "test_config.json": "criteria",
}
_TEMPLATES = Path(__file__).parents[1] / "templates"
# Keeps templates from being read as modules of evaltui or as eval sets of a nearby agent.
_SUFFIX, _SET_SUFFIX = ".template", ".set.template"


class TemplateError(Exception):
    """Why an agent cannot be created in a folder; one line."""


def starter_files(kind: StarterKind) -> dict[str, str]:
    """The files of a starter: name to text, the agent first."""
    files = [*_files_in(_TEMPLATES / kind), *_files_in(_TEMPLATES)]
    return _texts(files)


def _texts(files: Iterable[Path]) -> dict[str, str]:
    return {_name_of(path): path.read_text(encoding="utf-8") for path in files}


def _name_of(template: Path) -> str:
    """The name of the file that a template becomes."""
    name = template.name
    if name.endswith(_SET_SUFFIX):
        return name.removesuffix(_SET_SUFFIX) + SET_SUFFIXES[0]
    return name.removesuffix(_SUFFIX)


def _files_in(folder: Path) -> Iterator[Path]:
    files = [path for path in folder.iterdir() if path.is_file()]
    return iter(sorted(files, key=lambda path: (not path.name.startswith("agent."), path.name)))


def remark_of(name: str, text: str) -> str:
    """A remark on a file of a starter; "" where its name is enough."""
    if name.endswith(SET_SUFFIXES):
        return counted(len(json.loads(text)["eval_cases"]), "case")
    return _REMARKS.get(name, "")


def _has_adk() -> bool:
    try:
        return find_spec("google.adk") is not None
    except ModuleNotFoundError:
        return False


def starter_problem(folder: Path, kind: StarterKind) -> str | None:
    """Why a starter cannot be created in a folder; None where it can."""
    if folder.exists() and not folder.is_dir():
        return f"{folder} is a file. Name a folder"
    name = folder.resolve().name
    if "." in name or name in sys.stdlib_module_names:
        what = "contains a dot" if "." in name else f"is a module of Python ({name})"
        return f"{folder}: the folder's name {what} and cannot be imported. Choose another name"
    if there := [name for name in (*starter_files(kind), "root_agent.yaml") if (folder / name).exists()]:
        verb = plural(len(there), "exists", "exist")
        return f"{', '.join(there)} already {verb} in {folder}. Choose another folder"
    return INSTALL_ADK if kind == "adk" and not _has_adk() else None


def create_starter(folder: Path, kind: StarterKind) -> list[Path]:
    """Writes a starter, all of it or nothing; its files. Raises TemplateError."""
    if reason := starter_problem(folder, kind):
        raise TemplateError(reason)
    return _write(folder, starter_files(kind))


def _write(folder: Path, files: dict[str, str]) -> list[Path]:
    writes: Sequence[Write] = [Write(folder / name, text, None) for name, text in files.items()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_together(writes)
    except ChangedOutsideError as error:
        raise TemplateError(f"{error.path} already exists. Nothing was written") from error
    except OSError as error:
        raise TemplateError(f"{folder}: cannot write: {error.strerror or error}") from error
    return [write.path for write in writes]


def create_demo(folder: Path) -> Path:
    """Writes the agent of the demo into a new folder in `folder`; returns it. Raises TemplateError."""
    agent_dir = folder / "order_desk"
    _write(agent_dir, _texts(_files_in(_TEMPLATES / "demo")))
    return agent_dir
