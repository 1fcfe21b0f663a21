"""Where the time of a case went, from its events."""

from __future__ import annotations

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.events import Event
from evaltui.core.trace.spans import SpanTree, TimeSpent, time_spent


def test_what_a_model_call_waited_for_limits_is_no_time_of_the_model():
    events = (
        Event("user", t=0.0, turn=0, content={"role": "user", "parts": [{"text": "hi"}]}),
        Event("model_request", t=1.0, turn=0, agent="a", id="1"),
        Event("model_response", t=8.0, turn=0, agent="a", parent="1", duration=2.0, data={"throttled": 5.0}),
        Event("text", t=8.5, turn=0, agent="a", content={"role": "model", "parts": [{"text": "ho"}]}),
    )
    tree = SpanTree()
    tree.add(events)

    assert time_spent(tree.spans) == TimeSpent(
        model=2.0, tool=0.0, throttled=5.0, agent=0.5, waiting=1.0, model_calls=1, tool_calls=0
    )
    (model,) = (span for span in tree.spans if span.kind == "model")
    assert (model.seconds, model.throttled) == (2.0, 5.0)
    (turn,) = invocations_from_events(events)
    assert (turn.duration, turn.model_duration, turn.tool_duration) == (3.5, 2.0, 0.0)


def test_a_turn_of_less_than_a_millisecond_has_its_time():
    said, answered = ({"role": role, "parts": [{"text": "hi"}]} for role in ("user", "model"))
    events = [Event("user", t=1.0, turn=0, content=said), Event("text", t=1.0002, turn=0, content=answered)]

    (turn,) = invocations_from_events(events)

    assert turn.duration == 0.0002
