"""Messages of OTLP as protobuf.

It needs the extra `traces`, which is loaded when the first such message is read.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from evaltui.traces.formats.otlp import read_otlp
from evaltui.traces.span import TRACE_ID, Recorded, UnreadableTraceError

_INSTALL = "OTLP as protobuf needs the extra traces: pip install 'evaltui[traces]'"
NO_MESSAGE = "neither JSON nor a message of OTLP as protobuf"


def read_protobuf(data: bytes) -> Recorded:
    """A message of spans or of log records. Raises UnreadableTraceError for what is none."""
    # Both have the same shape down to the record, where ids are in different fields.
    try:
        recorded = read_otlp(message_as_json(data, "trace", "ExportTraceServiceRequest"))
    except UnreadableTraceError:
        return read_otlp(message_as_json(data, "logs", "ExportLogsServiceRequest"))
    if any(len(item.trace_id) == TRACE_ID and item.span_id for item in recorded.spans):
        return recorded
    logs = read_otlp(message_as_json(data, "logs", "ExportLogsServiceRequest"))
    if any(len(item.trace_id) == TRACE_ID for item in logs.logs):
        return logs
    if data:
        raise UnreadableTraceError("no spans in it")
    return recorded


def new_message(signal: str, name: str) -> Any:
    """An empty message of a service of OTLP, `trace` or `logs`.

    Raises UnreadableTraceError without the extra.
    """
    try:
        module = import_module(f"opentelemetry.proto.collector.{signal}.v1.{signal}_service_pb2")
    except ImportError as error:
        raise UnreadableTraceError(_INSTALL) from error
    return getattr(module, name)()


def message_as_json(data: bytes, signal: str, name: str) -> dict[str, Any]:
    """A message of a service of OTLP as OTLP's JSON has it, its ids in base64.

    Raises UnreadableTraceError for what is none, and without the extra.
    """
    message = new_message(signal, name)
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise UnreadableTraceError(NO_MESSAGE) from error
    document: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
    return document
