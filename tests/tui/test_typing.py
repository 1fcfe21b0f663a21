"""Every kind of value typed into every kind of field, ended with every key: the case says what was typed."""

import itertools
import json
from typing import NamedTuple

import pytest
from pilots import screen_text, until
from textual import events

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.workbench import Workbench

ECHO = "def root_agent(message, session):\n    return message\n"
TOOLS = [
    {
        "name": "find",
        "description": "",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}, "any": {}}},
    }
]
LONG = "a long text " * 12
# What a text cannot be: the field stays open.
REFUSED = object()


class Typed(NamedTuple):
    """A text, and what a field of each kind makes of it."""

    text: str
    value: object
    name: object
    json: object


def typed(text, value=None, name=None, json=REFUSED):
    return Typed(text, text if value is None else value[0], text if name is None else name, json)


TYPED = (
    typed("hall"),
    typed("19", value=(19,), json=19),
    typed("null", value=(None,), json=None),
    typed(LONG.strip()),
    typed('{"by": "price"}', value=({"by": "price"},), json={"by": "price"}),
    typed(
        '{"b": [1, {"c": null}], "a": 1.0}',
        ({"b": [1, {"c": None}], "a": 1.0},),
        json={"b": [1, {"c": None}], "a": 1.0},
    ),
    typed("[1, true, 1.0]", value=([1, True, 1.0],), json=[1, True, 1.0]),
    typed("one\ntwo\n\nthree", name="one two three"),
    typed('{\n  "a": "x"\n}', ({"a": "x"},), '{ "a": "x" }', {"a": "x"}),
    typed('{"a": ', value=(REFUSED,)),
    typed("x\u2028y\x0bz"),
)
# Where it is typed, what is there before, and as what it is taken.
FIELDS = {
    "short": (("turn", 0, "call", 0, "arg", 0), "value", "value"),
    "object": (("turn", 0, "call", 0, "arg", 1), "value", "json"),
    "long": (("turn", 0, "call", 0, "arg", 2), "value", "text"),
    "number": (("turn", 0, "call", 0, "arg", 3), "value", "value"),
    "word": (("turn", 0, "call", 0, "arg", 4), "value", "string"),
    "lines": (("turn", 0, "call", 0, "arg", 5), "value", "text"),
    "argument": (("turn", 0, "call", 0, "arg", 0), "name", "name"),
    "call": (("turn", 0, "call", 0), "value", "name"),
    "state": (("state", 0), "value", "value"),
    "user": (("turn", 0, "user", 0), "value", "text"),
    "answer": (("turn", 0, "answer", 0), "value", "text"),
    "rubric": (("rubric", 0), "value", "text"),
    "session": (("session", "user_id"), "value", "name"),
    "id": (("id",), "value", "name"),
}
ARGS = {
    "short": "old",
    "object": {"was": 1},
    "long": LONG,
    "number": 7,
    "word": "old",
    "lines": "one\r\nother",
}
CASE = {
    "eval_id": "first",
    "session_input": {"app_name": "house", "user_id": "ann", "state": {"mode": "day"}},
    "rubrics": [{"rubric_id": "kind", "rubric_content": {"text_property": "Is kind"}, "type": "X"}],
    "conversation": [
        {
            "user_content": {"parts": [{"text": "hello"}], "role": "user"},
            "intermediate_data": {"tool_uses": [{"name": "find", "args": ARGS}]},
            "final_response": {"parts": [{"text": "hi"}], "role": "model"},
        }
    ],
}
ENDS = ("enter", "tab", "shift+tab", "escape", "ctrl+s", "ctrl+j", "click")


def expected(field, kind, one):
    """The case once this has been typed there."""
    value = {"json": one.json, "value": one.value, "name": one.name}.get(kind, one.text)
    if field == "lines":
        # Its lines end so.
        value = value.replace("\n", "\r\n")
    if value is REFUSED:
        return None
    case = json.loads(json.dumps(CASE))
    turn = case["conversation"][0]
    call = turn["intermediate_data"]["tool_uses"][0]
    match field:
        case "argument":
            call["args"] = {(value if key == "short" else key): arg for key, arg in call["args"].items()}
        case "call":
            call["name"] = value
        case "state":
            case["session_input"]["state"]["mode"] = value
        case "user":
            turn["user_content"]["parts"][0]["text"] = value
        case "answer":
            turn["final_response"]["parts"][0]["text"] = value
        case "rubric":
            case["rubrics"][0]["rubric_content"]["text_property"] = value
        case "session":
            case["session_input"]["user_id"] = value
        case "id":
            case["eval_id"] = value
        case _:
            call["args"][field] = value
    return case


@pytest.fixture
def house(write_agent):
    folder = write_agent(ECHO, name="house")
    data = {"eval_set_id": "finds", "eval_cases": [CASE]}
    (folder / "finds.evalset.json").write_text(json.dumps(data, indent=2), encoding="utf-8")
    return folder


class Desk:
    """The program with the case open."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot
        self.editing = app.workbench.editing

    @property
    def pane(self):
        return self.app.screen_stack[0].query_one("#case")

    @property
    def path(self):
        return self.app.workbench.sets.listed[0].path

    @property
    def text(self):
        """The case as the text that is saved has it."""
        return json.dumps(json.loads(self.editing.open_file(self.path).document.text)["eval_cases"][0])

    def open(self, row, part):
        self.app.screen.set_focus(self.pane)
        self.pane.follow()
        self.pane.move_to_id(row)
        assert self.pane.row.id == row
        (self.pane.action_edit_value if part == "value" else self.pane.action_rename)()
        assert self.app.focused is not self.pane

    async def type(self, text, *, by_key=False):
        """In place of what is there."""
        self.app.focused.select_all()
        if by_key and text.isprintable():
            await self.pilot.press(*text)
        else:
            # As terminals paste.
            self.app.post_message(events.Paste(text.replace("\n", "\r")))
        await self.pilot.pause()

    async def end(self, key):
        if key == "click":
            at = self.app.screen.query_one("#cases").region
            await self.pilot.click(offset=(at.x + 1, at.bottom - 1))
            await self.pilot.click(offset=(at.x + 1, at.y + 1))
        else:
            await self.pilot.press(key)
        await self.pilot.pause()

    async def undo_all(self):
        while self.pane.is_editing:
            await self.pilot.press("escape")
        while self.editing.undo_label:
            self.editing.undo()


async def try_one(desk, field, one, key, *, by_key):
    row, part, kind = FIELDS[field]
    before = desk.text
    desk.open(row, part)
    is_line = kind in ("value", "string", "name")
    await desk.type(one.text, by_key=by_key)
    await desk.end(key)
    where = f"{one.text!r} into {field}, ended with {key}"
    if key == "enter" and not is_line:
        # It is a part of the text.
        assert desk.app.focused.text.endswith("\n"), where
        await desk.pilot.press("backspace", "ctrl+j")
        key = "ctrl+j"
    wanted = expected(field, kind, one)
    if key == "escape":
        assert desk.text == before, where
        assert not desk.pane.is_editing, where
        assert desk.app.workbench.draft is None, where
        assert desk.editing.undo_label is None, where
    elif wanted is None:
        assert desk.text == before, where
        assert desk.app.workbench.draft.text == one.text, where
        assert desk.pane.is_editing, where
        await until(desk.pilot, lambda: "! " in screen_text(desk.app))
    else:
        assert json.loads(desk.text) == wanted, where
        assert desk.text == json.dumps(wanted), where
        assert desk.app.workbench.draft is None, where
        if key == "ctrl+s":
            await until(desk.pilot, lambda: not desk.editing.unsaved())
            assert json.loads(desk.path.read_text(encoding="utf-8"))["eval_cases"][0] == wanted, where
    await desk.undo_all()
    assert desk.text == before, where


@pytest.mark.timeout(3_600)
async def test_what_is_typed_into_a_field_is_what_the_case_says(house, thorough):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(90, 40)) as pilot:
        await until(pilot, lambda: app.workbench.sets.listed)
        app.workbench.agent.learn_tools = lambda: None
        app.workbench.agent.info = {"name": "house", "framework": "function", "model": "", "tools": TOOLS}
        await pilot.press("2")
        await until(pilot, lambda: "  id           first" in screen_text(app))
        desk = Desk(app, pilot)
        app.workbench.editing.data(desk.path)
        every = list(itertools.product(FIELDS, TYPED, ENDS))
        # Each day every field, every value and every key, but not with each other.
        daily = [
            (field, TYPED[number % len(TYPED)], ENDS[number % len(ENDS)])
            for number, field in enumerate(FIELDS)
        ]
        for field, one, key in every if thorough else daily:
            await try_one(desk, field, one, key, by_key=thorough)
