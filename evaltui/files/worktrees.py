"""An earlier version of an agent: a commit checked out into a temporary folder, for as long as it is run.

The user's own checkout and index are read only, also in a hook of git, whose variables name them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evaltui.files.folders import agent_folder

# What git gives to hooks: these name a repository, its checkout and its index, and others are meant here.
_OF_A_HOOK = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)


class GitError(ValueError):
    """Why a commit cannot be checked out: a sentence."""


@contextmanager
def checked_out(agent_dir: Path, commit: str) -> Iterator[tuple[Path, str]]:
    """The folder or file of an agent as it was at a commit, and the commit's id. It is gone afterwards.

    Raises GitError where there is no git, no repository, no such commit, or no agent in it.
    """
    agent_dir = agent_dir.resolve()
    folder = agent_folder(agent_dir)
    top = Path(_git(folder, "rev-parse", "--show-toplevel"))
    try:
        commit_id = _git(
            folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"
        )
    except GitError as error:
        raise GitError(f"{commit!r} is not a commit, branch or tag of {top}") from error
    inside = agent_dir.relative_to(top.resolve())
    with tempfile.TemporaryDirectory(prefix="evaltui-") as temporary:
        # Named as the original: an agent at the top is imported by the name of its folder.
        place = Path(temporary).resolve() / top.name
        try:
            _git(folder, "worktree", "add", "--detach", "--force", str(place), commit_id)
            if not (place / inside).exists():
                raise GitError(f"{inside} is not in {commit} ({commit_id[:7]})")
            yield place / inside, commit_id
        finally:
            _removed(folder, place)


def uncommitted_files(agent_dir: Path) -> tuple[Path, ...]:
    """Files of an agent that differ from the last commit, or are not in it.

    Raises GitError where there is no git or no repository.
    """
    agent_dir = agent_dir.resolve()
    folder = agent_folder(agent_dir)
    top = Path(_git(folder, "rev-parse", "--show-toplevel"))
    status = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
    output = _git(folder, *status, "--", str(agent_dir))
    return tuple(top / line[3:] for line in output.split("\0") if line)


def _removed(folder: Path, place: Path) -> None:
    # The temporary folder goes anyway, and git forgets what is not there.
    with suppress(GitError):
        _git(folder, "worktree", "remove", "--force", "--force", str(place))


def _git(folder: Path, *words: str) -> str:
    """The output of a git command, run without hooks and without refreshing the index. Raises GitError."""
    command = ["git", "--no-optional-locks", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *words]
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed") from error
    if done.returncode:
        message = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise GitError(f"git {words[0]}: {message.removeprefix('fatal: ')}")
    return done.stdout.rstrip("\n")
