"""The files of an agent, and which of them have changed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Generic, TypeVar

from evaltui.core.model.case_id import fingerprint
from evaltui.documents.files import Stamp, is_settled, stamp_in
from evaltui.documents.own_folder import OWN_FOLDER
from evaltui.project.configs import is_config
from evaltui.project.eval_sets import set_kind
from evaltui.project.folders import (
    CONFIG_NAME,
    ENV_NAME,
    NEVER_ENTERED,
    RECORDINGS,
    SET_SUFFIXES,
    agent_folder,
    env_file,
    is_json,
    is_run_folder,
    project_root,
    repository_root,
)
from evaltui.project.modules import ImportedFiles, function_module

# What is larger is told by its size and time.
_LARGE = 64_000_000
# How a file that evaltui wrote begins, also where it lies among the files of an agent.
_WRITTEN_BY_EVALTUI = re.compile(
    b"|".join(
        (
            # Of a run, a matrix, a comparison, traces, and gaps.
            rb'\{\s*"version": 1,\s*"(?:status|matrix)": "[^\n]*",\s*"agent": "[^\n]*",\s*"started": ',
            rb'\{\s*"version": 1,\s*"base": \{\s*"id": "[^\n]*",\s*"cases": \d+,\s*"passing": ',
            rb'\{\s*"version": 1,\s*"files": \[\s*\{\s*"path": "[^\n]*",\s*"formats": ',
            rb'\{\s*"version": 1,\s*"runs": \{\s*"[^\n]*\.json": \[\s*"\d{8}T\d{6}\.',
            # Of an estimate, durations, and a run that was exported.
            rb'\{\s*"version": 1,\s*"estimate": \{\s*"cases": \d+,\s*"runs": \d+,\s*"unknown_cases": ',
            rb'\{\n  "[^\n]*\.(?:evalset|test)\.json": \{\n    "[^\n]*": \d+\.\d+,?\n',
            rb'\{"resourceSpans": \[\n\{"resource": [^\n]*?, "scopeSpans": \[\{"scope": \{"name": "evaltui"',
            rb'<\?xml[^>]*>\s*<testsuites .{0,3000}?<property name="eval_set" ',
            rb"(?:matrix,variant,changes,)?eval_set_id,eval_id,(?:metric_name|status)",
            rb"<!-- evaltui-",
            rb'<!doctype html>.{0,3500}?<meta name="generator" content="evaltui">',
            # The file of a run.
            rb"SQLite format 3\0.{52}eval",
        )
    ),
    re.DOTALL,
)
_HEAD = 4096
_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")

_Name = TypeVar("_Name", str, Path)


class FileReader(Generic[_Name]):
    """Reads the same files repeatedly; unchanged files are read once."""

    def __init__(self) -> None:
        self._cache: dict[_Name, tuple[Stamp | None, str]] = {}

    def read(self, files: Iterable[tuple[_Name, Path]]) -> dict[_Name, str]:
        """Digests of the files by name, equal for equal content, and of folders for equal names in them.

        Files that cannot be read, that are not regular, and that evaltui wrote are left out.
        """
        seen: dict[_Name, tuple[Stamp | None, str]] = {}
        for name, path in files:
            try:
                stat = path.stat()
                is_folder = S_ISDIR(stat.st_mode)
                if not (is_folder or S_ISREG(stat.st_mode)):
                    continue
                stamp = stamp_in(stat)
                stamp_before, content = self._cache.get(name, (None, ""))
                if stamp_before != stamp:
                    content = _listing(path) if is_folder else _digest(path, stamp)
            except OSError:
                # It is being replaced, or nobody may read it.
                continue
            seen[name] = stamp if is_settled(stamp) else None, content
        self._cache |= seen
        return {name: content for name, (_, content) in seen.items() if content}


def _digest(path: Path, stamp: Stamp) -> str:
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if _WRITTEN_BY_EVALTUI.match(head):
            return ""
        return f"{stamp}" if stamp[2] > _LARGE else hashlib.sha256(head + file.read()).hexdigest()


def _listing(folder: Path) -> str:
    names = sorted(filter(may_count, os.listdir(folder)))  # noqa: PTH208
    return hashlib.sha256("\0".join(names).encode(errors="surrogateescape")).hexdigest()


# What each file holds, by its path in the agent's folder; "" where there was none when it was opened.
Contents = Mapping[str, str]
# What no file holds.
UNKNOWN = "?"

# What only the user writes. Other files an agent may change itself while it works.
_CODE_SUFFIXES = {".py", ".yaml", ".yml"}
# What hardly an agent writes itself; of other texts, as counters and memories, the name has to say so.
_PROMPTS = {".md", ".jinja", ".jinja2", ".j2", ".prompt", ".tmpl"}
_TEXTS = {"", ".txt", ".yaml", ".yml", ".json", ".toml", ".xml"}
_PROMPT_NAMES = ("prompt", "instruction", "system", "judge", "rubric", "grading", "persona")
# What tools keep for themselves, in an agent's folder or in its project.
_OF_TOOLS = NEVER_ENTERED | {OWN_FOLDER, ".adk", ".git", ".hg", ".svn", ".idea", ".vscode", ".tox", ".nox"}
_OF_TOOLS |= {".cache", ".ipynb_checkpoints", ".DS_Store", ".names.json", "4913"}
_CACHE_MARKS = ("CACHEDIR.TAG", "pyvenv.cfg")
_NOT_OF_AGENTS = (*SET_SUFFIXES, CONFIG_NAME, ".evalset_result.json", "eval_config.yaml", "eval_config.yml")
# Compiled modules, drafts of editors and of evaltui, and what a database has beside its file.
_PASSING = re.compile(r".*(?:\.py[co]|~|\.sw[opx]|\.begun|-journal|-wal|-shm)|\.#.*|#.*#|\..*\.(?:tmp|lock)")
# A single file may lie in a folder that holds everything its user has.
_MAX_FILES = 5_000
_MAX_FOLDERS = 2_000


class AgentFiles:
    """The files of an agent: all files in its folder, imported modules of its project, and its `.env`.

    Excluded are files with their own fingerprints, or made from the agent: eval sets, configs, recordings,
    reports, caches. In a very large folder only the first files count, modules before others. With
    `only_env`, for an agent behind a network, only `.env` counts.
    """

    def __init__(self, agent_dir: Path, *, only_env: bool = False) -> None:
        self.imported: list[Path] = []
        """The modules outside of the agent's folder, as last collected."""
        self._folder = agent_folder(agent_dir)
        self._real_folder = self._folder.resolve()
        self._only_env = only_env
        self._reader: FileReader[str] = FileReader()
        self._imported_files = ImportedFiles(agent_dir)

    def paths(self) -> list[Path]:
        """The existing files, those in the agent's folder first."""
        if self._only_env:
            return [self._folder / ENV_NAME]
        inside = list(islice(_files(self._folder), _MAX_FILES))
        self.imported = self._imported_files.outside(path for path in inside if path.suffix == ".py")
        env = env_file(self._folder)
        is_above = env is not None and not env.is_relative_to(self._real_folder)
        return [*inside, *self.imported, *([env] if env is not None and is_above else [])]

    def contents(self, also: Iterable[Path] = ()) -> Contents:
        """The present content of the files, equal to an earlier one where nothing has changed.

        `also` are further files, in other folders.
        """
        files = {self.name(path): path for path in (*self.paths(), *also)}
        return self.read(files)

    def read(self, files: Mapping[str, Path]) -> Contents:
        """The content of some files, by their names."""
        return self._reader.read(files.items())

    def name(self, path: Path) -> str:
        """The file as seen from the agent's folder."""
        inside = path.is_relative_to(self._folder)
        return (
            path.relative_to(self._folder).as_posix() if inside else os.path.relpath(path, self._real_folder)
        )


def changed_files(before: Mapping[_Name, str], now: Mapping[_Name, str]) -> tuple[_Name, ...]:
    """The files that are new, gone or different, sorted."""
    return tuple(
        sorted(name for name in before.keys() | now.keys() if before.get(name, "") != now.get(name, ""))
    )


def _files(folder: Path) -> Iterator[Path]:
    paths = [here / name for here, names in _walked(folder) for name in sorted(names) if may_count(name)]
    yield from filter(_counts, sorted(paths, key=lambda path: path.suffix != ".py"))


def _counts(path: Path) -> bool:
    is_recording = path.suffix in (".json", ".jsonl") and RECORDINGS in path.parts[-3:-1]
    is_log = path.suffix == ".log"
    # Opening a pipe waits until another program writes to it.
    is_other = is_recording or is_log or not os.path.isfile(path)  # noqa: PTH113
    return not (is_other or is_config(path) or (is_json(path) and set_kind(path) is not None))


def folders_of(folder: Path) -> Iterator[Path]:
    """A folder and the folders below it that may have files of an agent."""
    return (here for here, _ in _walked(folder))


def _walked(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    seen = {os.path.realpath(folder)}
    for place, folders, names in islice(os.walk(folder, followlinks=True), _MAX_FOLDERS):
        here, entered = Path(place), []
        for name in sorted(folders):
            path, real = here / name, os.path.realpath(here / name)
            is_of_tools = name in _OF_TOOLS or _is_cache(path)
            if real not in seen and not is_of_tools and not is_run_folder(path):
                seen.add(real)
                entered.append(name)
        folders[:] = entered
        yield here, names


def _is_cache(folder: Path) -> bool:
    # Of a folder that may not be entered, `Path.exists` would raise.
    return any(os.path.exists(folder / mark) for mark in _CACHE_MARKS)  # noqa: PTH110


def may_count(name: str) -> bool:
    """Whether a file of this name may be one of an agent's, going by the name alone."""
    is_passing = name in _OF_TOOLS or _PASSING.fullmatch(name) is not None
    return not (is_passing or name.lower().endswith(_NOT_OF_AGENTS))


def is_read_only(name: str, before: Contents, read: Collection[str], written: Collection[str]) -> bool:
    """Whether only somebody else than the agent changes a file during a run, which began with the files
    `before`, and of which its processes opened some for reading and some for writing."""
    if is_of_user(name):
        return True
    return name in before and name not in written and (is_prompt(name) or name in read)


def is_of_user(name: str) -> bool:
    """Whether a file of this name is source or `.env`, which no agent writes itself."""
    return is_source(name) or Path(name).name == ENV_NAME


def is_source(name: str) -> bool:
    """Whether only the user writes a file of this name."""
    return Path(name).suffix in _CODE_SUFFIXES


def is_prompt(name: str) -> bool:
    """Whether a file of this name is probably a prompt, which an agent seldom writes itself."""
    path = Path(name)
    is_named = (
        any(word in path.stem.lower() for word in _PROMPT_NAMES) or "prompt" in path.parent.name.lower()
    )
    return path.suffix in _PROMPTS or (is_named and path.suffix in _TEXTS)


def _root_around(folder: Path) -> Path:
    parent = folder if folder.parent == Path.home() else folder.parent
    return repository_root(folder) or project_root(folder) or parent


def used_files(agent_dir: Path, opened: Iterable[Path]) -> dict[str, Path]:
    """The opened files, and listed folders, that an agent's behaviour may depend on, by their names as seen
    from its folder.

    These are files in its repository or project, modules anywhere, and folders elsewhere there."""
    folder = agent_folder(agent_dir).resolve()
    root = _root_around(folder)
    files: dict[str, Path] = {}
    for path in opened:
        place = path if path.is_relative_to(root) else path.resolve()
        is_inside = place.is_relative_to(root)
        parts = place.relative_to(root).parts if is_inside else ()
        is_of_project = is_inside and _OF_TOOLS.isdisjoint(parts)
        # Of its own folder, all files count.
        is_own_folder = place.is_relative_to(folder) and place.is_dir()
        counts = may_count(place.name) and not is_own_folder
        if counts and (is_of_project or (not is_inside and place.suffix == ".py")):
            files[Path(os.path.relpath(place, folder)).as_posix()] = place
    return files


def was_written_since(path: Path, moment: float) -> bool:
    """Whether a file was written or moved to its place after a moment, in seconds since the epoch, or is
    missing."""
    try:
        stat = path.stat()
        # A file that is moved, copied or unpacked may keep an older time.
        return max(stat.st_mtime, stat.st_ctime) > moment
    except OSError:
        return True


def files_of(agent_dir: Path, also: Iterable[str] = ()) -> dict[str, str]:
    """The files of an agent and its `.env` with fingerprints. `also` are names of further files, relative
    to its folder."""
    files = AgentFiles(agent_dir)
    return prints_of(agent_dir, [*map(files.name, files.paths()), *also])


def function_digest(name: str, agent_dir: Path, python: Path | None = None) -> str:
    """Digest of the code of `module:function`: of its module, of those of the project that it imports, and of
    prompts that they name; "" where the module is not found. `python` is the agent's, None for evaltui's."""
    if (module := function_module(name, agent_dir, python)) is None:
        return ""
    modules = [module, *ImportedFiles(agent_dir).reached([module], module)]
    files = {*modules, *_named_prompts(modules, agent_dir)}
    # Folders and times differ from machine to machine.
    contents = FileReader[Path]().read((file, file) for file in files)
    return fingerprint(" ".join(sorted(contents.values())))


def _named_prompts(modules: Sequence[Path], agent_dir: Path) -> Iterator[Path]:
    """The prompts that a text in the modules names: in the agent's folder, and beside the modules and in
    folders above in the project, also in subfolders that the modules name.

    Other data, such as a database, may change with every run.
    """
    names: set[str] = set()
    for module in modules:
        with suppress(OSError):
            texts = _QUOTED.findall(module.read_text(encoding="utf-8", errors="replace"))
            names |= {part for text in texts for part in text.split("/")}
    folder = agent_folder(agent_dir).resolve()
    root = _root_around(folder)
    starts = {folder, *(module.parent for module in modules)}
    levels = starts | {level for start in starts for level in start.parents if level.is_relative_to(root)}
    around = chain.from_iterable(_found_below(level, names) for level in levels)
    inside = (path for path in islice(_files(folder), _MAX_FILES) if path.name in names)
    yield from (path.resolve() for path in chain(around, inside) if _counts(path) and is_prompt(str(path)))


def _found_below(folder: Path, names: set[str]) -> Iterator[Path]:
    """The files with one of the names in a folder, and in subfolders with one of the names."""
    with suppress(OSError):
        for name in names & set(os.listdir(folder)):  # noqa: PTH208
            path = folder / name
            yield from _found_below(path, names) if path.is_dir() and not path.is_symlink() else [path]


class FilesNow:
    """The existing files of an agent, to compare with those of its runs."""

    def __init__(self, agent_dir: Path) -> None:
        self.agent_dir = agent_dir
        self._prints = files_of(agent_dir)

    def changed_since(self, before: Contents) -> tuple[str, ...]:
        """The files that differ from those of a run, including files that only the run has opened."""
        others = prints_of(self.agent_dir, before.keys() - self._prints.keys())
        return changed_files(before, {**self._prints, **others})


def prints_of(agent_dir: Path, names: Iterable[str]) -> dict[str, str]:
    """Fingerprints of files by their names, as from `files_of`; unreadable files are left out."""
    folder = agent_folder(agent_dir)
    contents = FileReader[str]().read((name, folder / name) for name in names)
    return {name: print_of(folder / name, content) for name, content in contents.items()}


def print_of(path: Path, content: str) -> str:
    """The fingerprint of a file in the log of a run, by its present content; "" for no file."""
    if not path.name.startswith(ENV_NAME):
        return fingerprint(content) if content else ""
    try:
        return _slow_print(path.read_bytes())
    except OSError:
        return ""


@lru_cache(maxsize=16)
def _slow_print(data: bytes) -> str:
    """A fingerprint for logs, slow enough that even short secrets cannot be guessed from it."""
    return hashlib.scrypt(data, salt=b"evaltui .env", n=1 << 14, r=8, p=1, dklen=6).hex()
