"""Every format gives the same conversation, told by its content; what is none is refused in a sentence."""

import gzip
import json
import random

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

pytest.importorskip("google.adk")

from json_places import places, value_at

from evaltui.traces.conversations import conversations_in
from evaltui.traces.reading import read_file
from evaltui.traces.span import Recorded, UnreadableTraceError, normal_id
from tests.traces import written_traces
from tests.traces.adk_spans import SPANS, run

pytestmark = pytest.mark.adk


@pytest.fixture(scope="module")
def told():
    return run("tools", ["Find a lamp", "What does it cost?"], SPANS)


def read(path):
    """All of a file."""
    found = Recorded()
    for one in read_file(path):
        found.add(one)
    return found


def told_by(recorded):
    """What a conversation says, without what a format does not keep."""
    (one,) = conversations_in([recorded]).conversations
    assert one.id == "s1"
    return [
        (event.kind, event.content, event.agent, event.turn, event.id, event.parent, event.usage)
        for event in one.events
    ]


def test_formats_are_told_by_their_content(told, tmp_path):
    expected = told_by(written_traces.read_bytes(written_traces.otlp_json(told)))
    assert [kind for kind, *_ in expected].count("tool_call") == 2
    for write in written_traces.FORMATS:
        data = write(told)
        # A name that says something else.
        for name, written in (("trace.xml", data), ("trace.txt", gzip.compress(data))):
            (tmp_path / name).write_bytes(written)
            assert told_by(read(tmp_path / name)) == expected, write.__name__
        assert told_by(written_traces.read_bytes(data)) == expected, write.__name__
    written_traces.sqlite(told, tmp_path / "spans.json")
    assert told_by(read(tmp_path / "spans.json")) == expected


def test_a_torn_last_line_is_left_out_and_said(told, tmp_path):
    path = tmp_path / "collector.json"
    path.write_bytes(written_traces.collector_lines(told))
    (warning,) = read(path).warnings
    assert warning.startswith(f"{path}: the rest after ")
    assert "cut off" in warning
    path.write_bytes(path.read_bytes() + b'\n{"resourceSpans": []}')
    with pytest.raises(UnreadableTraceError, match=r"is not JSON: .* at line 12, column 27"):
        read(path)


def test_a_torn_stream_of_printed_spans_is_left_out_and_said(told):
    data = written_traces.console(told)
    found = written_traces.read_bytes(data[:-40])
    assert len(found.spans) == len(told.spans) - 1
    assert "cut off" in found.warnings[0]


def test_spans_in_any_order_and_twice_are_one_conversation(told):
    expected = told_by(written_traces.read_bytes(written_traces.otlp_json(told)))
    spans = list(written_traces.read_bytes(written_traces.bare_list(told)).spans)
    shuffled = [*spans, *spans]
    random.Random(7).shuffle(shuffled)
    assert told_by(Recorded(shuffled)) == expected


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no spans"),
        (b"hello", "neither JSON nor a message of OTLP"),
        (b"\x00\x01\x02\x03" * 50, "neither JSON nor|no spans"),
        (b"{", "not JSON: .* line 1, column"),
        (b"{}", "holds no spans: an empty object"),
        (b"[1]", "holds no spans: a JSON int"),
        (b'{"a": 1, "b": 2}', "an object with a, b"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"resourceSpans": ' + b"[" * 100_000, "nested too deeply|not JSON"),
        (b"SQLite format 3\0garbage", "SQLite|database|spans"),
    ],
)
def test_what_holds_no_spans_says_so(tmp_path, data, why):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    if not data:
        assert not read(path).spans
        return
    with pytest.raises(UnreadableTraceError, match=why) as refused:
        read(path)
    assert str(refused.value).startswith(str(path))


def test_a_cut_off_gzip_stream_says_so(told, tmp_path):
    path = tmp_path / "trace.json.gz"
    packed = gzip.compress(written_traces.otlp_json(told))
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UnreadableTraceError, match="gzip stream is cut off"):
        read(path)


def test_wrong_types_anywhere_never_raise_anything_else(told):
    """Each value of a document replaced by one of another type: it is read, or refused in a sentence."""
    documents = [json.loads(write(told)) for write in (written_traces.otlp_json, written_traces.jaeger)]
    wrong = (None, 7, "x", [], {}, True, -1, 1e400, [[]], {"a": {"b": 1}}, "\ud800")
    choice = random.Random(3)
    for document in documents:
        for *above, last in choice.sample(list(places(document)), 80):
            changed = json.loads(json.dumps(document))
            value_at(changed, above)[last] = choice.choice(wrong)
            try:
                found = conversations_in([written_traces.read_bytes(json.dumps(changed).encode())])
            except UnreadableTraceError:
                continue
            for one in found.conversations:
                json.dumps([event.to_json() for event in one.events], allow_nan=False).encode()


def test_formats_keep_how_much_was_dropped():
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "droppedAttributesCount": 3, "droppedEventsCount": 1}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    # The parser of protobuf reads ids as base64.
    text = (
        json.dumps(document).replace("1" * 32, "EREREREREREREREREREREQ==").replace("2" * 16, "IiIiIiIiIiI=")
    )
    message = ParseDict(json.loads(text), ExportTraceServiceRequest()).SerializeToString()
    tags = [{"key": "otel.dropped_attributes_count", "value": 4}]
    jaeger = {"data": [{"traceID": "1" * 32, "spans": [{"spanID": "2" * 16, "tags": tags}]}]}
    for data in (json.dumps(document).encode(), message, json.dumps(jaeger).encode()):
        assert [one.dropped for one in written_traces.read_bytes(data).spans] == [4]


def test_ids():
    assert normal_id("AB", 4) == "00ab"
    assert normal_id("0" * 16, 16) == ""
    assert normal_id(None, 16) == ""
    assert normal_id(255, 16) == "00000000000000ff"
    assert normal_id("0x1f", 16) == "000000000000001f"
    assert normal_id("q83vEjRWeJA=", 16) == "abcdef1234567890"
    assert normal_id("0xa63bfB5fo=", 16) == "d316baddb7c1e5fa"
    assert normal_id("not an id", 16) == "not an id"
