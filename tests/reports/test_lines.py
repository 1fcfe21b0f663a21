import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from evaltui.text.lines import cells, cut, draw, fit, pad, wrap

texts = st.text(st.sampled_from(list("ab  日é\n👍🏽-")), max_size=40)


@pytest.mark.parametrize(
    ("text", "width", "padded"),
    [("ab", 4, "ab  "), ("abcdef", 4, "abc…"), ("日本", 6, "日本  "), ("日本語", 4, "日… "), ("", 2, "  ")],
)
def test_padding(text, width, padded):
    assert pad(text, width) == padded


def test_a_line_is_cut_with_its_styles():
    assert cut([("abc", "error"), ("def", "")], 5) == [("abc", "error"), ("d", ""), ("…", "muted")]
    assert cut([("abc", "error")], 3) == [("abc", "error")]


def test_drawing():
    line = [("a", "error"), ("b ", "error"), (" ", ""), ("c ", "")]
    assert draw(line, color=False) == "ab  c"
    assert draw(line, color=True) == "\x1b[31mab \x1b[0m c"
    assert draw([(" ", "error")], color=True) == ""


def test_wrapping_keeps_newlines_and_styles():
    wrapped = wrap([("one two ", ""), ("three\n\nfour", "error")], 8)
    assert [draw(line, color=False) for line in wrapped] == ["one two", "three", "", "four"]
    assert wrapped[1] == [("three", "error")]


def test_a_word_of_several_roles_is_not_broken():
    value = [("degrees", "key"), ("\xa0", ""), ("19", "number"), ("}", "comment"), (" ", ""), ("now", "")]
    assert wrap([("to ", ""), *value], 12) == [
        [("to ", "")],
        [("degrees", "key"), (" ", ""), ("19", "number"), ("}", "comment"), (" ", "")],
        [("now", "")],
    ]
    assert wrap([("abcd", "key"), ("efgh", "")], 3) == [
        [("abc", "key")],
        [("d", "key")],
        [("efg", "")],
        [("h", "")],
    ]


@given(texts, st.integers(2, 12))
def test_no_word_is_lost_and_no_line_too_wide(text, width):
    wrapped = wrap([(text, "")], width)
    assert all(cells(line) <= width for line in wrapped)
    joined = "".join(part for line in wrapped for part, _ in line)
    assert "".join(joined.split()) == "".join(text.split())


@given(texts, st.integers(2, 12))
def test_cutting_and_padding_keep_the_width(text, width):
    line = text.replace("\n", " ")
    assert cells(cut([(line, "")], width)) <= width
    assert cell_len(pad(line, width)) == width
    assert line.startswith(fit(line, width))
