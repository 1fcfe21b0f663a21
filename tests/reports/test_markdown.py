"""Markdown as lines: dumps, and what a growing text costs."""

import pytest

from evaltui.text import markdown as module
from evaltui.text.lines import cells
from evaltui.text.markdown import markdown_lines


def plain(text, width=40):
    return ["".join(part for part, _ in line).rstrip() for line in markdown_lines(text, width)]


def dump(text, width=40):
    return [
        "".join(f"{part}<{role}>" if role else part for part, role in line)
        for line in markdown_lines(text, width)
    ]


def test_inline():
    assert dump("Set **19 °C** in `Kitchen`, ~~now~~ *later*") == [
        "Set 19 °C<bold> in Kitchen<number panel>, now<strike> later"
    ]
    assert dump("see [docs](http://x.y) or http://z.w.", 60) == [
        "see docs<underline function> (http://x.y)<muted> or http://z.w<underline function>."
    ]


@pytest.mark.parametrize("text", ["2 * 3 * 4", "snake_case_name", "a ** b", "[x]", "5*", "_", "C:\\temp"])
def test_what_is_no_mark_stays(text):
    assert plain(text) == [text]


def test_blocks():
    text = "# Plan\n\n- one\n  - two\n1. three\n> said\n---\nend"
    assert plain(text, 12) == ["Plan", "", "• one", "  • two", "1. three", "│ said", "─" * 12, "end"]
    assert dump(text)[0] == "Plan<bold accent>"
    assert plain("- a long item of a list", 12) == ["• a long", "  item of a", "  list"]


def test_code_is_coloured_on_a_surface_as_wide_as_the_text():
    lines = markdown_lines("```python\nx = 1\n\ny = 2\n```\nend", 20)
    assert {cells(line) for line in lines[:-1]} == {20}
    assert all("surface" in role for line in lines[:-1] for _, role in line)
    assert ("1", "surface number") in lines[1]
    assert plain("```\n**raw**\n```") == [" **raw**"]
    assert plain("```py\nstill coming") == [" py", " still coming"]


def test_tables():
    text = "| room | degrees |\n|---|---:|\n| Kitchen | **19** |\n| Hall | 7 |"
    assert plain(text) == ["room     degrees", "─" * 16, "Kitchen       19", "Hall           7"]
    assert all(cells(line) <= 10 for line in markdown_lines(text, 10))
    text = "| key | action |\n|---|---|\n| ctrl+s | saves every file |"
    assert plain(text, 18) == ["key     action", "─" * 18, "ctrl+s  saves", "        every file"]


def test_what_a_terminal_would_obey_is_spelt_out():
    text = "\x1b[31m `\x1b` **\u202e** [\x07](http://\x1b)\n```json\n\x1b\n```\n| \x1b | b |\n|-|-|"
    assert all(line.isprintable() for line in plain(text, 80))


def test_of_a_growing_text_only_the_last_paragraph_is_drawn_anew(monkeypatch):
    module._draw_paragraph.cache_clear()
    text = "".join(f"Paragraph {number} of **many**.\n\n" for number in range(50))
    for end in range(len(text) - 20, len(text)):
        markdown_lines(text[:end], 60)
    assert module._draw_paragraph.cache_info().misses <= 50 + 20
