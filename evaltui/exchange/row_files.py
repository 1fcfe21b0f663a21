"""Rows in files: CSV with commas, semicolons or tabs, JSON lines, and JSON with a list of objects."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.json_values import value_at
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.documents.json_text import lines_of, parse, text_or_problem
from evaltui.exchange.imported import Json, NotTaken, UnusableSourceError
from evaltui.text.figures import counted
from evaltui.text.values import unguarded_cell, value_in_words

COLUMNS = ("id", "user", "calls", "expected", "tags")
"""The columns of a table that evaltui writes."""
CSV_SUFFIXES = (".csv", ".tsv")
_DELIMITERS = ",;\t"
_LONGEST_CELL = 1 << 30
# The list of rows in responses of APIs: Phoenix, Langfuse, and others.
_LISTS: tuple[JsonPath, ...] = (("data", "examples"), ("data",), ("examples",), ("items",), ("rows",))


@dataclass(frozen=True)
class Row:
    """A row of a table, or an object of a list."""

    values: Json
    source: str
    """File and line."""
    is_csv: bool = False
    """Whether its values are texts of cells."""


@dataclass(frozen=True)
class Rows:
    """The rows of a file."""

    rows: list[Row]
    not_taken: list[NotTaken]


def read_rows(path: Path) -> Rows:
    """The rows of a file; its name says whether it is CSV. Raises UnusableSourceError."""
    text = _text(path)
    if path.suffix.lower() in CSV_SUFFIXES:
        return _csv_rows(path, text)
    data = parse(text)
    if isinstance(data, Problem):
        first = text.lstrip().partition("\n")[0]
        if isinstance(parse(first), Problem):
            raise UnusableSourceError(f"{path}:{data.line or 1}: {data.message}")
        return Rows(_json_lines(path, text), [])
    if (where := rows_path(data)) is None:
        if isinstance(data, dict):
            return Rows([Row(data, f"{path}:1")], [])
        raise UnusableSourceError(f"{path}: must be a list of objects, is {value_in_words(data)}")
    return Rows(list(_objects(path, text, data, where)), [])


def rows_path(data: Any) -> JsonPath | None:
    """The path of the list of rows in JSON data; None where there is none."""
    if isinstance(data, list):
        return ()
    lists = (path for path in _LISTS if isinstance(value_at(data, path), list))
    return next(lists, None) if isinstance(data, dict) else None


def _text(path: Path) -> str:
    text = text_or_problem(path)
    if isinstance(text, Problem):
        raise UnusableSourceError(f"{path}{f':{text.line}' if text.line else ''}: {text.message}")
    return text


def _objects(path: Path, text: str, data: Any, where: JsonPath) -> Iterator[Row]:
    items = value_at(data, where)
    lines = lines_of(text, [(*where, number) for number in range(len(items))])
    for number, item in enumerate(items):
        source = f"{path}:{lines[(*where, number)]}"
        if not isinstance(item, dict):
            raise UnusableSourceError(f"{source}: a row must be an object, is {value_in_words(item)}")
        yield Row(item, source)


def _json_lines(path: Path, text: str) -> list[Row]:
    rows = []
    # Line separators other than these may stand within a text.
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip():
            continue
        data = parse(line)
        if isinstance(data, Problem):
            raise UnusableSourceError(f"{path}:{number}: {data.message}")
        if not isinstance(data, dict):
            raise UnusableSourceError(f"{path}:{number}: a row must be an object, is {value_in_words(data)}")
        rows.append(Row(data, f"{path}:{number}"))
    return rows


def _csv_rows(path: Path, text: str) -> Rows:
    delimiter = _delimiter(text)
    previous = csv.field_size_limit(_LONGEST_CELL)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        return _of_reader(path, reader)
    except csv.Error as error:
        raise UnusableSourceError(f"{path}:{reader.line_num}: not valid CSV: {error}") from error
    finally:
        csv.field_size_limit(previous)


def _of_reader(path: Path, reader: Any) -> Rows:
    header: list[str] = []
    rows = Rows([], [])
    line = 1
    for cells in reader:
        source, line = f"{path}:{line}", reader.line_num + 1
        if not any(map(str.strip, cells)):
            continue
        if not header:
            header = [cell.strip() for cell in cells]
            if twice := next((name for name in header if name and header.count(name) > 1), None):
                raise UnusableSourceError(f"{source}: two columns have the name {twice!r}; rename one")
            continue
        if any(map(str.strip, cells[len(header) :])):
            reason = f"the row has {counted(len(cells), 'cell')}, the header {len(header)}"
            rows.not_taken.append(NotTaken(source, (f"cell {len(header) + 1}",), reason))
        if header == list(COLUMNS):
            # In other tables an apostrophe may belong to the text.
            cells = [unguarded_cell(cell) for cell in cells]
        values = dict(zip(header, cells, strict=False))
        rows.rows.append(Row(values, source, is_csv=True))
    return rows


def _delimiter(text: str) -> str:
    """The delimiter that is most frequent in the header, outside quotes."""
    header = ""
    quoted = False
    for letter in text.lstrip("\r\n"):
        if letter == '"':
            quoted = not quoted
        elif letter in "\r\n" and not quoted:
            break
        elif not quoted:
            header += letter
    return max(_DELIMITERS, key=header.count)


def json_in(value: Any) -> Any:
    """The JSON object or list in a text, as cells have them; other values as they are."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
