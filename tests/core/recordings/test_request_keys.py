"""The key of a request: equal for what is the same question, different for what is another one."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaltui.core.recordings.entry import JsonRequest, fingerprints, without_today

NOON = datetime(2026, 9, 10, 12, 0, tzinfo=UTC)

texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
call_ids = st.sampled_from(["a", "b", "c"])
text_parts = st.builds(lambda text: {"text": text}, texts)
parts = st.one_of(
    text_parts,
    st.builds(
        lambda call_id, name, args: {"function_call": {"id": call_id, "name": name, "args": args}},
        call_ids,
        texts,
        objects,
    ),
    st.builds(
        lambda call_id, name, response: {
            "function_response": {"id": call_id, "name": name, "response": response}
        },
        call_ids,
        texts,
        objects,
    ),
)


def contents(parts):
    content = st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "model"]), "parts": st.lists(parts, max_size=3)}
    )
    return st.lists(content, max_size=4)


tools = st.lists(
    st.builds(lambda name, schema: {"name": name, "schema": schema}, texts, objects),
    max_size=3,
    unique_by=lambda tool: tool["name"],
)


def requests(parts):
    return st.builds(
        JsonRequest, model=texts, contents=contents(parts), instruction=texts, tools=tools, config=objects
    )


def key(asked, now=NOON):
    return fingerprints(asked, now).key


def shuffled(value, chance):
    """The same data, keys of objects in another order."""
    if isinstance(value, dict):
        items = [(name, shuffled(item, chance)) for name, item in value.items()]
        chance.shuffle(items)
        return dict(items)
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


def with_other_ids(contents):
    changed = copy.deepcopy(contents)
    for content in changed:
        for part in content["parts"]:
            for call in part.values():
                if isinstance(call, dict):
                    call["id"] = f"adk-{ord(call['id']) * 7919}"
    return changed


@given(requests(parts), st.randoms(use_true_random=False))
def test_order_of_keys_and_tools_new_call_ids_and_signatures_change_nothing(asked, chance):
    signed = [
        {**content, "parts": [{**part, "thought_signature": "c2ln"} for part in content["parts"]]}
        for content in with_other_ids(asked.contents)
    ]
    tools = list(asked.tools)
    chance.shuffle(tools)
    same = JsonRequest(
        asked.model,
        [shuffled(content, chance) for content in signed],
        asked.instruction,
        [shuffled(tool, chance) for tool in tools],
        shuffled(asked.config, chance),
    )
    assert key(same) == key(asked)


@given(requests(text_parts), requests(text_parts))
def test_what_asks_something_else_has_another_key(one, other):
    def plain(asked):
        return asked.model, asked.instruction, asked.config, [c["parts"] for c in asked.contents]

    assume(repr(plain(one)) != repr(plain(other)))
    assert key(one) != key(other)


def request(instruction="Be kind.", text="hello", **fields):
    return JsonRequest("gemini", [{"role": "user", "parts": [{"text": text}]}], instruction, **fields)


def test_tools_are_part_of_the_question():
    assert key(request(tools=[{"name": "search"}])) != key(request())


def test_swapped_results_of_two_calls_are_another_request():
    def conversation(first, second):
        made = [{"function_call": {"id": call, "name": "look", "args": {}}} for call in ("x", "y")]
        results = [
            {"function_response": {"id": call, "name": "look", "response": {"n": n}}}
            for n, call in enumerate((first, second))
        ]
        return JsonRequest("m", [{"role": "model", "parts": made}, {"role": "user", "parts": results}])

    assert key(conversation("x", "y")) != key(conversation("y", "x"))


SPELLINGS = [
    "2026-09-10",
    "2026-09-10T12:34:56.789+02:00",
    "2026-09-10 12:34",
    "10.09.2026",
    "09/10/2026",
    "September 10, 2026",
    "Thursday, September 10, 2026",
    "Thursday, 10 September 2026 at 9:30 PM",
    "Thu Sep 10 12:34:56 2026",
    "Thu Sep 10 12:34:56 UTC 2026",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_today_is_the_same_every_day(spelling):
    assert without_today(f"Today is {spelling}. Be kind.", NOON) == "Today is <today>. Be kind."


@pytest.mark.parametrize(
    "fixed", ["2026-09-11", "2025-09-10", "12026-09-101", "open from 9:00", "version 10.9"]
)
def test_other_dates_and_times_are_part_of_the_question(fixed):
    assert without_today(f"Book it for {fixed}.", NOON) == f"Book it for {fixed}."


def test_today_is_that_of_the_agent_or_of_utc():
    late = datetime(2026, 9, 10, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert without_today("2026-09-10 and 2026-09-11", late) == "<today> and <today>"


def test_a_prompt_with_the_date_of_the_day_has_one_key():
    tomorrow = NOON + timedelta(days=1)
    assert key(request("It is 2026-09-10 12:00."), NOON) == key(request("It is 2026-09-11 08:15."), tomorrow)


def test_a_fixed_date_that_was_today_s_by_chance_is_still_found_by_its_exact_key():
    asked = request("The offer ends on 2026-09-10.")
    today, tomorrow = fingerprints(asked, NOON), fingerprints(asked, NOON + timedelta(days=1))
    assert today.key != tomorrow.key
    assert today.exact == tomorrow.key
