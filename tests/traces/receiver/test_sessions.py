"""When a conversation is complete."""

import random

import pytest

from evaltui.runs.sessions import QUIET, QUIET_UNROOTED, completed_sessions
from evaltui.traces.conversations import conversations_in
from evaltui.traces.reading import read_file
from evaltui.traces.receiver.parts import read_request
from evaltui.traces.receiver.spool import SPOOL, open_spool
from evaltui.traces.span import UnreadableTraceError
from tests.traces.receiver.senders import body, spans


def add(spool, numbers, session, now, parent=""):
    spool.add(read_request(body(spans(numbers, session, parent=parent)), "traces", "json").parts, now)


def complete(spool, now, **more):
    return [
        (one.id, len(one.conversation.turns) if one.conversation else None)
        for one in completed_sessions(spool, now, **more)
    ]


def test_a_session_is_complete_when_it_was_quiet_and_again_when_there_is_more(tmp_path):
    with open_spool(tmp_path) as spool:
        add(spool, [0], "a", 100.0)
        assert complete(spool, 100.0 + QUIET) == []
        add(spool, [1], "a", 104.0)
        assert complete(spool, 104.0 + QUIET + 0.1) == [("a", 2)]
        assert complete(spool, 1e9) == []
        add(spool, [2], "a", 200.0)
        add(spool, [3], "b", 200.0)
        assert complete(spool, 200.0 + QUIET + 0.1) == [("a", 3), ("b", 1)]
        # Again what is known already: a sender that got no answer sends it twice.
        add(spool, [2], "a", 300.0)
        assert complete(spool, 300.0 + QUIET + 0.1) == [("a", 3)]


def test_a_session_is_handed_on_with_all_of_its_turns(tmp_path):
    """However many there are, and however they are mixed with those of others."""
    with open_spool(tmp_path) as spool:
        for number in range(0, 240, 2):
            add(spool, [number], "a", 100.0)
            add(spool, [number + 1], "b", 100.0)
        assert complete(spool, 200.0) == [("a", 120), ("b", 120)]


def test_other_commands_read_what_was_received(tmp_path):
    with open_spool(tmp_path) as spool:
        add(spool, [0, 1], "a", 100.0)
        assert [one.id for one in conversations_in(read_file(tmp_path / SPOOL)).conversations] == ["a"]
    assert sum(len(one.spans) for one in read_file(tmp_path / SPOOL)) == 2
    damaged = (tmp_path / SPOOL).read_bytes()[:5000]
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(UnreadableTraceError, match="damaged"):
        list(read_file(tmp_path / "damaged"))


def test_a_trace_whose_first_span_is_missing_is_waited_for_longer(tmp_path):
    with open_spool(tmp_path) as spool:
        add(spool, [0], "a", 100.0, parent="ab" * 8)
        assert complete(spool, 100.0 + QUIET_UNROOTED) == []
        assert complete(spool, 100.0 + QUIET_UNROOTED + 0.1) == [("a", 1)]
        add(spool, [1], "b", 100.0, parent="ab" * 8)
        add(spool, [2], "c", 100.0)
        assert complete(spool, 100.0, ending=True) == [("c", 1)]


def test_a_session_that_was_not_dealt_with_comes_again_after_a_restart(tmp_path):
    with open_spool(tmp_path) as spool:
        add(spool, range(3), "", 100.0)
        assert next(completed_sessions(spool, 200.0)).id == "talk-0"
    with open_spool(tmp_path) as spool:
        assert complete(spool, 100.0) == [("talk-0", 1), ("talk-1", 1), ("talk-2", 1)]
        assert complete(spool, 300.0) == []
        spool.forget(100.0)
        assert len(list(spool.read(spool.traces_of("talk-1")))) == 1
        spool.forget(101.0)
        assert spool.traces_of("talk-1") == []


def test_spans_that_nothing_can_be_made_of_are_no_session(tmp_path):
    document = spans([0])
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = []
    with open_spool(tmp_path) as spool:
        spool.add(read_request(body(document), "traces", "json").parts, 100.0)
        assert complete(spool, 200.0) == []
        add(spool, [1], "a", 300.0)
        assert complete(spool, 400.0) == [("a", 1)]


def test_a_session_that_goes_on_after_its_first_turns_were_deleted_is_not_judged_without_them(tmp_path):
    with open_spool(tmp_path) as spool:
        for number, now in enumerate((100.0, 1000.0)):
            add(spool, [number], "a", now)
            add(spool, [10], "b", 100.0)
            complete(spool, now + 100)
        spool.forget(500.0)
        add(spool, [2], "a", 1200.0)
        add(spool, [11], "b", 1200.0)
        sessions = completed_sessions(spool, 1300.0)
        assert [
            (one.id, one.conversation and len(one.conversation.turns), one.problem) for one in sessions
        ] == [
            ("a", 3, ""),
            ("b", None, "its first turns are no longer stored"),
        ]
        # Neither by other commands, which read the same spans.
        stored = conversations_in(read_file(tmp_path / SPOOL))
        assert [one.id for one in stored.conversations] == ["a"]
        assert stored.warnings == (
            "1 conversation left out: the first turns are no longer stored by evaltui listen",
        )


def test_a_session_whose_spans_turn_out_to_be_of_another_one_is_none_any_more(tmp_path):
    """The span of the agent, which names the session, ends after those in it."""
    inner, outer = spans([0], parent="ab" * 8), spans([0], "a")
    inner["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].pop()
    agent = outer["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    agent |= {"spanId": "ab" * 8, "name": "invoke_agent", "endTimeUnixNano": "2000000000"}
    agent["attributes"][0]["value"]["stringValue"] = "invoke_agent"
    with open_spool(tmp_path) as spool:
        spool.add(read_request(body(inner), "traces", "json").parts, 100.0)
        ((first, turns),) = complete(spool, 200.0)
        assert turns == 1
        spool.add(read_request(body(outer), "traces", "json").parts, 300.0)
        sessions = [
            (one.id, one.conversation is None, one.problem) for one in completed_sessions(spool, 400.0)
        ]
        assert sorted(sessions) == sorted([(first, True, "its spans are of session a"), ("a", False, "")])
        add(spool, [1], "a", 500.0)
        assert complete(spool, 600.0) == [("a", 2)]


def requests(spans, rng):
    """Requests in both encodings that send all spans, in any order and some of them twice."""
    from google.protobuf.json_format import ParseDict

    from tests.traces.test_incomplete_traces import as_otlp
    from tests.traces.written_traces import ExportTraceServiceRequest, attributes_of, in_base64

    sent = [*spans, *rng.sample(spans, len(spans) // 2)]
    rng.shuffle(sent)
    while sent:
        batch = [sent.pop() for _ in range(min(rng.randrange(1, 5), len(sent)))]
        groups = [
            {
                "resource": {"attributes": attributes_of(one.resource)},
                "scopeSpans": [{"scope": {"name": one.scope}, "spans": [as_otlp(one)]}],
            }
            for one in batch
        ]
        document = {"resourceSpans": groups}
        if rng.random() < 0.5:
            yield read_request(body(document), "traces", "json")
        else:
            message = ParseDict(in_base64(document), ExportTraceServiceRequest())
            yield read_request(message.SerializeToString(), "traces", "protobuf")


def test_what_was_received_in_any_batches_is_what_was_sent(tmp_path, thorough):
    pytest.importorskip("google.adk")
    from tests.traces.test_losses import facts, read
    from tests.traces.whole_traces import WHOLE

    rng = random.Random(None if thorough else 8)
    for number, source in enumerate(rng.sample([*WHOLE], len(WHOLE) if thorough else 10)):
        spans_of = WHOLE[source]
        if any(event.body for one in spans_of() for event in one.events):
            # These are log records.
            continue
        (sent,) = read(spans_of())
        folder = tmp_path / str(number)
        folder.mkdir()
        completed = []
        with open_spool(folder) as spool:
            for moment, request in enumerate(requests(spans_of(), rng), start=100):
                spool.add(request.parts, moment)
                if rng.random() < 0.2:
                    # Some of it may have been taken for all.
                    completed += completed_sessions(spool, moment, ending=True)
            completed += completed_sessions(spool, 1e9)
        received = [one.conversation for one in completed if one.conversation][-1:]
        received += conversations_in(read_file(folder / SPOOL)).conversations
        assert [(one.id, [*facts(one)]) for one in received] == [(sent.id, [*facts(sent)])] * 2, source
