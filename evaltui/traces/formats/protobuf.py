"""OTLP as protobuf: one message, or several behind their lengths as the Collector's `file` exporter has them.

It needs the extra `traces`, which is loaded when the first such message is read.
"""

from __future__ import annotations

from typing import Any

from evaltui.traces.formats.otlp import STATUSES
from evaltui.traces.span import (
    SPAN_ID,
    TRACE_ID,
    Attributes,
    LogRecord,
    OtelSpan,
    Recorded,
    SpanEvent,
    UnreadableTraceError,
    normal_id,
)

_INSTALL = "OTLP as protobuf needs the extra traces: pip install 'evaltui[traces]'"
LENGTH = 4
"""Bytes of the length before each of several messages."""
NO_MESSAGE = "neither JSON nor a message of OTLP as protobuf"


def read_spans_message(data: bytes) -> Recorded:
    """An `ExportTraceServiceRequest`. Raises UnreadableTraceError for what is none."""
    found = Recorded()
    for group in parsed_message(data, "trace", "ExportTraceServiceRequest").resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            found.spans += [_span(one, resource, scoped.scope.name) for one in scoped.spans]
    return found


def read_logs_message(data: bytes) -> Recorded:
    """An `ExportLogsServiceRequest`. Raises UnreadableTraceError for what is none."""
    groups = parsed_message(data, "logs", "ExportLogsServiceRequest").resource_logs
    logs = [_log(one) for group in groups for scoped in group.scope_logs for one in scoped.log_records]
    return Recorded(logs=logs)


def read_protobuf(data: bytes) -> Recorded:
    """A file of spans. Raises UnreadableTraceError for what is none."""
    if (messages := _behind_lengths(data)) is None:
        return _spans_or_logs(data)
    found = Recorded()
    for message in messages:
        found.add(_spans_or_logs(message))
    return found


def _spans_or_logs(data: bytes) -> Recorded:
    # Both have the same shape down to the record, where ids are in different fields.
    try:
        found = read_spans_message(data)
    except UnreadableTraceError:
        return read_logs_message(data)
    if any(len(one.trace_id) == TRACE_ID and one.span_id for one in found.spans):
        return found
    logs = read_logs_message(data)
    if any(len(one.trace_id) == TRACE_ID for one in logs.logs):
        return logs
    if data:
        raise UnreadableTraceError("no spans in it")
    return found


def _behind_lengths(data: bytes) -> list[bytes] | None:
    messages: list[bytes] = []
    at = 0
    while at + LENGTH <= len(data):
        size = int.from_bytes(data[at : at + LENGTH], "big")
        at += LENGTH
        if size == 0 or at + size > len(data):
            return None
        messages.append(data[at : at + size])
        at += size
    return messages if at == len(data) and messages else None


def new_message(signal: str, name: str) -> Any:
    """An empty message of a service of OTLP, `trace` or `logs`.

    Raises UnreadableTraceError without the extra.
    """
    try:
        from importlib import import_module

        module = import_module(f"opentelemetry.proto.collector.{signal}.v1.{signal}_service_pb2")
    except ImportError as error:
        raise UnreadableTraceError(_INSTALL) from error
    return getattr(module, name)()


def parsed_message(data: bytes, signal: str, name: str) -> Any:
    """As `new_message`, with what is in `data`. Raises UnreadableTraceError for what is none."""
    request = new_message(signal, name)
    from google.protobuf.message import DecodeError

    try:
        request.ParseFromString(data)
    except DecodeError as error:
        raise UnreadableTraceError(NO_MESSAGE) from error
    return request


def _span(span: Any, resource: Attributes, scope: str) -> OtelSpan:
    return OtelSpan(
        normal_id(span.trace_id, TRACE_ID),
        normal_id(span.span_id, SPAN_ID),
        normal_id(span.parent_span_id, SPAN_ID),
        span.name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _attributes(span.attributes),
        [SpanEvent(one.name, _attributes(one.attributes), one.time_unix_nano) for one in span.events],
        STATUSES.get(span.status.code, ""),
        span.status.message,
        resource,
        scope,
        span.dropped_attributes_count
        + span.dropped_events_count
        + sum(one.dropped_attributes_count for one in span.events),
    )


def _log(record: Any) -> LogRecord:
    given = _attributes(record.attributes)
    name = getattr(record, "event_name", "") or given.get("event.name") or ""
    time = record.time_unix_nano or record.observed_time_unix_nano
    return LogRecord(
        normal_id(record.trace_id, TRACE_ID),
        normal_id(record.span_id, SPAN_ID),
        SpanEvent(str(name), given, time, _value(record.body)),
    )


def _attributes(given: Any) -> Attributes:
    return {one.key: _value(one.value) for one in given}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    found = getattr(value, kind)
    return found.hex() if isinstance(found, bytes) else found
