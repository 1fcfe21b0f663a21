"""Spans as the console exporter of OpenTelemetry's Python SDK prints them, one JSON object after another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from evaltui.traces.formats.otlp import object_of, objects
from evaltui.traces.span import SPAN_ID, TRACE_ID, OtelSpan, SpanEvent, normal_id

Json = Mapping[str, Any]

_STATUSES: Mapping[Any, Literal["", "ok", "error"]] = {"OK": "ok", "ERROR": "error"}
_SECOND = 1_000_000_000
_MICROSECOND = 1_000


def is_printed_span(item: Json) -> bool:
    context = item.get("context")
    return isinstance(context, dict) and "trace_id" in context and "span_id" in context


def read_printed_span(item: Json) -> OtelSpan:
    """Reads a printed span, which does not name the instrumentation that made it."""
    context, status = item["context"], object_of(item.get("status"))
    return OtelSpan(
        normal_id(context["trace_id"], TRACE_ID),
        normal_id(context["span_id"], SPAN_ID),
        normal_id(item.get("parent_id"), SPAN_ID),
        str(item.get("name") or ""),
        _time(item.get("start_time")),
        _time(item.get("end_time")),
        object_of(item.get("attributes")),
        [_event(event) for event in objects(item.get("events"))],
        _STATUSES.get(str(status.get("status_code")), ""),
        str(status.get("description") or ""),
        object_of(object_of(item.get("resource")).get("attributes")),
    )


def _event(event: Json) -> SpanEvent:
    name, time = str(event.get("name") or ""), _time(event.get("timestamp"))
    return SpanEvent(name, object_of(event.get("attributes")), time)


def _time(text: Any) -> int:
    """Nanoseconds since 1970 of a time in ISO format; 0 for anything else."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return 0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * _SECOND + moment.microsecond * _MICROSECOND
