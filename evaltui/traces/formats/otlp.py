"""OTLP as JSON: what exporters and the Collector write, what Tempo's API answers, and bare spans.

Field names are read in camelCase and snake_case, enums as numbers and names, ids in hexadecimal and base64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from evaltui.traces.span import (
    SPAN_ID,
    TRACE_ID,
    Attributes,
    LogRecord,
    OtelSpan,
    Recorded,
    SpanEvent,
    nanoseconds,
    normal_id,
)

Json = dict[str, Any]

STATUSES: Mapping[Any, Literal["", "ok", "error"]] = {
    1: "ok",
    2: "error",
    "1": "ok",
    "2": "error",
    "STATUS_CODE_OK": "ok",
    "STATUS_CODE_ERROR": "error",
    "Ok": "ok",
    "OK": "ok",
    "Error": "error",
    "ERROR": "error",
}
# Values within values; deeper ones are none that a producer writes.
_DEEPEST = 100


def is_otlp(document: Json) -> bool:
    names = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "batches")
    return any(name in document for name in names) or isinstance(document.get("trace"), dict)


def read_otlp(document: Json) -> Recorded:
    """A document of spans, of log records, or of both; Tempo has them under `batches` or `trace`."""
    inner = document.get("trace")
    if isinstance(inner, dict):
        return read_otlp(inner)
    recorded = Recorded()
    for name in ("resourceSpans", "batches", "resourceLogs"):
        for group in objects(either(document, name)):
            _read_group(group, recorded)
    return recorded


def _read_group(group: Json, recorded: Recorded) -> None:
    resource = attributes(either(object_of(group.get("resource")), "attributes"))
    for name in ("scopeSpans", "instrumentationLibrarySpans"):
        for scoped in objects(either(group, name)):
            scope = object_of(scoped.get("scope") or either(scoped, "instrumentationLibrary"))
            for span in objects(scoped.get("spans")):
                recorded.spans.append(read_span(span, resource, str(scope.get("name") or "")))
    for scoped in objects(either(group, "scopeLogs")):
        for record in objects(either(scoped, "logRecords")):
            recorded.logs.append(_log(record))


def is_bare_span(item: Json) -> bool:
    return isinstance(either(item, "spanId"), str) and "traceID" not in item


def read_span(span: Json, resource: Attributes, scope: str) -> OtelSpan:
    """A span in OTLP's spelling; attributes may be plain JSON as well."""
    status = object_of(span.get("status"))
    return OtelSpan(
        normal_id(either(span, "traceId"), TRACE_ID),
        normal_id(either(span, "spanId"), SPAN_ID),
        normal_id(either(span, "parentSpanId"), SPAN_ID),
        str(span.get("name") or ""),
        nanoseconds(either(span, "startTimeUnixNano") or either(span, "startTime")),
        nanoseconds(either(span, "endTimeUnixNano") or either(span, "endTime")),
        attributes(span.get("attributes")),
        [_event(event) for event in objects(span.get("events"))],
        STATUSES.get(status.get("code"), "") if not isinstance(status.get("code"), list | dict) else "",
        str(status.get("message") or ""),
        resource,
        scope,
        _dropped(span) + sum(_dropped(event) for event in objects(span.get("events"))),
    )


def _dropped(item: Json) -> int:
    counts = (either(item, name) for name in ("droppedAttributesCount", "droppedEventsCount"))
    return sum(count for count in counts if isinstance(count, int))


def _event(event: Json) -> SpanEvent:
    time = nanoseconds(either(event, "timeUnixNano"))
    return SpanEvent(str(event.get("name") or ""), attributes(event.get("attributes")), time)


def _log(record: Json) -> LogRecord:
    values = attributes(record.get("attributes"))
    name = either(record, "eventName") or values.get("event.name") or values.get("otel.event.name") or ""
    time = nanoseconds(either(record, "timeUnixNano") or either(record, "observedTimeUnixNano"))
    return LogRecord(
        normal_id(either(record, "traceId"), TRACE_ID),
        normal_id(either(record, "spanId"), SPAN_ID),
        SpanEvent(str(name), values, time, any_value(record.get("body"))),
    )


def attributes(raw: Any) -> Attributes:
    """Attributes as a list of keys with typed values, or as a plain object; of twins the last one counts."""
    if isinstance(raw, dict):
        return {str(key): any_value(value) for key, value in raw.items()}
    return _keyed_values(raw)


def _keyed_values(raw: Any, depth: int = 0) -> Attributes:
    return {
        str(entry["key"]): any_value(entry.get("value"), depth) for entry in objects(raw) if "key" in entry
    }


def any_value(value: Any, depth: int = 0) -> Any:
    """A typed value of OTLP as JSON; a plain one stays as it is."""
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEEPEST:
        return value
    ((kind, inner),) = value.items()
    match kind:
        case "stringValue" | "string_value":
            return inner
        case "boolValue" | "bool_value":
            return inner if isinstance(inner, bool) else str(inner).lower() == "true"
        case "intValue" | "int_value":
            return _number(inner, int)
        case "doubleValue" | "double_value":
            return _number(inner, float)
        case "arrayValue" | "array_value":
            values = object_of(inner).get("values")
            return [any_value(entry, depth + 1) for entry in (values if isinstance(values, list) else ())]
        case "kvlistValue" | "kvlist_value":
            return _keyed_values(object_of(inner).get("values"), depth + 1)
        case "bytesValue" | "bytes_value":
            return inner
    return value


def _number(value: Any, kind: type[int] | type[float]) -> Any:
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        return value
    # JSON has no word for them.
    return number if isinstance(number, int) or math.isfinite(number) else str(value)


def either(data: Json, name: str) -> Any:
    """A field in camelCase, else in snake_case."""
    if name in data:
        return data[name]
    return data.get("".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name))


def json_value(value: Any) -> Any:
    """The value of a JSON text; a text that is no JSON and any other value stay as they are."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def object_of(value: Any) -> Json:
    """A copy of an object; an empty one for any other value."""
    return dict(value) if isinstance(value, dict) else {}


def objects(value: Any) -> Iterator[Json]:
    """The objects in a list; none for any other value."""
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
