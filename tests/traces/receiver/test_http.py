"""What a receiver answers, and that what it acknowledged is on the disk."""

import gzip
import json

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from evaltui.traces.formats.otlp import read_otlp
from evaltui.traces.receiver import parts
from tests.traces.receiver.senders import JSON, PROTOBUF, body, kept, receiver, spans, wanted


@pytest.mark.parametrize("media_type", [JSON, PROTOBUF])
@pytest.mark.parametrize("packed", [False, True])
async def test_what_is_acknowledged_is_on_the_disk(tmp_path, media_type, packed):
    headers = {"content-type": media_type, **({"content-encoding": "gzip"} if packed else {})}
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url) as client:
        for first in (0, 10):
            data = body(spans(range(first, first + 10)), media_type, packed=packed)
            answer = await client.post("/v1/traces", content=data, headers=headers)
            assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
            assert answer.content == (b"{}" if media_type == JSON else b"")
            assert kept(mine.spool) == wanted(range(first + 10))
        # As the SDK of Langfuse has it.
        chunked = await client.post("/api/public/otel/v1/traces", content=_chunks(data), headers=headers)
        assert chunked.status_code == 200
        assert mine.intake.counts.requests == 3


async def _chunks(data):
    for at in range(0, len(data), 100):
        yield data[at : at + 100]


@pytest.mark.parametrize("media_type", [JSON, PROTOBUF])
async def test_spans_without_ids_are_left_out_and_counted(tmp_path, media_type):
    document = spans(range(5))
    items = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    items[1]["traceId"] = "0" * 32
    items[2]["spanId"] = "ab"
    items[3]["traceId"] = ""
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url) as client:
        answer = await client.post(
            "/v1/traces", content=body(document, media_type), headers={"content-type": media_type}
        )
        assert answer.status_code == 200
        if media_type == JSON:
            told = answer.json()["partialSuccess"]
            rejected, message = int(told["rejectedSpans"]), told["errorMessage"]
        else:
            told = ExportTraceServiceResponse.FromString(answer.content).partial_success
            rejected, message = told.rejected_spans, told.error_message
        assert rejected == 3
        assert message.startswith("3 spans without a trace id")
        assert kept(mine.spool) == wanted([0, 4])


def _bomb():
    return gzip.compress(b" " * (parts.LONGEST_BODY + 1))


_GOOD = body(spans([0]))
# What is sent, and the status of the answer with a word of it.
REFUSED = {
    "get": ({"method": "GET", "content": b""}, 405, "POST"),
    "options": ({"method": "OPTIONS", "content": b""}, 405, "POST"),
    "path": ({"url": "/"}, 404, "/v1/traces"),
    "metrics": ({"url": "/v1/metrics"}, 404, "OTEL_METRICS_EXPORTER"),
    "no type": ({"headers": {}}, 415, "application/json"),
    "other type": ({"headers": {"content-type": "text/plain"}}, 415, "text/plain"),
    "packing": ({"headers": {"content-type": JSON, "content-encoding": "br"}}, 415, "br"),
    "no JSON": ({"content": b"{"}, 400, "not JSON"),
    "a list": ({"content": b"[]"}, 400, "object"),
    "NaN": ({"content": b'{"resourceSpans": NaN}'}, 400, "NaN"),
    "no list": ({"content": b'{"resourceSpans": 3}'}, 400, "resourceSpans is not a list"),
    "no object": ({"content": b'{"resourceSpans": [{"scopeSpans": [1]}]}'}, 400, "scopeSpans[]"),
    "deep": ({"content": b'{"a":' * 100_000}, 400, "deep"),
    "bytes": ({"content": bytes(range(256))}, 400, "not JSON"),
    "no protobuf": ({"content": b"\xff\xff", "headers": {"content-type": PROTOBUF}}, 400, "OTLP"),
    "no gzip": ({"headers": {"content-type": JSON, "content-encoding": "gzip"}}, 400, "gzip"),
    "half a gzip": (
        {"content": gzip.compress(_GOOD)[:-9], "headers": {"content-type": JSON, "content-encoding": "gzip"}},
        400,
        "cut off",
    ),
    "many gzips": (
        {"content": gzip.compress(b"") * 33, "headers": {"content-type": JSON, "content-encoding": "gzip"}},
        400,
        "32",
    ),
    "a bomb": (
        {"content": _bomb, "headers": {"content-type": JSON, "content-encoding": "gzip"}},
        413,
        "decompressed",
    ),
    "a foreign host": ({"headers": {"content-type": JSON, "host": "evil.example:4318"}}, 403, "evil.example"),
    "a number of many digits": ({"content": b'{"resourceSpans": ' + b"9" * 5000 + b"}"}, 400, "not JSON"),
}


async def test_what_is_refused_says_why_and_the_receiver_goes_on(tmp_path):
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url) as client:
        for name, (asked, status, word) in REFUSED.items():
            request = {
                "method": "POST",
                "url": "/v1/traces",
                "content": _GOOD,
                "headers": {"content-type": JSON},
            }
            request |= {key: value() if callable(value) else value for key, value in asked.items()}
            answer = await client.request(**request)
            assert answer.status_code == status, name
            if answer.headers["content-type"] == JSON:
                assert word in answer.json()["message"], name
                assert answer.json()["code"] > 0
            else:
                assert word.encode() in answer.content, name
            if status == 405:
                assert answer.headers["allow"] == "POST"
        assert mine.intake.counts.refused == len(REFUSED)
        assert not kept(mine.spool)
        assert mine.intake._bytes == 0
        answer = await client.post("/v1/traces", content=_GOOD, headers={"content-type": JSON})
        assert answer.status_code == 200


def test_every_body_is_read_or_refused():
    """Any cut of good bodies, and any changed byte."""
    read = refused = 0
    for media_type, encoding in ((JSON, "json"), (PROTOBUF, "protobuf")):
        good = body(spans(range(2)), media_type)
        for at in range(len(good)):
            for bad in (good[:at], good[:at] + b"\x00" + good[at + 1 :], good[:at] + b'["' + good[at:]):
                try:
                    request = parts.read_request(bad, "traces", encoding)
                except parts.BadBodyError:
                    refused += 1
                    continue
                read += 1
                for one in request.parts:
                    recorded = read_otlp(json.loads(one.data))
                    assert len(recorded.spans) == one.spans > 0
        packed = gzip.compress(good)
        for at in range(len(packed)):
            with pytest.raises(parts.BadBodyError):
                parts.decompressed(packed[:at])
        assert parts.decompressed(packed + packed) == good + good
    assert min(read, refused) > 200


async def test_a_token_is_asked_for(tmp_path):
    async with receiver(tmp_path, token="s3cret-ü") as mine, httpx.AsyncClient(base_url=mine.url) as client:
        for given, status in [
            (None, 401),
            ("Bearer wrong", 401),
            ("Basic s3cret-ü", 401),
            ("Bearer s3cret-ü", 200),
            ("bearer s3cret-ü", 200),
        ]:
            headers = {"content-type": JSON} | ({"authorization": given.encode()} if given else {})
            answer = await client.post("/v1/traces", content=_GOOD, headers=headers)
            assert answer.status_code == status, given
            assert status == 200 or answer.headers["www-authenticate"] == "Bearer"
