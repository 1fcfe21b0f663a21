"""An agent as one archive, to be run on machines that do not have its folder."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp

from evaltui.files.folders import RECORDINGS, agent_folder, project_root
from evaltui.files.import_names import import_root
from evaltui.files.run_settings import PROJECT_FILE

# Bytes. Such files are models and data, which machines have by other ways.
LARGE = 50_000_000
_CACHES = {"__pycache__", "node_modules", RECORDINGS}
# So that the same files make the same archive.
_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bundle:
    """The files of an agent, and of its project what it imports."""

    archive: bytes
    """A zip."""
    agent: str
    """The agent's folder or file in it."""
    too_large: tuple[str, ...] = ()
    """Files that are left out for their size."""
    elsewhere: tuple[str, ...] = ()
    """Modules that the agent imports from outside of its project, which are not in it."""

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.archive).hexdigest()

    def unpack(self, below: Path) -> Path:
        """The agent's folder or file, in a folder that is named by the fingerprint; it is there once for all
        processes of a machine. Raises OSError."""
        folder = below / self.fingerprint[:32]
        if not folder.is_dir():
            below.mkdir(parents=True, exist_ok=True, mode=0o700)
            unpacked = Path(mkdtemp(dir=below))
            with zipfile.ZipFile(io.BytesIO(self.archive)) as archive:
                archive.extractall(unpacked)
            # Where another process was quicker, it has the same files.
            with suppress(OSError):
                unpacked.rename(folder)
        return folder / self.agent


def bundle_of(agent_dir: Path, imported: Collection[Path]) -> Bundle:
    """The archive of an agent's folder or file, without hidden files, caches and recordings; `imported` are
    the modules of the user's that a host has imported. Raises OSError."""
    path, own = agent_dir.resolve(), agent_folder(agent_dir.resolve())
    root = project_root(own) or import_root(path)
    found = {path} if path.is_file() else set(_files_below(own))
    others = {one.resolve() for one in imported} - found
    found |= {one for one in others if one.is_relative_to(root)}
    found |= {one for one in (root / PROJECT_FILE, *_packages(root, path)) if one.is_file()}
    large = {one for one in found if one.stat().st_size > LARGE}
    return Bundle(
        _archive(root, found - large),
        path.relative_to(root).as_posix(),
        tuple(sorted(one.relative_to(root).as_posix() for one in large)),
        tuple(sorted(str(one) for one in others if not one.is_relative_to(root))),
    )


def _packages(root: Path, path: Path) -> Iterator[Path]:
    """What makes packages of the folders above the agent."""
    for folder in path.parents:
        if not folder.is_relative_to(root):
            return
        yield folder / "__init__.py"


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith(".") and one not in _CACHES]
        for name in names:
            path = Path(place, name)
            if not name.startswith(".") and not name.endswith(".pyc") and path.is_file():
                yield path


def _archive(root: Path, files: Iterable[Path]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            name = PurePosixPath(path.relative_to(root).as_posix())
            archive.writestr(zipfile.ZipInfo(str(name), _TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return stream.getvalue()
