"""Conversations on disk are those that all spans together make, however spans are spread over files."""

import json
import random
import struct
import tracemalloc
from dataclasses import astuple, replace
from io import BytesIO

import pytest

from evaltui.traces import reading
from evaltui.traces.conversations import conversations_in
from evaltui.traces.found import found_conversations
from evaltui.traces.reading import documents_in, read_files
from evaltui.traces.span import LogRecord, OtelSpan, Recorded, SpanEvent, UnreadableTraceError
from tests.benchmarks.recorded_traces import write_traces
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


def in_memory(parts):
    made = conversations_in(parts, ["mine"])
    return made.conversations, made.warnings


def on_disk(parts):
    with found_conversations(parts, ["mine"]) as read:
        # In another order than they were kept.
        found = [one.read() for one in reversed(read.conversations)]
        for one, conversation in zip(reversed(read.conversations), found, strict=True):
            assert (one.id, one.named_case, one.began) == (
                conversation.id,
                conversation.named_case,
                conversation.began,
            )
        return tuple(reversed(found)), read.warnings


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
    lost = SpanEvent("gen_ai.choice", {}, 1)
    for seed in range(5):
        order = random.Random(seed)
        order.shuffle(spans)
        cuts = sorted(order.sample(range(1, len(spans)), 3))
        parts = [spans[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        recorded = [Recorded(part, warnings=[f"part {number}"]) for number, part in enumerate(parts)]
        # Twins, a record of a span that is not there, and a trace of no agent.
        recorded += [
            Recorded([replace(one, name="twin") for one in parts[0]]),
            Recorded([OtelSpan("e" * 32, "e" * 16, "", "GET /")], [LogRecord("f" * 32, "f" * 16, lost)]),
        ]
        copies = [
            Recorded([replace(one) for one in part.spans], part.logs, part.warnings) for part in recorded
        ]
        expected = in_memory(copies)
        assert [one.id for one in expected[0]] == ["c1", "other"]
        assert [len(one.traces) for one in expected[0]] == [3, 2]
        assert len(expected[1]) == 4 + 3
        assert on_disk(recorded) == expected


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
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


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def __enter__(self):
            return self

        def __exit__(self, *why):
            pass

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **given: Full())
    with (
        pytest.raises(UnreadableTraceError, match="No space left on device; set TMPDIR to a folder"),
        found_conversations([Recorded(adk_schema_1())]),
    ):
        pass


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_memory_does_not_grow_with_the_input(tmp_path):
    """What grows is what users say and where the rest is: a hundredth of the spans."""

    def peak(conversations, form):
        folder = tmp_path / f"{conversations}{form.__name__}"
        folder.mkdir()
        path, _ = write_traces(folder, conversations)
        size = form(path).stat().st_size
        tracemalloc.start()
        with found_conversations(read_files([path])) as read:
            assert len(read.conversations) == conversations
            for one in read.conversations:
                assert len(one.read().turns) == 3
        (_, most) = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most, size

    for form in (as_lines, as_indented_documents, as_gzip, as_sqlite):
        (less, small), (more, large) = peak(25, form), peak(250, form)
        print(f"{form.__name__}: {small:,} bytes {less:,} peak, {large:,} bytes {more:,} peak")
        assert more < 6_000_000
        assert more - less < 1_200_000


def as_lines(path):
    return path


def as_indented_documents(path):
    found = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(json.dumps(one, indent=1) for one in found))
    return path


def as_gzip(path):
    import gzip

    path.write_bytes(gzip.compress(path.read_bytes(), 1))
    return path


def as_sqlite(path):
    """As google-adk's exporter has them, in no order."""
    import sqlite3

    from evaltui.traces.reading import read_file

    spans = [span for one in read_file(path) for span in one.spans]
    random.Random(3).shuffle(spans)
    path.unlink()
    columns = "trace_id, span_id, parent_span_id, name, start_time_unix_nano, end_time_unix_nano"
    with sqlite3.connect(path) as database:
        database.execute(f"create table spans ({columns}, attributes_json)")
        # Its fields are in the order of the columns.
        rows = ((*astuple(replace(one, attributes={}))[:6], json.dumps(one.attributes)) for one in spans)
        database.executemany("insert into spans values (?, ?, ?, ?, ?, ?, ?)", rows)
    database.close()
    return path
