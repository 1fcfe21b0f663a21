"""Spans that google-adk keeps itself: its dev server's trace of a session, and its SQLite file.

The dev server restores content that was not captured. Source: google-adk 2.13, `telemetry`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from evaltui.traces.formats.otlp import json_value, object_of, objects
from evaltui.traces.span import (
    SPAN_ID,
    TRACE_ID,
    OtelSpan,
    Recorded,
    SpanEvent,
    UnreadableTraceError,
    nanoseconds,
    normal_id,
)

Json = Mapping[str, Any]

# Rows in memory.
_AT_ONCE = 100
_SCOPE = "gcp.vertex.agent"
_COLUMNS = (
    "span_id",
    "trace_id",
    "parent_span_id",
    "name",
    "start_time_unix_nano",
    "end_time_unix_nano",
    "attributes_json",
)


def is_served_span(item: Json) -> bool:
    """Whether an object is a span of `/debug/trace/session/...`: its ids are numbers."""
    return isinstance(item.get("span_id"), int) and isinstance(item.get("attributes"), dict)


def read_served_span(item: Json) -> OtelSpan:
    return OtelSpan(
        normal_id(item.get("trace_id"), TRACE_ID),
        normal_id(item.get("span_id"), SPAN_ID),
        normal_id(item.get("parent_span_id"), SPAN_ID),
        str(item.get("name") or ""),
        nanoseconds(item.get("start_time")),
        nanoseconds(item.get("end_time")),
        dict(item["attributes"]),
        [
            SpanEvent(str(log.get("event_name") or ""), object_of(log.get("attributes")), 0, log.get("body"))
            for log in objects(item.get("logs"))
        ],
        scope=_SCOPE,
    )


def read_sqlite(path: Path) -> Iterator[Recorded]:
    """The spans in a file of google-adk's `SqliteSpanExporter`; it keeps neither events nor states.

    Raises UnreadableTraceError for any other database.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            cursor = database.execute(f"SELECT {', '.join(_COLUMNS)} FROM spans")
            while rows := cursor.fetchmany(_AT_ONCE):
                yield Recorded([_span(dict(zip(_COLUMNS, row, strict=True))) for row in rows])
    except sqlite3.Error as error:
        raise UnreadableTraceError(f"not a file of google-adk's spans: {error}") from error


def _span(row: Json) -> OtelSpan:
    return OtelSpan(
        normal_id(row["trace_id"], TRACE_ID),
        normal_id(row["span_id"], SPAN_ID),
        normal_id(row["parent_span_id"], SPAN_ID),
        str(row["name"] or ""),
        nanoseconds(row["start_time_unix_nano"]),
        nanoseconds(row["end_time_unix_nano"]),
        object_of(json_value(row["attributes_json"])),
        scope=_SCOPE,
    )
