"""JSON files as text: decoding, syntax errors in words, and the line on which a path is."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltui.core.model.json_values import values_in
from evaltui.core.model.problems import DUPLICATE_KEY, NOT_JSON, UNREADABLE_FILE, JsonPath, Problem
from evaltui.documents.files import read_regular
from evaltui.documents.nodes import BOM, parse_nodes, skip_space

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""The first bytes of a file in UTF-16."""
LFS_POINTER = "version https://git-lfs.github.com/spec/"
"""The beginning of a file whose content Git LFS has not fetched."""


def read_text(path: Path) -> str | Problem:
    """The text of a file in UTF-8, in any locale, without a byte order mark and with its line endings.

    Raises OSError for an unreadable file.
    """
    return decode(read_regular(path))


def text_or_problem(path: Path) -> str | Problem:
    """The text of a file as from `read_text`, or the problem of reading it."""
    try:
        return read_text(path)
    except OSError as error:
        return UNREADABLE_FILE.at((), why_unreadable(path, error))


def why_unreadable(path: Path, error: OSError) -> str:
    """Why an existing file or folder is unreadable, with a remedy, as a clause; "no such file" for a
    missing one."""
    if isinstance(error, FileNotFoundError):
        return f"link to {path.readlink()}, which does not exist" if path.is_symlink() else "no such file"
    if os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK):  # noqa: PTH112
        return "cannot be read: no permission to list and enter this folder; allow it with chmod u+rx"
    if isinstance(error, PermissionError):
        return f"cannot be read: {error.strerror}; allow it with chmod u+r, or move the file away"
    return f"cannot be read: {error.strerror or error}"


def decode(data: bytes) -> str | Problem:
    """Bytes in UTF-8 as text without a byte order mark; the first byte that is wrong as a problem."""
    if data.startswith(UTF16_MARKS):
        return NOT_JSON.at((), "is UTF-16; save it as UTF-8", line=1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Python counts from after a byte order mark.
        offset = error.start + len(data) - len(error.object)
        message = f"not UTF-8: byte 0x{data[offset]:02X} at offset {offset}; save the file as UTF-8"
        return NOT_JSON.at((), message, line=data.count(b"\n", 0, offset) + 1)


def parse(text: str) -> Any | Problem:
    """The data of a JSON text, or its syntax error. Of a duplicate key the last value counts."""
    try:
        return json.loads(text.removeprefix(BOM))
    except json.JSONDecodeError as error:
        return _syntax_problem(error)
    except RecursionError:
        return NOT_JSON.at((), "not readable: its lists and objects are nested too deeply")
    except ValueError as error:
        # Python's limit on the digits of a number.
        return NOT_JSON.at((), f"not readable: {error}")


def _syntax_problem(error: json.JSONDecodeError) -> Problem:
    text = error.doc
    what, position = _syntax_error(text, error.pos, error.msg)
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return NOT_JSON.at((), f"not valid JSON: {what} (column {column})", line=line)


_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}


_LINT_FIX = "`evaltui lint --fix FILE`"
_COMMA = f"a comma before the closing bracket; {_LINT_FIX} removes it"


def _syntax_error(text: str, position: int, message: str) -> tuple[str, int]:
    """A sentence on a syntax error, and its position, which may be before the parser's."""
    if not text.strip():
        return "the file is empty", 0
    if text.startswith(LFS_POINTER):
        return "a pointer of Git LFS; `git lfs pull` fetches the file", 0
    if message.startswith("Unterminated string"):
        return "unterminated text; close it with a double quote", position
    if message.startswith("Invalid control character"):
        return "a line break or control character inside a text; write \\n for a line break", position
    if message.startswith("Invalid \\"):
        return "a backslash that starts no escape; write \\\\ for a backslash", position
    before = text[:position].rstrip()
    position = skip_space(text, position)
    rest = text[position:]
    if not rest:
        return "the file ends too early; a closing bracket or a value is missing", len(before)
    if rest.startswith(("//", "/*", "#")):
        return f"a comment; {_LINT_FIX} removes comments", position
    if rest.startswith("'"):
        return "single quotes; texts and keys need double quotes", position
    if rest[0] == "," and rest[1:].lstrip().startswith(("}", "]")):
        return _COMMA, position
    if rest[0] in "}]" and before.endswith(","):
        return _COMMA, len(before) - 1
    if message.startswith("Extra data"):
        return "text after the end of the document", position
    if message.startswith("Expecting ',' delimiter"):
        # At the end of the line that lacks it, not at the start of the next one.
        bracket = f"the bracket after this should not be {rest[0]}"
        return bracket if rest[0] in "}]" else "a comma is missing after this", len(before) - 1
    if message.startswith("Expecting ':' delimiter"):
        return "a colon is missing after this key", len(before) - 1
    if message.startswith("Expecting property name"):
        return "a key in double quotes is missing", position
    word = re.match(r"\w+", rest)
    if word and word[0] in _WORDS:
        return f"{word[0]} is not JSON; write {_WORDS[word[0]]}", position
    return "a value is missing or invalid", position


# Strings first, so that what looks like a comment in one stays.
# Stands where a comment was; no JSON text has this character.
_REMOVED = "\0"
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|(?P<comment>(?://|#)[^\n]*|/\*.*?\*/)', re.DOTALL)
_LAST_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|(?P<comma>,)(?=\s*[}\]])', re.DOTALL)


def without_comments(text: str) -> tuple[str, tuple[Problem, ...]]:
    """The text without comments and without commas before a closing bracket, and a problem for each removal.

    A line that holds only comments is removed whole.
    """
    removals = list[Problem]()

    def removed(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match[0]
        line = match.string.count("\n", 0, match.start()) + 1
        removals.append(NOT_JSON.at((), f"{match.lastgroup} removed", line=line))
        return _REMOVED if match.lastgroup == "comment" else ""

    text = _COMMENT.sub(removed, text)
    text = re.sub(rf"^[^\S\n]*(?:{_REMOVED}[^\S\n]*)+\r?\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"[^\S\r\n]*{_REMOVED}", "", text)
    return _LAST_COMMA.sub(removed, text), tuple(removals)


def duplicate_keys(text: str) -> list[Problem]:
    """An error for each duplicate key of an object, without lines; none for invalid JSON."""
    repeated: list[tuple[dict[str, Any], str]] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.extend((made, key) for key, count in counts.items() if count > 1)
        return made

    try:
        data = json.loads(text.removeprefix(BOM), object_pairs_hook=collect)
    except (RecursionError, ValueError):
        # The hook needs one level more than plain parsing, which went well; a text may be of another format.
        return []
    if not repeated:
        return []
    # By identity.
    places = {id(value): path for path, value in values_in(data) if isinstance(value, dict)}
    paths = [(*places[id(made)], key) for made, key in repeated if id(made) in places]
    message = "given more than once, of which ADK reads the last; remove all but one"
    return [DUPLICATE_KEY.at(path, message) for path in paths]


def locate(problems: Sequence[Problem], text: str, file: str | None = None) -> list[Problem]:
    """The problems with the lines of their paths and the name of the file, where they are missing."""
    lines = lines_of(text, [problem.path for problem in problems if problem.line is None])
    return [
        replace(problem, line=problem.line or lines[problem.path], file=problem.file or file)
        for problem in problems
    ]


def lines_of(text: str, paths: Iterable[JsonPath]) -> dict[JsonPath, int]:
    """The line, from 1, on which each path begins: for a member of an object, the line of its key.

    A path that the text does not have gets the line of its deepest ancestor that exists. The text must be
    valid JSON.
    """
    paths = list(paths)
    if not paths:
        return {}
    root = parse_nodes(text)
    positions = dict.fromkeys(paths, root.item_start)
    # Near Python's recursion limit a text may parse and yet be too deep a few calls further down.
    with suppress(RecursionError):
        positions = {path: root.deepest_way(path)[-1].item_start for path in paths}
    lines: dict[int, int] = {}
    line, counted = 1, 0
    for position in sorted(set(positions.values())):
        line += text.count("\n", counted, position)
        counted = position
        lines[position] = line
    return {path: lines[position] for path, position in positions.items()}
