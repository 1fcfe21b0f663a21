"""Conversations beside each other tell what each of them tells alone, or that it is unknown."""

import json
import random
from dataclasses import replace

import pytest

pytest.importorskip("google.adk")

from tests.traces.test_losses import ANSWERS, CALLS, USER_MESSAGE, copies, facts, read
from tests.traces.test_trace_layouts import MODEL
from tests.traces.test_trace_layouts import span as made_span
from tests.traces.whole_traces import WHOLE

pytestmark = pytest.mark.adk

SESSIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "langfuse.session.id",
    "gcp.vertex.agent.session_id",
)
SECOND = 10**9


def marked(spans, mark, shift=0, kept=()):
    """The spans of another conversation, whose ids begin with a mark, but for those that are kept."""
    made = copies(spans)
    for one in made:
        for name in {"trace_id", "span_id", "parent_id"} - {*kept}:
            value = getattr(one, name)
            setattr(one, name, value and mark + value[1:])
        for name in one.attributes.keys() & {*SESSIONS} - {*kept}:
            one.attributes[name] = f"{one.attributes[name]}-{mark}"
        one.start, one.end = one.start + shift, one.end + shift
        one.events = [replace(event, time=event.time and event.time + shift) for event in one.events]
    return made


def bounds(spans):
    return min(one.start for one in spans), max(one.end for one in spans)


def told(*documents):
    """What each conversation tells, turn by turn, with the parts that are unknown."""
    return sorted(
        [repr(turn) for turn in zip(facts(one), (sorted(t.untold) for t in one.turns), strict=True)]
        for one in read(*documents)
    )


def batches(spans, rng):
    """Parts of the spans in any order, of which some overlap."""
    places = rng.sample(range(len(spans)), len(spans))
    cuts = [0, *sorted(rng.sample(range(1, len(spans)), min(4, len(spans) - 1))), len(spans)]
    parts = [places[max(0, cuts[n] - rng.randrange(3)) : cuts[n + 1]] for n in range(len(cuts) - 1)]
    rng.shuffle(parts)
    return [[spans[place] for place in part] for part in parts]


def pairs(thorough):
    rng = random.Random(None if thorough else 8)
    others = rng.sample([*WHOLE], len(WHOLE))
    return [*zip(WHOLE, WHOLE, strict=True), *zip(WHOLE, others, strict=True)] * (1 + 4 * thorough)


def test_conversations_with_ids_of_their_own_do_not_change_each_other(thorough):
    rng = random.Random(None if thorough else 8)
    for first, second in pairs(thorough):
        one, other = WHOLE[first](), WHOLE[second]()
        (begin, end), (other_begin, _) = bounds(one), bounds(other)
        for kept in ((), ("span_id", "parent_id")):
            mine = marked(one, "x")
            theirs = marked(other, "y", begin - other_begin + rng.randrange(2 * (end - begin)), kept)
            alone = sorted([*told(mine), *told(theirs)])
            both = [*mine, *theirs]
            for documents in ([mine, theirs], [both, both], batches(both, rng)):
                assert told(*documents) == alone, (first, second, kept)


ALL = {ANSWERS, CALLS, USER_MESSAGE}


@pytest.mark.parametrize("is_one_trace", [True, False])
def test_turns_that_overlap_in_one_conversation_are_unknown(is_one_trace):
    """Two conversations have one id, or are in one trace without one."""
    for source, spans_of in WHOLE.items():
        one = spans_of()
        begin, end = bounds(one)
        kept = {*SESSIONS, *(["trace_id"] if is_one_trace else [])}
        has_id = any(span.attributes.keys() & {*SESSIONS} for span in one)
        if (has_id or is_one_trace) and len({span.trace_id for span in one}) == 1:
            other = marked(one, "y", (end - begin) // 6, kept)
            (found,) = read([*one, *other])
            assert all(turn.untold.keys() >= ALL for turn in found.turns), source


@pytest.mark.parametrize(
    "source", [*(f"traces of {name}" for name in ("genai", "openinference", "langfuse"))]
)
def test_turns_that_a_later_request_leaves_out_are_of_another_conversation(source):
    one = WHOLE[source]()
    other = marked(one, "y", SECOND // 2, SESSIONS)
    for span in other:
        for name, value in span.attributes.items():
            text = (
                value.replace("What is the price of order 7?", "Hello") if isinstance(value, str) else value
            )
            span.attributes[name] = text
    (found,) = read([*one, *other])
    assert len(found.turns) == 4
    assert all(turn.untold.keys() >= ALL for turn in found.turns)


@pytest.mark.parametrize("name", ["session.id", "gen_ai.conversation.id"])
@pytest.mark.parametrize("place", ["first", "between"])
def test_the_session_of_a_span_around_the_model_is_that_of_the_conversation(place, name):
    """Who begins a trace by hand names the session there, and not on what the client of a model records."""
    spans = []
    for number in range(2):
        said = [f"Question {n // 2}." if n % 2 == 0 else f"Answer {n // 2}." for n in range(2 * number + 2)]
        messages = [
            {"role": "assistant" if n % 2 else "user", "parts": [{"type": "text", "content": text}]}
            for n, text in enumerate(said)
        ]
        names = {"gen_ai.input.messages": messages[:-1], "gen_ai.output.messages": messages[-1:]}
        model = {**MODEL, **{name: json.dumps(value) for name, value in names.items()}}
        begin = 1000 * number
        for parent, attributes in enumerate(({}, {}, model)):
            is_named = parent == (place == "between")
            session = {name: "s1"} if is_named else {}
            of_trace = str(number + 1)
            made = made_span(parent + 1, parent, attributes | session, begin=begin + parent, trace=of_trace)
            spans.append(made)
    (found,) = read(spans)
    assert (found.id, [turn.user for turn in found.turns]) == ("s1", ["Question 0.", "Question 1."])
    assert [dict(turn.untold) for turn in found.turns] == [{}, {}]
