"""The files of an agent and its project that are sent to other machines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from evaltui.files.folders import RECORDINGS
from evaltui.files.import_names import import_name
from evaltui.files.imported_files import ImportedFiles
from evaltui.files.run_settings import PROJECT_FILE

_CACHES = {"__pycache__", "node_modules", RECORDINGS}


def files_to_send(path: Path, root: Path, imported: Collection[Path]) -> tuple[set[Path], set[Path]]:
    """The files of the agent at a resolved path, and of its project at `root` the whole packages that it
    imports; and the modules that are not among them, being outside of the project.

    `imported` are those that a host has imported. Raises OSError.
    """
    files = {path} if path.is_file() else set(_files_below(path))
    code = sorted(file for file in files if file.suffix == ".py")
    # Tools and metrics import some only when they are called.
    modules = {*imported, *ImportedFiles(path).reached(dict.fromkeys([*imported, *code]), path)} - files
    inside = {file for file in modules if file.is_relative_to(root)}
    places = import_name(path).folders
    for package in {_top_level_package(module, root, places) for module in inside}:
        parts = package.relative_to(root).parts
        if package.is_dir() and not _is_environment(package) and not any(map(_is_left_out, parts)):
            files |= set(_files_below(package))
    # What makes packages of the folders above the agent.
    above = (folder / "__init__.py" for folder in path.parents if folder.is_relative_to(root))
    files |= inside | {file for file in (root / PROJECT_FILE, *above) if file.is_file()}
    elsewhere = modules - inside
    # Links may lead to them.
    return files, elsewhere and elsewhere - {file.resolve() for file in files}


def _top_level_package(module: Path, root: Path, places: Collection[Path]) -> Path:
    """The top-level package of a module, as a folder, or the module itself.

    `places` are the folders in which modules are looked for.
    """
    top = module
    while top.parent != root and (top.parent / "__init__.py").is_file():
        top = top.parent
    place = max((folder for folder in places if folder in top.parents), key=lambda folder: len(folder.parts))
    return place / top.relative_to(place).parts[0]


def _files_below(folder: Path, around: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The files below a folder; links are followed, but not to the folders around, `around`."""
    within = around | {folder.resolve()}
    children: list[Path] = []
    # What may not be read is as good as not there, for the agent, too.
    with suppress(OSError):
        children = sorted(folder.iterdir())
    for child in children:
        if _is_left_out(child.name):
            continue
        if child.is_file():
            yield child
        elif child.is_dir() and not _is_environment(child) and child.resolve() not in within:
            yield from _files_below(child, within)


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in _CACHES or name.endswith(".pyc")


def _is_environment(folder: Path) -> bool:
    """Whether a folder is a virtual environment, whatever its name."""
    return (folder / "pyvenv.cfg").is_file()
