"""Spans as an OTLP request in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaltui.core.model.events import Json
from evaltui.text.values import valid_text
from evaltui.traces.span import OtelSpan, SpanEvent

SCOPE = "evaltui"
_INTERNAL = 1
_STATUSES = {"": 0, "ok": 1, "error": 2}
_INT64 = 2**63


def otlp_json(groups: Sequence[tuple[Mapping[str, Any], Sequence[OtelSpan]]], version: str) -> Json:
    """An `ExportTraceServiceRequest`: spans by what made them, as attributes of a resource."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [
                    {"scope": {"name": SCOPE, "version": version}, "spans": [_span(span) for span in spans]}
                ],
            }
            for resource, spans in groups
        ]
    }


def _span(span: OtelSpan) -> Json:
    data: Json = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **({"parentSpanId": span.parent_id} if span.parent_id else {}),
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
        "events": [_event(event) for event in span.events],
    }
    if span.status:
        message = {"message": span.message} if span.message else {}
        data["status"] = {"code": _STATUSES[span.status], **message}
    return data


def _event(event: SpanEvent) -> Json:
    attributes = _attributes(event.attributes)
    return {"timeUnixNano": str(event.time), "name": event.name, "attributes": attributes}


def _attributes(attributes: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items() if value is not None]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return {"intValue": str(value)}
    if isinstance(value, float) and math.isfinite(value):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": valid_text(str(value))}
