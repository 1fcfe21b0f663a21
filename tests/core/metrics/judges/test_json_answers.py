"""JSON is found in an answer whatever is around it."""

import pytest

from evaltui.core.metrics.judges.answers import JudgeAnswer, read_json


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
