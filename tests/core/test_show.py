import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.text.values import cut, show_change, show_value, type_change, visible, visible_lines

any_text = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"rooms": 3, "mode": "night"}, '{"rooms": 3, "mode": "night"}'),
        ("Zürich 日本", '"Zürich 日本"'),
        (None, "null"),
        (True, "true"),
        (19.0, "19.0"),
        ([], "[]"),
        ("a\x1b[31mred\nline", '"a\\u001b[31mred\\nline"'),
        ("\x9b31m\u202e", '"\\x9b31m\\u202e"'),
    ],
)
def test_values_are_json_on_one_line(value, text):
    assert show_value(value) == text


def test_long_values_are_cut_and_say_so():
    assert show_value(list(range(100)), 12) == "[0, 1, 2, 3…"
    assert show_value("a" * 100, 10) == '"aaaaaaa…"'
    assert cut("abc", 3) == "abc"


def test_of_two_long_values_the_difference_can_be_seen():
    before, after = show_change("x" * 100 + "old" + "y" * 100, "x" * 100 + "new" + "y" * 100, 20)
    assert before == "…xxxxxoldyyyyyyyyyy…"
    assert after == "…xxxxxnewyyyyyyyyyy…"


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        ("café", "cafe\u0301", ('"caf\\u00e9"', '"cafe\\u0301"')),
        ({"at": "19 °C"}, {"at": "19\u00a0°C"}, ('{"at": "19 \\u00b0C"}', '{"at": "19\\u00a0\\u00b0C"}')),
        ("café", "cafe", ('"café"', '"cafe"')),
    ],
)
def test_values_that_look_alike_are_told_apart(expected, actual, shown):
    assert show_change(expected, actual) == shown


def test_short_values_are_shown_whole():
    assert show_change(19, "19") == ("19", '"19"')


@pytest.mark.parametrize(
    ("expected", "actual", "kind"),
    [
        (19, "19", "string"),
        ("19", 19, "number"),
        (19, 19.5, ""),
        (1, True, "boolean"),
        ([], {}, "object"),
        ({}, [], "list"),
        (None, 1, ""),
        (1, None, ""),
    ],
)
def test_another_type_is_named(expected, actual, kind):
    assert type_change(expected, actual) == kind


def test_control_characters_are_shown():
    assert visible("a\x1b[2J\r\n\tb\x00\x9b") == "a\\x1b[2J\\r\\n\\tb\\x00\\x9b"
    assert visible_lines("one\r\n\ttwo\x07") == ["one", "    two\\x07"]


def test_joined_emoji_and_other_scripts_stay_whole():
    assert visible("👩‍🚀 क्षि") == "👩‍🚀 क्षि"


@given(any_text)
@example("\ud800\x9b\ufeff")
def test_nothing_that_a_terminal_obeys_is_left(text):
    shown = visible(text) + show_value(text, 40) + "".join(visible_lines(text))
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs")]
    shown.encode("utf-8")


@given(st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.lists(inner), max_leaves=5))
def test_a_value_is_never_longer_than_asked_for(value):
    assert len(show_value(value, 20)) <= 20
    assert show_value(value, 10_000) == visible(json.dumps(value, ensure_ascii=False))
