"""Modules of a project, located without importing them: by a dotted name, and by the imports of an agent."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from evaltui.documents.files import Stamp, stamp_in
from evaltui.documents.own_folder import path_inside
from evaltui.project.agents import agents_in, workspace_members
from evaltui.project.folders import agent_folder, is_entered, project_root, subfolders
from evaltui.project.import_names import full_name, import_name
from evaltui.project.packages import site_packages
from evaltui.text.figures import short_list
from evaltui.text.values import did_you_mean

_DOTTED_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*(\.[^\W\d]\w*)*)?")
# Seconds.
_PATIENCE = 10.0
_ASK = """\
import importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
found = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin]
print(json.dumps([one for one in found if isinstance(one, str)]))
"""


class ModuleNotThereError(ValueError):
    """A module does not exist; the message is a sentence."""


def find_module(name: str, python: Path | None, here: Path = Path(), *, starts: bool = True) -> Path:
    """The folder of a package, or the file of a module, that a dotted name or `name:attribute` means.

    Looked through are a folder (`here`, the current one) with its project and workspace, then the packages of
    a Python, None for evaltui's own; what they do not show, that Python is started to say unless `starts` is
    False. Raises ModuleNotThereError.
    """
    if not _DOTTED_NAME.fullmatch(name):
        hint = ". Give a path without -m" if "/" in name or name.endswith(".py") else ""
        raise ModuleNotThereError(f"{name!r} is not a dotted name such as my_app.agents.desk{hint}")
    parts = name.partition(":")[0].split(".")
    roots, installed = list(_roots(here)), _installed_for(python)
    if (path := _located(parts, roots, installed, python, starts=starts)) is not None:
        return path
    searched = short_list([path_inside(here, root) or str(root) for root in roots], 4)
    module = ".".join(parts)
    hint = did_you_mean(module, _near([*roots, *installed], parts)) or did_you_mean(module, _agents(here))
    raise ModuleNotThereError(
        f"no module {module}; searched in {searched}, and in the packages of {python or sys.executable}{hint}"
    )


def _located(
    parts: list[str],
    roots: Sequence[Path],
    installed: Sequence[Path],
    python: Path | None,
    *,
    starts: bool,
) -> Path | None:
    path = _found_in(roots, parts) or _found_in(installed, parts)
    if path is None and (starts or python is None):
        path = _located_by_python(python or Path(sys.executable), parts)
    return path


def _installed_for(python: Path | None) -> list[Path]:
    # Paths that this process has added since its start count, too.
    search_path = map(Path, sys.path) if python is None else ()
    return [*search_path, *_installed_roots(python or Path(sys.executable))]


def module_spellings(name: str, folder: Path) -> Iterator[str]:
    """The dotted names that a module's name means for an agent in a folder."""
    yield name
    head, _, rest = name.partition(".")
    if head == "agent":
        # `adk eval` knows the agent's package under this name.
        yield f"{folder.name}.{rest}" if rest else folder.name


def folders_above(name: str, folder: Path) -> Iterator[Path]:
    """Folders above the agent's, for a path that starts further up: `agents.my_agent.metrics`."""
    head = name.partition(".")[0]
    return (parent.parent for parent in folder.parents if parent.name == head)


def function_module(name: str, agent_dir: Path, python: Path | None = None) -> Path | None:
    """The file of the module in `module:function`, as the host of an agent imports it; None where it is not
    found without starting `python`, the agent's, None for evaltui's."""
    module, folder = name.partition(":")[0], agent_folder(agent_dir).resolve()
    if (file := module_near(module, folder)) is not None:
        return file
    if not _DOTTED_NAME.fullmatch(module):
        return None
    path = _located(module.split("."), [*_roots(folder)], _installed_for(python), python, starts=False)
    return None if path is None else _file_of(path)


def module_near(module: str, folder: Path) -> Path | None:
    """The file of a module in an agent's folder or in the packages around that; None for one elsewhere."""
    for spelling in module_spellings(module, folder):
        roots = [folder, *import_name(folder).folders, *folders_above(spelling, folder)]
        path = _found_in(roots, spelling.split("."))
        if path is not None and (file := _file_of(path)) is not None:
            return file
    return None


def _file_of(path: Path) -> Path | None:
    file = path / "__init__.py" if path.is_dir() else path
    return file if file.is_file() else None


def lacks_function(file: Path, function: str) -> bool:
    """Whether a module surely has no such function: its text has no such name, and makes none at runtime."""
    try:
        text = file.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return False
    # A name that occurs anywhere may be bound.
    return not (
        re.search(rf"\b({re.escape(function)}|__getattr__|globals|exec|setattr)\b", text)
        or any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes)
    )


def _roots(here: Path) -> Iterator[Path]:
    """The folders in which a project may keep its packages, without those that are not there."""
    root = project_root(here)
    bases = [] if root is None else [root, *(parent for parent in root.parents if workspace_members(parent))]
    projects = [here, *bases, *(member for base in bases for member in workspace_members(base))]
    places = (place for project in projects for place in (project, project / "src"))
    yield from {place.resolve(): None for place in places if place.is_dir()}


def _installed_roots(python: Path) -> list[Path]:
    """Where the packages of a Python are, with the folders that its `.pth` files add."""
    roots: list[Path] = []
    for packages in site_packages(python):
        roots.append(packages)
        for file in sorted(packages.glob("*.pth")):
            with suppress(OSError):
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
                paths = (line.strip() for line in lines if not line.startswith(("#", "import ", "import\t")))
                roots += [packages / path for path in paths if path and (packages / path).is_dir()]
    return roots


def _found_in(roots: Sequence[Path], parts: list[str]) -> Path | None:
    """The package or module in the first folder that has it; a folder without `__init__.py` comes last."""
    plain: list[Path] = []
    for root in roots:
        path = root.joinpath(*parts)
        if (path / "__init__.py").is_file():
            return path
        if (file := path.with_name(f"{path.name}.py")).is_file():
            return file
        plain += [path] if path.is_dir() else []
    return plain[0] if plain else None


def _located_by_python(python: Path, parts: list[str]) -> Path | None:
    """The package or module as that Python locates it, for installs of every kind; it is not imported."""
    command = [str(python), "-P", "-c", _ASK, parts[0]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        places = json.loads(done.stdout.splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
    return _below(places, parts[1:])


def _below(places: list[str], parts: list[str]) -> Path | None:
    """The module with a dotted name in a package at one of these places; the package for an empty name."""
    for place in map(Path, places):
        if not parts and place.exists():
            return place.parent if place.name == "__init__.py" else place
        if parts and place.is_dir() and (path := _found_in([place], parts)) is not None:
            return path
    return None


def _near(roots: Sequence[Path], parts: list[str]) -> list[str]:
    """The names of existing modules that differ only in the first part that does not exist."""
    depth = next(count for count in range(len(parts)) if _found_in(roots, parts[: count + 1]) is None)
    package = _found_in(roots, parts[:depth]) if depth else None
    names = [name for folder in (roots if package is None else [package]) for name in _names_in(folder)]
    near = ([*parts[:depth], name, *parts[depth + 1 :]] for name in names)
    return [".".join(candidate) for candidate in near if _found_in(roots, candidate) is not None]


def _names_in(folder: Path) -> list[str]:
    return [
        *(child.name for child in subfolders(folder, ("*",))),
        *(child.stem for child in folder.glob("*.py")),
    ]


def _agents(here: Path) -> list[str]:
    """The dotted names of the agents in a folder's project, and in those of its workspace."""
    root = project_root(here) or here
    base = next((parent for parent in root.parents if workspace_members(parent)), root)
    return [full_name(base / agent) for agent in agents_in(base)]


_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+(?P<modules>[^\n#;]+)"
    r"|from[ \t]+(?P<dots>\.*)[ \t]*(?P<source>[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#;]*))",
    re.MULTILINE,
)
_IMPORTED_NAME = re.compile(r"(?:^|[,(])\s*([\w.]+)")
# Modules that are looked at; and characters of one.
_MAX_FILES = 500
_MAX_CHARACTERS = 1_000_000


class _Import(NamedTuple):
    """An import statement: the number of packages up (0 for none), and the parts of the name."""

    dots: int
    parts: tuple[str, ...]


class ImportedFiles:
    """Finds the files again and again; a module that was not written meanwhile is read only once.

    What is imported in other ways than by a statement is not among them, nor is what is installed.
    """

    def __init__(self, agent_dir: Path) -> None:
        self._agent_dir = agent_dir
        self._imports: dict[Path, tuple[Stamp, list[_Import]]] = {}

    def outside(self, inside: Iterable[Path]) -> list[Path]:
        """The files outside of the agent's folder, sorted; `inside` are the modules in it."""
        return self.reached(inside, agent_folder(self._agent_dir).resolve())

    def reached(self, modules: Iterable[Path], known_place: Path) -> list[Path]:
        """The files that modules import, also indirectly, sorted; none in `known_place`."""
        files: dict[Path, None] = {}
        waiting = [path.resolve() for path in islice(modules, _MAX_FILES)]
        unknown: set[str] = set()
        while waiting and len(files) < _MAX_FILES:
            module = waiting.pop()
            for imported in self._imports_of(module):
                if not imported.dots and imported.parts[0] in unknown:
                    continue
                paths = self._files_of(module, imported)
                if not paths and not imported.dots and not self._has_folder(imported.parts[0]):
                    unknown.add(imported.parts[0])
                new = [path for path in paths if path not in files and not path.is_relative_to(known_place)]
                files |= dict.fromkeys(new)
                waiting += new
        return sorted(files)

    def _imports_of(self, module: Path) -> list[_Import]:
        try:
            stamp = stamp_in(module.stat())
            before, imports = self._imports.get(module, (None, []))
            if before != stamp:
                text = module.read_text(encoding="utf-8", errors="replace")[:_MAX_CHARACTERS]
                imports = list(_imports_in(text))
                self._imports[module] = stamp, imports
        except OSError:
            return []
        return imports

    @cached_property
    def _folders(self) -> Sequence[Path]:
        """The folders of the project's modules, and of those of other projects in its workspace."""
        own = import_name(self._agent_dir).folders
        root = project_root(agent_folder(self._agent_dir)) or Path()
        members = [member for base in (root, *root.parents) for member in workspace_members(base)]
        places = (*own, *(place.resolve() for member in members for place in (member / "src", member)))
        return [
            place for place in dict.fromkeys(places) if place.is_dir() and "site-packages" not in place.parts
        ]

    def _has_folder(self, name: str) -> bool:
        return any((place / name).is_dir() for place in self._folders)

    def _files_of(self, module: Path, imported: _Import) -> list[Path]:
        """The files that an import runs, as far as the project has them."""
        if imported.dots:
            package = module.parents[min(imported.dots, len(module.parents)) - 1]
            own = [path for path in [package / "__init__.py"] if path.is_file()]
            return [*own, *_files_below(package, imported.parts)]
        return next(
            (files for folder in self._folders if (files := _files_below(folder, imported.parts))), []
        )


def _imports_in(text: str) -> Iterator[_Import]:
    for match in _IMPORT.finditer(text):
        if match["modules"] is not None:
            names = [_Import(0, tuple(name.split("."))) for name in _IMPORTED_NAME.findall(match["modules"])]
        else:
            source = tuple(filter(None, match["source"].split(".")))
            # A name may be that of a module.
            names = [
                _Import(len(match["dots"]), source),
                *(
                    _Import(len(match["dots"]), (*source, name))
                    for name in _IMPORTED_NAME.findall(match["names"])
                ),
            ]
        yield from (
            imported
            for imported in names
            if imported.parts
            and all(imported.parts)
            and (imported.dots or imported.parts[0] not in sys.stdlib_module_names)
        )


def _files_below(folder: Path, parts: Sequence[str]) -> list[Path]:
    """The files of the packages on the way to a dotted name, and of the module at its end."""
    files: list[Path] = []
    for number, part in enumerate(parts):
        here = folder.joinpath(*parts[: number + 1])
        if (here / "__init__.py").is_file():
            files.append(here / "__init__.py")
        elif (module := here.with_name(f"{part}.py")).is_file():
            return [*files, module]
        elif not is_entered(here):
            return files
    return files
