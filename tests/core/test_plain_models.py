"""Turns that become models without being validated are those that validating makes."""

import json

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from evaltui.core.conversation.plain_models import invocation_model
from evaltui.core.model.eval_set import Invocation

TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["", "ä€", "\ud800", "a\x00b"]))
NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.booleans(), st.none())
VALUES = st.recursive(
    TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ANY = st.one_of(TEXTS, NUMBERS, VALUES)
ARGS = st.dictionaries(TEXTS, VALUES, max_size=3)


def some_of(fields, stray=ANY):
    """An object with some of these fields; rarely with a value or a key that does not belong there."""
    usual = st.fixed_dictionaries({}, optional=fields)
    odd = st.fixed_dictionaries({}, optional=dict.fromkeys([*fields, "unknown"], stray))
    return st.one_of(usual, usual, usual, odd)


CALLS = some_of({"id": TEXTS, "name": TEXTS, "args": ARGS, "will_continue": st.booleans()})
RESPONSES = some_of({"id": TEXTS, "name": TEXTS, "response": ARGS, "will_continue": st.booleans()})
PARTS = st.one_of(
    some_of({"text": TEXTS, "thought": st.booleans(), "thought_signature": st.sampled_from(["QUJD", "!"])}),
    CALLS.map(lambda one: {"function_call": one}),
    RESPONSES.map(lambda one: {"function_response": one}),
    st.builds(lambda call, thought: {"function_call": call, "thought": thought}, CALLS, st.booleans()),
    st.just({"inline_data": {"data": "QUJD", "mime_type": "image/png"}}),
    st.just({"functionCall": {"name": "spelt"}}),
    st.just({"function_call": None, "text": "a"}),
    ANY,
)
CONTENTS = st.one_of(
    st.fixed_dictionaries({"parts": st.lists(PARTS, max_size=3)}, optional={"role": TEXTS}),
    some_of({"role": TEXTS, "parts": st.lists(PARTS, max_size=2)}),
    ANY,
)
USAGES = some_of(
    {
        "prompt_token_count": st.integers(0, 9),
        "total_token_count": st.integers(0, 9),
        "candidates_token_count": st.integers(0, 9),
        "prompt_tokens_details": st.just([{"modality": "TEXT", "token_count": 3}]),
    }
)
EVENTS = st.fixed_dictionaries(
    {
        "author": TEXTS,
        "content": st.none() | CONTENTS,
        "grounding_metadata": st.none() | some_of({"web_search_queries": st.lists(TEXTS, max_size=2)}),
        "usage_metadata": st.none() | USAGES,
        "model_version": st.none() | TEXTS,
    }
)
INVOCATIONS = st.fixed_dictionaries(
    {
        "invocation_id": TEXTS,
        "user_content": CONTENTS,
        "final_response": st.none() | CONTENTS,
        "intermediate_data": st.fixed_dictionaries({"invocation_events": st.lists(EVENTS, max_size=3)}),
        "creation_timestamp": st.one_of(st.floats(0, 9), st.just(1)),
    },
    optional={"duration": st.floats(0, 9), "model_duration": st.one_of(st.none(), st.floats(0, 9))},
)


def made(build, data):
    try:
        return build(data)
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)


def validated(data):
    return Invocation.model_validate_json(json.dumps(data))


def given_fields(value):
    """A model and all within it as what was given: fields that were set, with their values and types."""
    if isinstance(value, BaseModel):
        return type(value), {name: given_fields(getattr(value, name)) for name in value.model_fields_set}
    if isinstance(value, list):
        return [given_fields(one) for one in value]
    return type(value), repr(value)


@given(INVOCATIONS)
def test_models_and_errors_are_those_of_validating(data):
    expected, got = made(validated, data), made(invocation_model, data)
    assert got == expected
    assert given_fields(got) == given_fields(expected)
    if isinstance(got, Invocation):
        assert got.model_dump_json() == expected.model_dump_json()
        assert vars(got).keys() == vars(expected).keys()


TURN = {
    "invocation_id": "e-1",
    "user_content": {"role": "user", "parts": [{"text": "hi"}]},
    "final_response": {"role": "model", "parts": [{"text": "on", "thought": False}]},
    "intermediate_data": {
        "invocation_events": [
            {
                "author": "home",
                "content": {
                    "parts": [{"function_call": {"name": "switch", "args": {"on": [True, None, 1.5]}}}]
                },
                "grounding_metadata": None,
                "usage_metadata": {"prompt_token_count": 3, "total_token_count": 5},
                "model_version": "gemini",
            }
        ]
    },
    "creation_timestamp": 1.0,
    "duration": 0.5,
}


@pytest.mark.parametrize(
    "part",
    [
        {"function_call": {"name": "switch", "args": {}}, "thought": True},
        {"function_response": {"name": "switch", "response": {}}, "thought": False},
        {"text": "a", "function_call": {"name": "switch"}},
        {"text": "a", "thought_signature": "QUJD"},
        {"inline_data": {"data": "QUJD", "mime_type": "image/png"}},
        {"executable_code": {"code": "1", "language": "PYTHON"}},
    ],
    ids=lambda part: " ".join(part),
)
def test_parts_of_several_things_are_models_all_through(part):
    data = TURN | {"final_response": {"role": "model", "parts": [part]}}
    assert given_fields(invocation_model(data)) == given_fields(validated(data))


def test_a_turn_of_texts_calls_and_tokens_is_not_validated(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("validated")

    expected = validated(TURN)
    monkeypatch.setattr(BaseModel, "model_validate_json", classmethod(refuse))
    assert invocation_model(TURN) == expected


def test_models_of_two_turns_share_nothing():
    one, other = invocation_model(TURN), invocation_model(TURN)
    one.user_content.parts.append(types.Part(text="more"))
    one.intermediate_data.invocation_events[0].content.parts[0].text = "changed"
    assert other == validated(TURN)
    assert invocation_model(TURN) == validated(TURN)


def test_what_is_no_json_is_refused():
    with pytest.raises(TypeError):
        invocation_model(
            TURN | {"user_content": {"parts": [{"function_call": {"args": {"when": object()}}}]}}
        )
