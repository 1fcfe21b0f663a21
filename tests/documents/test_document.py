from __future__ import annotations

import json

import pytest

from evaltui.documents import document as document_module
from evaltui.documents import values
from evaltui.documents.case_file import Change
from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import (
    Duplicate,
    EditError,
    Insert,
    Move,
    Put,
    PutText,
    Remove,
    Rename,
    alike,
    same,
)
from tests.changed_values import apply_to_data

SET = """\
{
  "eval_set_id": "orders",
  "note": "caf\\u00e9 \\/ x",   \n\
  "eval_cases": [
    {
      "eval_id": "one",
      "numbers": [1.0, 1e3, -0, 12345678901234567890],
      "args": {"a": 1, "b": "x"},
      "state": {}
    },
    {
      "eval_id": "two",
      "unknown": null, "twice": 1, "twice": 2
    }
  ]
}
"""


def edited(text: str, *edits) -> str:
    """The text after edits, checked: value, reference meaning, and the change there and back."""
    before = JsonDocument(text)
    after = before.edited(edits)
    assert json.loads(after.text.removeprefix("\ufeff")) == after.value
    assert after.value == apply_to_data(before.value, edits)
    assert before.text == text
    change = Change.between(before, after)
    assert change.applied(before).text == after.text
    assert change.inverse.applied(after).text == text
    if after is not before:
        with pytest.raises(ValueError):
            change.applied(JsonDocument("{}"))
    return after.text


def changed_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines of both between what they begin and end with in common."""
    one, other = old.splitlines(keepends=True), new.splitlines(keepends=True)
    while one and other and one[0] == other[0]:
        del one[0], other[0]
    while one and other and one[-1] == other[-1]:
        del one[-1], other[-1]
    return one, other


@pytest.mark.parametrize(
    ("edit", "old", "new"),
    [
        (Put(("eval_set_id",), "x"), ['  "eval_set_id": "orders",\n'], ['  "eval_set_id": "x",\n']),
        (
            Put(("eval_cases", 0, "numbers", 1), 7),
            ['      "numbers": [1.0, 1e3, -0, 12345678901234567890],\n'],
            ['      "numbers": [1.0, 7, -0, 12345678901234567890],\n'],
        ),
        (
            Put(("eval_cases", 0, "args"), {"a": 1, "b": "y", "c": [2]}),
            ['      "args": {"a": 1, "b": "x"},\n'],
            ['      "args": {"a": 1, "b": "y", "c": [2]},\n'],
        ),
        (
            Put(("eval_cases", 0, "state", "k"), "é"),
            ['      "state": {}\n'],
            ['      "state": {"k": "\\u00e9"}\n'],
        ),
        (
            Put(("eval_cases", 1, "args"), {"b": {"deep": []}}),
            ['      "unknown": null, "twice": 1, "twice": 2\n'],
            ['      "unknown": null, "twice": 1, "twice": 2, "args": {"b": {"deep": []}}\n'],
        ),
        (
            Put(("eval_cases", 1, "twice"), 3),
            ['      "unknown": null, "twice": 1, "twice": 2\n'],
            ['      "unknown": null, "twice": 1, "twice": 3\n'],
        ),
        (
            Remove(("eval_cases", 1, "twice")),
            ['      "unknown": null, "twice": 1, "twice": 2\n'],
            ['      "unknown": null\n'],
        ),
        (
            Rename(("eval_cases", 1, "twice"), "é"),
            ['      "unknown": null, "twice": 1, "twice": 2\n'],
            ['      "unknown": null, "\\u00e9": 1, "\\u00e9": 2\n'],
        ),
        (Remove(("note",)), ['  "note": "caf\\u00e9 \\/ x",   \n'], []),
        (
            PutText(("eval_cases", 0, "state"), ' {"x" : 1.50}\n'),
            ['      "state": {}\n'],
            ['      "state": {"x" : 1.50}\n'],
        ),
    ],
)
def test_an_edit_changes_its_own_lines(edit, old, new):
    assert changed_lines(SET, edited(SET, edit)) == (old, new)
    dos = SET.replace("\n", "\r\n")
    as_dos = [line.replace("\n", "\r\n") for line in old], [line.replace("\n", "\r\n") for line in new]
    assert changed_lines(dos, edited(dos, edit)) == as_dos
    assert changed_lines("\ufeff" + SET, edited("\ufeff" + SET, edit)) == (old, new)


def test_a_new_case_looks_like_the_one_beside_it():
    case = {"eval_id": "new", "numbers": [1, 2], "args": {"x": {"y": 1}}, "more": [{"z": 1}], "state": {}}
    document = JsonDocument(edited(SET, Insert(("eval_cases",), 1, case)))
    assert "    },\n    " + document.text_at(("eval_cases", 1)) + ",\n    {\n" in document.text
    assert document.text_at(("eval_cases", 1)) == (
        "{\n"
        '      "eval_id": "new",\n'
        '      "numbers": [1, 2],\n'
        '      "args": {"x": {"y": 1}},\n'
        '      "more": [\n        {\n          "z": 1\n        }\n      ],\n'
        '      "state": {}\n'
        "    }"
    )


def test_elements_move_and_are_copied_verbatim():
    text = '[\n  {"a":1.0 },\n  [ 2e0,\n    3],\n  "\\u0041"\n]'
    assert edited(text, Move((), 0, 2)) == '[\n  [ 2e0,\n    3],\n  "\\u0041",\n  {"a":1.0 }\n]'
    assert edited(text, Move((), 2, 0)) == '[\n  "\\u0041",\n  {"a":1.0 },\n  [ 2e0,\n    3]\n]'
    assert (
        edited(text, Duplicate((), 1))
        == '[\n  {"a":1.0 },\n  [ 2e0,\n    3],\n  [ 2e0,\n    3],\n  "\\u0041"\n]'
    )
    assert edited(text, Remove((0,)), Remove((1,))) == "[\n  [ 2e0,\n    3]\n]"
    assert edited(text, Move((), 1, 1)) == text


@pytest.mark.parametrize(
    ("text", "edits", "new"),
    [
        ("{}\n", [Put(("a",), [1])], '{\n  "a": [\n    1\n  ]\n}\n'),
        ("[]", [Insert((), 0, {"a": 1})], '[\n  {\n    "a": 1\n  }\n]'),
        ('{"a":{},"b":[1,2]}', [Put(("a", "x"), [1, {"y": 2}])], '{"a":{"x":[1,{"y":2}]},"b":[1,2]}'),
        ('{"a": 1}', [Put(("b",), [1, 2])], '{"a": 1, "b": [1, 2]}'),
        ('{ "a": 1 }', [Put(("b",), 2)], '{ "a": 1, "b": 2 }'),
        (
            '{\n\t"a": {\n\t\t"b": []\n\t}\n}',
            [Insert(("a", "b"), 0, 1)],
            '{\n\t"a": {\n\t\t"b": [\n\t\t\t1\n\t\t]\n\t}\n}',
        ),
        ('[{\n  "a": 1\n}]', [Insert((), 1, {"b": 2})], '[{\n  "a": 1\n}, {\n  "b": 2\n}]'),
        ('{\n  "a": 1\n  , "b": 2\n}', [Put(("c",), 3)], '{\n  "a": 1\n  , "b": 2\n  , "c": 3\n}'),
        ('{\r\n "a": 1   \r\n}', [Put(("b",), 2)], '{\r\n "a": 1,\r\n "b": 2   \r\n}'),
        ('{"a": "ü"}', [Put(("a",), "é\ud83d")], '{"a": "é\\ud83d"}'),
        ('{"a": "\\\\u00e9"}', [Put(("b",), "é")], '{"a": "\\\\u00e9", "b": "é"}'),
        ("[1, 2, 3]", [Remove((2,)), Remove((0,)), Remove((0,))], "[]"),
        (" 5 \n", [Put((), {"a": 1})], ' {\n   "a": 1\n } \n'),
        ("[1.0, 2]", [Put((), [1.0, 2, 3])], "[1.0, 2, 3]"),
    ],
)
def test_new_text_follows_the_style_around_it(text, edits, new):
    assert edited(text, *edits) == new


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("[1.0, 1e3]", Put((), [1.0, 1000.0])),
        ('{"a": "\\u0041"}', Put(("a",), "A")),
        ("[NaN]", Move((), 0, 0)),
        ('{"a": 1}', PutText(("a",), " 1\n")),
        ('{"a": 1}', Rename(("a",), "a")),
    ],
)
def test_what_is_the_same_already_is_no_change(text, edit):
    document = JsonDocument(text)
    assert document.edited([edit]) is document


@pytest.mark.parametrize(
    ("text", "value", "after"),
    [
        ('{"a": 1, "b": 2}', {"b": 2, "a": 1}, '{"b": 2, "a": 1}'),
        (
            '{"x": [{"a": 1, "b": 2}, 1e3]}',
            {"x": [{"b": 2, "a": 1}, 1000.0]},
            '{"x": [{"b": 2, "a": 1}, 1e3]}',
        ),
        ("[1, true, 1.0]", [True, 1.0, 1], "[true, 1.0, 1]"),
    ],
)
def test_what_differs_as_text_is_a_change(text, value, after):
    assert JsonDocument(text).edited([Put((), value)]).text == after


@pytest.mark.parametrize("value", [1, True, "1.0", None, -1.0])
def test_another_type_is_a_change(value):
    assert JsonDocument("[1.0]").edited([Put((0,), value)]).text == f"[{json.dumps(value)}]"


def test_text_that_is_not_json_is_refused():
    for text in ("", "{", '{"a": 1,}', "{} {}", "[" * 200_000, "[1" + "0" * 5000 + "]"):
        with pytest.raises(ValueError):
            JsonDocument(text)


def test_lines_and_texts():
    document = JsonDocument("\ufeff" + SET)
    assert document.line_of(("eval_cases", 1, "twice")) == 13
    assert document.line_of(("eval_cases", 1, "nothing", 3)) == 11
    assert document.line_of(()) == 1
    assert document.text_at(("eval_cases", 0, "args")) == '{"a": 1, "b": "x"}'
    assert [len(case.text.splitlines()) for case in document.cases] == [6, 4]
    with pytest.raises(EditError, match="nowhere"):
        document.text_at(("nowhere",))


@pytest.mark.parametrize("depth", [500, 5_000])
def test_deep_nesting_is_edited_or_refused(depth):
    text = '{"deep": ' + "[" * depth + "]" * depth + ', "a": 1}'
    try:
        document = JsonDocument(text)
    except ValueError:
        assert depth > 500
        return
    assert document.edited([Put(("a",), 2)]).text == text.replace('"a": 1', '"a": 2')


@pytest.mark.parametrize("depth", [20, 480, 850])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_what_is_nested_deeply_is_duplicated_or_refused(depth, opening):
    nested = opening * depth + "1.50" + ("]" if opening == "[" else "}") * depth
    document = JsonDocument(f'{{"a": [{nested}, 2], "b": {nested}}}')
    copy = values.copy_of(document.value)
    assert values.edits_of(copy) == []
    values.put(copy, ("c",), copy["b"])
    twin = values.duplicate(copy, ("a",), 0)
    assert alike(twin, copy["a"][0])
    assert same(copy["c"], copy["b"])
    edits = values.edits_of(copy)
    if depth == 20:
        after = document.edited(edits)
        assert alike(after.value, copy)
        assert after.text.count(nested) == 3
    else:
        with pytest.raises(EditError, match="nested too deeply"):
            document.edited(edits)


def set_of(count: int, size: int = 20) -> str:
    cases = [{"eval_id": f"case {number}", "args": {"text": "x" * size}} for number in range(count)]
    return json.dumps({"eval_set_id": "x", "eval_cases": cases}, indent=2)


def test_cases_that_are_not_edited_stay_the_same_objects():
    before = JsonDocument(set_of(40))
    edits = [
        Put(("eval_cases", 20, "args", "text"), "new"),
        Insert(("eval_cases",), 0, {"eval_id": "new"}),
        Move(("eval_cases",), 3, 30),
        Remove(("eval_cases", 25)),
        Rename(("eval_set_id",), "evalSetId"),
    ]
    after = before.edited(edits)
    assert len(set(after.cases) - set(before.cases)) == 2
    assert after.text == json.dumps(json.loads(after.text), indent=2)


def test_an_edit_parses_the_cases_around_it_alone(monkeypatch):
    document = JsonDocument(set_of(2_000, 1_000))
    texts = []
    parse = document_module.parse_nodes
    monkeypatch.setattr(document_module, "parse_nodes", lambda text: texts.append(text) or parse(text))
    for edit in (
        Put(("eval_cases", 1_000, "args", "text"), "new"),
        Insert(("eval_cases",), 500, {"eval_id": "new"}),
        Put(("name",), "new"),
        Remove(("eval_cases", 1_500)),
    ):
        document = document.edited([edit])
    assert sum(map(len, texts)) < 60_000
