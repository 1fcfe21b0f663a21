"""Paths of arguments in rules: what they mean, and that what a diff shows can be written into a rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.core.model.arg_rule import ANY_INDEX, arg_path_text, covers, parse_arg_path
from evaltui.core.model.problems import format_path

MODEST = settings(max_examples=150, deadline=None)
names = st.text(min_size=1, max_size=6) | st.sampled_from(["a.b", "*", "[0]", "it's", '"', "0", "x y", "\\"])
paths = st.tuples(names, st.lists(names | st.integers(0, 12), max_size=3)).map(lambda one: (one[0], *one[1]))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("query", ("query",)),
        ("filter.as_of", ("filter", "as_of")),
        ("items[0]", ("items", 0)),
        ("items[*].id", ("items", ANY_INDEX, "id")),
        ("['a.b'].c", ("a.b", "c")),
        ('["it\'s"][3][*]', ("it's", 3, ANY_INDEX)),
        ("as of.$top", ("as of", "$top")),
        ("a.0", ("a", "0")),
        ("['*']", ("*",)),
        ("*", ()),
    ],
)
def test_what_a_path_means(text, path):
    assert parse_arg_path(text) == path


@pytest.mark.parametrize(
    "text",
    ["", ".", "a.", ".a", "a..b", "[0]", "[*]", "a[x]", "a[-1]", "a[0]b", "a.*", "a*", "a['x", "a['\\x']"],
)
def test_what_is_no_path_is_refused_in_a_sentence(text):
    with pytest.raises(ValueError, match=r"is not the path|must begin|cannot be read"):
        parse_arg_path(text)


@MODEST
@given(paths)
def test_every_path_of_a_diff_can_be_written_into_a_rule(path):
    assert parse_arg_path(format_path(path)) == path


@MODEST
@given(paths, st.sets(st.integers(1, 3)))
def test_a_path_is_read_as_it_was_written(path, anywhere):
    path = tuple(ANY_INDEX if number in anywhere else step for number, step in enumerate(path))
    assert parse_arg_path(arg_path_text(path)) == path


def test_which_places_a_path_reaches():
    assert covers((), ("items", 0))
    assert covers(("items", ANY_INDEX), ("items", 4, "id"))
    assert not covers(("items", ANY_INDEX), ("items", "4"))
    assert not covers(("items", 0, "id"), ("items", 0))
    assert not covers(("a.b",), ("a", "b"))
