from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.text import word_diff
from evaltui.text.word_diff import diff_words

sentences = st.lists(
    st.sampled_from(
        ["the", "kitchen", "is", " ", "\n", "  ", "19", "°C", ".", ",", "日", "本", "é", "ि", "\x1b[31m"]
    )
).map("".join)


@pytest.mark.parametrize(
    ("expected", "actual", "parts"),
    [
        ("", "", []),
        ("same", "same", [("same", "same")]),
        ("", "new", [("added", "new")]),
        ("old", "", [("removed", "old")]),
        (
            "The kitchen is now 19 °C.",
            "The kitchen is set to 19 °C.",
            [("same", "The kitchen is "), ("removed", "now"), ("added", "set to"), ("same", " 19 °C.")],
        ),
        ("a b c", "x y z", [("removed", "a b c"), ("added", "x y z")]),
        ("on 2026-01-05", "on 2026-01-06", [("same", "on 2026-01-"), ("removed", "05"), ("added", "06")]),
        ("今19度", "今20度", [("same", "今"), ("removed", "19"), ("added", "20"), ("same", "度")]),
        ("a b", "a  b", [("same", "a"), ("removed", " "), ("added", "  "), ("same", "b")]),
    ],
)
def test_examples(expected, actual, parts):
    assert list(diff_words(expected, actual)) == parts


@given(st.text() | sentences, st.text() | sentences)
def test_both_texts_can_be_put_together_again(expected, actual):
    parts = diff_words(expected, actual)
    assert "".join(text for op, text in parts if op != "added") == expected
    assert "".join(text for op, text in parts if op != "removed") == actual
    assert all(text for _, text in parts)
    assert all(one[0] != other[0] for one, other in pairwise(parts)), "runs are joined"
    if expected == actual:
        assert {op for op, _ in parts} <= {"same"}


def test_long_texts_keep_their_common_ends(monkeypatch):
    monkeypatch.setattr(word_diff, "MAX_WORDS", 10)
    middle = " ".join(str(n) for n in range(20))
    parts = diff_words(f"start {middle} end", f"start {middle[::-1]} end")
    assert [op for op, _ in parts] == ["same", "removed", "added", "same"]
    assert parts[0][1].startswith("start ")
    assert parts[-1][1].endswith(" end")
