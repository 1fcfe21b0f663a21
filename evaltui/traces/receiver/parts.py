"""Parts of an OTLP request, trace by trace: the spool keeps them as they came."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from evaltui.core.model.events import Json
from evaltui.text.figures import counted
from evaltui.text.values import cut, visible
from evaltui.traces.formats.protobuf import message_as_json, new_message
from evaltui.traces.span import SPAN_ID, TRACE_ID, UnreadableTraceError, from_base64

Signal = Literal["traces", "logs"]
Encoding = Literal["json", "protobuf"]

LONGEST_BODY = 64 * 1024 * 1024
"""Bytes of a request, as it comes and once it is decompressed."""
_MAX_MEMBERS = 32
"""Streams of gzip that follow each other in one body; more of them only cost time."""
_GZIP = zlib.MAX_WBITS | 16
_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class _Names:
    """The names of a signal's messages in protobuf, and of their fields in JSON."""

    package: str
    request: str
    response: str
    groups: str
    scopes: str
    items: str
    rejected: str
    item: str


_NAMES: Mapping[Signal, _Names] = {
    "traces": _Names(
        "trace",
        "ExportTraceServiceRequest",
        "ExportTraceServiceResponse",
        "resourceSpans",
        "scopeSpans",
        "spans",
        "rejectedSpans",
        "span",
    ),
    "logs": _Names(
        "logs",
        "ExportLogsServiceRequest",
        "ExportLogsServiceResponse",
        "resourceLogs",
        "scopeLogs",
        "logRecords",
        "rejectedLogRecords",
        "log record",
    ),
}


class BadBodyError(ValueError):
    """The body cannot be read; sending it again is of no use. The message says why."""


class TooLargeBodyError(BadBodyError):
    """The body is longer than `LONGEST_BODY` once it is decompressed."""


@dataclass(frozen=True)
class Part:
    """The spans or log records of one trace in one request."""

    trace_id: str
    data: bytes
    """A document of OTLP as JSON, with nothing but this trace."""
    spans: int
    """Number of spans, or of log records."""
    is_rooted: bool
    """Whether the span is in it that the trace began with, and that ends last."""


@dataclass(frozen=True)
class Request:
    """A request, trace by trace."""

    signal: Signal
    parts: tuple[Part, ...]
    rejected: int = 0
    """Spans or log records without usable ids, of which nothing can be made."""

    @property
    def why_rejected(self) -> str:
        """ "" where all was taken."""
        if not self.rejected:
            return ""
        ids = f"a trace id of {TRACE_ID} hexadecimal digits"
        if self.signal == "traces":
            ids += f" and a span id of {SPAN_ID}"
        return f"{counted(self.rejected, _NAMES[self.signal].item)} without {ids} left out"

    def answer(self, encoding: Encoding) -> bytes:
        """The body of the response to it: empty where all was taken, else with `partialSuccess`."""
        names = _NAMES[self.signal]
        rejected = {names.rejected: str(self.rejected), "errorMessage": self.why_rejected}
        answer = {"partialSuccess": rejected} if self.rejected else {}
        if encoding == "json":
            return json.dumps(answer).encode()
        from google.protobuf.json_format import ParseDict

        data: bytes = ParseDict(answer, new_message(names.package, names.response)).SerializeToString()
        return data


def decompressed(body: bytes) -> bytes:
    """Decompresses a gzip body. Raises BadBodyError, and TooLargeBodyError before it takes more memory."""
    data = bytearray()
    members = 0
    rest = body
    while rest:
        members += 1
        if members > _MAX_MEMBERS:
            raise BadBodyError(f"more than {_MAX_MEMBERS} streams of gzip in one body")
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            try:
                more = stream.decompress(rest, _CHUNK)
            except zlib.error as error:
                raise BadBodyError(f"damaged gzip: {error}") from error
            data += more
            rest = stream.unconsumed_tail
            if len(data) > LONGEST_BODY:
                raise TooLargeBodyError(f"over {LONGEST_BODY} bytes once decompressed")
            if not (stream.eof or rest or more):
                raise BadBodyError("the gzip stream is cut off")
        rest = stream.unused_data
    if not members:
        raise BadBodyError("an empty body is no gzip stream")
    return bytes(data)


def read_request(body: bytes, signal: Signal, encoding: Encoding) -> Request:
    """A request, decompressed, as parts. Raises BadBodyError."""
    names = _NAMES[signal]
    traces: dict[str, _Trace] = {}
    rejected = 0
    try:
        document = _document(body) if encoding == "json" else _message(body, names)
        for group in _list(document, names.groups, ""):
            for scoped in _list(group, names.scopes, names.groups):
                for item in _list(scoped, names.items, names.scopes):
                    trace_id = _hex(item.get("traceId"), TRACE_ID)
                    if not trace_id or not (signal == "logs" or _hex(item.get("spanId"), SPAN_ID)):
                        rejected += 1
                        continue
                    trace = traces.setdefault(trace_id, _Trace())
                    trace.add(item, scoped, group, names)
                    trace.is_rooted |= signal == "traces" and not _hex(item.get("parentSpanId"), SPAN_ID)
        parts = tuple(
            Part(trace_id, json.dumps({names.groups: trace.groups}).encode(), trace.items, trace.is_rooted)
            for trace_id, trace in traces.items()
        )
    except RecursionError as error:
        raise BadBodyError("nested too deeply") from error
    return Request(signal, parts, rejected)


@dataclass
class _Trace:
    """A trace, as far as it was read."""

    groups: list[Json] = field(default_factory=list)
    items: int = 0
    is_rooted: bool = False
    _scoped: Json | None = None
    """The scope of the request from which the last item came."""

    def add(self, item: Json, scoped: Json, group: Json, names: _Names) -> None:
        if self._scoped is not scoped:
            self._scoped = scoped
            inner: Json = {"scope": scoped.get("scope"), names.items: []}
            self.groups.append({"resource": group.get("resource"), names.scopes: [inner]})
        self.groups[-1][names.scopes][0][names.items].append(item)
        self.items += 1


def _message(body: bytes, names: _Names) -> Json:
    try:
        return message_as_json(body, names.package, names.request)
    except UnreadableTraceError as error:
        raise BadBodyError(f"not a message {names.request} of OTLP") from error


def _document(body: bytes) -> Json:
    try:
        document = json.loads(body, parse_constant=_refuse)
    except ValueError as error:
        raise BadBodyError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadBodyError("not a JSON object")
    return document


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _list(holder: Json, name: str, where: str) -> Iterator[Json]:
    value = holder.get(name, [])
    if value is None:
        return
    place = f"{where}[].{name}" if where else name
    if not isinstance(value, list):
        raise BadBodyError(f"{place} is not a list: {visible(cut(repr(value), 40))}")
    for item in value:
        if not isinstance(item, dict):
            raise BadBodyError(f"{place}[] is not an object: {visible(cut(repr(item), 40))}")
        yield item


_DIGITS = re.compile(r"[0-9a-fA-F]+")


def _hex(value: Any, digits: int) -> str:
    """An id, in hexadecimal digits or in base64, in lower case; "" for what is none."""
    if not isinstance(value, str):
        return ""
    text = value if len(value) == digits else from_base64(value).hex()
    return text.lower() if len(text) == digits and _DIGITS.fullmatch(text) and text.strip("0") else ""
