"""Watching the code of an agent, its eval sets and configs for changes on disk.

After a notification about a folder, its files are read and compared by content: a file that was only touched
has not changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path

from watchfiles import Change, awatch

from evaltui.documents.yaml_text import YAML_SUFFIXES
from evaltui.project.agent_files import AgentFiles, Contents, FileReader, changed_files, folders_of, may_count
from evaltui.project.folders import (
    RECORDING_SUFFIX,
    RECORDINGS,
    agent_folder,
    env_file,
    is_entered,
    is_json,
    levels_above,
)
from evaltui.project.run_settings import PROJECT_FILE
from evaltui.project.workspace import set_files, set_folders

# Milliseconds. The system is asked this often; what it tells without a pause is taken together so long.
_STEP = 10
_TOGETHER = 100
# Milliseconds after which the files are read without a notification: links lead elsewhere, and some file
# systems notify of nothing.
_UNNOTIFIED = 3_000
_MAX_FOLDERS = 4_000
# Seconds. A file whose time is longer ago was not written now, but moved to where it is.
_JUST_SAVED = 10.0

# A folder may be another one than before under the same name.
_Folders = frozenset[tuple[Path, int]]


@dataclass(frozen=True)
class Changed:
    """Files that are new, removed, or have other content."""

    code: tuple[str, ...]
    """Names as seen from the agent's folder."""
    sets: tuple[Path, ...]
    """The paths of eval sets and configs."""
    others: tuple[Path, ...]
    """The paths of recordings, and of files with settings of the project."""
    files: tuple[Path, ...]
    """The paths of all of them."""
    saved: float
    """When the last of them was written, in seconds since the epoch."""

    def saved_again(self) -> bool:
        """Whether a file was written again since, before the system has notified of it."""
        return any(when > self.saved for when in _times_of(self.files))


@dataclass(frozen=True)
class _Snapshot:
    """The files at one moment."""

    code: Contents
    also: Mapping[str, Path]
    """Imported and read files, by name."""
    sets: Mapping[Path, str]
    others: Mapping[Path, str]
    folders: _Folders


class WatchedFiles:
    """The watched files: the folder of an agent, the folders of its eval sets, and its `.env`.

    `modules` are imported and read files, `contents` what some of them held when they were read, by
    their names; both may be changed at any time. `only_env` is for an agent behind a network, see
    `AgentFiles`.
    """

    def __init__(self, agent_dir: Path, paths: Sequence[str | Path] = (), *, only_env: bool = False) -> None:
        self.modules: frozenset[Path] = frozenset()
        self.contents: Contents = {}
        self._agent_dir = agent_dir
        self._paths = tuple(paths)
        self._folder = agent_folder(agent_dir)
        self._code = AgentFiles(agent_dir, only_env=only_env)
        self._sets: FileReader[Path] = FileReader()

    async def follow(
        self, on_change: Callable[[Changed], Awaitable[None]], watching: Callable[[], None]
    ) -> None:
        """Calls `on_change` until cancelled; `watching` is called when every later change will be seen.

        Raises OSError where the system cannot watch so many folders.
        """
        last: _Snapshot | None = None
        while True:
            folders = await asyncio.to_thread(self._folders)
            async with aclosing(_notifications(folders)) as notifications:
                async for gone in notifications:
                    now = await asyncio.to_thread(self._snapshot)
                    if last is None:
                        watching()
                    elif change := self._difference(last, now):
                        await on_change(change)
                    last = now
                    if now.folders != folders or gone:
                        break

    def _snapshot(self) -> _Snapshot:
        also = {self._code.name(path): path for path in self.modules}
        files = {path.resolve(): path for path in set_files(self._agent_dir, self._paths)}
        return _Snapshot(
            self._code.contents(also.values()),
            also,
            self._sets.read((path, path) for path in files.values()),
            self._sets.read((path, path) for path in self._others(files.values())),
            self._folders(),
        )

    def _others(self, sets: Iterable[Path]) -> Iterator[Path]:
        home = self._folder.resolve()
        yield from (level / PROJECT_FILE for level in (home, *home.parents))
        for folder in {path.parent / RECORDINGS for path in sets}:
            yield from folder.rglob(f"*{RECORDING_SUFFIX}")

    def _folders(self) -> _Folders:
        """The folders to watch, without the folders below them."""
        trees = set_folders(self._agent_dir, self._paths)
        beside = (Path(path).parent for path in self._paths if Path(path).is_file())
        # The nearest `.env` may be above the agent's folder.
        env = env_file(self._folder)
        read = (path if path.is_dir() else path.parent for path in self.modules)
        above = (path.parent for path in (*self._code.imported, *filter(None, [env])))
        folders: set[tuple[Path, int]] = set()
        for tree in trees:
            folders |= {identity for path in folders_of(tree) if (identity := _identified(path))}
            if len(folders) > _MAX_FOLDERS:
                break
        single = (*levels_above(self._folder), *beside, *read, *above)
        return frozenset(folders | {identity for path in single if (identity := _identified(path))})

    def _difference(self, last: _Snapshot, now: _Snapshot) -> Changed | None:
        # What was not watched before is not new, unless it has changed since it was read.
        first_seen = {
            name
            for name, path in now.also.items()
            if path in self.modules and name not in last.also and name not in last.code
            if self.contents.get(name, now.code.get(name)) == now.code.get(name)
        }
        code = tuple(name for name in changed_files(last.code, now.code) if name not in first_seen)
        sets, others = changed_files(last.sets, now.sets), changed_files(last.others, now.others)
        if not (code or sets or others):
            return None
        files = (*(self._folder / name for name in code), *sets, *others)
        return Changed(code, sets, others, files, _last_written(files))


async def _notifications(folders: _Folders) -> AsyncGenerator[bool, None]:
    """Once as soon as the folders are watched, and then whenever something may have happened there: whether
    one of them has gone, which is not watched any more then, although there may be another one."""
    paths = {str(path) for path, _ in folders}
    gone = False
    changes = awatch(
        *paths,
        watch_filter=_concerns,
        debounce=_TOGETHER,
        step=_STEP,
        rust_timeout=_UNNOTIFIED,
        yield_on_timeout=True,
        recursive=False,
    )
    while True:
        something = asyncio.ensure_future(anext(changes))
        try:
            # The folders are watched from when it begins to wait.
            await asyncio.sleep(0)
            yield gone
            gone = any(what is Change.deleted and path in paths for what, path in await something)
        finally:
            something.cancel()
            await asyncio.wait([something])


def _identified(folder: Path) -> tuple[Path, int] | None:
    try:
        return folder, folder.stat().st_ino
    except OSError:
        return None


def _concerns(_: Change, path: str) -> bool:
    """Whether a changed file is to be read; files that editors, caches and evaltui write are not."""
    file = Path(path)
    return may_count(file.name) or is_json(file) or file.suffix in YAML_SUFFIXES or is_entered(file)


def _last_written(paths: Sequence[Path]) -> float:
    now = time.time()
    return max((when for when in _times_of(paths) if now - _JUST_SAVED < when <= now), default=now)


def _times_of(paths: Iterable[Path]) -> Iterator[float]:
    """The write times of existing files, in seconds since the epoch."""
    for path in paths:
        with suppress(OSError):
            yield path.stat().st_mtime
