"""The tables of a run's file, which is a SQLite file, and how its columns hold texts and results.

guide/formats.md documents them for users. Only this module, `run_file`, `run_writer` and `score_table` know
SQL of runs.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer, SchemaValidator

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import RepeatResult

VERSION = 3
"""`user_version` of the file. Others are refused."""
APPLICATION = 0x6576616C
SCHEMA = """
CREATE TABLE run (
    started TEXT NOT NULL, number INTEGER, evaltui TEXT NOT NULL, python TEXT NOT NULL,
    status TEXT, seconds REAL, stopped TEXT, header TEXT NOT NULL, agent TEXT
);
CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE sets (
    path TEXT PRIMARY KEY, eval_set_id TEXT NOT NULL, whole INTEGER NOT NULL, fingerprint TEXT,
    of_traces INTEGER NOT NULL, config TEXT, file TEXT, config_path TEXT, defaulted TEXT, not_used TEXT,
    unselected TEXT
);
CREATE TABLE cases (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, eval_id TEXT NOT NULL, eval_set_id TEXT NOT NULL,
    place INTEGER, tags TEXT, conversations TEXT, runs_asked INTEGER,
    status TEXT, runs INTEGER, passed INTEGER, policy_met INTEGER, seconds REAL, tokens REAL,
    usd REAL, saved_usd REAL, unpriced INTEGER, unseen INTEGER, summary TEXT,
    UNIQUE (path, eval_id)
);
CREATE TABLE eval_cases (case_id INTEGER PRIMARY KEY REFERENCES cases, eval_case TEXT NOT NULL);
CREATE TABLE repeats (
    case_id INTEGER NOT NULL REFERENCES cases, repeat INTEGER NOT NULL, status TEXT NOT NULL,
    seconds REAL NOT NULL, result TEXT NOT NULL,
    UNIQUE (case_id, repeat)
);
CREATE TABLE scores (
    case_id INTEGER NOT NULL REFERENCES cases, repeat INTEGER NOT NULL, metric TEXT NOT NULL,
    score REAL, threshold REAL, status TEXT NOT NULL,
    PRIMARY KEY (case_id, repeat, metric)
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY, case_id INTEGER REFERENCES cases, repeat INTEGER NOT NULL, kind TEXT NOT NULL,
    event TEXT NOT NULL
);
CREATE INDEX events_of_repeats ON events (case_id, repeat);
CREATE TABLE spending (usd REAL NOT NULL, tokens REAL NOT NULL);
"""


class Row:
    """How values of a dataclass are stored as JSON: with all fields, those too that no report has."""

    def __init__(self, kind: type, *in_columns: str) -> None:
        """`in_columns` are fields that other columns have."""
        schema = TypeAdapter(kind).core_schema
        self.read = SchemaValidator(schema).validate_python
        self._write = SchemaSerializer(with_all_fields(schema)).to_python
        self._in_columns = {*in_columns}

    def write(self, value: Any) -> dict[str, Any]:
        """JSON data without defaults, and without what is computed."""
        # With mode="json", NaN and infinity would be null.
        data: dict[str, Any] = self._write(
            value, round_trip=True, exclude_defaults=True, exclude=self._in_columns
        )
        return data


def with_all_fields(schema: Any) -> Any:
    """A schema that serializes fields, too, that no report has."""
    if isinstance(schema, dict):
        return {key: with_all_fields(one) for key, one in schema.items() if key != "serialization_exclude"}
    return [*map(with_all_fields, schema)] if isinstance(schema, list) else schema


SUMMARY = Row(CaseSummary, "path", "eval_id", "eval_set_id")
REPEAT = Row(RepeatResult, "actual")
"""Without the turns as they ran: the events tell of them."""

# Seconds that one who writes or reads waits for the other.
_WAIT = 60.0


def stored(text: str) -> str | bytes:
    """A text as a column has it: one that is not Unicode, as the name of a file may be, as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def text_of(value: Any) -> Any:
    """The value of a column; what `stored` made bytes is a text again."""
    return value.decode("utf-8", "surrogatepass") if type(value) is bytes else value


def connect(path: Path, wait: float = _WAIT) -> sqlite3.Connection:
    """Raises OSError for a file that is not there or cannot be opened."""
    path.stat()
    # Opened for writing, since a run that was killed is rolled back by whoever reads it first.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        return sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error


def connect_memory() -> sqlite3.Connection:
    """Connects to a new database in memory."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
