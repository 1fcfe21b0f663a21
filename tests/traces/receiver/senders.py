"""Spans to send to a receiver, and senders that behave and misbehave."""

import asyncio
import gzip
import json
from collections import Counter
from contextlib import asynccontextmanager

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaltui.traces.receiver.http import Access, serving
from evaltui.traces.receiver.intake import Intake
from evaltui.traces.receiver.spool import Spool, open_spool

JSON = "application/json"
PROTOBUF = "application/x-protobuf"


def ids(number):
    return f"{number + 1:032x}", f"{number + 1:016x}"


def spans(numbers, session="", *, parent=""):
    """A document of JSON: a trace of one call of a model per number."""
    items = [
        {
            "traceId": ids(number)[0],
            "spanId": ids(number)[1],
            "parentSpanId": parent,
            "name": f"chat {number}",
            "startTimeUnixNano": str(1_000_000_000 * (number + 1)),
            "endTimeUnixNano": str(1_000_000_000 * (number + 1) + 5_000_000),
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                {"key": "gen_ai.request.model", "value": {"stringValue": "scripted"}},
                {"key": "gen_ai.conversation.id", "value": {"stringValue": session or f"talk-{number}"}},
            ],
        }
        for number in numbers
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "s"}, "spans": items}]}]
    }


def message(document):
    """A document of JSON as a request of protobuf."""
    request = ExportTraceServiceRequest()
    for group in document["resourceSpans"]:
        mine = request.resource_spans.add()
        for scoped in group["scopeSpans"]:
            inner = mine.scope_spans.add()
            inner.scope.name = scoped["scope"]["name"]
            for span in scoped["spans"]:
                made = inner.spans.add(
                    trace_id=bytes.fromhex(span["traceId"]),
                    span_id=bytes.fromhex(span["spanId"]),
                    parent_span_id=bytes.fromhex(span["parentSpanId"]),
                    name=span["name"],
                    start_time_unix_nano=int(span["startTimeUnixNano"]),
                    end_time_unix_nano=int(span["endTimeUnixNano"]),
                )
                for one in span["attributes"]:
                    made.attributes.add(key=one["key"]).value.string_value = one["value"]["stringValue"]
    return request.SerializeToString()


def body(document, media_type=JSON, *, packed=False):
    data = json.dumps(document).encode() if media_type == JSON else message(document)
    return gzip.compress(data) if packed else data


@asynccontextmanager
async def receiver(folder, token=""):
    """A receiver of its own on a free port."""
    folder.mkdir(exist_ok=True)
    with open_spool(folder) as spool:
        async with (
            Intake(spool) as intake,
            serving(intake, Access("127.0.0.1", token), 0) as port,
        ):
            yield Receiver(spool, intake, port)


class Receiver:
    def __init__(self, spool, intake, port):
        self.spool = spool
        self.intake = intake
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    async def raw(self, data, *, end=True):
        """What comes back for bytes, until the connection is closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            if end:
                writer.write_eof()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


def kept(spool):
    """The ids of all spans on the disk, as another process would read them."""
    other = Spool(spool._path)
    try:
        traces = [trace for trace, _ in other.quiet_traces(1e12, 1e12, 10**6)]
        return Counter(span.span_id for one in other.read(traces) for span in one.spans)
    finally:
        other.close()


def wanted(numbers):
    return Counter(ids(number)[1] for number in numbers)


def session(number, said, answer):
    """Spans of one model call, with its content."""
    document = spans([number], f"talk-{number}")
    parts = {"input": ("user", said), "output": ("assistant", answer)}
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] += [
        {
            "key": f"gen_ai.{side}.messages",
            "value": {
                "stringValue": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
            },
        }
        for side, (role, text) in parts.items()
    ]
    return document
