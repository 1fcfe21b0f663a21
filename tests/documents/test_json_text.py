from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.problems import JsonPath, Problem, Severity
from evaltui.documents.json_text import decode, duplicate_keys, lines_of, locate, parse, read_text

COMMENT = "a comment; `evaltui lint --fix FILE` removes comments"
COMMA = "a comma before the closing bracket; `evaltui lint --fix FILE` removes it"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1: not valid JSON: the file is empty (column 1)"),
        (" \n\n", "line 1: not valid JSON: the file is empty (column 1)"),
        (
            '{\n  "a": 1, // one\n  "b": 2}',
            f"line 2: not valid JSON: {COMMENT} (column 11)",
        ),
        (
            '{\n  "a": 1 # one\n}',
            f"line 2: not valid JSON: {COMMENT} (column 10)",
        ),
        (
            '/* x */ {"a": 1}',
            f"line 1: not valid JSON: {COMMENT} (column 1)",
        ),
        (
            '{\n  "a": 1,\n}',
            f"line 2: not valid JSON: {COMMA} (column 9)",
        ),
        (
            "[\n 1,\n 2,\n\n]",
            f"line 3: not valid JSON: {COMMA} (column 3)",
        ),
        ("{'a': 1}", "line 1: not valid JSON: single quotes; texts and keys need double quotes (column 2)"),
        (
            "{\"a\": 'b'}",
            "line 1: not valid JSON: single quotes; texts and keys need double quotes (column 7)",
        ),
        ('{\n  "a": 1\n  "b": 2\n}', "line 2: not valid JSON: a comma is missing after this (column 8)"),
        ("[1\n2]", "line 1: not valid JSON: a comma is missing after this (column 2)"),
        ('{"a": [1}', "line 1: not valid JSON: the bracket after this should not be } (column 8)"),
        ('{"a" 1}', "line 1: not valid JSON: a colon is missing after this key (column 4)"),
        ("{a: 1}", "line 1: not valid JSON: a key in double quotes is missing (column 2)"),
        ('{"a": True}', "line 1: not valid JSON: True is not JSON; write true (column 7)"),
        ("[None]", "line 1: not valid JSON: None is not JSON; write null (column 2)"),
        (
            "[1, 2",
            "line 1: not valid JSON: "
            "the file ends too early; a closing bracket or a value is missing (column 6)",
        ),
        (
            '{"a": {\n"b": [1, 2],\n',
            "line 2: not valid JSON: "
            "the file ends too early; a closing bracket or a value is missing (column 13)",
        ),
        (
            '["abc',
            "line 1: not valid JSON: unterminated text; close it with a double quote (column 2)",
        ),
        (
            '["a\nb"]',
            "line 1: not valid JSON: "
            "a line break or control character inside a text; write \\n for a line break (column 4)",
        ),
        (
            '["C:\\dir"]',
            "line 1: not valid JSON: "
            "a backslash that starts no escape; write \\\\ for a backslash (column 5)",
        ),
        ("{}\n{}", "line 2: not valid JSON: text after the end of the document (column 1)"),
        ('{"a": }', "line 1: not valid JSON: a value is missing or invalid (column 7)"),
    ],
)
def test_syntax_errors_in_words(text, sentence):
    problem = parse(text)
    assert isinstance(problem, Problem)
    assert str(problem) == sentence
    assert problem.severity is Severity.ERROR


def test_too_much_for_the_parser_is_a_problem_too():
    assert str(parse("[" * 100_000)).startswith("not readable: its lists and objects are nested too deeply")
    assert str(parse("1" * 5000)).startswith("not readable: Exceeds the limit")


def test_text_is_utf_8_with_or_without_a_mark(tmp_path):
    file = tmp_path / "x.json"
    for mark in (b"", b"\xef\xbb\xbf"):
        file.write_bytes(mark + '{"a":\r\n "grüße 🌻"}'.encode())
        assert read_text(file) == '{"a":\r\n "grüße 🌻"}'
        assert parse(read_text(file)) == {"a": "grüße 🌻"}


@pytest.mark.parametrize(("mark", "offset"), [(b"", 5), (b"\xef\xbb\xbf", 8)])
def test_bytes_that_are_not_utf_8_are_named(mark, offset):
    problem = decode(mark + b'["a\n\n\xe9t\xe9"]')
    assert str(problem) == f"line 3: not UTF-8: byte 0xE9 at offset {offset}; save the file as UTF-8"


def test_utf_16_is_named():
    assert str(decode('{"a": 1}'.encode("utf-16"))) == "line 1: is UTF-16; save it as UTF-8"


TEXT = """\
{
  "id": "x", "cases": [
    {"a": 1},
    {
      "a": {"deep": [1,
        2, 3]}
    }
  ],
  "last": null
}"""


def test_the_line_of_a_member_is_that_of_its_key():
    paths: list[JsonPath] = [
        (),
        ("cases",),
        ("cases", 1),
        ("cases", 1, "a", "deep", 1),
        ("last",),
        ("cases", 1, "missing", "below", 3),
        ("cases", 7, "x"),
        ("id", "x"),
        ("cases", "text"),
    ]
    assert list(lines_of(TEXT, paths).values()) == [1, 2, 4, 6, 9, 4, 2, 2, 2]


def test_a_mark_and_crlf_do_not_shift_lines():
    text = "\ufeff\r\n" + TEXT.replace("\n", "\r\n")
    assert lines_of(text, [(), ("last",)]) == {(): 2, ("last",): 10}


def test_of_a_key_given_twice_the_last_one_is_found():
    text = '{"a": {"b":\n1},\n"a": {\n"c": 2}}'
    assert lines_of(text, [("a",), ("a", "b"), ("a", "c")]) == {("a",): 3, ("a", "b"): 3, ("a", "c"): 4}


def test_problems_get_lines_and_the_file():
    warning = Problem.warning(("last",), "odd")
    known = Problem.error(("nowhere",), "bad", line=77, file="other.json")
    located = locate([warning, known], TEXT, "x.json")
    assert [(problem.line, problem.file) for problem in located] == [(9, "x.json"), (77, "other.json")]


def test_keys_given_twice_are_errors_where_the_last_one_is():
    text = '{"a": 1, "b": [{"c": 1,\n"d": 2,\n"c": 3, "c": 4}],\n"a": {"x": 1, "y": 1}}'
    twice = "given more than once, of which ADK reads the last; remove all but one"
    assert sorted(str(problem) for problem in locate(duplicate_keys(text), text)) == [
        f"line 3: b[0].c: {twice}",
        f"line 4: a: {twice}",
    ]
    assert {problem.severity for problem in duplicate_keys(text)} == {Severity.ERROR}
    assert duplicate_keys(TEXT) == []


def test_a_key_given_twice_inside_what_a_later_key_replaces_does_not_count():
    assert [problem.path for problem in duplicate_keys('{"a": {"b": 1, "b": 2}, "a": 1}')] == [("a",)]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)


@given(_JSON, st.data())
def test_a_broken_text_is_a_problem_with_a_line(data: Any, draw: st.DataObject):
    text = json.dumps(data, indent=1)
    cut = draw.draw(st.integers(0, len(text)))
    junk = draw.draw(st.text(alphabet="{}[],:'\"#/x1 \n\\", max_size=3))
    broken = text[:cut] + junk + text[cut + len(junk) :]
    read = parse(broken)
    if isinstance(read, Problem):
        assert 1 <= read.line <= broken.count("\n") + 1
    else:
        assert json.dumps(read) == json.dumps(json.loads(broken))


@given(st.binary(max_size=30))
def test_any_bytes_are_text_or_a_problem(data):
    text = decode(data)
    assert isinstance(text, str | Problem)
    if isinstance(text, Problem):
        assert 1 <= text.line <= data.count(b"\n") + 1
