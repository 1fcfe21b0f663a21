"""What a request of OTLP holds, trace by trace: the parts that the spool keeps, as they came."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from evaltui.text.figures import counted
from evaltui.text.values import cut, visible
from evaltui.traces.formats.otlp import read_otlp
from evaltui.traces.formats.protobuf import new_message, parsed_message, read_logs_message, read_spans_message
from evaltui.traces.span import SPAN_ID, TRACE_ID, Recorded, UnreadableTraceError

Signal = Literal["traces", "logs"]
Encoding = Literal["json", "protobuf"]
Json = dict[str, Any]

LONGEST_BODY = 64 * 1024 * 1024
"""Bytes of a request, as it comes and once it is decompressed."""
_MOST_MEMBERS = 32
"""Streams of gzip that follow each other in one body; more of them only cost time."""
_GZIP = zlib.MAX_WBITS | 16
_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class _Names:
    """How the messages of a signal are called, in protobuf and in JSON."""

    package: str
    request: str
    response: str
    groups: tuple[str, str]
    scopes: tuple[str, str]
    items: tuple[str, str]
    rejected: tuple[str, str]
    item: str


_NAMES: Mapping[Signal, _Names] = {
    "traces": _Names(
        "trace",
        "ExportTraceServiceRequest",
        "ExportTraceServiceResponse",
        ("resource_spans", "resourceSpans"),
        ("scope_spans", "scopeSpans"),
        ("spans", "spans"),
        ("rejected_spans", "rejectedSpans"),
        "span",
    ),
    "logs": _Names(
        "logs",
        "ExportLogsServiceRequest",
        "ExportLogsServiceResponse",
        ("resource_logs", "resourceLogs"),
        ("scope_logs", "scopeLogs"),
        ("log_records", "logRecords"),
        ("rejected_log_records", "rejectedLogRecords"),
        "log record",
    ),
}


class BadBodyError(ValueError):
    """What was sent cannot be read; sending it again is of no use. The message says why."""


class TooLargeBodyError(BadBodyError):
    """The body is longer than `LONGEST_BODY` once it is decompressed."""


@dataclass(frozen=True)
class Part:
    """What one request says of one trace."""

    trace_id: str
    signal: Signal
    encoding: Encoding
    data: bytes
    """A request of its own, with nothing but this trace."""
    spans: int
    """Of log records, too, their number."""
    is_rooted: bool
    """Whether the span is in it that the trace began with, and that ends last."""


@dataclass(frozen=True)
class Request:
    """What a request held."""

    signal: Signal
    encoding: Encoding
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

    def answer(self) -> bytes:
        """The body of the response to it: empty where all was taken, else with `partialSuccess`."""
        names = _NAMES[self.signal]
        if self.encoding == "json":
            rejected = {names.rejected[1]: str(self.rejected), "errorMessage": self.why_rejected}
            return json.dumps({"partialSuccess": rejected} if self.rejected else {}).encode()
        response = new_message(names.package, names.response)
        if self.rejected:
            setattr(response.partial_success, names.rejected[0], self.rejected)
            response.partial_success.error_message = self.why_rejected
        data: bytes = response.SerializeToString()
        return data


def decompressed(body: bytes) -> bytes:
    """What a body of gzip holds. Raises BadBodyError, and TooLargeBodyError before it takes more memory."""
    found = bytearray()
    members = 0
    rest = body
    while rest:
        members += 1
        if members > _MOST_MEMBERS:
            raise BadBodyError(f"more than {_MOST_MEMBERS} streams of gzip in one body")
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            try:
                more = stream.decompress(rest, _CHUNK)
            except zlib.error as error:
                raise BadBodyError(f"damaged gzip: {error}") from error
            found += more
            rest = stream.unconsumed_tail
            if len(found) > LONGEST_BODY:
                raise TooLargeBodyError(f"over {LONGEST_BODY} bytes once decompressed")
            if not (stream.eof or rest or more):
                raise BadBodyError("the gzip stream is cut off")
        rest = stream.unused_data
    if not members:
        raise BadBodyError("an empty body is no gzip stream")
    return bytes(found)


def read_request(body: bytes, signal: Signal, encoding: Encoding) -> Request:
    """A request, decompressed, as parts. Raises BadBodyError."""
    try:
        return _read_json(body, signal) if encoding == "json" else _read_protobuf(body, signal)
    except RecursionError as error:
        raise BadBodyError("nested too deeply") from error


def read_part(signal: Signal, encoding: Encoding, data: bytes) -> Recorded:
    """The spans or log records of a part."""
    if encoding == "json":
        return read_otlp(json.loads(data))
    return read_spans_message(data) if signal == "traces" else read_logs_message(data)


def _read_protobuf(body: bytes, signal: Signal) -> Request:
    names = _NAMES[signal]
    try:
        request = parsed_message(body, names.package, names.request)
    except UnreadableTraceError as error:
        raise BadBodyError(f"not a message {names.request} of OTLP") from error
    made: dict[str, _Gathered] = {}
    rejected = 0
    for group in getattr(request, names.groups[0]):
        for scoped in getattr(group, names.scopes[0]):
            places: dict[bytes, Any] = {}
            for item in getattr(scoped, names.items[0]):
                known = places.get(item.trace_id)
                if not _is_usable(item, signal):
                    rejected += 1
                    continue
                part = made.setdefault(item.trace_id.hex(), _Gathered())
                if known is None:
                    if part.request is None:
                        part.request = new_message(names.package, names.request)
                    known = places[item.trace_id] = _place(part.request, group, scoped, names)
                known.append(item)
                part.count(is_root=signal == "traces" and not any(item.parent_span_id))
    parts = (
        one.part(trace, signal, "protobuf", one.request.SerializeToString()) for trace, one in made.items()
    )
    return Request(signal, "protobuf", tuple(parts), rejected)


def _is_usable(item: Any, signal: Signal) -> bool:
    if len(item.trace_id) * 2 != TRACE_ID or not any(item.trace_id):
        return False
    return signal == "logs" or (len(item.span_id) * 2 == SPAN_ID and any(item.span_id))


def _place(request: Any, group: Any, scoped: Any, names: _Names) -> Any:
    """The list in a part for what shares a resource and a scope."""
    mine = getattr(request, names.groups[0]).add()
    mine.resource.CopyFrom(group.resource)
    inner = getattr(mine, names.scopes[0]).add()
    inner.scope.CopyFrom(scoped.scope)
    return getattr(inner, names.items[0])


@dataclass
class _Gathered:
    """What was seen so far of one trace."""

    request: Any = None
    """The message of protobuf, or the list `resourceSpans`."""
    spans: int = 0
    is_rooted: bool = False

    def count(self, *, is_root: bool) -> None:
        self.spans += 1
        self.is_rooted = self.is_rooted or is_root

    def part(self, trace_id: str, signal: Signal, encoding: Encoding, data: bytes) -> Part:
        return Part(trace_id, signal, encoding, data, self.spans, self.is_rooted)


def _read_json(body: bytes, signal: Signal) -> Request:
    names = _NAMES[signal]
    made: dict[str, _Gathered] = {}
    rejected = 0
    for group in _list(_document(body), names.groups[1], ""):
        for scoped in _list(group, names.scopes[1], names.groups[1]):
            places: dict[str, list[Json]] = {}
            for item in _list(scoped, names.items[1], names.scopes[1]):
                trace = _hex(item.get("traceId"), TRACE_ID)
                if not trace or not (signal == "logs" or _hex(item.get("spanId"), SPAN_ID)):
                    rejected += 1
                    continue
                part = made.setdefault(trace, _Gathered([]))
                if trace not in places:
                    places[trace] = []
                    inner = {"scope": scoped.get("scope"), names.items[1]: places[trace]}
                    part.request.append({"resource": group.get("resource"), names.scopes[1]: [inner]})
                places[trace].append(item)
                part.count(is_root=signal == "traces" and not _hex(item.get("parentSpanId"), SPAN_ID))
    parts = (
        one.part(trace, signal, "json", json.dumps({names.groups[1]: one.request}).encode())
        for trace, one in made.items()
    )
    return Request(signal, "json", tuple(parts), rejected)


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
    for one in value:
        if not isinstance(one, dict):
            raise BadBodyError(f"{place}[] is not an object: {visible(cut(repr(one), 40))}")
        yield one


_DIGITS = re.compile(r"[0-9a-fA-F]+")


def _hex(value: Any, digits: int) -> str:
    """An id in lower case; "" for what is none."""
    if isinstance(value, str) and len(value) == digits and _DIGITS.fullmatch(value) and value.strip("0"):
        return value.lower()
    return ""
