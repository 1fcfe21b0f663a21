"""Traces as Jaeger's API and its page answer them: microseconds, typed tags, processes apart.

Jaeger keeps no log records of OpenTelemetry: messages that a producer logs never get there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltui.traces.formats.otlp import json_value, object_of, objects
from evaltui.traces.span import (
    SPAN_ID,
    TRACE_ID,
    Attributes,
    OtelSpan,
    Recorded,
    SpanEvent,
    nanoseconds,
    normal_id,
)

Json = Mapping[str, Any]

_MICROSECOND = 1_000
_DROPPED = ("otel.dropped_attributes_count", "otel.dropped_events_count")


def is_jaeger(document: Json) -> bool:
    traces = document.get("data")
    if isinstance(traces, list):
        return any(isinstance(trace, dict) and "spans" in trace for trace in traces)
    return "traceID" in document and "spans" in document


def read_jaeger(document: Json) -> Recorded:
    """One trace, or `{"data": [...]}` of several."""
    recorded = Recorded()
    traces = document["data"] if isinstance(document.get("data"), list) else [document]
    for trace in objects(traces):
        processes = {
            key: _tags(process.get("tags")) | {"service.name": process.get("serviceName")}
            for key, process in object_of(trace.get("processes")).items()
            if isinstance(process, dict)
        }
        recorded.spans += [_span(span, trace, processes) for span in objects(trace.get("spans"))]
    return recorded


def _span(span: Json, trace: Json, processes: Mapping[str, Attributes]) -> OtelSpan:
    tags = _tags(span.get("tags"))
    start = nanoseconds(span.get("startTime")) * _MICROSECOND
    code = str(tags.pop("otel.status_code", "")).lower()
    failed = code == "error" or str(tags.pop("error", "")).lower() == "true"
    process = span.get("processID")
    return OtelSpan(
        normal_id(span.get("traceID") or trace.get("traceID"), TRACE_ID),
        normal_id(span.get("spanID"), SPAN_ID),
        _parent(span),
        str(span.get("operationName") or ""),
        start,
        start + nanoseconds(span.get("duration")) * _MICROSECOND,
        tags,
        [_event(log) for log in objects(span.get("logs"))],
        "error" if failed else "ok" if code == "ok" else "",
        str(tags.pop("otel.status_description", "")),
        processes.get(process, {}) if isinstance(process, str) else {},
        str(tags.pop("otel.scope.name", "") or tags.pop("otel.library.name", "")),
        sum(count for count in map(tags.get, _DROPPED) if isinstance(count, int)),
    )


def _parent(span: Json) -> str:
    references = (
        normal_id(reference.get("spanID"), SPAN_ID)
        for reference in objects(span.get("references"))
        if reference.get("refType") == "CHILD_OF"
    )
    # Some versions have the parent in a field of its own.
    return next(references, "") or normal_id(span.get("parentSpanID"), SPAN_ID)


def _event(log: Json) -> SpanEvent:
    fields = _tags(log.get("fields"))
    name = fields.pop("event", "") or fields.pop("name", "")
    return SpanEvent(str(name), fields, nanoseconds(log.get("timestamp")) * _MICROSECOND)


def _tags(tags: Any) -> Attributes:
    return {str(tag.get("key")): _value(tag) for tag in objects(tags)}


def _value(tag: Json) -> Any:
    value = tag.get("value")
    # Lists come as texts of JSON; a text that is meant to be JSON is read by whoever knows that.
    if isinstance(value, str) and value.startswith('["'):
        return json_value(value)
    return value
