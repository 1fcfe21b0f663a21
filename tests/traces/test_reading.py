"""Documents are read wherever chunks end, and conversations are made however spans are spread over files."""

import json
import random
import struct
from dataclasses import replace
from io import BytesIO

import pytest

from evaltui.traces import reading
from evaltui.traces.conversations import conversations_in
from evaltui.traces.reading import documents_in
from evaltui.traces.span import LogRecord, OtelSpan, Recorded, SpanEvent, UnreadableTraceError
from tests.traces.test_trace_layouts import LAYOUTS


def adk_schema_1():
    said = {"gcp.vertex.agent.session_id": "c1"}
    request = json.dumps({"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]})
    response = json.dumps({"content": {"role": "model", "parts": [{"text": "Hi"}]}})
    model = {**said, "gcp.vertex.agent.llm_request": request, "gcp.vertex.agent.llm_response": response}
    return [
        OtelSpan("1" * 32, "1" * 16, "", "invocation", 1, 9, said, scope="gcp.vertex.agent"),
        OtelSpan("1" * 32, "2" * 16, "1" * 16, "call_llm", 2, 3, model, scope="gcp.vertex.agent"),
    ]


def traces_of(layout, session, traces):
    """The spans of a session in several traces, an hour between them."""
    named = json.dumps(session)
    for number in range(traces):
        for one in layout():
            attributes = {key: session if value == "c1" else value for key, value in one.attributes.items()}
            hours = number * 3_600_000_000_000
            yield replace(
                one,
                trace_id=f"{session}{number}".encode().hex().rjust(32, "0"),
                attributes={**attributes, "mine": named},
                start=one.start + hours,
                end=one.end + hours,
            )


@pytest.mark.parametrize("layout", [*LAYOUTS, adk_schema_1], ids=lambda one: one.__name__)
def test_traces_of_a_session_may_be_anywhere(layout):
    spans = [*traces_of(layout, "c1", 3), *traces_of(layout, "other", 2)]
    whole = conversations_in([Recorded([replace(one) for one in spans])]).conversations
    assert [(one.id, len(one.traces)) for one in whole] == [("c1", 3), ("other", 2)]
    lost = SpanEvent("gen_ai.choice", {}, 1)
    for seed in range(5):
        order = random.Random(seed)
        order.shuffle(spans)
        cuts = sorted(order.sample(range(1, len(spans)), 3))
        parts = [
            Recorded([replace(one) for one in spans[a:b]], warnings=["part"])
            for a, b in zip([0, *cuts], [*cuts, None], strict=True)
        ]
        # A record of a span that is not there, and a trace of no agent.
        stray = Recorded([OtelSpan("e" * 32, "e" * 16, "", "GET /")], [LogRecord("f" * 32, "f" * 16, lost)])
        found = conversations_in([*parts, stray])
        assert found.conversations == whole
        assert [warning[:10] for warning in found.warnings] == ["part"] * 4 + ["1 log reco", "1 trace of"]


@pytest.mark.parametrize("chunk", [4, 5, 7, 1000])
def test_documents_may_end_anywhere_in_what_is_read_at_once(chunk, monkeypatch):
    monkeypatch.setattr(reading, "_CHUNK", chunk)
    wanted = [{"a": "é ü 漢字 𝄞", "b": [{}, {"c": "}\n{"}]}, {"d": 1}, [2], {"e": "end"}]
    for indent, between in ((2, "\n"), (None, ""), (1, ", \n\n")):
        text = between.join(json.dumps(one, indent=indent, ensure_ascii=False) for one in wanted)
        data = b"\xef\xbb\xbf" + text.encode()
        warnings = []
        assert list(documents_in(BytesIO(data), warnings)) == wanted
        assert list(documents_in(BytesIO(data[:-3]), warnings)) == wanted[:-1]
        assert warnings == ["the rest after 3 documents is cut off and was left out"]
    broken = "\n".join(["{", "}", "{}", '{"x": 1', "}", '{"y" 2}', *["{}"] * 99])
    with pytest.raises(UnreadableTraceError, match=r"after 3 documents is not JSON: .* at line 6, column 6"):
        list(documents_in(BytesIO(broken.encode()), []))


def test_messages_behind_their_lengths_come_one_by_one():
    pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def message(number):
        request = ExportTraceServiceRequest()
        span = request.resource_spans.add().scope_spans.add().spans.add()
        # Among them bytes that look like the end of a line.
        span.trace_id, span.span_id = bytes([10] * 15 + [number]), bytes([10] * 8)
        return request.SerializeToString()

    data = b"".join(struct.pack(">I", len(one)) + one for one in map(message, range(1, 4)))
    warnings = []
    ids = [one.spans[0].trace_id[-2:] for one in documents_in(BytesIO(data), warnings)]
    assert (ids, warnings) == (["01", "02", "03"], [])
    assert len(list(documents_in(BytesIO(data[:-1]), warnings))) == 2
    assert warnings == ["the last message is cut off and was left out"]
