"""Editing a case in its pane, by keys alone: in place, with completion, and nothing that is typed is lost."""

import json
import re
import stat

import pytest
from pilots import screen_lines, screen_text, turn, until, write_cases
from textual import events

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.dialogs.details import RawScreen
from evaltui.tui.dialogs.prompt import PromptScreen
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

NARROW, WIDE = (80, 24), (160, 45)
ECHO = "def root_agent(message, session):\n    return message\n"
TOOLS = [
    {
        "name": "set_light",
        "description": "Switches a light",
        "parameters": {
            "type": "object",
            "properties": {"room": {"type": "string"}, "level": {"type": "integer"}},
            "required": ["room", "level"],
        },
    },
    {"name": "get_mode", "description": "", "parameters": {"type": "object", "properties": {}}},
]


@pytest.fixture
def house(write_agent):
    folder = write_agent(ECHO, name="house")
    call = {"name": "set_light", "args": {"room": "hall", "level": 3, "deep": {"a": 1}}}
    write_cases(folder, "lights", {"dim": [turn("hello", "hi", call), turn("bye", "bye")], "other": []})
    return folder


async def in_the_case(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.sets.listed)
    app.workbench.agent.info = {"name": "house", "framework": "function", "model": "", "tools": TOOLS}
    await pilot.press("2")
    await until(pilot, lambda: "  id           dim" in screen_text(app))


def case(app, number=0):
    path = app.workbench.sets.listed[0].path
    return app.workbench.editing.data(path)["eval_cases"][number]


def pane(app):
    return app.screen_stack[0].query_one("#case")


async def go_to(app, pilot, *id):
    """To a row, with the arrow keys."""
    here = pane(app)
    here.follow()
    numbers = {row.id: number for number, row in enumerate(here.rows)}
    step = numbers[id] - here.current
    await pilot.press(*["down" if step > 0 else "up"] * abs(step))
    assert here.row.id == id


async def test_a_line_is_edited_in_its_place_and_the_case_gets_it_as_one_edit(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 1)
        await pilot.press("e", "5", "x")
        await until(pilot, lambda: "      level  35x" in screen_text(app))
        assert case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]["level"] == 3
        assert not app.workbench.editing.unsaved()
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.focused is pane(app))
        await until(pilot, lambda: 'must be an integer, is the string "35x"' in screen_text(app))
        assert app.workbench.editing.undo_label == "change level of set_light"
        await pilot.press("u")
        args = case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]
        assert args == {"room": "hall", "level": 3, "deep": {"a": 1}}
        assert app.workbench.editing.undo_label is None


@pytest.mark.parametrize("key", ["f2", "f4"])
async def test_a_key_of_the_pane_is_refused_with_a_reason_in_a_line(house, key):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=WIDE) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 0)
        await pilot.press("e", *"way", key)
        await until(pilot, lambda: "close the field first" in screen_text(app))
        await pilot.press("enter")
        assert case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]["room"] == "hallway"


async def test_escape_drops_what_was_typed_and_enter_makes_it_one_step(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 0)
        await pilot.press("e", *"way", "escape")
        assert case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]["room"] == "hall"
        await go_to(app, pilot, "turn", 0, "user", 0)
        await pilot.press("enter", *" you", "escape")

        def said():
            return case(app)["conversation"][0]["user_content"]["parts"][0]["text"]

        assert said() == "hello"
        await until(pilot, lambda: "  user         hello" in screen_text(app))
        assert app.workbench.editing.undo_label is None
        assert app.workbench.editing.redo_label is None
        await pilot.press("enter", *" you", "enter", *"there", "ctrl+j")
        assert said() == "hello you\nthere"
        await pilot.press("u")
        assert said() == "hello"
        await pilot.press("U")
        assert said() == "hello you\nthere"
        assert app.screen.focused is pane(app)
        await until(pilot, lambda: "  user         hello you" in screen_text(app))
        assert app.workbench.editing.dirty_cases(app.workbench.sets.listed[0].path) == {"dim"}


async def test_a_text_that_was_changed_much_is_asked_about_before_it_is_discarded(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "user", 0)
        await pilot.press("enter")
        app.post_message(events.Paste("x" * 201))
        await pilot.press("escape")
        await until(pilot, lambda: "201 characters changed   esc discard   ctrl+j apply" in screen_text(app))
        assert pane(app).is_editing
        # Who goes on typing is asked again.
        await pilot.press("y")
        await until(pilot, lambda: "characters changed" not in screen_text(app))
        await pilot.press("escape")
        assert pane(app).is_editing
        await pilot.press("escape")
        assert not pane(app).is_editing
        assert case(app)["conversation"][0]["user_content"]["parts"][0]["text"] == "hello"


async def test_json_that_is_not_valid_stays_in_its_field_until_it_is_or_is_discarded(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 2)
        await pilot.press("e", ",")
        await until(pilot, lambda: "line 3, column 2: " in screen_text(app))
        args = case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]
        assert args["deep"] == {"a": 1}
        # It cannot be applied: the cursor goes to the problem.
        await pilot.press("ctrl+home", "ctrl+j")
        assert pane(app).is_editing
        assert app.focused.cursor_location == (2, 1)
        # Whoever leaves it, or saves, is asked.
        for key in ("alt+1", "alt+r", "ctrl+s"):
            await pilot.press(key)
            await until(pilot, lambda: "! Not applied   esc discard" in screen_text(app))
            assert app.focused is pane(app).query_one("#case-text")
            await pilot.press("x")
            await until(pilot, lambda: "! Not applied" not in screen_text(app))
            await pilot.press("backspace")
        await pilot.press("delete")
        await until(pilot, lambda: "line 3, column 2" not in screen_text(app))
        await pilot.press(",", "alt+1", "escape")
        assert not pane(app).is_editing
        assert args == case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]
        assert app.workbench.editing.undo_label is None


async def test_a_nested_value_is_edited_level_by_level(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=WIDE) as pilot:
        await in_the_case(app, pilot)

        def deep():
            return case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]["deep"]

        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 2)
        await until(pilot, lambda: 'deep   ▸ {"a": 1}' in screen_text(app))
        await pilot.press("right", "right")
        await until(pilot, lambda: "deep   ▾ {1}" in screen_text(app))
        await until(pilot, lambda: "turn 1 › set_light › deep › .a" in screen_text(app))
        # A value, a key after it, its value as an array, an item in that.
        await pilot.press("enter", "2", "enter", "o", *"days", "enter", *"[]", "enter")
        assert deep() == {"a": 12, "days": []}
        await pilot.press("right", "o", *"sat", "enter", "o", *"sun", "enter")
        assert deep() == {"a": 12, "days": ["sat", "sun"]}
        await until(pilot, lambda: "[1]" in screen_text(app))
        await pilot.press("shift+up")
        assert deep()["days"] == ["sun", "sat"]
        await pilot.press("delete", "left", "f2", "ctrl+u", *"on", "enter", "escape")
        assert deep() == {"a": 12, "on": ["sat"]}
        await pilot.press("left", "left", "left")
        await until(pilot, lambda: 'deep   ▸ {"a": 12, "on": ["sat"]}' in screen_text(app))


async def test_tab_goes_into_a_nested_value_and_a_path_typed_as_a_name_nests(house):
    app = WorkbenchApp(Workbench(house))

    def args():
        return case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]

    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 1)
        await pilot.press("e", "tab", "7")
        assert pane(app).row.id == ("turn", 0, "call", 0, "arg", 2, "in", 0)
        await pilot.press("shift+tab")
        await until(pilot, lambda: args()["deep"] == {"a": 7})
        await until(pilot, lambda: pane(app).row.id == ("turn", 0, "call", 0, "arg", 1))
        await pilot.press("escape", "o", *"deep.days[0]")
        await pilot.press("enter", *"sat", "enter")
        await until(pilot, lambda: args() == {"room": "hall", "level": 3, "deep": {"a": 7, "days": ["sat"]}})
        assert app.workbench.editing.undo_label == "change [0]"
        await pilot.press("u", "u")
        await until(pilot, lambda: args() == {"room": "hall", "level": 3, "deep": {"a": 7}})
        # Asked for what cannot be, the name stays as it is typed, and open.
        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 1)
        await pilot.press("o", *"room.x", "enter")
        await until(pilot, lambda: "room is not an object" in screen_text(app))
        assert args()["room.x"] == ""


async def test_a_new_turn_with_a_call_and_an_answer_by_keys_alone(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 1)
        await pilot.press("o", *"dim the hall", "ctrl+j", "o", *"set", "enter")
        await until(
            pilot, lambda: "      room" in screen_lines(app)[-10] or "      level  0" in screen_text(app)
        )
        await pilot.press(*"hall", "tab", "7", "tab", *"done", "ctrl+j")
        assert case(app)["conversation"][2] == {
            "user_content": {"parts": [{"text": "dim the hall"}], "role": "user"},
            "intermediate_data": {"tool_uses": [{"name": "set_light", "args": {"room": "hall", "level": 7}}]},
            "final_response": {"parts": [{"text": "done"}], "role": "model"},
        }
        await until(pilot, lambda: re.search("Turn 3 +space exactly these calls", screen_text(app)))
        # The call, its name and the arguments that it needs are undone at once.
        labels = []
        while app.workbench.editing.undo_label:
            labels.append(app.workbench.editing.undo_label)
            await pilot.press("u")
        assert labels == [
            "change response",
            "change level of set_light",
            "change room of set_light",
            "add call",
            "add turn",
        ]
        assert len(case(app)["conversation"]) == 2


async def test_what_was_added_by_mistake_goes_with_escape(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        before = case(app)
        await go_to(app, pilot, "turn", 0, "call", 0)
        # The completions first.
        await pilot.press("o", *"get", "escape")
        assert pane(app).is_editing
        await pilot.press("escape")
        assert case(app) == before
        assert pane(app).row.id == ("turn", 0, "call", 0), "the row that it was added from"
        await go_to(app, pilot, "turn", 1)
        await pilot.press("o", "escape")
        assert case(app) == before


async def test_the_kind_of_a_turn_is_one_key_away_and_says_what_is_lost(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0)
        await pilot.press("space")
        await until(pilot, lambda: "unexpected; 1 call deleted   u undo" in screen_text(app))
        assert re.search("Turn 1 +space no calls expected", screen_text(app))
        await pilot.press("u")
        await until(pilot, lambda: re.search("Turn 1 +space exactly these calls", screen_text(app)))
        await pilot.press("b")
        await until(pilot, lambda: re.search("Turn 1 +space context turn, not scored", screen_text(app)))
        await pilot.press("ctrl+s")
        config = house / "test_config.json"
        await until(pilot, config.exists)
        mark = {"set": "lights", "case": "dim", "turn": 0, "mode": "context"}
        assert json.loads(config.read_text())["evaltui"]["turns"] == [mark]


async def test_the_id_is_changed_and_the_selection_goes_along(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await pilot.press("f2", "ctrl+u", *"other")
        await until(pilot, lambda: "other already exists" in screen_text(app))
        await pilot.press("2", "enter")
        path = app.workbench.sets.listed[0].path
        await until(pilot, lambda: app.workbench.navigation.selection == Selection(path.name, "other2"))
        assert case(app)["eval_id"] == "other2"
        await pilot.press("u")
        await until(pilot, lambda: app.workbench.navigation.selection == Selection(path.name, "dim"))


async def test_the_user_of_a_session_that_the_case_has_not_is_typed_in_one_go(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=WIDE) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "session", "user_id")
        await pilot.press("enter", *"ann")
        await until(pilot, lambda: "  session      ann" in screen_text(app))
        assert "deleted outside" not in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: case(app).get("session_input", {}).get("user_id") == "ann")
        await until(pilot, lambda: "· user ann ·" in screen_text(app))
        await pilot.press("u")
        await until(pilot, lambda: "session_input" not in case(app))


async def test_anything_can_be_chosen_to_be_added(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        # The last line does the same.
        await pilot.press("G")
        await until(pilot, lambda: "+ turn, call, argument, response, rubric, file" in screen_text(app))
        await pilot.press("enter", "escape", "g")
        await pilot.press("A", *"final", "enter", *"mode", "enter", *"night", "enter")
        assert case(app)["final_session_state"] == {"mode": "night"}
        await until(pilot, lambda: '  final state  mode  "night"' in screen_text(app))


async def test_a_file_is_attached(house):
    (house / "picture.png").write_bytes(b"not really a picture")
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 1, "user", 0)
        await pilot.press("A", *"attach", "enter")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.press(*str(house / "picture.png"), "enter")
        await until(pilot, lambda: "[image/png 20 B]" in screen_text(app))
        await go_to(app, pilot, "turn", 1, "user", 1)
        await pilot.press("delete")
        assert case(app)["conversation"][1]["user_content"]["parts"] == [{"text": "bye"}]


async def test_the_raw_json_is_edited_and_what_is_wrong_is_shown(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        await until(pilot, lambda: '"eval_id": "dim"' in screen_text(app))
        await pilot.press("x", "ctrl+j")
        await until(pilot, lambda: "! line 1, column 1: " in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "1 character changed   esc discard   ctrl+j apply" in screen_text(app))
        await pilot.press("delete", "tab", "shift+tab", "ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        assert app.workbench.editing.undo_label is None
        await pilot.press("f4", "x", "escape", "escape")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        assert app.workbench.draft is None
        assert app.workbench.editing.undo_label is None


@pytest.mark.parametrize("pane", ["1", "3"], ids=["list of cases", "result"])
async def test_the_raw_json_is_edited_from_other_panes(house, pane):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=WIDE) as pilot:
        await in_the_case(app, pilot)
        await pilot.press(pane, "f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        await until(pilot, lambda: '"eval_id": "dim"' in screen_text(app))
        await pilot.press("right", *' "note": 1,', "ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        assert case(app)["note"] == 1
        assert app.screen.focused.id == "case"
        await pilot.press("1", "g", "f4")
        await until(pilot, lambda: "No case selected" in screen_text(app))
        assert not isinstance(app.screen, RawScreen)


@pytest.mark.parametrize(
    ("malformed", "shown"), [({"eval_id": "a", "conversation": [3]}, '"eval_id": "a"'), (3, '"eval_set_id"')]
)
async def test_a_malformed_case_is_mended_as_json(write_agent, malformed, shown):
    path = write_agent(ECHO, name="house") / "odd.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "odd", "eval_cases": [malformed]}, indent=1))
    app = WorkbenchApp(Workbench(path.parent))
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.sets.listed)
        await pilot.press("2")
        await until(pilot, lambda: "f4  Edit JSON" in screen_text(app))
        await pilot.press("o")
        await until(pilot, lambda: "The case is malformed   f4  Edit JSON" in screen_text(app))
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        await until(pilot, lambda: shown in screen_text(app))
        app.focused.text = app.focused.text.replace("3", '{"eval_id": "b"}' if malformed == 3 else "{}")
        await pilot.press("ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        assert app.workbench.editing.unsaved() == [path]


async def test_a_case_edited_as_raw_json_is_one_step(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        await pilot.press("right", *' "note": 1,', "ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        assert case(app)["note"] == 1
        assert app.workbench.editing.undo_label == "change the JSON of dim"
        await until(pilot, lambda: "  note         1" in screen_text(app))


async def test_the_editor_of_the_user_gets_the_text(house, monkeypatch, tmp_path):
    script = tmp_path / "editor"
    script.write_text("#!/bin/sh\nprintf 'from outside' > \"$1\"\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", str(script))
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "user", 0)
        await pilot.press("ctrl+e")
        await until(pilot, lambda: "Cannot open another program in this terminal" in screen_text(app))


async def test_a_click_selects_and_a_double_click_edits(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=WIDE) as pilot:
        await in_the_case(app, pilot)
        lines = screen_lines(app)
        row = next(number for number, line in enumerate(lines) if "  response     bye" in line)
        column = lines[row].index("response")
        await pilot.click(offset=(column, row), times=2)
        await until(pilot, lambda: pane(app).query_one("#case-text").has_focus)
        await pilot.press(*" bye")
        await pilot.click(offset=(column, row - 4))
        await until(pilot, lambda: app.screen.focused is pane(app))
        assert case(app)["conversation"][1]["final_response"]["parts"][0]["text"] == "bye bye"


async def test_keys_typed_at_once_all_arrive(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=NARROW) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0)
        await pilot.press("o", *"get_mode", "enter", "o", *"get_mode", "enter", "K", "d")
        uses = case(app)["conversation"][0]["intermediate_data"]["tool_uses"]
        assert [one["name"] for one in uses] == ["set_light", "get_mode", "get_mode", "get_mode"]


@pytest.mark.parametrize("letters", ["mode", "gtmd"])
async def test_tab_takes_a_completion_first_and_then_goes_on(house, letters):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=WIDE) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0)
        await pilot.press("e", "ctrl+u", *letters)
        await until(pilot, lambda: "tab complete" in screen_text(app))
        await pilot.press("tab")
        assert pane(app).is_editing
        assert app.focused.text == "get_mode"
        await until(pilot, lambda: "tab complete" not in screen_text(app))
        await pilot.press("tab")
        await until(pilot, lambda: pane(app).row.id == ("turn", 0, "call", 0, "arg", 0))
        assert pane(app).is_editing
        assert case(app)["conversation"][0]["intermediate_data"]["tool_uses"][0]["name"] == "get_mode"


async def test_turns_and_calls_fold_and_open_where_one_goes_into_them(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=WIDE) as pilot:
        await in_the_case(app, pilot)
        await go_to(app, pilot, "turn", 0, "call", 0, "arg", 1)
        await until(pilot, lambda: "space exactly these calls" in screen_text(app))
        await pilot.press("left", "left")
        await until(pilot, lambda: '▸ set_light  room "hall"  level 3  deep {"a":' in screen_text(app))
        assert pane(app).row.id == ("turn", 0, "call", 0)
        await pilot.press("left", "left")
        await until(pilot, lambda: re.search(r"▸ Turn 1  hello +1 call", screen_text(app)))
        assert pane(app).row.id == ("turn", 0)
        pane(app).move_to_id(("turn", 0, "call", 0, "arg", 2, "in", 0))
        pane(app).show_soon()
        await until(pilot, lambda: "turn 1 › set_light › deep › .a" in screen_text(app))
