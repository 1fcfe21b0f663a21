"""Members of JSON values are rows of their own, edited one by one; all else of the text stays as it is."""

from types import SimpleNamespace

import pytest

from evaltui.core.model.tool_schema import DeclaredTool
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.set import CaseEditor, SetEditor
from evaltui.documents.values import edits_of
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.case.fields import FieldError, RowSource
from evaltui.workbench.case.rows import turns
from evaltui.workbench.case.selected_case import case_rows

ARG = ("turn", 0, "call", 0, "arg", 0)
# Written as nobody would write it again.
VALUE = '{ "from":"22:00",\t"days" : ["sat",   "sun"], "until": {"hour": 7.0} }'
CASE = (
    '{"eval_id": "one", "session_input": {"app_name": "a", "user_id": "b", "state": {"plan": VALUE}},'
    ' "final_session_state": {"plan": VALUE}, "extra": VALUE, "conversation": [{"user_content":'
    ' {"parts": [{"text": "hi"}]}, "intermediate_data": {"tool_uses": [{"name": "set", "args":'
    ' {"plan": VALUE}}], "tool_responses": [{"name": "set", "response": VALUE}]}}]}'
)
TOOLS = (
    DeclaredTool(
        "set",
        "",
        {
            "properties": {
                "plan": {
                    "type": "object",
                    "properties": {
                        "days": {"type": "array", "items": {"type": "string", "enum": ["sat", "sun"]}}
                    },
                }
            }
        },
    ),
)
PLACES = {
    "argument": (ARG, ("conversation", 0, "intermediate_data", "tool_uses", 0, "args", "plan")),
    "state": (("state", 0), ("session_input", "state", "plan")),
    "final state": (("final_state", 0), ("final_session_state", "plan")),
    "response": (
        ("turn", 0, "response", 0),
        ("conversation", 0, "intermediate_data", "tool_responses", 0, "response"),
    ),
}


class Bench:
    """A case whose every value is `VALUE`, with the rows of one of them toggled."""

    def __init__(self, place):
        self.row, self.path = PLACES[place]
        text = '{"eval_set_id": "set", "eval_cases": [' + CASE.replace("VALUE", VALUE) + "]}"
        self.before = text
        self.document = JsonDocument(text)
        self.toggled = {self.row, (*self.row, "in", 1), (*self.row, "in", 2)}

    @property
    def rows(self):
        source = RowSource(CaseEditor(self.document.value, 0), TOOLS, toggled=frozenset(self.toggled))
        return {row.id: row for row in case_rows(source)}

    def at(self, *steps):
        return self.rows[(*self.row, *(part for step in steps for part in ("in", step)))]

    def make(self, make):
        eval_set = SetEditor.copied(self.document.value)
        make(eval_set)
        self.document = self.document.edited(edits_of(eval_set.data))

    @property
    def value(self):
        value = self.document.value["eval_cases"][0]
        for step in self.path:
            value = value[step]
        return value

    def others_are_as_they_were(self):
        """All but this value is the same to the character."""
        own = self.document.text_at(("eval_cases", 0, *self.path))
        return self.document.text.replace(own, VALUE) == self.before


@pytest.fixture(params=PLACES)
def bench(request):
    return Bench(request.param)


def test_every_member_is_a_row_below_what_it_is_in(bench):
    found = [
        (row.name, row.level, row.fold) for at, row in bench.rows.items() if at[: len(bench.row)] == bench.row
    ]
    assert found[1:] == [
        (".from", 1, None),
        (".days", 1, "open"),
        ("[0]", 2, None),
        ("[1]", 2, None),
        (".until", 1, "open"),
        (".hour", 2, None),
    ]
    assert found[0][1:] == (0, "open")
    bench.toggled.clear()
    assert bench.rows[bench.row].fold == "closed"
    assert len([at for at in bench.rows if at[: len(bench.row)] == bench.row]) == 1


def test_a_leaf_is_changed_and_nothing_around_it(bench):
    bench.make(bench.at(1, 1).field.change("mon"))
    assert bench.value == {"from": "22:00", "days": ["sat", "mon"], "until": {"hour": 7.0}}
    assert bench.document.text_at(("eval_cases", 0, *bench.path)) == VALUE.replace('"sun"', '"mon"')
    assert bench.others_are_as_they_were()


def test_members_and_items_are_added_renamed_moved_and_deleted(bench):
    add = bench.at(0).adds[0]
    bench.make(add.make)
    assert add.then == (*bench.row, "in", 3)
    bench.make(bench.rows[add.then].rename.change("note"))
    with pytest.raises(FieldError, match="from already exists"):
        bench.rows[add.then].rename.change("from")
    assert bench.value["note"] == ""
    add = bench.at(1).adds[0]
    bench.make(add.make)
    assert add.then == (*bench.row, "in", 1, "in", 2)
    bench.make(bench.at(1, 2).field.change("sun"))
    bench.make(bench.at(1, 0).move(1).make)
    bench.make(bench.at(1, 0).insert.make)
    bench.make(bench.at(1, 1).duplicate.make)
    assert bench.value["days"][1:] == ["sun", "sun", "sat", "sun"]
    bench.make(bench.at(1, 0).delete.make)
    bench.make(bench.at(2).delete.make)
    assert bench.value == {"from": "22:00", "days": ["sun", "sun", "sat", "sun"], "note": ""}
    assert bench.others_are_as_they_were()


def test_an_empty_object_or_array_has_nothing_to_fold_and_takes_a_member(bench):
    bench.make(bench.rows[bench.row].field.change('{"legs": {}, "tags": []}'))
    assert [bench.at(number).fold for number in (0, 1)] == [None, None]
    assert [bench.at(number).adds[0].label for number in (0, 1)] == ["add member", "add item"]
    bench.make(bench.at(0).adds[0].make)
    assert bench.value == {"legs": {"key": ""}, "tags": []}


def test_a_container_is_edited_as_json(bench):
    assert bench.at(1).field.kind == "json"
    bench.make(bench.at(1).field.change('["mon"]'))
    assert bench.value["days"] == ["mon"]


def test_what_the_tool_declares_of_an_item_completes_it():
    row = Bench("argument").at(1, 0)
    assert [one.text for one in row.field.completions] == ["sat", "sun"]


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("from", ("in", 0)),
        ("days[1]", ("in", 1, "in", 1)),
        ("days[7]", ("in", 1)),
        ("other", ()),
    ],
)
@pytest.mark.parametrize("place", ["argument", "final state"])
def test_a_difference_leads_to_the_member_that_is_expected(place, path, row, monkeypatch):
    bench = Bench(place)
    monkeypatch.setattr(
        turns, "expected_call_index", lambda *_: bench.row[3] if place == "argument" else None
    )
    kind, turn = ("argument", 0) if place == "argument" else ("state", None)
    at = DifferenceAt(kind, turn, 0, f"{bench.path[-1]}.{path}")
    scored = SimpleNamespace(shown=None, case=None)
    found = turns.expected_row(scored, at, CaseEditor(bench.document.value, 0))
    assert found == (*bench.row, *row)
