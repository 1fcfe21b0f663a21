"""Variants made ready: the code and the instruction files that they name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import fingerprint
from evaltui.core.model.variants import Change, Variant
from evaltui.core.secrets import is_secret
from evaltui.files.agent_files import changed_files, files_of
from evaltui.files.folders import agent_folder, may_be_agent
from evaltui.files.worktrees import GitError, checked_out

# Of the hash in the name of a folder.
_SHORT = 8


class VariantFileError(ValueError):
    """Why a variant cannot be run: a sentence."""


@dataclass(frozen=True)
class ReadyVariant:
    """A variant that can be run."""

    variant: Variant
    code: Path | None = None
    """Folder or file of its code; None where it is the agent's own."""
    texts: tuple[tuple[str, str], ...] = ()
    """Of instructions what their files say, by the key of the change."""

    def for_host(self) -> dict[str, Any]:
        """What a host is told, see `protocol`."""
        done = [
            {"what": change.key, "old": "", "new": " ".join(filter(None, [str(change.value), self._commit]))}
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
        changes = json.dumps(self.to_log()["changes"], sort_keys=True)
        return f"{self.variant.name}-{fingerprint(changes)[:_SHORT]}"

    def to_log(self) -> dict[str, Any]:
        """As a log keeps it: without secrets."""
        hidden = {
            change.key: f"<{change.name}>" for change in self.variant.of_kind("env") if _is_hidden(change)
        }
        data = self.variant.to_json()
        return data | {"changes": data["changes"] | hidden}

    @property
    def _commit(self) -> str:
        return f"({self.variant.commit[:7]})" if self.variant.commit else ""

    def files(self) -> dict[str, str]:
        """Fingerprints of its instruction files, by their paths as seen from the agent's folder."""
        values = {change.key: str(change.value) for change in self.variant.changes}
        return {values[key]: fingerprint(text) for key, text in self.texts}


@contextmanager
def ready(variant: Variant, agent_dir: Path) -> Iterator[ReadyVariant]:
    """Reads what a variant needs; a commit is checked out until the end.

    Raises VariantFileError for what is not there, and for code that is the same.
    """
    texts = tuple((change.key, _text(change, agent_dir)) for change in variant.of_kind("instruction"))
    found = ReadyVariant(variant, None, texts)
    for change in variant.of_kind("agent"):
        found = replace(found, code=_folder(change, agent_dir))
    git = variant.of_kind("git")
    if not git:
        _require_difference(found, agent_dir)
        yield found
        return
    commit = str(git[0].value)
    try:
        with checked_out(agent_dir, variant.commit or commit) as (code, number):
            found = replace(found, code=code, variant=replace(variant, commit=number))
            _require_difference(found, agent_dir)
            yield found
    except GitError as error:
        raise VariantFileError(f"variant {variant.name}: git={commit}: {error}") from error


def _is_hidden(change: Change) -> bool:
    return is_secret(change.name, str(change.value))


def hidden_in(variant: Variant) -> str:
    """A variable of which a log has only the name, as its value is secret; "" for none."""
    marked = (change for change in variant.of_kind("env") if change.value == f"<{change.name}>")
    return next((change.name for change in marked), "")


def _text(change: Change, agent_dir: Path) -> str:
    path = agent_folder(agent_dir) / str(change.value)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise VariantFileError(f"{change.key}={change.value}: {path} cannot be read: {why}") from error


def _folder(change: Change, agent_dir: Path) -> Path:
    folder = (agent_folder(agent_dir) / str(change.value)).resolve()
    if not folder.exists():
        raise VariantFileError(f"agent={change.value}: {folder} does not exist")
    if not may_be_agent(folder):
        raise VariantFileError(
            f"agent={change.value}: {folder} has no agent.py, __init__.py or root_agent.yaml"
        )
    return folder


def _require_difference(found: ReadyVariant, agent_dir: Path) -> None:
    """Raises VariantFileError where the variant is nothing but other code, and that is the same."""
    changes = found.variant.changes
    if found.code is None or any(one.kind not in ("git", "agent") for one in changes):
        return
    # What git does not keep, such as keys, is not told from what was not there then.
    if set(changed_files(files_of(agent_dir), files_of(found.code))) <= {".env"}:
        what = changes[0]
        where = f" ({found.variant.commit[:7]})" if found.variant.commit else ""
        raise VariantFileError(
            f"variant {found.variant.name} changes nothing: {what.key}={what.value}{where} has the same code"
        )


def seen_from(agent_dir: Path, text: str, *folders: Path) -> str:
    """A file or folder as a variant keeps it: as seen from the agent's folder. The first of `folders` that
    has it counts, else the first."""
    places = [folder / Path(text).expanduser() for folder in (*folders, agent_folder(agent_dir))]
    found = next((place for place in places if place.exists()), places[0])
    return Path(os.path.relpath(found.resolve(), agent_folder(agent_dir).resolve())).as_posix()


def with_places(variant: Variant, agent_dir: Path, *folders: Path) -> Variant:
    """The variant with its files as seen from the agent's folder, see `seen_from`."""

    def placed(change: Change) -> Change:
        if change.kind not in ("instruction", "agent"):
            return change
        return replace(change, value=seen_from(agent_dir, str(change.value), *folders))

    return replace(variant, changes=tuple(map(placed, variant.changes)))
