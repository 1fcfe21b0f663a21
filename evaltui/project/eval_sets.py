"""Eval sets of every format: recognised by their content, read, and written anew in the current one."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Literal

from evaltui.core.model import datasets
from evaltui.core.model.datasets import is_dataset_case
from evaltui.core.model.events import Json
from evaltui.core.model.file_kinds import SESSION_DATABASE, FileKind, file_kind
from evaltui.core.model.old_formats import (
    Format,
    from_old_eval_set,
    from_old_test,
    kind_of,
    left_out_warnings,
    session_input,
    texts_without_author,
)
from evaltui.core.model.problems import (
    NOT_AN_EVAL_SET,
    EvalSetError,
    Problem,
    errors_in,
    has_error,
)
from evaltui.documents.files import Stamp, read_regular, stamp_in
from evaltui.documents.json_text import (
    LFS_POINTER,
    UTF16_MARKS,
    duplicate_keys,
    locate,
    parse,
    text_or_problem,
)
from evaltui.documents.yaml_text import YAML_SUFFIXES, parse_yaml
from evaltui.project.folders import SET_SUFFIXES
from evaltui.text.values import value_in_words

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet

SQLITE = b"SQLite format 3\0"
"""The first bytes of a SQLite file."""

_HEAD = 64 * 1024
_LARGEST_YAML = 1024 * 1024
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[\[{]|[\]}]')

SetKind = Literal["eval set", "dataset"]


def set_kind(path: Path) -> SetKind | None:
    """Whether the beginning of a file is that of an eval set or of an EvaluationDataset, whatever its name.

    The rest of a large file is not read: it may hold mistakes.
    """
    try:
        stat = path.stat()
    except OSError:
        return None
    # Whoever opens a pipe waits for what writes to it.
    return _set_kind(path, stamp_in(stat)) if S_ISREG(stat.st_mode) else None


def is_readable(path: Path) -> bool:
    """Whether a path is a file that can be read and that has its content here."""
    try:
        return read_regular(path, len(LFS_POINTER)) != LFS_POINTER.encode()
    except OSError:
        return False


@lru_cache(maxsize=10_000)
def _set_kind(path: Path, stamp: Stamp) -> SetKind | None:
    _, _, size, _ = stamp
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    text = head.decode("utf-16" if head.startswith(UTF16_MARKS) else "utf-8-sig", errors="replace")
    if "eval_cases" not in text and "evalCases" not in text:
        return None
    keys, of_case = _outline(text)
    if not keys & {"eval_cases", "evalCases"}:
        return None
    if keys & {"eval_set_id", "evalSetId"}:
        return "eval set"
    if is_dataset_case(of_case):
        return "dataset"
    # The id may stand behind the cases.
    return "eval set" if size > _HEAD and of_case & {"eval_id", "evalId"} else None


def _outline(head: str) -> tuple[set[str], set[str]]:
    """The keys of the outermost object, and those of the objects in its list of cases."""
    if not head.lstrip().startswith("{"):
        return set(), set()
    keys: set[str] = set()
    of_case: set[str] = set()
    depth, in_cases, last = 0, False, ""
    for match in _TOKEN.finditer(head):
        if match[2]:
            last = match[1]
            if depth == 1:
                keys.add(last)
            elif depth == 3 and in_cases:
                of_case.add(last)
        elif match[0] in "[{":
            in_cases = last in ("eval_cases", "evalCases") if depth == 1 else in_cases
            depth += 1
        elif match[0] in "]}":
            depth -= 1
    return keys, of_case


def read_data(path: Path) -> Any | Problem:
    """The data of a JSON or YAML file, or the problem of reading it."""
    return data_of(path, text_or_problem(path))


def data_of(path: Path, text: str | Problem) -> Any | Problem:
    """The data in the text of a JSON or YAML file; a problem of reading it stays."""
    if isinstance(text, Problem):
        return text
    return parse_yaml(text) if path.suffix in YAML_SUFFIXES else parse(text)


def recognised(path: Path) -> FileKind | None:
    """The kind of a file; None for an eval set, an unknown kind, and an unreadable file."""
    try:
        if read_regular(path, len(SQLITE)) == SQLITE:
            return SESSION_DATABASE if _has_sessions(path) else None
        if path.suffix in YAML_SUFFIXES and path.stat().st_size > _LARGEST_YAML:
            return None
    except OSError:
        return None
    data = read_data(path)
    return None if isinstance(data, Problem) else file_kind(data)


def _has_sessions(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except sqlite3.Error:
        return False
    return {"sessions", "events"} <= {name for (name,) in rows}


InitialSession = str | Path | Mapping[str, Any] | None


@dataclass(frozen=True)
class SetData:
    """A file as JSON data in the shape of the EvalSet schema.

    `data` is None where the file cannot be read as any format. `text` is what the lines of paths are
    counted in; the paths of problems are those of the file's own format.
    """

    format: Format | None
    """None where it is unknown."""
    data: Any
    text: str
    problems: tuple[Problem, ...]
    eval_set: EvalSet | None = None
    """The set as a model; None before validation, and for errors."""


def load_eval_set(path: str | Path, initial_session: InitialSession = None) -> EvalSet:
    """The eval set of a file, in the EvalSet schema or one of the two formats before it.

    `initial_session` is for the old `.test.json` format: `{"app_name", "user_id", "state"}`, or the path of a
    file with that. Raises EvalSetError with every error found, each with path and line; warnings pass.
    """
    loaded = read_eval_set(Path(path), initial_session)
    if loaded.eval_set is None:
        raise EvalSetError(errors_in(loaded.problems))
    return loaded.eval_set


def read_eval_set(
    path: Path, initial_session: InitialSession = None, mend: Callable[[Any], Any] | None = None
) -> SetData:
    """The eval set of a file and all its problems; never raises for its content.

    `mend` may change its JSON data before they are read, but not the places of values.
    """
    session, problems = read_session(initial_session)
    return with_model(path, read_set_data(path, session, mend), problems)


def with_model(path: Path, read: SetData, problems: Sequence[Problem] = ()) -> SetData:
    """The data of a file, validated, with `problems` that are known already."""
    from evaltui.core.model.validation import validate_eval_set

    problems = [*problems, *read.problems]
    eval_set = None
    if read.data is not None and not has_error(problems):
        eval_set, set_problems = validate_eval_set(read.data)
        if read.format == "eval set":
            problems += locate(set_problems, read.text, str(path))
        elif eval_set is None:
            # Paths into converted data are not paths of the file.
            problems += [_at_file(path, Problem.error((), str(problem))) for problem in set_problems]
    return replace(read, eval_set=eval_set, problems=tuple(problems))


def read_set_data(
    path: Path, session: Json | None = None, mend: Callable[[Any], Any] | None = None
) -> SetData:
    """A file as JSON data; old formats are converted, an old test with `session` as its session input.

    For `mend` see `read_eval_set`.
    """
    return set_data(path, text_or_problem(path), session, mend)


def set_data(
    path: Path, text: str | Problem, session: Json | None = None, mend: Callable[[Any], Any] | None = None
) -> SetData:
    """The data of an eval set from the text of a file, or from the problem of reading it."""
    data = parse(text) if isinstance(text, str) else text
    if isinstance(text, Problem) or isinstance(data, Problem):
        other = recognised(path)
        wrong = data if other is None else NOT_AN_EVAL_SET.at((), f"not an eval set, but {other.sentence}")
        return SetData(None, None, "", (_at_file(path, wrong),))
    if mend is not None:
        data = mend(data)
    kind = kind_of(data)
    if kind == "eval set":
        converted, problems = data, _misplaced(session, "the EvalSet schema")
    elif kind == "dataset":
        converted, problems = datasets.from_dataset(data, set_name(path))
        problems += _misplaced(session, "session_inputs of its own")
    elif kind == "old test":
        converted, problems = from_old_test(data, set_name(path), session)
    elif kind == "old eval set":
        converted, problems = from_old_eval_set(data, set_name(path))
        problems += _misplaced(session, "sessions of its own")
    else:
        converted, problems = None, [_no_format(data)]
    return SetData(kind, converted, text, tuple(locate([*duplicate_keys(text), *problems], text, str(path))))


def set_name(path: Path) -> str:
    """The id that a set of an old format gets: the file's name without its suffix."""
    for suffix in SET_SUFFIXES:
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)]
    return path.stem


def read_session(source: InitialSession) -> tuple[Json | None, list[Problem]]:
    """The session that starts sets of the old format, None for an empty one, and all problems."""
    if source is None:
        return None, []
    if not isinstance(source, str | Path):
        session, problems = session_input(dict(source))
        return session, [_at_file("initial_session", problem) for problem in problems]
    text = text_or_problem(Path(source))
    data = parse(text) if isinstance(text, str) else text
    if isinstance(text, Problem) or isinstance(data, Problem):
        return None, [_at_file(source, data)]
    session, problems = session_input(data)
    return session, locate([*duplicate_keys(text), *problems], text, str(source))


def _misplaced(session: Json | None, format: str) -> list[Problem]:
    if session is None:
        return []
    message = f"an initial session needs the old .test.json format; this file has {format}"
    return [Problem.error((), message)]


def _no_format(data: Any) -> Problem:
    if (other := file_kind(data)) is not None:
        return NOT_AN_EVAL_SET.at((), f"not an eval set, but {other.sentence}")
    if isinstance(data, list):
        description = "a list of something else" if data else "an empty list"
    else:
        description = value_in_words(data)
    return NOT_AN_EVAL_SET.at(
        (),
        "not an eval set: expected an object with eval_set_id and eval_cases, or (old formats) "
        f"a list of turns with query or a list of sessions with name and data; found {description}",
    )


def _at_file(path: str | Path, problem: Problem) -> Problem:
    return replace(problem, file=str(path))


def changes(old: Path) -> list[Problem]:
    """Warnings about data of an old file that its converted set lacks or changes."""
    text = text_or_problem(old)
    data = parse(text) if isinstance(text, str) else text
    if not isinstance(text, str) or isinstance(data, Problem):
        return []
    problems = [*texts_without_author(data), *left_out_warnings(data), *datasets.left_out_warnings(data)]
    return locate(problems, text, str(old))


def migrated_text(eval_set: EvalSet, new: Path) -> str:
    """The text of a converted set as the file `new`.

    The set is named after the new file: google-adk looks sets up by their file's name.
    """
    # Models load slowly, and reading this module must not wait for them.
    from evaltui.core.model.base_model import dump

    is_named_by_id = eval_set.name in (None, eval_set.eval_set_id)
    names = {"eval_set_id": set_name(new)} | ({"name": set_name(new)} if is_named_by_id else {})
    named = eval_set.model_copy(update=names)
    data = dump(named)
    data["eval_cases"] = list(map(datasets.without_original, data["eval_cases"]))
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
