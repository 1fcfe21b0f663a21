"""JSON is found in an answer whatever is around it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.metrics.judges.answers import JudgeAnswer, NoVerdictError, read_json


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('```json\n{"a": [1, 2]}\n```', [{"a": [1, 2]}]),
        ('```json {"a": 1} ```', [{"a": 1}]),
        ('Here it is:\n{"a": 1}\nAnd more:\n[2]\nas well', [{"a": 1}, [2]]),
        ('It wrote {"a": 1}, then\n{"b": 2}', [{"a": 1}, {"b": 2}]),
        ('{"a": 1} {"b": 2}', [{"a": 1}, {"b": 2}]),
        ('{"a": "x, }", "b": [1, 2, ],\n}', [{"a": "x, }", "b": [1, 2]}]),
        ('{"a": "two\nlines"}', [{"a": "two\nlines"}]),
        ('The set {x} [of y] is\n{"a": 1}', [{"a": 1}]),
        ("no JSON", []),
        ("", []),
        ("[" * 100_000, []),
    ],
)
def test_values_in_text(text, values):
    assert list(read_json(text).values) == values


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}',
        '[{"b": 1}',
        '[1, {"b": 1}',
        '{"a": "it says {"b": 1} here"}',
        "{'a': {\"b\": 1}}",
        '{a: {"b": 1}}',
        '{"a": 1}\n{"c": {"b": 1}',
    ],
)
def test_what_does_not_parse_is_not_looked_into_and_nothing_beside_it_counts(text):
    assert read_json(text) == JudgeAnswer()


def test_the_text_around_the_json_is_prose():
    assert read_json('It wrote {"a": 1}, then\n{"b": 2}').prose == "It wrote , then"
    assert read_json('<think>Is it {"a": 2}?</think>\n{"a": 1}') == JudgeAnswer(({"a": 1},))


def test_a_key_twice_in_one_object_is_a_contradiction():
    with pytest.raises(NoVerdictError, match="a is there twice in one object"):
        read_json('{"b": {"a": 1, "a": 1}}')
    assert read_json('{"a": {"a": 1}}').values


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=3)
prose = st.text(alphabet="ab .,:'`}]", max_size=20)


@given(prose, objects, prose, objects, prose, st.sampled_from([None, 1]))
def test_every_object_on_lines_of_its_own_is_found_in_prose(before, first, between, second, after, indent):
    text = "\n".join(
        [before, json.dumps(first, indent=indent), between, json.dumps(second, indent=indent), after]
    )

    assert read_json(text).values == (first, second)


@given(st.text(alphabet='{}[]",:\\ a1\n\0', max_size=40))
def test_no_text_is_too_odd(text):
    for value in read_json(text).values:
        assert isinstance(value, dict | list)
