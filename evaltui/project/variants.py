"""Variants ready to run: their files are read, and other code is checked out of git during the run."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import fingerprint
from evaltui.core.model.variants import Change, Variant
from evaltui.core.secrets import is_secret
from evaltui.project.agent_files import changed_files, files_of
from evaltui.project.folders import ENV_NAME, agent_folder, may_be_agent, seen_from_here
from evaltui.project.settings import keep_secret_values
from evaltui.text.figures import short_list

# Of the hash in the name of a folder.
_SHORT = 8


class VariantFileError(ValueError):
    """Why a variant cannot be run: a sentence."""

    page = "variants"
    """The page of the guide that helps."""


@dataclass(frozen=True)
class ReadyVariant:
    """A variant with its files read, ready to run."""

    variant: Variant
    code: Path | None = None
    """Folder or file of its code; None where it is the agent's own."""
    texts: tuple[tuple[str, str], ...] = ()
    """The texts of instruction files, by the key of the change."""
    notes: tuple[str, ...] = ()
    """Sentences about possible differences of its code from the agent's own."""

    def for_host(self) -> dict[str, Any]:
        """The variant in the message to a host, see `protocol`."""
        commit = f"({self.variant.commit[:7]})" if self.variant.commit else ""
        done = [
            {"what": change.key, "old": "", "new": " ".join(filter(None, [str(change.value), commit]))}
            for change in self.variant.changes
            if change.kind in ("git", "agent")
        ]
        texts = dict(self.texts)
        changes = {
            change.key: texts.get(change.key, change.value)
            for change in self.variant.changes
            if change.kind not in ("git", "agent")
        }
        return {"name": self.variant.name, "changes": changes, "done": done}

    @property
    def recordings(self) -> str:
        """The folder of its recordings, by what it changes: answers to one variant are never played to
        another. "" where it changes nothing: it has those of the agent."""
        if not self.variant.changes:
            return ""
        changes = json.dumps(self.shown.to_json()["changes"] | dict(self.variant.places), sort_keys=True)
        return f"{self.variant.name}-{fingerprint(changes)[:_SHORT]}"

    @property
    def shown(self) -> Variant:
        """The variant without secrets, for logs and reports."""
        return without_secrets(self.variant)

    def files(self) -> dict[str, str]:
        """Fingerprints of its instruction files, by their paths as seen from the agent's folder."""
        places = {change.key: self.variant.place(change) for change in self.variant.changes}
        return {places[key]: fingerprint(text) for key, text in self.texts}


@contextmanager
def ready(variant: Variant, agent_dir: Path) -> Iterator[ReadyVariant]:
    """Reads the files of a variant; a commit is checked out during the block.

    Raises VariantFileError for missing files and for unchanged code.
    """
    keep_secret_values((change.name, str(change.value)) for change in variant.changes if _is_hidden(change))
    texts = tuple(
        (change.key, _text(change, agent_folder(agent_dir) / variant.place(change)))
        for change in variant.of_kind("instruction")
    )
    ready_variant = ReadyVariant(variant, None, texts)
    for change in variant.of_kind("agent"):
        ready_variant = replace(
            ready_variant, code=_folder(change, agent_folder(agent_dir) / variant.place(change))
        )
    git = variant.of_kind("git")
    if not git:
        _require_difference(ready_variant, agent_dir)
        yield ready_variant
        return
    commit = str(git[0].value)
    try:
        with checked_out(agent_dir, variant.commit or commit) as (code, number):
            named = replace(variant, commit=number)
            ready_variant = replace(
                ready_variant, code=code, variant=named, notes=tuple(_notes(named, agent_dir))
            )
            _require_difference(ready_variant, agent_dir)
            yield ready_variant
    except GitError as error:
        raise VariantFileError(f"git={commit}: {error}") from error


def _notes(variant: Variant, agent_dir: Path) -> Iterator[str]:
    """Sentences on the uncommitted parts of the agent, which the variant lacks. Raises GitError."""
    folder = agent_folder(agent_dir).resolve()
    own = files_of(agent_dir)
    changed = [Path(os.path.relpath(file, folder)).as_posix() for file in uncommitted_files(agent_dir)]
    if code := [name for name in changed if name in own]:
        yield f"variant {variant.name} has none of the uncommitted changes: {short_list(code)}"


def _is_hidden(change: Change) -> bool:
    return change.kind == "env" and is_secret(change.name, str(change.value))


def without_secrets(variant: Variant) -> Variant:
    """The variant with the names of secret variables in the place of their values."""
    changes = (
        replace(change, value=f"<{change.name}>") if _is_hidden(change) else change
        for change in variant.changes
    )
    return replace(variant, changes=tuple(changes))


def hidden_in(variant: Variant) -> str:
    """A variable of which a log has only the name, as its value is secret; "" for none."""
    marked = (change for change in variant.of_kind("env") if change.value == f"<{change.name}>")
    return next((change.name for change in marked), "")


def _text(change: Change, path: Path) -> str:
    """The text of an instruction file, without the final line end. Raises VariantFileError."""
    try:
        return path.read_text(encoding="utf-8-sig").removesuffix("\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        where = seen_from_here(path.resolve())
        raise VariantFileError(f"{change.key}={change.value}: {where} cannot be read: {why}") from error


def _folder(change: Change, place: Path) -> Path:
    folder = place.resolve()
    if not folder.exists():
        raise VariantFileError(f"agent={change.value}: {seen_from_here(folder)} does not exist")
    if not may_be_agent(folder):
        raise VariantFileError(
            f"agent={change.value}: {seen_from_here(folder)} has no agent.py, __init__.py or root_agent.yaml"
        )
    return folder


def _require_difference(ready_variant: ReadyVariant, agent_dir: Path) -> None:
    """Raises VariantFileError where the variant is nothing but other code, and that is the same."""
    changes = ready_variant.variant.changes
    if ready_variant.code is None or any(change.kind not in ("git", "agent") for change in changes):
        return
    # What git does not keep, such as keys, is not told from what was not there then.
    changed = changed_files(files_of(agent_dir), files_of(ready_variant.code))
    if all(Path(name).name == ENV_NAME for name in changed):
        what = changes[0]
        where = f" ({ready_variant.variant.commit[:7]})" if ready_variant.variant.commit else ""
        raise VariantFileError(f"changes nothing: {what.key}={what.value}{where} has the same code")


def seen_from(agent_dir: Path, text: str, *folders: Path) -> str:
    """A file or folder as a variant keeps it: as seen from the agent's folder. The first of `folders` that
    has it counts, else the first."""
    places = [folder / Path(text).expanduser() for folder in (*folders, agent_folder(agent_dir))]
    path = next((place for place in places if place.exists()), places[0])
    return Path(os.path.relpath(path.resolve(), agent_folder(agent_dir).resolve())).as_posix()


def with_places(variant: Variant, agent_dir: Path, *folders: Path) -> Variant:
    """The variant with the places of its files, see `seen_from`."""
    named = (change for change in variant.changes if change.kind in ("instruction", "agent"))
    places = ((change.key, seen_from(agent_dir, str(change.value), *folders)) for change in named)
    return replace(variant, places=tuple(places))


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
