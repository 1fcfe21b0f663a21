from __future__ import annotations

import json

import pytest

from evaltui.core.jsondoc import spans
from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.edit_error import EditError
from evaltui.core.jsondoc.edits import (
    Duplicate,
    Insert,
    InsertText,
    Move,
    Put,
    PutText,
    Remove,
    Rename,
    apply_to_data,
)
from evaltui.core.jsondoc.splices import Splice, applied, inverted

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
    """The text after edits, checked: value, reference meaning and inverse."""
    document = JsonDocument(text)
    before = document.value
    splices = document.apply(edits)
    after = document.text
    plain = after.removeprefix("\ufeff")
    assert json.loads(plain) == document.value
    assert document.value == apply_to_data(before, edits)
    document.splice(inverted(splices))
    assert (document.text, document.value) == (text, before)
    document.splice(splices)
    assert document.text == after
    return after


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
        ('{\r\n "a": 1   \r\n}', [Put(("b",), 2)], '{\r\n "a": 1,   \r\n "b": 2\r\n}'),
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
    assert JsonDocument(text).apply([edit]) == ()


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
    document = JsonDocument(text)
    document.apply([Put((), value)])
    assert document.text == after


@pytest.mark.parametrize("value", [1, True, "1.0", None, -1.0])
def test_another_type_is_a_change(value):
    document = JsonDocument("[1.0]")
    document.apply([Put((0,), value)])
    assert document.text == f"[{json.dumps(value)}]"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Put(("a", "x", "y"), 1), "a.x: Nothing at this path"),
        (Put(("a", 0), 1), "a[0]: Nothing at this path"),
        (Put(("b", 2), 1), "b[2]: Nothing at this path"),
        (Put(("b", -1), 1), "b[-1]: Nothing at this path"),
        (Put(("b", "x"), 1), "b.x: Nothing at this path"),
        (PutText(("b",), "[1,"), "b: the new text is not valid JSON"),
        (Insert(("b",), 3, 1), "b: no index 3 in a list of 2"),
        (Insert(("a",), 0, 1), "a: must be a list for this edit, is an object"),
        (InsertText(("b",), 0, "1 2"), "b: the new text is not valid JSON"),
        (Remove(()), "The document itself"),
        (Remove(("c",)), "c: Nothing at this path"),
        (Move(("b",), 0, 2), "b: no index 2"),
        (Duplicate(("b",), 2), "b: no index 2"),
        (Rename(("a", "k"), "l"), "a.k: there already is a member 'l'"),
        (Rename(("b", 0), "l"), "only a member of an object has a key"),
        (Put(("a",), float("nan")), "a: JSON has no number nan"),
        (Put(("a",), {"x": {1}}), "a.x: set is not a JSON value"),
        (Put(("a",), {1: 2}), "a: keys must be strings, found 1"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_all_as_it_was(edit, message):
    text = '{"a": {"k": 1, "l": 2}, "b": [1, 2]}'
    document = JsonDocument(text)
    with pytest.raises(EditError) as raised:
        document.apply([Put(("a", "k"), 5), edit])
    assert message in str(raised.value)
    assert (document.text, document.value) == (text, json.loads(text))
    with pytest.raises(EditError) as reference:
        apply_to_data(json.loads(text), [edit])
    assert str(reference.value) == str(raised.value)


def test_text_that_is_not_json_is_refused():
    for text in ("", "{", '{"a": 1,}', "{} {}", "[" * 200_000, "[1" + "0" * 5000 + "]"):
        with pytest.raises(ValueError):
            JsonDocument(text)


def test_splices_may_pass_through_text_that_is_not_json():
    document = JsonDocument('{"a": [1, 2], "b": 3}')
    document.splice([Splice(6, "[", ""), Splice(10, "]", ""), Splice(6, "1, 2", "7")])
    assert (document.text, document.value) == ('{"a": 7, "b": 3}', {"a": 7, "b": 3})
    for wrong in ([Splice(6, "7", "x")], [Splice(6, "8", "9")], [Splice(99, "", "")], [Splice(-1, "", "1")]):
        with pytest.raises(ValueError):
            document.splice(wrong)
    assert document.text == '{"a": 7, "b": 3}'


def test_lines_and_texts():
    document = JsonDocument("\ufeff" + SET)
    assert document.line_of(("eval_cases", 1, "twice")) == 13
    assert document.line_of(("eval_cases", 1, "nothing", 3)) == 11
    assert document.line_of(()) == 1
    assert document.text_at(("eval_cases", 0, "args")) == '{"a": 1, "b": "x"}'
    assert [len(case.text.splitlines()) for case in document.cases] == [6, 4]
    with pytest.raises(EditError, match="nowhere"):
        document.text_at(("nowhere",))


def big_set(count: int) -> str:
    cases = [
        {
            "eval_id": f"case {number}",
            "conversation": [{"user_content": {"parts": [{"text": "x" * 500}]}}] * 3,
        }
        for number in range(count)
    ]
    return json.dumps({"eval_set_id": "big", "eval_cases": cases}, indent=2)


def test_splices_are_of_the_whole_text_whichever_case_is_edited_after_which():
    cases = [{"eval_id": f"case_{number}", "args": {"a": 1}} for number in range(6)]
    text = json.dumps({"eval_set_id": "x", "eval_cases": cases}, indent=2)
    document = JsonDocument(text)
    splices = []
    for number in (4, 1, 5, 1, 0, 3):
        before = document.text
        value = {"a": f"longer than what was there before {number}", "b": number}
        made = document.apply([Put(("eval_cases", number, "args"), value)])
        assert applied(before, made) == document.text
        splices += made
        cases[number]["args"] = value
    assert applied(text, splices) == document.text == json.dumps(json.loads(document.text), indent=2)
    assert document.value["eval_cases"] == cases


def test_an_edit_reads_what_is_around_it_only(monkeypatch):
    document = JsonDocument(big_set(2000))
    untouched = document.value["eval_cases"][7]
    read = 0
    decode_at = spans.decode_at

    def counted(text, position):
        nonlocal read
        value, end = decode_at(text, position)
        read += end - position
        return value, end

    monkeypatch.setattr(spans, "decode_at", counted)
    path = ("eval_cases", 1000)
    case_size = len(document.text_at(path))
    for edits in (
        [Put((*path, "conversation", 1, "user_content", "parts", 0, "text"), "new")],
        [Put((*path, "eval_id"), "other")],
        [Put((*path, "more"), {"a": 1, "b": [1, 2]})],
        [Put((*path, "more", "a"), 12)],
        [Put((*path, "more", "b"), [12, 32])],
        [Put((*path, "more"), {"a": 312, "b": [1, 2]})],
        [Put(("name",), "new")],
        [Rename(("name",), "title")],
        [Insert(("eval_cases",), 0, {"eval_id": "new"})],
        [Duplicate(("eval_cases",), 1000)],
        [Move(("eval_cases",), 3, 1500)],
        [Remove(("eval_cases", 1200))],
    ):
        read = 0
        splices = document.apply(edits)
        document.splice(inverted(splices))
        document.splice(splices)
        assert splices
        assert read < 12 * case_size, edits
    monkeypatch.undo()
    assert document.value == json.loads(document.text)
    assert any(case is untouched for case in document.value["eval_cases"])
