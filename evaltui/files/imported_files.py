"""The modules of a project that an agent imports from outside of its folder, going by their text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from evaltui.files.folders import agent_folder, is_entered, project_root
from evaltui.files.projects import workspace_members

_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+(?P<modules>[^\n#;]+)"
    r"|from[ \t]+(?P<dots>\.*)[ \t]*(?P<source>[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#;]*))",
    re.MULTILINE,
)
_NAME = re.compile(r"(?:^|[,(])\s*([\w.]+)")
# Modules that are looked at; and characters of one.
_MOST_FILES = 500
_MOST_CHARACTERS = 1_000_000


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
        self._imports: dict[Path, tuple[tuple[int, int], list[_Import]]] = {}

    def outside(self, inside: Iterable[Path]) -> list[Path]:
        """The files outside of the agent's folder, sorted; `inside` are the modules in it."""
        return self.reached(inside, agent_folder(self._agent_dir).resolve())

    def reached(self, modules: Iterable[Path], known_place: Path) -> list[Path]:
        """The files that modules import, also indirectly, sorted; none in `known_place`."""
        files: dict[Path, None] = {}
        waiting = [path.resolve() for path in islice(modules, _MOST_FILES)]
        unknown: set[str] = set()
        while waiting and len(files) < _MOST_FILES:
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
            stat = module.stat()
            stamp = stat.st_mtime_ns, stat.st_size
            before, imports = self._imports.get(module, (None, []))
            if before != stamp:
                text = module.read_text(encoding="utf-8", errors="replace")[:_MOST_CHARACTERS]
                imports = list(_imports_in(text))
                self._imports[module] = stamp, imports
        except OSError:
            return []
        return imports

    @cached_property
    def _folders(self) -> Sequence[Path]:
        """The folders of the project's modules, and of those of other projects in its workspace."""
        from evaltui.files.import_names import import_name

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
            names = [_Import(0, tuple(name.split("."))) for name in _NAME.findall(match["modules"])]
        else:
            source = tuple(filter(None, match["source"].split(".")))
            # A name may be that of a module.
            names = [
                _Import(len(match["dots"]), source),
                *(_Import(len(match["dots"]), (*source, name)) for name in _NAME.findall(match["names"])),
            ]
        yield from (
            imported
            for imported in names
            if imported.parts and all(imported.parts) and not _is_of_python(imported)
        )


def _is_of_python(imported: _Import) -> bool:
    return not imported.dots and imported.parts[0] in sys.stdlib_module_names


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
