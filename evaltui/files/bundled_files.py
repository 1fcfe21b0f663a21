"""Which files of an agent and of its project are sent to other machines."""

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
    found = {path} if path.is_file() else set(_files_below(path))
    code = sorted(one for one in found if one.suffix == ".py")
    # Tools and metrics import some only when they are called.
    modules = {*imported, *ImportedFiles(path).reached(dict.fromkeys([*imported, *code]), path)} - found
    inside = {one for one in modules if one.is_relative_to(root)}
    places = import_name(path).folders
    for package in {_whole(one, root, places) for one in inside}:
        parts = package.relative_to(root).parts
        if package.is_dir() and not _is_environment(package) and not any(map(_is_left_out, parts)):
            found |= set(_files_below(package))
    # What makes packages of the folders above the agent.
    above = (one / "__init__.py" for one in path.parents if one.is_relative_to(root))
    found |= inside | {one for one in (root / PROJECT_FILE, *above) if one.is_file()}
    elsewhere = modules - inside
    # Links may lead to them.
    return found, elsewhere and elsewhere - {one.resolve() for one in found}


def _whole(module: Path, root: Path, places: Collection[Path]) -> Path:
    """What has the first part of a module's full name: the folder of a package, or the module itself.

    `places` are the folders in which modules are looked for.
    """
    top = module
    while top.parent != root and (top.parent / "__init__.py").is_file():
        top = top.parent
    place = max((one for one in places if one in top.parents), key=lambda one: len(one.parts))
    return place / top.relative_to(place).parts[0]


def _files_below(folder: Path, around: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Links are followed, but for those to folders that they are in: these are `around`."""
    within = around | {folder.resolve()}
    children: list[Path] = []
    # What may not be read is as good as not there, for the agent, too.
    with suppress(OSError):
        children = sorted(folder.iterdir())
    for one in children:
        if _is_left_out(one.name):
            continue
        if one.is_file():
            yield one
        elif one.is_dir() and not _is_environment(one) and one.resolve() not in within:
            yield from _files_below(one, within)


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in _CACHES or name.endswith(".pyc")


def _is_environment(folder: Path) -> bool:
    """Whether a folder is a virtual environment, whatever its name."""
    return (folder / "pyvenv.cfg").is_file()
