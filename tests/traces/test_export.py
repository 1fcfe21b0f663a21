"""Events as OTLP and back: exactly by the attribute for them, and by spans alone what is scored."""

import json
from dataclasses import replace

import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.eval_set import scored_text, tool_calls
from evaltui.core.model.events import Event, Step, split_step
from evaltui.traces.conversations import conversations_in
from evaltui.traces.reading import read_document
from evaltui.traces.writing.otlp import otlp_json
from evaltui.traces.writing.turn import EVENTS, Held, spans_of_turns

HELD = Held("run/set/case", "shop", 1_700_000_000_000_000_000, {"evaltui.eval.case.id": "case"})

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
names = st.sampled_from(["find", "price", "book"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, width=32) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(words, values, max_size=2)
calls = st.lists(st.tuples(names, arguments, arguments), max_size=3)
turns = st.lists(st.tuples(words, calls, words, st.booleans()), min_size=1, max_size=3)


def events_of(turns, *, models):
    """What an agent does that calls tools, then answers; its models are seen or not."""
    events = []

    def add(event, **fields):
        clock = 0.5 * len(events)
        events.append(Event.from_json({**event.to_json(), "turn": number, "t": clock, **fields}))

    for number, (user, calls, answer, has_state) in enumerate(turns):
        said = [{"role": "user", "parts": [{"text": user}]}]
        add(Event("user", said[0], data={"step": f"u{number}", "invocation_id": f"i{number}"}))

        def ask(content, said=said, number=number):
            if models:
                asked = f"m{len(events)}"
                request = {
                    "model": "scripted",
                    "contents": [*said],
                    "system_instruction": "Sell.",
                    "tools": [],
                }
                add(Event("model_request", agent="shop", data=request, id=asked))
                usage = {"prompt_token_count": 3, "candidates_token_count": 2, "total_token_count": 5}
                add(Event("model_response", content, agent="shop", usage=usage, parent=asked))
            said.append(content)

        if calls:
            parts = [
                {"function_call": {"name": name, "args": args, "id": f"c{number}.{at}"}}
                for at, (name, args, _) in enumerate(calls)
            ]
            content = {"role": "model", "parts": parts}
            ask(content)
            for event in split_step(Step("shop", content, id=f"s{number}")):
                add(event)
        for at, (name, _, result) in enumerate(calls):
            response = {"name": name, "response": result, "id": f"c{number}.{at}"}
            content = {"role": "user", "parts": [{"function_response": response}]}
            said.append(content)
            for event in split_step(Step("shop", content, id=f"r{number}.{at}")):
                add(event)
        content = {"role": "model", "parts": [{"text": answer}]}
        ask(content)
        state = {"seen": answer} if has_state else None
        for event in split_step(Step("shop", content, final=True, id=f"a{number}", state=state)):
            add(event)
    return events


def exported(events, *, results=(), held=HELD):
    return otlp_json([({"service.name": "shop"}, spans_of_turns(held, events, results))], "1")


def read(document):
    return conversations_in([read_document(document)]).conversations


def scored(events):
    """Of each turn what the user said, what was called, and what was answered."""
    return [
        (
            [part.text for part in one.user_content.parts],
            [(call.name, call.args) for call in tool_calls(one.intermediate_data)],
            scored_text(one, thoughts=False),
        )
        for one in invocations_from_events(events)
    ]


def without_own_events(document):
    text = json.dumps(document)
    document = json.loads(text)
    for group in document["resourceSpans"]:
        for span in (span for scope in group["scopeSpans"] for span in scope["spans"]):
            span["attributes"] = [one for one in span["attributes"] if one["key"] != EVENTS]
    return document


@settings(max_examples=10)
@given(turns, st.booleans())
def test_export_then_reading_gives_equal_events(said, models):
    events = events_of(said, models=models)
    document = exported(events)
    # The strict parser takes it; ids of its bytes are another matter.
    ParseDict(document, ExportTraceServiceRequest())
    (found,) = read(document)
    assert list(found.events) == events
    assert (found.id, found.named_case) == ("run/set/case", "case")
    # Written once more, it is the same.
    assert exported(found.events) == document
    (plain,) = read(without_own_events(document))
    assert scored(plain.events) == scored(events)
    assert not any(turn.untold for turn in plain.turns) or not models


def test_results_stand_at_their_turns():
    events = events_of([("a", [], "b", False), ("c", [], "d", False)], models=True)
    scores = [{"gen_ai.evaluation.name": "m", "gen_ai.evaluation.score.value": score} for score in (1.0, 0.5)]
    document = exported(events, results=[[score] for score in scores])
    recorded = read_document(document)
    roots = sorted((span for span in recorded.spans if not span.parent_id), key=lambda span: span.start)
    assert [
        (event.name, event.attributes["gen_ai.evaluation.score.value"])
        for span in roots
        for event in span.events
    ] == [("gen_ai.evaluation.result", 1.0), ("gen_ai.evaluation.result", 0.5)]


@pytest.mark.adk
@pytest.mark.parametrize(
    ("agent", "messages"),
    [
        ("tools", ["Find a lamp", "Thanks"]),
        ("parallel", ["Compare"]),
        ("agent_tool", ["Which desk?"]),
        ("transfer", ["Sofa, please"]),
        ("streaming", ["Hi"]),
        ("raising", ["Try", "Stock?"]),
    ],
)
def test_what_google_adk_did_is_read_back_from_our_spans(agent, messages):
    pytest.importorskip("google.adk")
    from tests.traces import written_traces
    from tests.traces.adk_spans import SPANS, run

    (held,) = conversations_in(
        [written_traces.read_bytes(written_traces.otlp_json(run(agent, messages, SPANS)))]
    ).conversations
    errors = {
        str(number): {"type": turn.error.type, "message": turn.error.message}
        for number, turn in enumerate(held.turns)
        if turn.error
    }
    document = exported(held.events, held=replace(HELD, errors=errors))
    (own,) = read(document)
    # Times are written in microseconds, as in run logs.
    assert [one.to_json() for one in own.events] == [one.to_json() for one in held.events]
    (plain,) = read(without_own_events(document))
    assert scored(plain.events) == scored(held.events)
    assert [bool(turn.error) for turn in plain.turns] == [bool(turn.error) for turn in held.turns]


def test_a_text_beside_a_call_is_no_output_of_a_turn_that_waits():
    events = events_of([("a", [("find", {}, {})], "b", False)], models=True)
    call = {"function_call": {"name": "find", "args": {}, "id": "c"}}
    waiting = Step("shop", {"role": "model", "parts": [{"text": "I look."}, call]}, long_running=("c",))
    waits = [events[0], *(replace(event, turn=0) for event in split_step(waiting))]
    roots = [spans_of_turns(HELD, happened, [])[0] for happened in (events, waits)]
    assert ["gen_ai.output.messages" in root.attributes for root in roots] == [True, False]
