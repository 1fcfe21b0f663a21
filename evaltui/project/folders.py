"""The folders of an agent: their kinds, the search for files in them, and file names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePath

from ..documents.own_folder import OWN_FOLDER

CONFIG_NAME = "test_config.json"
SET_SUFFIXES = (".evalset.json", ".test.json")
RECORDINGS = "recordings"
ENV_NAME = ".env"

# Names that say that a file is an eval set, in any case of letters and with any ending.
_LIKE_SETS = re.compile(r"\.evalset(\.json|\.ya?ml|\.txt|$)|\.test\.json", re.IGNORECASE)
_PROJECT_MARKS = ("pyproject.toml", ".git")
_AGENT_FILES = ("agent.py", "root_agent.yaml")
_OF_TESTS = ("eval*", "test*")
RECORDING_SUFFIX = ".jsonl"

# The names of agents, and what may bring in any name.
_MAY_DEFINE = re.compile(r"\b((root_)?agent|app|get_agent_async|__getattr__|globals)\b|import \*")

NEVER_ENTERED = {"node_modules", "__pycache__", "site-packages", "venv"}
"""Folders of dependencies and caches."""
# Where agents-cli writes what was run.
_RUN_FOLDERS = {("artifacts", "traces"), ("artifacts", "grade_results")}


def agent_folder(agent_dir: Path) -> Path:
    """The folder of an agent; for a single-file agent, the folder of the file."""
    return agent_dir.parent if agent_dir.is_file() else agent_dir


def agent_file(agent_dir: str | Path) -> str:
    """The name of an agent that is a single file; "" for one that is a folder."""
    path = PurePath(agent_dir)
    return path.name if path.suffix == ".py" and path.name not in _AGENT_FILES else ""


def app_name(agent_dir: Path) -> str:
    """The name of an agent in `adk web`: the name of its folder."""
    return agent_folder(agent_dir).resolve().name


def env_file(agent_dir: Path) -> Path | None:
    """The `.env` of an agent: the nearest one upwards, as in google-adk 2.13, a link to nowhere
    included."""
    agent_dir = agent_dir.resolve()
    files = (folder / ENV_NAME for folder in (agent_dir, *agent_dir.parents))
    return next((path for path in files if path.is_file() or (path.is_symlink() and not path.exists())), None)


def loads_env_file() -> bool:
    """Whether the `.env` of an agent is loaded, as google-adk is configured."""
    return os.environ.get("ADK_DISABLE_LOAD_DOTENV", "").strip().lower() not in ("1", "true", "yes", "on")


def own_folder(agent_dir: Path) -> Path:
    """The folder `.evaltui` in the agent's folder, existing or not."""
    return agent_folder(agent_dir) / OWN_FOLDER


def has_agent_file(folder: Path) -> bool:
    """Whether a folder is certainly an agent: a package may mention one and be none."""
    # A folder that may not be entered is none, and `Path.is_file` would raise.
    return any(os.path.isfile(folder / name) for name in _AGENT_FILES)  # noqa: PTH113


def may_be_agent(path: Path) -> bool:
    """Whether a path may be an agent: a file, or a package."""
    if path.is_file() or has_agent_file(path):
        return True
    try:
        text = (path / "__init__.py").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return _MAY_DEFINE.search(text) is not None


def is_of_tests(folder: Path) -> bool:
    """Whether a folder's name is usual for tests or eval sets."""
    return _is_called(folder, _OF_TESTS)


def _is_called(folder: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(folder.name.lower(), pattern) for pattern in patterns)


def is_project(folder: Path) -> bool:
    """Whether a folder is the root of a project or checkout; False for one that may not be entered."""
    return any(os.path.exists(folder / name) for name in _PROJECT_MARKS)  # noqa: PTH110


def project_root(folder: Path) -> Path | None:
    """The nearest root of a project at or above a folder, absolute; None for none. A home folder does not
    count."""
    folder = folder.absolute()
    root = next((level for level in (folder, *folder.parents) if is_project(level)), None)
    return None if root == Path.home() else root


def repository_root(folder: Path) -> Path | None:
    """The root of the git repository that a folder is in, absolute; None for none. A home folder does not
    count."""
    folder = folder.absolute()
    levels = (level for level in (folder, *folder.parents) if level != Path.home())
    return next((level for level in levels if os.path.exists(level / ".git")), None)  # noqa: PTH110


def place_in_repository(folder: Path, seen_from: Path) -> Path:
    """A folder as a relative path that tells it from others: seen from the root of its repository, or of its
    outermost project; with the root's own name where `seen_from` is outside, and without a repository a
    digest of where the root is."""
    folder = folder.resolve()
    levels = [level for level in (folder, *folder.parents) if level != Path.home()]
    repository = repository_root(folder)
    projects = (level for level in reversed(levels) if (level / "pyproject.toml").is_file())
    root = repository or next(projects, folder)
    inside = folder.relative_to(root)
    if seen_from.resolve().is_relative_to(root):
        return inside
    digest = "" if repository else f"-{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"
    return Path(f"{root.name}{digest}") / inside


def levels_above(folder: Path) -> list[Path]:
    """The folders above, up to the root of the project that it is in; none outside of a project."""
    root = project_root(folder)
    levels: list[Path] = []
    while root is not None and root in folder.absolute().parents:
        folder = parent_of(folder)
        levels.append(folder)
    return levels


def parent_of(folder: Path) -> Path:
    """The folder above, also of `.` and `..`."""
    return folder.parent if folder.name not in ("", "..") else folder.resolve().parent


def short_path(path: Path) -> str:
    """An absolute path, with `~` for the home folder."""
    path, home = path.resolve(), Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)


def seen_from_here(path: Path) -> str:
    """A file as seen from the current folder, if it is below."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return str(path)
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def subfolders(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The folders directly in a folder whose names match a pattern in lower case, without hidden ones and
    dependencies; with links to nowhere that are called as folders of eval sets."""
    for child in _entered(folder):
        if _is_called(child, patterns):
            yield child


def is_json(path: Path) -> bool:
    """Whether a file is JSON by its name, in any case of letters."""
    return path.suffix.lower() == ".json"


def is_recording(path: Path) -> bool:
    """Whether a file is a recording by its folder and name."""
    # Those of a variant are in a folder of its own.
    return path.suffix == RECORDING_SUFFIX and RECORDINGS in path.parts[-3:-1]


def has_set_name(path: Path) -> bool:
    """Whether a file has the name of an eval set, in any case of letters."""
    return path.name.lower().endswith(SET_SUFFIXES)


def is_called_set(path: Path) -> bool:
    """Whether a file name contains that of an eval set, as `a.evalset.json.bak` and `a.evalset.yaml` do, and
    recordings with the id of a set do not."""
    is_named = not path.name.startswith(".") and _LIKE_SETS.search(path.name) is not None
    return is_named and not is_recording(path)


def json_files(folder: Path, *, keeps_sets: bool = False) -> list[Path]:
    """The JSON files directly in a folder, and all else that is called an eval set, sorted.

    With them comes, where eval sets are kept, what has the name of JSON and is no file, and links to nowhere:
    reading them says what is wrong. `keeps_sets` says so of a folder whose own name does not. Of a folder
    that cannot be read, and of a link to nowhere, itself.
    """
    if is_lost_folder(folder):
        return [folder]
    try:
        entries = sorted(folder.iterdir())
        if not os.access(folder, os.X_OK):
            # Nothing is known of its entries but their names: there may be folders among them.
            return [folder] if entries else []
        keeps_sets = keeps_sets or is_of_tests(folder)
        files = [file for file in entries if is_json(file) or is_called_set(file)]
        # `Path.is_file` would raise for a link into a folder that may not be entered.
        readable = [
            file
            for file in files
            if has_set_name(file)
            or os.path.isfile(file)  # noqa: PTH113
            or (keeps_sets and not os.path.isdir(file))  # noqa: PTH112
        ]
        # Those that are called as folders of eval sets come as folders.
        others = (entry for entry in entries if keeps_sets and not is_of_tests(entry))
        return [*readable, *filter(is_lost_folder, others)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return [folder]


def json_files_below(
    folders: Iterable[Path], leave_out: Callable[[Path], bool] = lambda _: False, *, keep_sets: bool = False
) -> Iterator[Path]:
    """`json_files` of folders and all folders below; a folder that links to an earlier one is left out.

    `keep_sets` says that eval sets are kept in the folders, whatever their names, and below, but not in
    projects and agents.
    """

    def keeps(folder: Path, *, above: bool) -> bool:
        return is_of_tests(folder) or (above and not (is_project(folder) or has_agent_file(folder)))

    waiting = [(folder, keeps(folder, above=keep_sets)) for folder in folders][::-1]
    seen: set[str] = set()
    while waiting:
        folder, keeps_sets = waiting.pop()
        if (real := os.path.realpath(folder)) in seen:
            continue
        seen.add(real)
        yield from json_files(folder, keeps_sets=keeps_sets)
        children = (child for child in _entered(folder)[::-1] if not leave_out(child))
        waiting += [(child, keeps(child, above=keeps_sets)) for child in children]


def is_entered(folder: Path) -> bool:
    """Whether a folder is searched for files: not hidden ones, dependencies, caches and runs."""
    if folder.name.startswith(".") or folder.name in NEVER_ENTERED or is_run_folder(folder):
        return False
    # Of a folder that may not be entered, `Path.exists` would raise, and its neighbours be left out with it.
    return os.path.isdir(folder) and not os.path.exists(folder / "pyvenv.cfg")  # noqa: PTH110, PTH112


def is_run_folder(folder: Path) -> bool:
    """Whether a folder holds the runs of agents-cli."""
    return (folder.parent.name, folder.name) in _RUN_FOLDERS


def is_lost_folder(path: Path) -> bool:
    """Whether a path is a link to nothing, or to what cannot be reached, with the name of a folder."""
    if not path.is_symlink() or os.path.exists(path):  # noqa: PTH110
        return False
    return not path.suffix and not path.name.startswith(".") and path.name not in NEVER_ENTERED


def _entered(folder: Path) -> list[Path]:
    try:
        children = sorted(folder.iterdir())
        lost = (child for child in children if is_of_tests(child) and is_lost_folder(child))
        return sorted([*filter(is_entered, children), *lost])
    except OSError:
        # `json_files` has the folder itself.
        return []


def case_path(agent_dir: Path, set_path: Path) -> str:
    """The path in `CaseId`: as seen from the agent's folder, with `/` on every system."""
    folder = agent_folder(agent_dir)
    if set_path.is_relative_to(folder) and ".." not in set_path.parts:
        # Also once the current folder is gone, of which nothing relative can be made absolute.
        return set_path.relative_to(folder).as_posix()
    return _relative(str(folder.absolute()), str(set_path.absolute()))


@lru_cache(maxsize=4096)
def _relative(folder: str, path: str) -> str:
    # Either may have been named through a link. A link to a set is a set of its own, with a config beside it.
    real_folder, (parent, name) = os.path.realpath(folder), os.path.split(path)
    real_path = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
    seen = [_from(folder, path), _from(real_folder, path), _from(real_folder, real_path)]
    return next((relative for relative in seen if not relative.startswith("../")), seen[-1])


def _from(folder: str, path: str) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def file_of(agent_dir: Path, path: str) -> Path:
    """The file of a path in `CaseId`."""
    folder = agent_folder(agent_dir).absolute()
    if path.startswith("../"):
        # What is above a link is not what is above the folder.
        folder = folder.resolve()
    return Path(os.path.normpath(folder / path))
