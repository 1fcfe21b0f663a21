"""Spans and log records of OpenTelemetry, independent of the backend that stored them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Attributes = dict[str, Any]

TRACE_ID = 32
"""Hexadecimal digits of the id of a trace."""
SPAN_ID = 16
"""Hexadecimal digits of the id of a span."""

_HEX = re.compile(r"[0-9a-fA-F]+")
# Jaeger keeps 64 bits of the id of a trace where that is all there is.
_SHORT_TRACE_ID = 16


@dataclass(slots=True)
class SpanEvent:
    """An event of a span, or a log record written while the span ran."""

    name: str
    attributes: Attributes
    time: int = 0
    """Nanoseconds since 1970; 0 where the time is unknown."""
    body: Any = None
    """Body of a log record; None for an event of the span itself."""
    cut: set[str] = field(default_factory=set)
    """Names of attributes that are left out because a limit had cut their values."""


@dataclass(slots=True)
class OtelSpan:
    """A span of any producer."""

    trace_id: str
    span_id: str
    parent_id: str
    """Id of the parent span; "" for a root span."""
    name: str
    start: int = 0
    """Nanoseconds since 1970; 0 where the time is unknown."""
    end: int = 0
    """Nanoseconds since 1970; 0 where the time is unknown."""
    attributes: Attributes = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    status: Literal["", "ok", "error"] = ""
    message: str = ""
    """Message of an error."""
    resource: Attributes = field(default_factory=dict)
    """Attributes of the process that made the span; spans of one process share them."""
    scope: str = ""
    """The instrumentation; "" where it is unknown."""
    dropped: int = 0
    """Number of attributes and events that a limit removed from the span."""
    cut: set[str] = field(default_factory=set)
    """Names of attributes that are left out because a limit had cut their values."""
    has_twin: bool = False
    """Whether another span of the trace has the same id and different content."""


@dataclass(slots=True)
class LogRecord:
    """A log record of OpenTelemetry that belongs to a trace."""

    trace_id: str
    span_id: str
    """Id of the span of the record; "" where the record names no span."""
    event: SpanEvent


@dataclass(slots=True)
class Recorded:
    """Spans and log records of one document."""

    spans: list[OtelSpan] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Warnings: parts that were left out, a sentence each."""
    lost: list[str] = field(default_factory=list)
    """The warnings about missing records."""
    formats: dict[str, None] = field(default_factory=dict)
    """The formats of the document, each once, such as `OTLP JSON`."""
    scenarios: list[dict[str, Any]] = field(default_factory=list)
    """ADK's scenarios without a recorded conversation, as JSON."""
    sessions: int = 0
    """Number of ADK's sessions from which `spans` were made."""
    incomplete: set[str] = field(default_factory=set)
    """Ids of sessions of which some spans were deleted where they are stored."""

    def add(self, other: Recorded) -> None:
        self.formats |= other.formats
        self.spans += other.spans
        self.logs += other.logs
        self.warnings += other.warnings
        self.lost += other.lost
        self.scenarios += other.scenarios
        self.sessions += other.sessions
        self.incomplete |= other.incomplete


class UnreadableTraceError(ValueError):
    """The data has no readable spans; the message has the reason and the readable formats."""


def normal_id(value: Any, digits: int) -> str:
    """An id as lower-case hexadecimal digits; "" for an absent id. Other text stays unchanged.

    Files have ids as hexadecimal digits, as base64 (protobuf's JSON for bytes) or as integers.
    """
    if isinstance(value, bytes):
        text = value.hex()
    elif isinstance(value, int) and not isinstance(value, bool):
        text = format(value, f"0{digits}x") if value >= 0 else str(value)
    else:
        text = str(value or "").strip()
    # In base64, an id may begin like a hexadecimal number, too.
    number = text.removeprefix("0x")
    if len(number) <= digits and _HEX.fullmatch(number):
        padded = number.lower().rjust(digits, "0")
        return padded if padded.strip("0") else ""
    if (decoded := from_base64(text)) and len(decoded) * 2 in (digits, _SHORT_TRACE_ID):
        return normal_id(decoded, digits)
    return text


def from_base64(text: str) -> bytes:
    """The bytes of an id in base64; empty for other text."""
    # 8 and 16 bytes are 12 and 24 letters.
    if len(text) not in (12, 24):
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def nanoseconds(value: Any) -> int:
    """Nanoseconds from a number or a text; 0 for other values."""
    return count_of(value) or 0


def count_of(value: Any) -> int | None:
    """A number that is not negative, from a number or a text; None for other values."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return None


def with_logs(spans: Iterable[OtelSpan], logs: Iterable[LogRecord]) -> int:
    """Appends log records to the events of their spans; returns the number of messages without a span.

    A record that names no span belongs to the only model call of its trace, as with some producers.
    """
    by_id: dict[tuple[str, str], OtelSpan] = {}
    by_trace: dict[str, list[OtelSpan]] = {}
    for span in spans:
        by_id.setdefault((span.trace_id, span.span_id), span)
        by_trace.setdefault(span.trace_id, []).append(span)
    lost = 0
    for log in logs:
        place = by_id.get((log.trace_id, log.span_id))
        if place is None and not log.span_id:
            models = [
                span for span in by_trace.get(log.trace_id, ()) if "gen_ai.request.model" in span.attributes
            ]
            place = models[0] if len(models) == 1 else None
        if place is not None:
            place.events.append(log.event)
        elif log.event.name.startswith("gen_ai."):
            lost += 1
    return lost
