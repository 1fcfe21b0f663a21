"""The files that an agent is made of, and which of them have changed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from evaltui.core.model.case_id import fingerprint
from evaltui.files.folders import (
    CONFIG_NAME,
    ENV_NAME,
    RECORDINGS,
    SET_SUFFIXES,
    agent_folder,
    env_file,
    is_json,
    subfolders,
)
from evaltui.files.imported_files import ImportedFiles
from evaltui.files.recognition import set_kind

# What is larger is told by its size and time.
_LARGE = 1_000_000
# The same of fingerprints that logs hold: size and time differ from machine to machine.
_LARGE_IN_LOGS = 64_000_000
# Nanoseconds. Clocks of file systems stand still for some milliseconds: what was written just now may be
# written again and look the same.
_JUST_NOW = 100_000_000

_Stamp = tuple[int, int, int, int]
_Name = TypeVar("_Name", bound=Hashable)


class FileReader(Generic[_Name]):
    """Reads the same files again and again, those that were not written meanwhile only once."""

    def __init__(self, large: int = _LARGE) -> None:
        self._large = large
        self._known: dict[_Name, tuple[_Stamp | None, str]] = {}

    def read(self, files: Iterable[tuple[_Name, Path]]) -> dict[_Name, str]:
        """What is in the files now, by name: equal where it is the same. What cannot be read is left out."""
        seen: dict[_Name, tuple[_Stamp | None, str]] = {}
        for name, path in files:
            try:
                stat = path.stat()
                stamp = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
                stamp_before, content = self._known.get(name, (None, ""))
                if stamp_before != stamp:
                    content = _digest(path, stamp, self._large)
            except OSError:
                # It is being replaced, or nobody may read it.
                continue
            settled = time.time_ns() - max(stamp[:2]) > _JUST_NOW
            seen[name] = stamp if settled else None, content
        self._known = seen
        return {name: content for name, (_, content) in seen.items()}


def _digest(path: Path, stamp: _Stamp, large: int) -> str:
    if stamp[2] > large:
        return f"{stamp}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


# What each file holds, by its path in the agent's folder.
Contents = Mapping[str, str]

_CODE = {".py", ".yaml", ".yml", ".toml", ".json", ".md", ".txt", ".csv", ".xml", ".html", ".sql"}
_CODE |= {".jinja", ".jinja2", ".j2", ".prompt", ".tmpl"}
_NOT_CODE = (*SET_SUFFIXES, CONFIG_NAME, ".evalset_result.json", "eval_config.yaml", "eval_config.yml")
# A single file may lie in a folder that holds everything its user has.
_MOST_FILES = 2_000
_MOST_FOLDERS = 2_000


class AgentFiles:
    """Code, prompts and data of an agent, and the modules of its project that it imports; not what is made
    from it: eval sets, configs, recordings, caches.

    Of a very large folder only the first files are known. `only_env` is for an agent behind a network: of its
    home, only `.env` has a say in what it does. Files of more than `large` bytes are told by size and time.
    """

    def __init__(self, agent_dir: Path, *, only_env: bool = False, large: int = _LARGE) -> None:
        self.imported: list[Path] = []
        """The modules outside of the agent's folder, as they were found last."""
        self._folder = agent_folder(agent_dir)
        self._only_env = only_env
        self._reader: FileReader[str] = FileReader(large)
        self._imported_files = ImportedFiles(agent_dir)

    def paths(self) -> list[Path]:
        """The files that there are now, those in the agent's folder first."""
        if self._only_env:
            return [self._folder / ENV_NAME]
        inside = list(islice(_files(self._folder), _MOST_FILES))
        self.imported = self._imported_files.outside(path for path in inside if path.suffix == ".py")
        return [*inside, *self.imported]

    def contents(self, also: Iterable[Path] = ()) -> Contents:
        """What is in the files now, equal to before where nothing has changed. Reads what is new.

        `also` are further files, in other folders.
        """
        files = {self.name(path): path for path in (*self.paths(), *also)}
        return self._reader.read(files.items())

    def name(self, path: Path) -> str:
        """The file as seen from the agent's folder."""
        inside = path.is_relative_to(self._folder)
        return path.relative_to(self._folder).as_posix() if inside else os.path.relpath(path, self._folder)


def changed_files(before: Contents, now: Contents) -> tuple[str, ...]:
    """The files that are new, gone or different, sorted."""
    return tuple(sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)))


def _files(folder: Path) -> Iterator[Path]:
    # It reads JSON as documents; no host that is started waits for that to be imported.
    from evaltui.files.configs import is_config

    for here, names in _walked(folder):
        found = (here / name for name in sorted(names) if is_code(name))
        yield from (path for path in found if not (is_config(path) or _is_set(path)))


def _is_set(path: Path) -> bool:
    return is_json(path) and set_kind(path) is not None


def folders_of(folder: Path) -> Iterator[Path]:
    """A folder and those below it in which files of an agent are looked for."""
    return (here for here, _ in _walked(folder))


def _walked(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    for place, folders, names in islice(os.walk(folder), _MOST_FOLDERS):
        here = Path(place)
        folders[:] = [one.name for one in subfolders(here, ("*",)) if one.name != RECORDINGS]
        yield here, names


def is_code(name: str) -> bool:
    """Whether a file of this name is code, a prompt or data of an agent, going by the name alone."""
    if name == ENV_NAME:
        return True
    return Path(name).suffix in _CODE and not name.startswith(".") and not name.lower().endswith(_NOT_CODE)


def files_of(agent_dir: Path) -> dict[str, str]:
    """The files that an agent is made of and its `.env`, each with a fingerprint of what it holds."""
    files = AgentFiles(agent_dir, large=_LARGE_IN_LOGS)
    prints = {name: fingerprint(content) for name, content in files.contents().items() if name != ENV_NAME}
    if (path := env_file(agent_folder(agent_dir))) is not None:
        with suppress(OSError):
            prints[os.path.relpath(path, agent_folder(agent_dir).resolve())] = _slow_print(path.read_bytes())
    return prints


@lru_cache(maxsize=16)
def _slow_print(data: bytes) -> str:
    """A fingerprint that goes into logs: guessing what it is of takes too long even for short secrets."""
    return hashlib.scrypt(data, salt=b"evaltui .env", n=1 << 14, r=8, p=1, dklen=6).hex()
