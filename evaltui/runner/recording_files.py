"""Recordings beside an eval set: `recordings/<set id>.jsonl`, a line per answer, fit for git. A variant that
changes something has its own in a folder in there.

First come the names that have changed and the texts that entries share, then the entries, by case and run,
each in the order in which it happened. A file with a line that is no recording of this version is refused:
neither replayed nor written.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from stat import S_ISREG

from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.core.model.renaming import Renaming
from evaltui.core.recordings.entry import (
    Entry,
    ModelCall,
    NewerRecordingError,
    Shared,
    answer_text,
    entry_from_json,
    line_text,
)
from evaltui.documents.files import Stamp, stamp_in
from evaltui.documents.json_text import duplicate_keys
from evaltui.documents.own_folder import refuse_link
from evaltui.documents.saving import ChangedOutsideError, Fingerprint, read_source, save
from evaltui.project.eval_sets import set_kind, set_name
from evaltui.project.folders import RECORDING_SUFFIX, RECORDINGS, has_set_name, is_json
from evaltui.text.figures import counted

SCORED = "score"
"""The folder of the judges of recorded traces: no run of an agent shares it."""
OF_GAPS = "gaps"
"""The folder of the judges of changed conversations."""

# The id of a case, and the number of its run from 0.
Key = tuple[str, int]

# A save by another process takes milliseconds; so many in a row do not happen.
_MAX_ATTEMPTS = 50
_MAX_LINES_NAMED = 3
_CONFLICT_MARKERS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")


def recordings_path(set_path: Path, eval_set_id: str, folder: str = "") -> Path:
    """The file of a set's recordings; characters that a file name cannot have are written as `%2F`.

    `folder` is SCORED, OF_GAPS or that of a variant, see `ReadyVariant.recordings`.

    Where another set of its folder has the same id, each has a file of its own, which names the set's file;
    but for the one that is named by the id: a copy leaves it its recordings.
    """
    others = [file for file in _neighbours(set_path) if _label(file) == eval_set_id]
    is_named = set_name(set_path) == eval_set_id
    shared = any(set_name(file) == eval_set_id for file in others) if is_named else bool(others)
    label = f"{eval_set_id} ({set_path.name})" if shared else eval_set_id
    name = re.sub(r"[/\\\x00-\x1f%]|^\.", lambda match: f"%{ord(match.group()):02X}", label)
    return set_path.parent / RECORDINGS / folder / f"{name}{RECORDING_SUFFIX}"


def recordings_of(set_path: Path) -> list[Path]:
    """The files with recordings of a set: of its agent, of variants of it, and of judges.

    Raises OSError for a folder of them that cannot be read.
    """
    path = recordings_path(set_path, _label(set_path))
    levels = os.walk(path.parent, onerror=_refuse_unread)
    return sorted(Path(level, path.name) for level, *names in levels if path.name in chain(*names))


def _refuse_unread(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _neighbours(set_path: Path) -> list[Path]:
    try:
        files = list(set_path.parent.iterdir())
    except OSError:
        return []
    others = [file for file in files if is_json(file) and file.name != set_path.name]
    return [file for file in others if has_set_name(file) or set_kind(file) is not None]


def _label(file: Path) -> str:
    """The id of a set, without reading all of what it holds; "" where it cannot be read."""
    try:
        stat = file.stat()
        return _label_in(file, stamp_in(stat)) if S_ISREG(stat.st_mode) else ""
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=1024)
def _label_in(file: Path, stamp: Stamp) -> str:
    match = _SET_ID.search(file.read_bytes())
    return str(json.loads(match[1])) if match else set_name(file)


_SET_ID = re.compile(rb'"(?:eval_set_id|evalSetId)"\s*:\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class _Line:
    """An entry as it stands in the file, and the ids of the shared lines that it refers to."""

    text: str
    shared: tuple[str, ...]


@dataclass
class Recordings:
    """The recordings in a file, as text: ten thousand entries as objects take a hundred megabytes."""

    groups: dict[Key, list[_Line]] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    renamed: list[Renaming] = field(default_factory=list)
    """Names that were others when models were asked, in order."""

    @property
    def cases(self) -> set[str]:
        return {eval_id for eval_id, _ in self.groups}

    def entries(self, eval_id: str, repeat: int) -> list[Entry]:
        """The recorded entries of a repeat of a case, in order."""
        recorded = (entry_from_json(json.loads(line.text)) for line in self.groups.get((eval_id, repeat), ()))
        return [entry for entry in recorded if isinstance(entry, Entry)]

    def versions(self) -> dict[str, dict[str, str]]:
        """By requested model the models that answered, each with the last day on which that was recorded."""
        versions: dict[str, dict[str, str]] = {}
        for eval_id, repeat in self.groups:
            for entry in self.entries(eval_id, repeat):
                if isinstance(entry, ModelCall) and entry.version:
                    days = versions.setdefault(entry.model, {})
                    days[entry.version] = max(days.get(entry.version, ""), entry.recorded)
        return versions

    def fingerprint(self, eval_id: str, repeat: int) -> str:
        """A digest of the recording of a repeat of a case."""
        lines = self.groups.get((eval_id, repeat), ())
        ids = sorted({name for line in lines for name in line.shared})
        texts = [self.shared.get(name, "") for name in ids] + [line.text for line in lines]
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

    def shared_by(self, entries: Iterable[Entry]) -> list[Shared]:
        """The lines that entries refer to, as far as the file has them."""
        ids = dict.fromkeys(name for entry in entries for name in entry.shared)
        lines = (entry_from_json(json.loads(self.shared[name])) for name in ids if name in self.shared)
        return [line for line in lines if isinstance(line, Shared)]

    def put(self, eval_id: str, repeat: int, entries: Sequence[Entry], shared: Iterable[Shared] = ()) -> None:
        """Replaces the entries of a repeat of a case, with their shared lines."""
        self.groups[eval_id, repeat] = [_Line(line_text(entry), entry.shared) for entry in entries]
        self.shared |= {line.id: line_text(line) for line in shared}

    def text(self) -> str:
        """The text of the whole file, without unused shared lines."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        used = {name for lines in self.groups.values() for line in lines for name in line.shared}
        yield from map(line_text, self.renamed)
        yield from (self.shared[name] for name in sorted(used & self.shared.keys()))
        for key in sorted(self.groups):
            yield from (line.text for line in self.groups[key])


def read_recordings(path: Path) -> Recordings:
    """The recordings of a file, none where there is no such file.

    Raises EvalSetError for a file that cannot be read, and for lines that are no recordings of this version.
    """
    try:
        return parse_recordings(path, read_source(path).text)
    except FileNotFoundError:
        return Recordings()
    except OSError as error:
        raise EvalSetError(
            [Problem.error((), f"cannot be read: {error.strerror or error}", file=str(path))]
        ) from error


def parse_recordings(path: Path, text: str) -> Recordings:
    """The recordings in the text of a file.

    Raises EvalSetError for lines that are no recordings of this version.
    """
    recordings = Recordings()
    answered = _Answered()
    problems: list[Problem] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip():
            continue
        try:
            entry = entry_from_json(json.loads(line))
            if duplicate_keys(line):
                raise ValueError("a key is given more than once")
        except NewerRecordingError as error:
            newer = f"{error}: recorded by a newer version of evaltui? Update it, or delete the line"
            problems.append(Problem.error((), newer, line=number, file=str(path)))
            continue
        except (ValueError, RecursionError) as error:
            problems.append(Problem.error((), _advice(line, error), line=number, file=str(path)))
            continue
        if isinstance(entry, ModelCall) and (twin := answered.add(number, entry)):
            problems.append(Problem.error((), _twin_text(twin), line=number, file=str(path)))
            continue
        if isinstance(entry, Renaming):
            recordings.renamed.append(entry)
        elif isinstance(entry, Shared):
            recordings.shared[entry.id] = line
        else:
            recordings.groups.setdefault((entry.case, entry.repeat), []).append(_Line(line, entry.shared))
    if problems:
        raise EvalSetError(_first(problems))
    return recordings


class _Answered:
    """The answers read so far to requests that came with new contents.

    A recording has the beginning of each content once, at the first request with it, also where a request is
    made several times. An equal request that has it once more is of another recording, as after a merge of
    git that keeps both sides.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, int, str, str], tuple[int, set[str], str]] = {}

    def add(self, number: int, entry: ModelCall) -> int | None:
        """The line with another answer to the request of a line, from another recording; None for none."""
        key = entry.case, entry.repeat, entry.agent, entry.key
        answer = answer_text(entry)
        line, contents, first = self._first.setdefault(key, (number, set(entry.said), answer))
        return None if contents.isdisjoint(entry.said) or answer == first else line


def _twin_text(line: int) -> str:
    return (
        f"answers the request of line {line} otherwise, from another recording. "
        "Delete one of both lines, or delete the file and record again"
    )


def _advice(line: str, error: Exception) -> str:
    if line.startswith(_CONFLICT_MARKERS):
        return "conflict marker of git. Resolve the conflict, or delete the file and record again"
    why = "the line is cut or no JSON" if isinstance(error, json.JSONDecodeError) else str(error)
    return f"no recording: {why}. Restore the file, or delete the line and record its case again"


def _first(problems: Sequence[Problem]) -> list[Problem]:
    """The first few, the last with the number of further ones."""
    *few, last = problems[:_MAX_LINES_NAMED]
    if (more := len(problems) - _MAX_LINES_NAMED) > 0:
        last = replace(last, message=f"{last.message} ({counted(more, 'more line')} like that)")
    return [*few, last]


def save_recordings(
    path: Path, changes: Mapping[Key, Sequence[Entry]], shared: Mapping[str, Shared]
) -> Recordings:
    """Writes new entries of cases into a file of recordings; all other entries stay.

    Returns the content of the file. Raises OSError, also for a link, and EvalSetError for a file that is not
    UTF-8 or has a line that is no recording; such a file stays unchanged.
    """
    above = [parent.name for parent in path.parents].index(RECORDINGS) + 1
    for part in (path, *path.parents[:above]):
        refuse_link(part)
    for _ in range(_MAX_ATTEMPTS):
        seen: Fingerprint | None = None
        try:
            source = read_source(path)
            seen, current = source.fingerprint, parse_recordings(path, source.text)
        except FileNotFoundError:
            current = Recordings()
        for (eval_id, repeat), entries in changes.items():
            current.put(eval_id, repeat, entries)
        shared_ids = {name for entries in changes.values() for entry in entries for name in entry.shared}
        current.shared |= {name: line_text(shared[name]) for name in shared_ids & shared.keys()}
        text = current.text()
        if seen is None and not text:
            return current
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            save(path, text, seen)
        except ChangedOutsideError:
            continue
        return current
    raise OSError(f"{path} keeps changing on disk")
