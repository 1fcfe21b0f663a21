"""Values and code in colour, as text dumps: `text<role>` for every span that has a role."""

import json

import pytest

from evaltui.text.lines import with_role
from evaltui.text.syntax import (
    MAX_CHARACTERS,
    MAX_LINES,
    arguments_line,
    change_lines,
    code_lines,
    color_json,
    value_line,
)


def dump(line):
    return "".join(f"{text}<{role}>" if role else text for text, role in line)


def dumps(text, lexer):
    return [dump(line) for line in code_lines(text, lexer)]


def plain(lines):
    return "\n".join("".join(text for text, _ in line) for line in lines)


def test_json():
    assert dumps('{"a": [1, true],\n "b": "x"}', "json") == [
        '{<comment>"a"<key>: [<comment>1<number>, <comment>true<number>],<comment>',
        ' "b"<key>: <comment>"x"<string>}<comment>',
    ]


def test_python_tracebacks_and_diffs():
    assert dump(code_lines("@once\ndef f(): return None  # why", "python")[0]) == "@once<keyword>"
    assert "f<function>" in dumps("def f(): pass", "python")[0]
    trace = 'Traceback (most recent call last):\n  File "agent.py", line 12, in <module>\nNameError: x'
    head, place, error = dumps(trace, "pytb")
    assert head == "Traceback (most recent call last):<muted>"
    assert '"agent.py"<underline function>' in place
    assert "12<number>" in place
    assert error == "NameError<error>: x"
    assert dumps("-a\n+b", "diff") == ["-a<error>", "+b<success>"]
    assert dumps("# Plan\n`x` **y**", "markdown") == ["# Plan<bold accent>", "`x` <number>**y**<bold>"]


@pytest.mark.parametrize("text", ["", "a", "a\n", "\na\n\nb", "a\r\nb", "\tx", "\x1b[31m\u202e"])
@pytest.mark.parametrize("lexer", ["json", "python", "pytb", "markdown", "diff", "yaml", "cobol"])
def test_every_text_keeps_its_lines_and_is_safe(text, lexer):
    shown = plain(code_lines(text, lexer))
    assert shown.count("\n") == text.count("\n")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_languages_of_fences_go_by_other_names_and_unknown_ones_stay_plain():
    assert code_lines("x = 1", "py") == code_lines("x = 1", "python")
    assert code_lines("x = 1", "cobol") == [[("x = 1", "")]]


def test_long_texts_are_cut():
    lines = code_lines("\n".join(["1"] * 6_812), "json")
    assert len(lines) == MAX_LINES + 1
    assert dump(lines[-1]) == "… 4,812 more lines<muted>"
    wide = code_lines(json.dumps("x" * MAX_CHARACTERS), "json")
    assert [dump(line)[-30:] for line in wide][1:] == ["… 2 more characters<muted>"]
    assert {role for _, role in wide[0]} == {""}


def test_values_arguments_and_changes():
    assert dump(value_line({"a": None})) == '{<comment>"a"<key>: <comment>null<number>}<comment>'
    assert dump(value_line("x" * 100, 10)) == '"xxxxxxx…"<string>'
    assert dump(color_json(arguments_line({"room": "Hall", "to": 5}, 50))) == (
        '  room<key> "Hall"<string>  to<key> 5<number>'
    )
    assert arguments_line(None, 50) == []
    before, after = change_lines(19, "19")
    assert (dump(before), dump(after)) == ("19<number>", '"19"<string>')


def test_a_role_lies_under_those_of_a_part():
    line = [("ab", "key"), ("cd", "")]
    assert dump(with_role("exp", line)) == "ab<exp key>cd<exp>"
    assert dump(with_role("exp", line, 1, 3)) == "a<key>b<exp key>c<exp>d"
    assert dump(with_role("exp", line, 4)) == "ab<key>cd"
