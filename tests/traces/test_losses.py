"""A trace that has lost something tells what the whole trace tells, or that it is unknown."""

import asyncio
import json
from copy import copy
from dataclasses import replace
from functools import cache

import pytest

pytest.importorskip("google.adk")

from evaltui import invocations_from_events, score_case
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, scored_text, tool_calls
from evaltui.core.model.events import ANSWERS, ARGUMENTS, CALLS, USER_MESSAGE
from evaltui.traces.conversations import conversations_in
from evaltui.traces.pairing import aligned_events
from evaltui.traces.span import Recorded
from tests.eval_data import make_case, make_turn
from tests.traces.whole_traces import WHOLE

pytestmark = pytest.mark.adk

ROLES = ("user", "assistant", "tool", "system", "model")
CONFIG = EvalConfig.model_validate(
    {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
)


def losses(spans):
    """What was lost, and the spans that are left."""
    for number, one in enumerate(spans):
        before, after = spans[:number], spans[number + 1 :]
        yield one.name, [*before, *after]
        for name in one.attributes:
            rest = {key: one.attributes[key] for key in one.attributes if key != name}
            yield f"{name} of {one.name}", [*before, replace(one, attributes=rest), *after]
    for moment in sorted({one.end for one in spans}):
        yield f"tail from {moment}", [one for one in spans if one.end <= moment]
        yield f"head until {moment}", [one for one in spans if one.end > moment]
    level = spans
    while level:
        ids = {one.span_id for one in level}
        level = [one for one in level if one.parent_id in ids]
        yield f"outer spans but {len(level)}", level
    yield "order", spans[::-1]
    yield "starts", [replace(one, start=spans[0].start) for one in spans]
    yield "ends", [replace(one, end=0) for one in spans]
    yield "times", [replace(one, start=0, end=0) for one in spans]


def other_types(name, value):
    """Values that an attribute may have in place of one, as other writers have it."""
    try:
        data = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        data = None
    if isinstance(data, dict | list | tuple):
        yield from (data, json.dumps(data))
        if name.endswith(".messages"):
            yield from (json.dumps(json.dumps(data)), [json.dumps(one) for one in data])
    elif data is not None:
        yield from (str(value), [value])


def other_roles(name, value):
    """The value of an attribute with roles in capitals, and with roles that nobody knows."""
    for role in ROLES if isinstance(value, str) else ():
        for other in (role.upper(), f"x-{role}", 7):
            if name.endswith(".role") and value == role:
                yield other
            elif f'"role": "{role}"' in value:
                yield value.replace(f'"role": "{role}"', f'"role": {json.dumps(other)}')


def rewritten(spans):
    """Spans of which one has an attribute in another form."""
    for number, one in enumerate(spans):
        for name, value in one.attributes.items():
            if name.startswith("evaltui."):
                continue
            for other in (*other_types(name, value), *other_roles(name, value)):
                changed = replace(one, attributes={**one.attributes, name: other})
                yield f"{name} of {one.name}: {other}", [*spans[:number], changed, *spans[number + 1 :]]


def copies(spans):
    return [replace(one, attributes=dict(one.attributes), events=[*map(copy, one.events)]) for one in spans]


def read(*documents):
    """Conversations of spans, which stay as they are."""
    return conversations_in([Recorded(copies(spans)) for spans in documents]).conversations


def facts(conversation):
    """Message, calls without and with arguments, response, error and state of each turn; None for what is
    unknown."""
    for number, turn in enumerate(conversation.turns):
        (one,) = invocations_from_events(turn.events)
        calls = [(call.name, call.args) for call in tool_calls(one.intermediate_data)]
        values = turn.user, [name for name, _ in calls], calls, scored_text(one, thoughts=False), turn.error
        parts = {USER_MESSAGE}, {CALLS}, {CALLS, ARGUMENTS}, {ANSWERS}, {ANSWERS}
        is_known = [part.isdisjoint(turn.untold) for part in parts]
        known = [value if is_sure else None for value, is_sure in zip(values, is_known, strict=True)]
        yield (*known[:4], turn.error is not None if is_known[4] else None, conversation.state_after(number))


def faults(turns, whole):
    """Values that differ in the pairing of turns with the fewest, in order; parts of a turn may be turns."""
    if not turns or not whole:
        return []
    pairs = [pair for pair in zip(turns[0], whole[0], strict=True) if None not in pair]
    first = [pair for pair in pairs if pair[0] != pair[1]] + faults(turns[1:], whole)
    return min(first, faults(turns, whole[1:]), key=len) if first and whole[1:] else first


def case_of(turns, response=None, more=()):
    made = []
    for user, _, calls, text, *_ in turns:
        expected = [{"name": name, "args": args or {}} for name, args in calls]
        made.append(make_turn(user, response or text, [*expected, *more]))
    return EvalCase.model_validate(make_case("c", *made))


def verdict(case, conversation):
    expected = [turn.user_content.model_dump(mode="json", exclude_none=True) for turn in case.conversation]
    events, _ = aligned_events(expected, conversation)
    return asyncio.run(score_case(case, invocations_from_events(events), CONFIG)).status


def of_tools(spans):
    """Ids of the spans in calls of tools."""
    kinds = {"execute_tool", "TOOL", "tool"}
    tools = {one.span_id for one in spans if kinds & {*map(str, one.attributes.values())}}
    inside = set()
    for one in sorted(spans, key=lambda one: one.start):
        if one.parent_id in tools:
            tools.add(one.span_id)
            inside.add((one.trace_id, one.span_id))
    return inside


def of_last_turn(conversation, spans):
    if len(conversation.traces) > 1:
        return {(one.trace_id, one.span_id) for one in spans if one.trace_id == conversation.traces[-1]}
    return {tuple(event.data["from"].values()) for event in conversation.turns[-1].events}


FEWER = "turns are missing, and nothing is unknown"
# In what is left, nothing tells of the loss.
UNDECIDABLE = {
    "The last turns are missing as a whole.": lambda left, last, tools, found: (
        found == [FEWER] and not left & last
    ),
    "Only an agent in a call of a tool is left; one that is asked over the network begins in the same way.": (
        lambda left, last, tools, found: left <= tools
    ),
}


@cache
def differences(source):
    """Losses after which something is wrong, each with it, and the reasons why others are undecidable."""
    spans = WHOLE[source]()
    (conversation,) = read(spans)
    whole = list(facts(conversation))
    last, tools = of_last_turn(conversation, spans), of_tools(spans)
    is_known = all(None not in turn[:-1] for turn in whole)
    cases = [case_of(whole), case_of(whole, "Never.", ["never"])] if is_known else []
    right = [verdict(case, conversation) for case in cases]
    scored, wrong, reasons = {repr((whole, [[]] * len(whole))): right}, [], set()
    for name, left in losses(spans):
        conversations = read(left)
        turns = [turn for one in conversations for turn in facts(one)]
        found = faults(turns, whole)
        untold = [sorted(turn.untold) for one in conversations for turn in one.turns]
        if turns and len(turns) != len(whole) and not any(untold):
            found.append(FEWER)
        for one in conversations:
            key = repr((list(facts(one)), [sorted(turn.untold) for turn in one.turns]))
            scored[key] = scored.get(key) or [verdict(case, one) for case in cases]
            pairs = zip(scored[key], right, strict=True)
            found += [pair for pair in pairs if pair[0] not in (pair[1], "NOT_EVALUATED")]
        ids = {(one.trace_id, one.span_id) for one in left}
        reason = [why for why, holds in UNDECIDABLE.items() if found and holds(ids, last, tools, found)]
        reasons.update(reason[:1])
        wrong += [(name, found)] if found and not reason else []
    return wrong, reasons


@pytest.mark.parametrize("source", WHOLE)
def test_what_is_left_of_a_trace_is_right_or_unknown(source):
    assert differences(source)[0] == []


# A part of them every day: a layout is in several.
PARTS = [pytest.param(name, marks=[pytest.mark.thorough] * bool(n % 3)) for n, name in enumerate(WHOLE)]


@pytest.mark.parametrize("source", PARTS)
def test_an_attribute_in_another_form_is_read_or_unknown(source):
    whole = [turn for one in read(WHOLE[source]()) for turn in facts(one)]
    for name, spans in rewritten(WHOLE[source]()):
        assert faults([turn for one in read(spans) for turn in facts(one)], whole) == [], name


def test_each_undecidable_loss_occurs():
    assert set().union(*(differences(source)[1] for source in WHOLE)) == set(UNDECIDABLE)
