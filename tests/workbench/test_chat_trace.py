"""The events of a conversation as a trace, however they came in and whatever was rewound."""

from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.core.model.events import Event, text, tool_call, tool_result
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.trace.spans import SpanTree
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.chat.rows import ChatRows
from evaltui.workbench.chat.trace import ChatPlace, ChatTrace, row_of

USER = {"role": "user", "parts": [{"text": "hi"}]}


def at(event, seconds, turn):
    return Event.from_json({**event.to_json(), "t": seconds, "turn": turn})


def events_of_turn(calls, begin):
    """A message, calls whose ids are those of every other turn, and an answer."""
    found = [Event("user", USER)]
    for number in range(calls):
        call_id = f"c{number}"
        found.append(Event("model_request", id=f"m{number}", agent="desk", data={"model": "m"}))
        found.append(Event("model_response", parent=f"m{number}", agent="desk", data={"model": "m"}))
        call = tool_call("find", {"n": number}, id=call_id, agent="desk")
        found.append(Event.from_json({**call.to_json(), "id": call_id}))
        result = tool_result("find", {"n": number}, id=call_id, agent="desk")
        found.append(Event.from_json({**result.to_json(), "parent": call_id}))
    found.append(text("done", agent="desk"))
    # Every turn says that it is the first one, as after one that failed.
    return [at(event, begin + number / 10, 0) for number, event in enumerate(found)]


turns_shapes = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 1e4), st.sampled_from(["done", "failed", "cancelled"])),
    max_size=4,
)


def finished(turn, stage):
    turn.stage = TurnStage(stage)
    if stage == "failed":
        turn.error = ErrorInfo("ValueError", "not today", kind="agent")


# Where the second turn ends in a fraction of a second that cannot be put exactly.
@example([(0, 1024.0, "done"), (0, 4096.6209930541545, "failed")], 0, 1)
@given(turns_shapes, st.integers(0, 3), st.integers(1, 5))
def test_it_is_the_same_however_the_events_come_in(shapes, rewound, at_once):
    transcript, growing = Transcript("chat"), ChatTrace()
    for calls, begin, stage in shapes:
        turn = ChatTurn(USER, stage=TurnStage.RUNNING)
        transcript.turns = [*transcript.turns, turn]
        coming = events_of_turn(calls, begin)
        for number in range(0, len(coming), at_once):
            turn.events += coming[number : number + at_once]
            growing.follow(transcript, live=True)
        finished(turn, stage)
        growing.follow(transcript, live=False)
    check(transcript, growing)
    transcript.turns = transcript.turns[:rewound]
    check(transcript, growing)


def check(transcript, growing):
    trace = growing.follow(transcript, live=False)
    assert list(trace.events) == list(ChatTrace().follow(transcript, live=False).events)
    tree, rows = SpanTree(), ChatRows()
    tree.add(trace.events)
    rows.follow(transcript)
    assert [span.turn for span in tree.turns] == list(range(len(transcript.turns)))
    assert [event.t for event in trace.events] == sorted(event.t for event in trace.events)
    for number, turn in enumerate(transcript.turns):
        own = [span for span in tree.spans if span.turn == number]
        calls = [event for event in turn.events if event.kind == "tool_call"]
        tools = [span for span in own if span.kind == "tool"]
        # Each with its result, although other turns have calls of the same ids.
        assert [len(span.events) for span in tools] == [2] * len(calls)
        assert any(span.failed for span in own) == (turn.stage is TurnStage.FAILED)
        for span in own:
            place = growing.place_of(tree.spans, span)
            row = rows.rows[row_of(rows.rows, turn, place)]
            assert row.turn == number
            if span.kind == "tool":
                assert row.events == tuple(place.events)
                assert growing.span_of(tree.spans, place) is span
            if span.kind == "turn":
                assert row.kind == "user"
        for row in (row for row in rows.rows if row.turn == number):
            span = growing.span_of(tree.spans, ChatPlace(number, row.events))
            assert span.turn == number
            assert row.kind not in ("user", "text") or span.kind in ("turn", "text")


def test_a_request_to_a_model_is_at_what_came_of_it():
    turn = ChatTurn(USER, stage=TurnStage.DONE, events=events_of_turn(2, 0.0))
    transcript, tree, rows, growing = Transcript("chat", turns=[turn]), SpanTree(), ChatRows(), ChatTrace()
    tree.add(growing.follow(transcript, live=False).events)
    rows.follow(transcript)
    models = [span for span in tree.spans if span.kind == "model"]
    places = [row_of(rows.rows, turn, growing.place_of(tree.spans, span)) for span in models]
    assert [rows.rows[place].args for place in places] == [{"n": 0}, {"n": 1}]


def test_what_was_said_before_a_turn_takes_no_time():
    turns = [ChatTurn(USER, stage=TurnStage.DONE, events=events_of_turn(0, begin)) for begin in (5.0, 900.0)]
    events = ChatTrace().follow(Transcript("chat", turns=turns), live=False).events
    assert [round(event.t, 3) for event in events] == [0.0, 0.1, 0.1, 0.2]
