"""An agent and its project as one archive, to be run on machines that do not have its folder."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evaltui.project.agent_files import is_source, used_files
from evaltui.project.folders import ENV_NAME, RECORDINGS, agent_folder, project_root
from evaltui.project.import_names import import_name, import_root
from evaltui.project.modules import ImportedFiles
from evaltui.project.run_settings import PROJECT_FILE
from evaltui.text.figures import short_list, show_size

# Bytes of a file: such are models and data, which machines have by other ways; and of all files.
LARGE = 50_000_000
MUCH = 100_000_000
# So that the same files make the same archive.
_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bundle:
    """The files of an agent, with imported files of its project, for sending."""

    archive: bytes
    """A zip."""
    agent: str
    """The agent's folder or file in it."""
    folder: str | None = None
    """The folder in the bundle where the run starts; None for a folder outside of it."""
    notes: tuple[str, ...] = ()
    """Remarks for the user on its content, as clauses."""

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.archive).hexdigest()

    def unpack(self, folder: Path) -> None:
        """Write its files, unless the folder is there. Raises OSError; then nothing is left."""
        with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as temporary:
            whole = Path(temporary, folder.name)
            with zipfile.ZipFile(io.BytesIO(self.archive)) as source:
                for entry in source.infolist():
                    Path(source.extract(entry, whole)).chmod(entry.external_attr >> 16)
            # Another run may have written it meanwhile.
            if not folder.exists():
                whole.rename(folder)


def bundle_of(agent_dir: Path, imported: Collection[Path], opened: Collection[Path] = ()) -> Bundle:
    """The archive of an agent's folder or file, without hidden files, caches, recordings and virtual
    environments; `imported` are the modules of the user's that a host has imported, `opened` the files that
    it has opened. Raises OSError."""
    path = agent_dir.resolve()
    root = project_root(agent_folder(path)) or import_root(path)
    files, elsewhere = files_to_send(path, root, [module.resolve() for module in sorted(imported)])
    sizes = {file.relative_to(root).as_posix(): file.stat().st_size for file in sorted(files)}
    small = {name: size for name, size in sizes.items() if size <= LARGE}
    notes = [*_notes(root, small, sorted(sizes.keys() - small.keys()), sorted(map(str, elsewhere)))]
    notes += _notes_on_opened(path, files, opened)
    agent = path.relative_to(root).as_posix()
    return Bundle(_archive(root, small), agent, _current_folder(root, small), tuple(notes))


def _notes_on_opened(path: Path, sent: Collection[Path], opened: Collection[Path]) -> Iterator[str]:
    """A remark on files that the agent has opened here and that are not sent, such as hidden ones."""
    there = {file.resolve() for file in sent}
    names = [name for name, file in used_files(path, opened).items() if file.is_file() and file not in there]
    if unsent := sorted(name for name in names if not is_source(name) and Path(name).name != ENV_NAME):
        yield f"opened here, and not sent to workers: {short_list(unsent)}"


def _current_folder(root: Path, names: Collection[str]) -> str | None:
    # It may have been removed.
    with suppress(FileNotFoundError):
        here = Path.cwd()
        if here.is_relative_to(root) and any((root / name).is_relative_to(here) for name in names):
            return here.relative_to(root).as_posix()
    return None


def _notes(root: Path, sent: Mapping[str, int], too_large: list[str], elsewhere: list[str]) -> Iterator[str]:
    if too_large:
        yield f"not sent to workers, larger than {LARGE // 1_000_000} MB: {', '.join(too_large)}"
    if elsewhere:
        yield f"not sent to workers, outside of the project: {short_list(elsewhere)}"
    if (total := sum(sent.values())) > MUCH:
        yield (
            f"sent to each worker: {show_size(total)}, most of it in {root.name / _fullest_folder(sent)}. "
            "Hidden folders are not sent"
        )


def _fullest_folder(sizes: Mapping[str, int]) -> PurePosixPath:
    """The innermost folder that holds more than half of the bytes."""
    below: Counter[PurePosixPath] = Counter()
    for name, size in sizes.items():
        for folder in PurePosixPath(name).parents:
            below[folder] += size
    half = sum(sizes.values()) / 2
    return max((folder for folder in below if below[folder] > half), key=lambda folder: len(folder.parts))


def _archive(root: Path, names: Collection[str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            path, entry = root / name, zipfile.ZipInfo(name, _TIME)
            # A script of the agent's can be started there, too.
            entry.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


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
    """Whether a folder is a virtual environment, under any name."""
    return (folder / "pyvenv.cfg").is_file()
