"""The fields of a case without a screen: what is shown, what typing does, what can be added and deleted."""

import json

import pytest
from eval_data import make_case, make_set
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.tool_schema import DeclaredTool, first_value
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.set import CaseEditor, SetEditor
from evaltui.documents.values import edits_of
from evaltui.workbench.case.fields import FieldError, RowSource, text_of, value_of
from evaltui.workbench.case.rows.turns import next_expectation, toggle_context
from evaltui.workbench.case.selected_case import case_rows

TOOLS = (
    DeclaredTool(
        "set_light",
        "Switches a light",
        {
            "type": "object",
            "properties": {
                "room": {"type": "string", "description": "which room"},
                "level": {"type": "integer"},
                "mode": {"enum": ["day", "night"]},
            },
            "required": ["room", "level"],
        },
    ),
    DeclaredTool("get_mode", "", {"type": "object", "properties": {}}),
)
CALL = {"name": "set_light", "args": {"room": "hall", "level": 3, "deep": {"a": [1]}}}
LISTS = {"tool_uses": [CALL], "tool_responses": [{"name": "set_light", "response": {"ok": True}}]}
EVENTS = {
    "invocation_events": [
        {"author": "agent", "content": {"parts": [{"function_call": CALL}], "role": "model"}},
        {
            "author": "agent",
            "content": {"parts": [{"function_response": {"name": "set_light", "response": {"ok": True}}}]},
        },
    ]
}


def case_with(expected):
    return make_case(
        "one",
        {
            "user_content": {"parts": [{"text": "hello"}, {"inline_data": {"data": "QUFB"}}]},
            "intermediate_data": expected,
            "final_response": {"parts": [{"text": "hi"}]},
        },
        {"user_content": {"parts": [{"text": "bye"}]}},
        session_input={"app_name": "house", "user_id": "ann", "state": {"mode": "day", "rooms": 3}},
        final_session_state={"mode": 4},
        rubrics=[{"rubric_id": "polite", "rubric_content": {"text_property": "Says please"}}],
        owner="ann",
    )


class Bench:
    """A set of one case that is edited through its rows, config beside it."""

    def __init__(self, case, tools=TOOLS):
        text = json.dumps(make_set("set", case), indent=2)
        self.document = JsonDocument(text)
        self.config = JsonDocument("{}")
        self.tools = tools

    @property
    def source(self):
        return RowSource(CaseEditor(self.document.value, 0, self.config.value), self.tools)

    @property
    def rows(self):
        return {row.id: row for row in case_rows(self.source)}

    @property
    def case(self):
        return self.document.value["eval_cases"][0]

    def turn(self, number):
        return self.case["conversation"][number]

    def make(self, make):
        eval_set = SetEditor.copied(self.document.value, self.config.value)
        make(eval_set)
        self.document = self.document.edited(edits_of(eval_set.data))
        self.config = self.config.edited(edits_of(eval_set.config))

    def type(self, id, text, part="value"):
        self.make(self.rows[id].of(part).change(text))

    def do(self, operation):
        if operation.make:
            self.make(operation.make)
        return operation.then


@pytest.fixture(params=[LISTS, EVENTS], ids=["lists", "events"])
def bench(request):
    return Bench(case_with(request.param))


def calls(bench, turn=0):
    data = bench.turn(turn).get("intermediate_data", {})
    if "invocation_events" in data:
        parts = [part for event in data["invocation_events"] for part in event["content"]["parts"]]
        return [part["function_call"] for part in parts if "function_call" in part]
    return data.get("tool_uses", [])


def test_every_thing_a_case_says_is_a_row(bench):
    assert list(bench.rows) == [
        ("id",),
        ("session", "app_name"),
        ("session", "user_id"),
        ("session", "session_id"),
        ("state", 0),
        ("state", 1),
        ("final_state", 0),
        ("rubric", 0),
        ("extra", "unknown", "owner"),
        ("turn", 0),
        ("turn", 0, "user", 0),
        ("turn", 0, "user", 1),
        ("turn", 0, "call", 0),
        ("turn", 0, "call", 0, "arg", 0),
        ("turn", 0, "call", 0, "arg", 1),
        ("turn", 0, "call", 0, "arg", 2),
        ("turn", 0, "response", 0),
        ("turn", 0, "answer", 0),
        ("turn", 1),
        ("turn", 1, "user", 0),
        ("turn", 1, "calls"),
        ("turn", 1, "answer", 0),
    ]


def test_texts_and_values_are_changed_where_they_are(bench):
    before = bench.document.text
    bench.type(("turn", 0, "user", 0), "hello\nyou")
    bench.type(("turn", 0, "call", 0, "arg", 0), "19")
    bench.type(("turn", 0, "call", 0, "arg", 1), "19")
    bench.type(("turn", 0, "call", 0, "arg", 2), '{"a": []}')
    bench.type(("turn", 0, "response", 0), '{"ok": false}')
    bench.type(("turn", 1, "answer", 0), "see you")
    bench.type(("state", 1), "four")
    assert bench.turn(0)["user_content"]["parts"] == [
        {"text": "hello\nyou"},
        {"inline_data": {"data": "QUFB"}},
    ]
    # The tool declares a text for the first argument, so that digits are one.
    assert calls(bench)[0]["args"] == {"room": "19", "level": 19, "deep": {"a": []}}
    assert bench.turn(1)["final_response"]["parts"] == [{"text": "see you"}]
    assert bench.case["session_input"]["state"] == {"mode": "day", "rooms": "four"}
    assert bench.document.text != before
    assert "invocation_events" in before or "tool_uses" in bench.turn(0)["intermediate_data"]


def test_json_that_is_not_valid_is_refused_with_its_place(bench):
    field = bench.rows["turn", 0, "call", 0, "arg", 2].field
    with pytest.raises(FieldError, match="line 2, column 10: a comma"):
        field.change('{\n  "a": [1,}\n}')
    with pytest.raises(FieldError, match=r"line 3: b\.c is given more than once"):
        value_of('{"a": 1,\n"b": {"c": 1,\n"c": 2}}')
    with pytest.raises(FieldError, match="Must be a JSON object"):
        bench.rows["turn", 0, "response", 0].field.change("3")


def test_names_are_changed_and_taken_ones_refused(bench):
    bench.type(("state", 0), "mood", "name")
    bench.type(("turn", 0, "call", 0, "arg", 1), "mode", "name")
    assert list(bench.case["session_input"]["state"]) == ["mood", "rooms"]
    assert list(calls(bench)[0]["args"]) == ["room", "mode", "deep"]
    with pytest.raises(FieldError, match="rooms already exists"):
        bench.type(("state", 0), "rooms", "name")
    with pytest.raises(FieldError, match="is missing"):
        bench.type(("state", 0), "", "name")
    with pytest.raises(FieldError, match="id is missing"):
        bench.type(("id",), "")


def test_a_new_call_gets_the_arguments_that_its_tool_needs(bench):
    then = bench.do(bench.rows["turn", 0, "call", 0].adds[0])
    assert then == ("turn", 0, "call", 1)
    bench.type(then, "set_light")
    row = bench.rows[then]
    assert {one.text for one in row.field.completions} == {"set_light", "get_mode"}
    assert [problem.message for problem in row.findings] == [
        "room: missing; must be a string",
        "level: missing; must be an integer",
    ]
    assert bench.do(row.field.then) == ("turn", 0, "call", 1, "arg", 0)
    assert calls(bench)[1] == {"name": "set_light", "args": {"room": "", "level": 0}}
    assert bench.rows[then].findings == ()
    bench.do(bench.rows["turn", 0, "call", 1, "arg", 0].adds[0])
    assert calls(bench)[1]["args"] == {"room": "", "level": 0, "mode": "day"}


def test_the_kinds_of_expectation_go_round_and_say_what_is_lost(bench):
    labels, meanings, lost = [], [], []
    for _ in range(4):
        operation, meaning, gone = next_expectation(bench.source, 0)
        bench.do(operation)
        labels.append(operation.label)
        meanings.append(meaning)
        lost.append(gone)
    assert labels == [
        "turn 1: expect no calls",
        "turn 1: leave calls unspecified",
        "turn 1: don't check calls",
        "turn 1: expect these calls",
    ]
    assert meanings == [
        "no calls expected; each call is unexpected",
        "unspecified; scored as no calls",
        "calls are not checked; any may be made",
        "exactly these calls are expected",
    ]
    assert lost == [1, 0, 0, 0]
    assert [call["name"] for call in calls(bench)] == [""]
    bench.do(toggle_context(bench.source, 1))
    assert bench.rows["turn", 1].shown == "context turn, not scored"
    bench.do(toggle_context(bench.source, 1))
    assert bench.rows["turn", 1].shown == "calls unspecified"


def test_everything_else_can_be_added_and_is_gone_again(bench):
    before = list(bench.rows)
    for label in (
        "add response to this call",
        "add intermediate response",
        "add rubric to turn",
        "add rubric to case",
        "add key to state",
        "add key to final state",
    ):
        add = next(one for one in bench.rows["turn", 0, "call", 0].adds if one.label == label)
        then = bench.do(add)
        assert bench.rows[then].of(add.opens) is not None, label
        assert len(bench.rows) == len(before) + 1, label
        bench.do(bench.rows[then].delete)
        assert list(bench.rows) == before, label


def test_problems_stand_at_their_rows():
    call = {"name": "set_ligt", "args": {}}
    bench = Bench(case_with({"tool_uses": [call, {"name": "set_light", "args": {"room": 3, "level": "x"}}]}))
    rows = bench.rows
    assert "set_light" in rows["turn", 0, "call", 0].findings[0].message
    assert rows["turn", 0, "call", 1, "arg", 0].findings[0].message == "must be a string, is the number 3"
    assert rows["turn", 0, "call", 1].findings == ()
    assert rows["final_state", 0].findings[0].message == 'becomes a number, was a string: "day"'
    unknown = Bench(case_with({"tool_uses": [call]}), tools=())
    assert unknown.rows["turn", 0, "call", 0].findings == ()


def test_a_case_without_turns_and_one_with_a_simulated_user():
    bench = Bench(make_case("empty"))
    assert bench.do(bench.rows["turns",].adds[0]) == ("turn", 0, "user", 0)
    bench.type(("turn", 0, "user", 0), "hello")
    to_scenario = next(one for one in bench.rows["id",].adds if "scenario" in one.label)
    bench.do(to_scenario)
    bench.type(("scenario", "conversation_plan"), "say bye")
    bench.type(("scenario", "user_persona"), "EXPERT")
    with pytest.raises(FieldError, match="Built-in personas"):
        bench.type(("scenario", "user_persona"), "EXPRT")
    assert bench.case["conversation_scenario"] == {
        "starting_prompt": "hello",
        "conversation_plan": "say bye",
        "user_persona": "EXPERT",
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(json_values | st.sampled_from(["true", "19", '"x"', "[", " 3 ", "NaN", "-Infinity", "", " "]))
def test_a_value_is_the_same_after_it_was_written_and_read(value):
    again = value_of(text_of(value))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        ({"type": "string"}, ""),
        ({"type": "INTEGER"}, 0),
        ({"type": ["null", "boolean"]}, False),
        ({"enum": ["b", "a"]}, "b"),
        ({"anyOf": [{"type": "array"}, {"type": "null"}]}, []),
        ({"type": "number", "default": 0.5}, 0.5),
        (None, ""),
        ("odd", ""),
    ],
)
def test_an_argument_begins_with_what_its_schema_says(schema, first):
    assert first_value(schema) == first


def test_a_response_of_the_user_is_shown_and_edited_in_its_line():
    request = {"name": "adk_request_confirmation", "args": {}}
    response = {"id": "x", "name": "adk_request_confirmation", "response": {"confirmed": True}}
    bench = Bench(
        make_case(
            "one",
            {"user_content": {"parts": [{"text": "pay"}]}, "intermediate_data": {"tool_uses": [request]}},
            {"user_content": {"parts": [{"function_response": response}]}},
        )
    )
    row = bench.rows["turn", 1, "user", 0]
    assert (row.label, row.name, row.value) == (
        "user",
        "response to adk_request_confirmation:",
        {"confirmed": True},
    )
    assert ("turn", 1, "user", 1) not in bench.rows
    bench.make(row.field.change('{"confirmed": false}'))
    bench.make(row.rename.change("approve"))
    assert bench.turn(1)["user_content"]["parts"] == [
        {"function_response": {"id": "x", "name": "approve", "response": {"confirmed": False}}}
    ]
    with pytest.raises(FieldError):
        row.field.change("[1]")


def test_a_turn_that_responds_to_a_request_is_added_behind_it():
    request = {"name": "adk_request_input", "args": {"message": "Who?"}}
    first = {"user_content": {"parts": [{"text": "hi"}]}, "intermediate_data": {"tool_uses": [request]}}
    bench = Bench(make_case("one", first, {"user_content": {"parts": [{"text": "bye"}]}}))
    adds = {one.label: one for one in bench.rows["turn", 0].adds}
    bench.make(adds["add response to adk_request_input"].make)
    assert bench.turn(1) == {
        "user_content": {
            "parts": [{"function_response": {"name": "adk_request_input", "response": {}}}],
            "role": "user",
        }
    }
    assert adds["add response to adk_request_input"].then == ("turn", 1, "user", 0)
