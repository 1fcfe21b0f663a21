"""Arguments that a tool needs in another one, and names that are paths."""

import pytest

from evaltui.core.model.tool_schema import DeclaredTool, first_value, inline_references, member_schema
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.set import CaseEditor, SetEditor
from evaltui.documents.edits import EditError
from evaltui.documents.values import edits_of
from evaltui.workbench.case.fields import RowSource
from evaltui.workbench.case.selected_case import case_rows

CALL = ("turn", 0, "call", 0)
ROOM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["name", "degrees"],
}
PLAN = {
    "type": "OBJECT",
    "properties": {
        "start": {"type": "string"},
        "days": {"type": "array", "items": {"type": "string"}},
        "rooms": {"type": "array", "items": {"$ref": "#/$defs/Room"}},
        "note": {"type": "string"},
    },
    "required": ["start", "days", "rooms"],
}
TOOLS = (
    DeclaredTool("heat", "", {"properties": {"plan": PLAN}, "required": ["plan"], "$defs": {"Room": ROOM}}),
)


class Bench:
    """A case with one call."""

    def __init__(self, args="{}", name="heat", tools=TOOLS):
        call = f'{{"name": "{name}", "args": {args}}}'
        self.document = JsonDocument(
            '{"eval_set_id": "s", "eval_cases": [{"eval_id": "one", "conversation": [{"user_content":'
            f' {{"parts": [{{"text": "hi"}}]}}, "intermediate_data": {{"tool_uses": [{call}]}}}}]}}]}}'
        )
        self.tools = tools

    def row(self, *steps):
        editor, opened, rows = CaseEditor(self.document.value, 0), set(), {}
        while True:
            source = RowSource(editor, self.tools, toggled=frozenset(opened))
            rows = {row.id: row for row in case_rows(source)}
            closed = {at for at, row in rows.items() if row.fold == "closed" and row.value_path} - opened
            if not closed:
                return rows[(*CALL, *steps)]
            opened |= closed

    def make(self, make):
        eval_set = SetEditor.copied(self.document.value)
        make(eval_set)
        self.document = self.document.edited(edits_of(eval_set.data))

    @property
    def args(self):
        turn = self.document.value["eval_cases"][0]["conversation"][0]
        return turn["intermediate_data"]["tool_uses"][0]["args"]


def test_a_call_gets_what_its_tool_needs_also_in_an_object_and_its_first_value_is_next():
    bench = Bench()
    then = bench.row().field.then
    bench.make(then.make)
    assert bench.args == {"plan": {"start": "", "days": [], "rooms": []}}
    assert then.then == (*CALL, "arg", 0, "in", 0)
    add = bench.row("arg", 0, "in", 2).adds[0]
    bench.make(add.make)
    assert bench.args["plan"]["rooms"] == [{"name": "", "degrees": 0}]
    assert add.then == (*CALL, "arg", 0, "in", 2, "in", 0, "in", 0)


def test_a_new_member_completes_from_the_schema_and_begins_with_its_type():
    bench = Bench('{"plan": {"start": "x"}}')
    add = bench.row("arg", 0).adds[0]
    bench.make(add.make)
    key = bench.row("arg", 0, "in", 1)
    assert [one.text for one in key.rename.completions] == ["days", "rooms", "note"]
    bench.make(key.rename.change("days"))
    assert bench.args == {"plan": {"start": "x", "days": []}}


def test_the_only_member_that_is_left_is_added_by_its_name():
    bench = Bench('{"plan": {"start": "x", "days": [], "rooms": []}}')
    add = bench.row("arg", 0).adds[0]
    bench.make(add.make)
    assert bench.args["plan"]["note"] == ""
    assert (add.then, add.opens) == ((*CALL, "arg", 0, "in", 3), "value")


@pytest.mark.parametrize(
    ("args", "at", "nested", "row"),
    [
        ('{"meta.tags[0]": "red"}', 0, {"meta": {"tags": ["red"]}}, (0, 0, 0)),
        ('{"plan": {"start": "x"}, "plan.days": ""}', 1, {"plan": {"start": "x", "days": []}}, (0, 1)),
        ('{"plan.note": "n", "plan": {"start": "x"}}', 0, {"plan": {"start": "x", "note": "n"}}, (0, 1)),
        ('{"a": [1], "a[1].b": 2, "c": 3}', 1, {"a": [1, {"b": 2}], "c": 3}, (0, 1, 0)),
        ("{\"['a.b'].c\": 1}", 0, {"a.b": {"c": 1}}, (0, 0)),
        ("{\"['a.b']\": 1}", 0, {"a.b": 1}, (0,)),
    ],
)
def test_a_name_that_is_a_path_becomes_a_value_in_a_value(args, at, nested, row):
    bench = Bench(args)
    then = bench.row("arg", at).rename.then
    assert then.if_changed
    bench.make(then.make)
    assert bench.args == nested
    wanted = (*CALL, "arg", row[0], *(part for step in row[1:] for part in ("in", step)))
    assert then.then == wanted
    assert bench.row(*wanted[len(CALL) :]).id == wanted


def test_a_member_whose_name_is_a_path_is_nested_too():
    bench = Bench('{"plan": {"start": "x", "more.deep": 1}}')
    bench.make(bench.row("arg", 0, "in", 1).rename.then.make)
    assert bench.args == {"plan": {"start": "x", "more": {"deep": 1}}}


@pytest.mark.parametrize(
    ("args", "at", "why"),
    [
        ('{"a": 1, "a.b": 2}', 1, "a is not an object"),
        ('{"a": {}, "a[0]": 2}', 1, "a is not a list"),
        ('{"a": [1], "a[2]": 2}', 1, r"a has 1 item; the next one is \[1\]"),
        ('{"a[3]": 2}', 0, r"its first item is \[0\], not \[3\]"),
        ('{"a": {"b": 1}, "a.b": 2}', 1, "a.b already exists"),
    ],
)
def test_what_cannot_be_nested_says_why_and_stays(args, at, why):
    bench = Bench(args)
    before = bench.document.text
    with pytest.raises(EditError, match=why):
        bench.make(bench.row("arg", at).rename.then.make)
    assert bench.document.text == before


@pytest.mark.parametrize("name", ["a..b", "a.", "plain", "a[*]", "[0]"])
def test_a_name_that_is_no_path_stays_a_name(name):
    then = Bench(f'{{"{name}": 1}}').row("arg", 0).rename.then
    assert then.make is None


def test_a_name_with_a_dot_that_the_tool_declares_stays_a_name():
    tools = (DeclaredTool("heat", "", {"properties": {"a.b": {"type": "string"}}}),)
    assert Bench('{"a.b": "x"}', tools=tools).row("arg", 0).rename.then.make is None


def test_a_schema_that_contains_itself_is_followed_a_few_times():
    root = {"$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}
    root["$defs"]["Node"]["required"] = ["next"]
    schema, depth = inline_references({"$ref": "#/$defs/Node"}, root), 0
    value = first_value(schema)
    while value:
        value, depth = value["next"], depth + 1
    assert 1 < depth < 10


def test_of_either_schema_the_one_that_knows_the_member_counts():
    schema = {"anyOf": [{"type": "null"}, PLAN]}
    assert member_schema(schema, "start") == {"type": "string"}
    assert member_schema(schema, "nothing") is None
    assert first_value({"anyOf": [{"type": "integer"}, {"type": "null"}]}) == 0
