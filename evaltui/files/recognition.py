"""The kinds of files by content: the beginning of a set, YAML, session databases."""

from __future__ import annotations

import re
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

from evaltui.core.model.datasets import is_dataset_case
from evaltui.core.model.file_kinds import SESSION_DATABASE, FileKind, file_kind
from evaltui.core.model.problems import Problem
from evaltui.documents.json_text import parse, read_text

SQLITE = b"SQLite format 3\0"
"""The first bytes of a SQLite file."""
YAML_SUFFIXES = (".yaml", ".yml")

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
    return _set_kind(path, stat.st_mtime_ns, stat.st_size) if S_ISREG(stat.st_mode) else None


@lru_cache(maxsize=10_000)
def _set_kind(path: Path, modified: int, size: int) -> SetKind | None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if b"eval_cases" not in head and b"evalCases" not in head:
        return None
    keys, of_case = _outline(head.decode("utf-8-sig", errors="replace"))
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


def parse_yaml(text: str) -> Any | Problem:
    """The data of a YAML text, or what is wrong with it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        return Problem.error((), f"not valid YAML: {error.problem or error.context}", line=line)
    except (YAMLError, ValueError, RecursionError) as error:
        return Problem.error((), f"not valid YAML: {str(error).splitlines()[0]}")


def recognised(path: Path) -> FileKind | None:
    """The kind of a file; None for an eval set, an unknown kind, and an unreadable file."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                return SESSION_DATABASE if _has_sessions(path) else None
        is_yaml = path.suffix in YAML_SUFFIXES
        if is_yaml and path.stat().st_size > _LARGEST_YAML:
            return None
        text = read_text(path)
    except OSError:
        return None
    if isinstance(text, Problem):
        return None
    return file_kind(parse_yaml(text) if is_yaml else parse(text))


def _has_sessions(path: Path) -> bool:
    # Few files are databases, and a run need not wait for what reads them.
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except sqlite3.Error:
        return False
    return {"sessions", "events"} <= {name for (name,) in rows}
