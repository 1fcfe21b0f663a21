"""Values typed and pasted into fields of the real program: the file has them, and no text is a command."""

from __future__ import annotations

import copy
import itertools
import json
import sys
from pathlib import Path

import pytest
from eval_data import make_case, make_set, make_turn
from terminal import Terminal

pytestmark = pytest.mark.e2e

ECHO = "def root_agent(message, session):\n    return message\n"
LONG = "a long text that does not fit in one line of the screen, " * 3
ARGS = {"short": "old", "deep": {"was": 1}, "long": LONG, "number": 7}
CASE = make_case("first", make_turn("hello", "hi", [{"name": "find", "args": ARGS}]))
# How many lines below the first line of the case they are.
ROWS = {"user": 5, "call": 6, "short": 7, "deep": 8, "long": 9, "number": 10, "answer": 11}
# How the screen shows the object in the arguments when its members are listed.
UNFOLDED = "▾ {1}"
TEXTS = ("user", "deep", "long", "answer")
VALUES = {
    "text": ("book", "book"),
    "long": ("word " * 24 + "end", None),
    "number": ("19", 19),
    "null": ("null", None),
    "object": ('{"by": "price"}', {"by": "price"}),
    "list": ("[1, true, {}]", [1, True, {}]),
    "lines": ("one\ntwo\nthree", None),
    "laid out": ('{\n"a": [1]\n}', {"a": [1]}),
    "refused": ('{"a": ', None),
}
ENDS = ("enter", "tab", "shift+tab", "escape", "ctrl+s", "ctrl+j", "click")
DAILY = (
    ("short", "object", "ctrl+s"),
    ("short", "lines", "tab"),
    ("long", "text", "escape"),
    ("deep", "refused", "click"),
    ("call", "lines", "enter"),
    ("number", "null", "shift+tab"),
    ("short", "refused", "ctrl+s"),
    ("short", "list", "escape"),
)


def expected(field, value):
    """What the field becomes; None where it stays as it is."""
    text, parsed = VALUES[value]
    if field in ("user", "answer", "long"):
        return text
    if field == "call":
        return " ".join(text.split("\n"))
    if value == "refused" or (field == "deep" and value in ("text", "long", "lines")):
        return None
    is_json = value in ("number", "null", "object", "list", "laid out")
    return [parsed] if is_json else text


def case_with(field, value):
    case = copy.deepcopy(CASE)
    turn = case["conversation"][0]
    new = expected(field, value)
    if new is None:
        return case
    new = new[0] if isinstance(new, list) else new
    if field in ("user", "answer"):
        turn["user_content" if field == "user" else "final_response"]["parts"][0]["text"] = new
    elif field == "call":
        turn["intermediate_data"]["tool_uses"][0]["name"] = new
    else:
        turn["intermediate_data"]["tool_uses"][0]["args"][field] = new
    return case


def case_named(call):
    conversation = copy.deepcopy(CASE["conversation"])
    conversation[0]["intermediate_data"]["tool_uses"][0]["name"] = call
    return conversation


class Program:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "finds.evalset.json"
        self.write()
        self.terminal = Terminal([sys.executable, "-m", "evaltui", folder.name], folder.parent, 100, 40)
        self.terminal.wait_for("○ first")
        self.terminal.press("2")
        self.terminal.wait_for("Turn 1")

    def write(self) -> None:
        data = make_set("finds", CASE)
        self.file.write_text(json.dumps(data, indent=2), encoding="utf-8")

    @property
    def case(self):
        return json.loads(self.file.read_text(encoding="utf-8"))["eval_cases"][0]

    def open(self, field: str) -> None:
        if UNFOLDED in self.terminal.text:
            # It was left by a tab that goes into it, and what is below it stands further down.
            self.terminal.press("2", "g", *["j"] * ROWS["deep"], "left")
            self.terminal.wait_until(lambda screen: UNFOLDED not in screen, "the object was not folded")
        self.terminal.press("2", "g", *["j"] * ROWS[field], "e")
        self.terminal.wait_for("ctrl+j apply" if field in TEXTS else "enter apply")

    def empty(self, field: str) -> None:
        """Of a text select everything, to be typed over: f7."""
        self.terminal.type("\x1b[18~" if field in TEXTS else "\x15")

    def type(self, text: str) -> None:
        if "\n" in text:
            self.terminal.type(f"\x1b[200~{text}\x1b[201~".replace("\n", "\r"))
        else:
            self.terminal.type(text)

    def end(self, key: str) -> None:
        """With the key, and whatever field is open then is left."""
        if key == "click":
            self.terminal.type("\x1b[<0;4;20M\x1b[<0;4;20m")
        elif key == "shift+tab":
            self.terminal.type("\x1b[Z")
        else:
            # A text that was changed much is asked about.
            self.terminal.press(key, *(["escape"] if key == "escape" else []))

    def leave_fields(self) -> None:
        """To the list of cases: what is typed is applied."""
        self.terminal.type("\x1b[<0;4;20M\x1b[<0;4;20m")
        # In a field it is f1.
        self.terminal.wait_until(lambda screen: " ? help" in screen, "a field is open")

    def save(self) -> None:
        self.terminal.press("ctrl+s")


@pytest.fixture
def program(write_agent):
    started = Program(write_agent(ECHO, name="house"))
    yield started
    started.terminal.close()


def try_one(program: Program, field: str, value: str, key: str) -> None:
    text, is_text = VALUES[value][0], field in TEXTS
    program.open(field)
    program.empty(field)
    program.type(text)
    last = text.split("\n")[-1].split(" ")[-1]
    program.terminal.wait_for(last)
    program.end(key)
    wanted = case_with(field, value)
    if key == "escape":
        wanted = CASE
    if key == "enter" and is_text:
        program.terminal.press("backspace")
    what = f"{value} into {field}, ended with {key}"
    if key != "escape" and expected(field, value) is None:
        # It cannot be applied: the field is not left before it is discarded.
        program.terminal.type("\x1b[<0;4;20M\x1b[<0;4;20m")
        program.terminal.wait_for("! Not applied   esc discard")
        program.terminal.press("escape")
    program.leave_fields()
    program.save()
    program.terminal.wait_until(lambda _: program.case == wanted, f"{what}: the file is not what was typed")
    program.terminal.press("2")
    if wanted != CASE:
        program.terminal.press("u")
        program.save()
        program.terminal.wait_until(lambda _: program.case == CASE, f"{what}: undo does not bring it back")
    program.terminal.wait_until(lambda screen: "Turn 1" in screen, "the case is gone")


def test_what_is_typed_is_in_the_file(program):
    for field, value, key in DAILY:
        try_one(program, field, value, key)
    assert program.terminal.process.poll() is None


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("field", ROWS)
def test_every_value_in_every_field_with_every_key(program, field):
    for value, key in itertools.product(VALUES, ENDS):
        try_one(program, field, value, key)


@pytest.mark.parametrize("key", ["click", "enter"])
def test_a_field_that_is_left_right_behind_a_paste_is_left(program, key):
    """All of it in one burst: the field does not take the focus back, and what was pasted counts."""
    program.open("call")
    program.empty("call")
    program.type("find\nroom")
    program.end(key)
    program.leave_fields()
    program.save()
    wanted = CASE | {"conversation": case_named("find room")}
    program.terminal.wait_until(lambda _: program.case == wanted, "the file is not what was pasted")


def test_text_behind_a_key_that_opens_a_field_is_typed_there(program):
    """`o`, `A` and `e` promise a field; after the last one there is none, and tab stays there."""
    terminal = program.terminal
    terminal.type("gjjjjoReboot qRmu")
    terminal.wait_for("Reboot qRmu")
    terminal.press("ctrl+j")
    terminal.wait_for("o add")
    terminal.type("Gkebook\t\t\t rRmqo")
    terminal.wait_for("book rRmqo")
    terminal.wait_for("esc cancel")
    # As terminals send it that know no protocol; a key behind it would be alt and that key.
    terminal.type("\x1b")
    terminal.wait_until(lambda screen: "esc cancel" not in screen, "the field is still open")
    # There is no name on this line: none of what follows is a command.
    terminal.type("gjjjjj\x1bOQbookmq")
    terminal.wait_for("No name on this line")
    assert "book" not in json.dumps(program.case)
    assert "Criteria" not in terminal.text
    assert terminal.process.poll() is None
