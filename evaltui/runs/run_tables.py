"""The tables of a run's SQLite file, and the encoding of texts and results in its columns.

guide/files.md documents them for users. SQL about runs is only in this module, `run_file`, `run_writer` and
`score_table`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache, partial
from operator import eq
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer, SchemaValidator, to_jsonable_python

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.base_model import in_order
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import (
    KEYS_OF_CASE,
    WORST_FIRST,
    CaseResult,
    RepeatResult,
    deciding_repeat,
)

VERSION = 4
"""`user_version` of the file; files with another version are refused."""
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
    usd REAL, saved_usd REAL, unpriced INTEGER, unseen INTEGER, summary TEXT, report TEXT,
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

RANKED = " ".join(f"WHEN '{status}' THEN {rank}" for rank, status in enumerate(WORST_FIRST))
"""The ranks of statuses, the worst first, as a part of a CASE of SQL."""


class Row:
    """Reads and writes values of a dataclass as JSON with all fields, including those that reports omit."""

    def __init__(self, kind: type, **how: Any) -> None:
        """Prepares a type; `how` are serialization options of pydantic."""
        schema = TypeAdapter(kind).core_schema
        self.read = SchemaValidator(schema).validate_python
        # With mode="json", NaN and infinity would be null.
        write = SchemaSerializer(with_all_fields(schema)).to_python
        self.write: Callable[[Any], Json] = partial(write, **how)


def with_all_fields(schema: Any) -> Any:
    """The schema with fields that reports omit, unless they have their defaults."""
    if isinstance(schema, list):
        return [*map(with_all_fields, schema)]
    if not isinstance(schema, dict):
        return schema
    fields = {key: with_all_fields(part) for key, part in schema.items()}
    if fields.pop("serialization_exclude", False) and "default" in schema["schema"]:
        fields["serialization_exclude_if"] = partial(eq, schema["schema"]["default"])
    return fields


IDS = {"path", "eval_id", "eval_set_id"}
"""Keys of a case that have their own columns."""
SUMMARY = Row(CaseSummary, round_trip=True, exclude_defaults=True, exclude=IDS)
REPEAT = Row(RepeatResult, by_alias=True)
"""JSON for repeats: that of reports, and the fields that reports omit."""
_CASE = TypeAdapter(CaseResult)


def case_json(case: CaseResult, leave_out: AbstractSet[str] = frozenset()) -> Json:
    """JSON data of a case as in reports, without the keys in `leave_out`."""
    data: Json = _CASE.dump_python(case, by_alias=True, warnings=False, exclude={*leave_out})
    return data


def case_row(case: CaseResult) -> Json:
    """The fields of a case that `whole_case` needs besides its repeats."""
    return case_json(case, {*IDS, "error", "metrics", "repeats", "turns", "state"})


def whole_case(row: Json, repeats: Sequence[Json]) -> Json:
    """JSON data of a case as in reports, from its row and those of its repeats."""
    deciding = repeats[deciding_repeat(row["status"], [repeat["status"] for repeat in repeats])]
    case = {
        **row,
        "error": deciding["error"],
        "metrics": deciding["metrics"],
        "repeats": repeats,
        "turns": deciding.get("turns", []),
        "state": deciding.get("state", []),
    }
    reported: Json = to_jsonable_python(case, exclude=_unreported_of_case())
    return in_order(reported, *KEYS_OF_CASE)


@cache
def _unreported_of_case() -> Json:
    # What is left out of the case itself, its row lacks.
    return {name: places for name, places in unreported_fields(CaseResult).items() if places is not True}


def unreported_fields(kind: Any) -> Json:
    """The fields of a dataclass, nested ones included, that reports omit, as an `exclude` option of
    pydantic."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        places = {
            field.metadata.get("alias", field.name): "exclude" in field.metadata
            or unreported_fields(hints[field.name])
            for field in fields(kind)
        }
        return {name: place for name, place in places.items() if place}
    places = {name: place for part in get_args(kind) for name, place in unreported_fields(part).items()}
    return {"__all__": places} if places and get_origin(kind) is tuple else places


# Seconds that one who writes or reads waits for the other.
_LOCK_SECONDS = 60.0


def column_value(text: str) -> str | bytes:
    """A text as a column value; bytes for text with lone surrogates, such as some file names."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def column_text(value: Any) -> Any:
    """The value of a column, with bytes decoded to text."""
    return value.decode("utf-8", "surrogatepass") if type(value) is bytes else value


def connect(path: Path, wait: float = _LOCK_SECONDS) -> sqlite3.Connection:
    """Connects to a file. Raises OSError for a missing or unreadable file."""
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
