"""JSON is found in an answer whatever is around it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.core.metrics.judges.json_answers import json_values, objects_with


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('```json\n{"a": [1, 2]}\n```', [{"a": [1, 2]}]),
        ('Here it is: {"a": 1}. And more: [2] as well', [{"a": 1}, [2]]),
        ('{"a": "x, }", "b": [1, 2, ],\n}', [{"a": "x, }", "b": [1, 2]}]),
        ('{"a": "two\nlines"}', [{"a": "two\nlines"}]),
        ('The set {x} is {"a": 1}', [{"a": 1}]),
        ('{"a": {"b": 1}', [{"b": 1}]),
        ("no JSON", []),
        ("", []),
        ("[" * 100_000, []),
    ],
)
def test_values_in_text(text, values):
    assert json_values(text) == values


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=3)
prose = st.text(alphabet="ab .,:\n'`}]", max_size=20)


@settings(max_examples=100, deadline=None)
@given(prose, objects, prose, objects, prose, st.sampled_from([None, 1]))
def test_every_object_is_found_in_prose(before, first, between, second, after, indent):
    text = before + json.dumps(first, indent=indent) + between + json.dumps(second, indent=indent) + after

    assert json_values(text) == [first, second]


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='{}[]",:\\ a1\n', max_size=40))
def test_no_text_is_too_odd(text):
    for value in json_values(text):
        assert isinstance(value, dict | list)


def test_objects_with_a_key_are_found_at_any_depth():
    value = [{"verdict": 1, "inner": {"verdict": 2}}, [[{"verdict": 3}]], {"other": 4}]

    assert [found["verdict"] for found in objects_with("verdict", value)] == [1, 2, 3]
