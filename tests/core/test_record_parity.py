"""Events become the same invocations as in google-adk."""

import base64
import json
from dataclasses import replace

import pytest
from google.genai.types import Content
from google.genai.types import GenerateContentResponseUsageMetadata as UsageMetadata
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.core.conversation.adk_steps import step_from_adk
from evaltui.core.conversation.invocations import (
    invocations_from_events,
)
from evaltui.core.conversation.steps import steps_from_events
from evaltui.core.model.events import Event, Step, split_step

AdkEvent = pytest.importorskip("google.adk.events.event").Event
step_of = pytest.importorskip("evaltui.agents.adapters.adk.events").step_of
generator = pytest.importorskip("google.adk.evaluation.evaluation_generator").EvaluationGenerator

pytestmark = pytest.mark.compat

few = settings(max_examples=150, deadline=None)


def encoded(data):
    return base64.urlsafe_b64encode(data).decode()


names = st.sampled_from(["get_time", "set_light", "transfer_to_agent"])
ids = st.sampled_from(["c1", "c2"])
json_values = st.recursive(
    st.sampled_from([None, True, 0, 1, 1.5, "", "x", "日"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(st.sampled_from(["a", "some_key", "someKey"]), json_values, max_size=2)
blobs = st.sampled_from([b"", b"png", b"\xff\xfe\x00\xfb"]).map(encoded)

calls = st.fixed_dictionaries({}, optional={"name": names, "args": objects, "id": ids})
results = st.fixed_dictionaries({}, optional={"name": names, "response": objects, "id": ids})
texts = st.sampled_from(["", "It is noon.", "Let me see.", "正解です", "  "])
text_parts = st.fixed_dictionaries(
    {"text": texts}, optional={"thought": st.booleans(), "thought_signature": blobs}
)
other_parts = st.sampled_from(
    [
        {},
        {"executable_code": {"code": "1 + 1", "language": "PYTHON"}},
        {"code_execution_result": {}},
        {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "2"}},
        {"file_data": {"file_uri": "gs://bucket/cat.png", "mime_type": "image/png"}},
        {"inline_data": {}},
    ]
)
parts = st.one_of(
    text_parts,
    calls.map(lambda call: {"function_call": call}),
    results.map(lambda result: {"function_response": result}),
    blobs.map(lambda data: {"inline_data": {"data": data, "mime_type": "image/png"}}),
    other_parts,
)
contents = st.fixed_dictionaries(
    {}, optional={"role": st.sampled_from(["user", "model"]), "parts": st.lists(parts, max_size=3)}
)
usages = st.fixed_dictionaries(
    {}, optional={"prompt_token_count": st.integers(0, 9), "candidates_token_count": st.integers(0, 9)}
)
groundings = st.sampled_from([{}, {"web_search_queries": ["noon"]}])
actions = st.fixed_dictionaries(
    {},
    optional={
        "skip_summarization": st.booleans(),
        "state_delta": objects,
        "transfer_to_agent": st.just("helper"),
    },
)
invocation_ids = st.sampled_from(["i1", "i1", "i2"])
any_events = st.fixed_dictionaries(
    {
        "author": st.sampled_from(["agent", "agent", "helper", "", "Agent"]),
        "invocation_id": invocation_ids,
        "timestamp": st.floats(0, 2e9),
        "content": contents,
    },
    optional={
        "partial": st.booleans(),
        "actions": actions,
        "long_running_tool_ids": st.lists(ids, unique=True),
        "error_code": st.sampled_from(["", "SAFETY"]),
        "error_message": st.just("blocked"),
        "usage_metadata": usages,
        "grounding_metadata": groundings,
        "model_version": st.sampled_from(["", "gemini-test"]),
        "branch": st.just("agent.helper"),
        "turn_complete": st.booleans(),
    },
)
# Several answers compete for the place of the final response: text, sound, thoughts.
answers = st.fixed_dictionaries(
    {
        "author": st.just("agent"),
        "invocation_id": invocation_ids,
        "content": st.sampled_from(
            [
                {"parts": [{"text": "It is noon."}]},
                {"parts": [{"text": "It is late.", "thought": True}]},
                {"parts": [{"inline_data": {"data": encoded(b"sound"), "mime_type": "audio/pcm"}}]},
            ]
        ),
    }
)
agent_events = any_events | answers
without_content = agent_events.map(lambda event: {k: v for k, v in event.items() if k != "content"})
user_events = st.fixed_dictionaries(
    {
        "author": st.sampled_from(["user", "User"]),
        "invocation_id": invocation_ids,
        "timestamp": st.floats(0, 2e9),
    },
    optional={"content": contents},
)


def adk_events(events):
    return st.lists(events, max_size=7).map(lambda found: [AdkEvent.model_validate(event) for event in found])


def by_adk(events):
    return dumped(generator.convert_events_to_eval_invocations(events))


def dumped(invocations):
    return [invocation.model_dump(mode="json", exclude_none=True) for invocation in invocations]


def as_json(event, *, by_alias):
    return event.model_dump(mode="json", exclude_none=True, by_alias=by_alias)


@few
@given(events=adk_events(agent_events | without_content | user_events), by_alias=st.booleans())
def test_invocations_are_those_of_adk(events, by_alias):
    ours = invocations_from_events([as_json(event, by_alias=by_alias) for event in events])

    assert dumped(ours) == by_adk(events)


@few
@given(events=adk_events(agent_events), with_nulls=st.booleans())
def test_nulls_in_an_event_mean_absent(events, with_nulls):
    ours = invocations_from_events(
        [event.model_dump(mode="json", exclude_none=not with_nulls) for event in events]
    )

    assert dumped(ours) == by_adk(events)


@given(event=(agent_events | without_content).map(AdkEvent.model_validate))
def test_the_same_events_are_final(event):
    assert step_from_adk(as_json(event, by_alias=False)).final == event.is_final_response()


framework_fields = st.fixed_dictionaries(
    {},
    optional={
        "isolation_scope": st.just("call-1"),
        "output": st.sampled_from(["done", {"a": 1}]),
        "node_info": st.sampled_from(
            [{"path": "desk@1"}, {"path": "desk@1/ask@2", "output_for": ["desk@1"]}]
        ),
        "actions": st.fixed_dictionaries(
            {"state_delta": st.sampled_from([{}, {"_adk_kept": 1, "own": 2}, {"temp:_adk": 1}])},
            optional={
                "route": st.just("next"),
                "end_of_agent": st.booleans(),
                "agent_state": st.just({"at": 1}),
                "requested_tool_confirmations": st.just({"c1": {"hint": "really?", "confirmed": True}}),
            },
        ),
    },
)


@few
@given(event=agent_events | without_content, more=framework_fields, by_alias=st.booleans())
def test_an_event_from_a_server_is_the_same_step(event, more, by_alias):
    made = AdkEvent.model_validate(event | more)

    assert step_from_adk(as_json(made, by_alias=by_alias)) == step_of(made)


def conversation(agent_events):
    """The events of a run: each turn begins with the user's message.

    Then comes an event that leaves nothing in an invocation but names it, which the host cannot know from
    the message.
    """
    message = {"role": "user", "parts": [{"text": "What time is it?"}]}
    silent = {"parts": [{"code_execution_result": {"outcome": "OUTCOME_OK"}}]}
    events = []
    for event in agent_events:
        turn = {"invocation_id": event.invocation_id}
        if not any(earlier.invocation_id == event.invocation_id for earlier in events):
            events.append(AdkEvent(author="user", timestamp=5.0, content=message, **turn))
            events.append(AdkEvent(author="agent", content=silent, **turn))
        events.append(event)
    return events


def loggable(events):
    # The log leaves out empty objects, which no framework sends.
    return [
        event for event in events if event.content != Content() and event.usage_metadata != UsageMetadata()
    ]


def has_parts(event):
    return bool(event["content"].get("parts"))


def reported(events):
    """The same events as an adapter and its host report them."""
    turns = list(dict.fromkeys(event.invocation_id for event in events))
    for number, event in enumerate(events):
        step = replace(
            step_from_adk(as_json(event, by_alias=False)),
            id=f"step-{number}",
            turn=turns.index(event.invocation_id),
        )
        if step.author == "user":
            data = {"timestamp": step.timestamp}
            yield Event("user", step.content, data=data, turn=step.turn, id=step.id)
        else:
            yield from split_step(step)


def logged(events):
    return [Event.from_json(json.loads(json.dumps(event.to_json()))) for event in events]


@few
@given(steps=adk_events(agent_events | without_content).map(loggable))
def test_nothing_is_lost_when_steps_are_split_and_logged(steps):
    events = conversation(steps)

    rebuilt = invocations_from_events(logged(reported(events)))

    assert dumped(rebuilt) == by_adk(events)


@few
@given(steps=adk_events(agent_events.filter(has_parts)).map(loggable))
def test_steps_survive_the_log(steps):
    originals = [
        replace(step_from_adk(as_json(event, by_alias=True)), id=f"step-{number}", turn=number)
        for number, event in enumerate(steps)
    ]

    rebuilt = steps_from_events(logged(event for step in originals for event in split_step(step)))

    assert rebuilt == originals


def test_a_step_stands_in_the_place_of_those_it_replaces():
    def said(text, step_id, usage=None, replaces=()):
        content = {"role": "model", "parts": [{"text": text}]}
        return Step("desk", content, id=step_id, turn=0, usage=usage, replaces=replaces)

    spent = {"total_token_count": 5}
    steps = [
        said("draft", "1", spent),
        said("more", "2"),
        said("better", "3", replaces=("1",)),
        said("best", "4", replaces=("3", "unknown")),
    ]
    joined = steps_from_events(event for step in steps for event in split_step(step))
    assert [(step.parts[0]["text"], step.usage) for step in joined] == [("best", spent), ("more", None)]
