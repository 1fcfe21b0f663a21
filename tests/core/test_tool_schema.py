"""Calls against what tools declare, and states against each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.problems import Severity, format_path
from evaltui.core.model.tool_schema import DeclaredTool, check_call, check_state

BOOK = {
    "type": "object",
    "properties": {
        "hotel": {"type": "string"},
        "nights": {"type": "integer"},
        "price": {"type": "number"},
        "kind": {"enum": ["single", "double"], "type": "string"},
        "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "guest": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name"],
            "additionalProperties": False,
        },
        "size": {"$ref": "#/$defs/Size"},
        "extras": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "free": {"type": "object"},
        "late": {"type": "STRING", "nullable": True, "enum": ["x"]},
        "both": {"type": ["null", "string"], "enum": ["x"]},
        "any": {},
    },
    "required": ["hotel", "nights"],
    "$defs": {"Size": {"enum": [1, 2]}},
}


def upper(schema):
    """The same in genai's spelling."""
    if isinstance(schema, dict):
        return {
            "any_of" if key == "anyOf" else key: value.upper()
            if key == "type" and isinstance(value, str)
            else upper(value)
            for key, value in schema.items()
        }
    return [upper(item) for item in schema] if isinstance(schema, list) else schema


def found(name, args, schema=BOOK):
    problems = check_call(name, args, [DeclaredTool("book_hotel", parameters=schema), DeclaredTool("pay")])
    return [(str(one.severity), format_path(one.path), one.message) for one in problems]


GOOD = {"hotel": "Ritz", "nights": 2}


@pytest.mark.parametrize("schema", [BOOK, upper(BOOK)])
@pytest.mark.parametrize(
    ("more", "where", "says"),
    [
        ({"nights": "2"}, "nights", 'must be an integer, is the string "2". Change "2" to 2'),
        ({"nights": 2.5}, "nights", "must be an integer, is the number 2.5"),
        ({"nights": True}, "nights", "must be an integer, is true"),
        ({"price": "cheap"}, "price", 'must be a number, is the string "cheap"'),
        (
            {"kind": "doubel"},
            "kind",
            'must be "single" or "double", is the string "doubel". Did you mean double?',
        ),
        ({"tags": "a"}, "tags", 'must be a list or null, is the string "a"'),
        ({"tags": ["a", 1]}, "tags[1]", "must be a string, is the number 1"),
        ({"guest": {"age": 3}}, "guest.name", "missing; must be a string"),
        (
            {"guest": {"name": "A", "age": "3"}},
            "guest.age",
            'must be an integer, is the string "3". Change "3" to 3',
        ),
        ({"guest": {"name": "A", "agee": 3}}, "guest.agee", "unknown argument. Did you mean age?"),
        ({"size": 3}, "size", "must be 1 or 2, is the number 3"),
        ({"extras": {"wifi": "yes"}}, "extras.wifi", 'must be true or false, is the string "yes"'),
        ({"hotel": None}, "hotel", "must be a string, is null"),
        ({"late": "y"}, "late", 'must be "x", is the string "y"'),
    ],
)
def test_what_is_wrong_is_said_at_its_place(schema, more, where, says):
    assert found("book_hotel", GOOD | more, schema) == [("error", where, says)]


@pytest.mark.parametrize("schema", [BOOK, upper(BOOK)])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"price": 3},
        {"price": 3.5, "nights": 3.0},
        {"kind": "single"},
        {"tags": None},
        {"tags": ["a"]},
        {"guest": {"name": "A"}},
        {"size": 2},
        {"extras": {"wifi": True}},
        {"free": {"what": ["ever"]}},
        {"late": None, "both": None},
        {"any": [1]},
    ],
)
def test_what_fits_is_not_marked(schema, more):
    assert found("book_hotel", GOOD | more, schema) == []


def test_unknown_and_missing_arguments():
    assert found("book_hotel", {"hotel": "Ritz", "night": 2}) == [
        ("error", "nights", "missing; must be an integer"),
        ("warning", "night", "unknown argument. Did you mean nights?"),
    ]
    assert [one[1] for one in found("book_hotel", None)] == ["hotel", "nights"]
    assert found("book_hotel", [1]) == [("error", "", "the arguments must be an object, are a list")]


def test_unknown_tools():
    assert found("book_hotl", {}) == [
        ("error", "", "the agent has no tool 'book_hotl'. Did you mean book_hotel?")
    ]
    assert found("zzz", {}) == [("error", "", "the agent has no tool 'zzz'. Its tools: book_hotel, pay")]
    assert found("", {}) == [("error", "", "the call names no tool")]
    assert found("pay", {"any": 1}) == []
    assert found("transfer_to_agent", {"agent_name": "x"}) == []
    assert check_call("zzz", {}, []) == []


def test_schemas_that_cannot_be_read_allow_everything():
    odd = {"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"type": "date"}, "c": 3, "d": {"$ref": "x"}}}
    odd["$defs"] = {"a": {"$ref": "#/$defs/a"}}
    assert found("book_hotel", dict.fromkeys("abcd", 1), odd) == []
    endless = {"properties": {"a": {"$ref": "#"}}}
    deep: dict = {}
    for _ in range(200):
        deep = {"a": deep}
    assert found("book_hotel", deep, endless) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_nothing_makes_it_raise(args, schema):
    check_call(
        "t",
        args,
        [DeclaredTool("t", parameters=schema if isinstance(schema, dict) else {"properties": {"a": schema}})],
    )
    check_call("t", args, [DeclaredTool("t", parameters=BOOK)])
    both = [
        DeclaredTool("t", parameters={"properties": {"a": {"anyOf": [schema, BOOK]}, "b": {"enum": schema}}})
    ]
    check_call("t", {"a": args, "b": args}, both)


def test_a_change_of_type_in_the_state():
    before = {"n": 1, "deep": {"a": "1", "b": None}, "gone": 1, "flag": True}
    after = {"n": "1", "deep": {"a": [1], "b": 3}, "new": 1, "flag": 0}
    problems = check_state(before, after)
    assert [(format_path(one.path), one.message) for one in problems] == [
        ("n", "becomes a string, was a number: 1"),
        ("deep.a", 'becomes a list, was a string: "1"'),
        ("flag", "becomes a number, was a boolean: true"),
    ]
    assert {one.severity for one in problems} == {Severity.WARNING}
    assert check_state({"n": 1, "o": {}}, {"n": 1.5, "o": {"x": 1}}) == []
