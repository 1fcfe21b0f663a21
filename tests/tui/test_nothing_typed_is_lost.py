"""What is typed and in no case yet is asked about when leaving, and comes back after a crash."""

import json

import pytest
from pilots import screen_text, turn, until, write_cases
from textual import events
from textual.widgets import Input

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.dialogs.details import RawScreen
from evaltui.tui.dialogs.prompt import PromptScreen
from evaltui.tui.dialogs.unsaved import UnsavedScreen
from evaltui.workbench.workbench import Workbench

ECHO = "def root_agent(message, session):\n    return message\n"
ARG = ("turn", 0, "call", 0, "arg", 0)


@pytest.fixture
def house(write_agent):
    folder = write_agent(ECHO, name="house")
    call = {"name": "set_light", "args": {"room": {"a": 1}, "level": 3}}
    write_cases(folder, "lights", {"dim": [turn("hello", "hi", call), turn("bye", "bye")], "other": []})
    return folder


async def in_the_case(app, pilot):
    await until(pilot, lambda: app.workbench.sets.listed)
    app.workbench.agent.learn_tools = lambda: None
    await pilot.press("2")
    await until(pilot, lambda: "  id           dim" in screen_text(app))


def pane(app):
    return app.screen_stack[0].query_one("#case")


async def edit(app, pilot, *row):
    pane(app).follow()
    pane(app).move_to_id(row)
    await pilot.press("enter")
    assert pane(app).is_editing


def args(app):
    path = app.workbench.sets.listed[0].path
    case = app.workbench.editing.data(path)["eval_cases"][0]
    return case["conversation"][0]["intermediate_data"]["tool_uses"][0]["args"]


def draft_text(app):
    return app.workbench.draft and app.workbench.draft.text


async def test_a_text_that_is_in_no_case_is_asked_about_when_leaving(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        await edit(app, pilot, *ARG)
        await pilot.press(",")
        text = app.focused.text
        await until(pilot, lambda: stored_texts(app) == [text])
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, UnsavedScreen))
        assert "typed, not in the case" in screen_text(app)
        await pilot.press("escape")
        assert app.focused.text == text
        # It cannot be saved: nobody leaves.
        await pilot.press("ctrl+q", "enter")
        await until(pilot, lambda: app.screen is app.screen_stack[0])
        assert "! Not applied   esc discard" in screen_text(app)
        assert draft_text(app) == text
        await pilot.press("backspace", "ctrl+q")
        await until(pilot, lambda: not app.is_running)


async def test_another_case_is_selected_once_a_text_is_applied_or_discarded(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        row = next(at for at, line in enumerate(screen_text(app).splitlines()) if " other" in line)
        column = screen_text(app).splitlines()[row].index("other")
        await edit(app, pilot, *ARG)
        await pilot.press(",")
        await pilot.click(offset=(column, row))
        await until(pilot, lambda: "! Not applied   esc discard" in screen_text(app))
        assert app.workbench.navigation.selection.eval_id == "dim"
        assert app.focused.text.endswith(",")
        await pilot.press("backspace", "left", *'\b, "b": 2'[1:])
        await pilot.click(offset=(column, row))
        await until(pilot, lambda: app.workbench.navigation.selection.eval_id == "other")
        assert args(app)["room"] == {"a": 1, "b": 2}


async def test_ctrl_q_asks_about_unsaved_files_and_about_what_is_typed_in_a_dialog(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        await pilot.press("1", "O")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.press(*"new", "ctrl+q")
        await until(pilot, lambda: "Typed in the open dialog, not saved" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.press("escape", "2")
        await edit(app, pilot, "turn", 0, "user", 0)
        await pilot.press("x", "ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, UnsavedScreen))


async def test_escape_drops_what_was_typed_in_its_field_and_nothing_else(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        editing, path = app.workbench.editing, app.workbench.sets.listed[0].path
        await edit(app, pilot, *ARG[:5], 1)
        await pilot.press("5")
        # Something else is done meanwhile.
        data = json.loads(path.read_text())
        data["eval_cases"][1]["note"] = "theirs"
        path.write_text(json.dumps(data))
        await editing.merge_outside_changes()
        await pilot.press("escape")
        assert args(app)["level"] == 3
        assert editing.data(path)["eval_cases"][1]["note"] == "theirs"
        await edit(app, pilot, *ARG[:5], 1)
        await pilot.press("5", "enter")
        await edit(app, pilot, *ARG[:5], 1)
        await pilot.press("escape")
        assert args(app)["level"] == 35


async def test_lines_pasted_into_questions_and_filters_become_one(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        for keys in (("1", "f2"), ("/",), ("ctrl+g",)):
            await pilot.press(*keys)
            await until(pilot, lambda: isinstance(app.focused, Input))
            await pilot.press("ctrl+u")
            app.post_message(events.Paste("one\r\n  two\rthree\n"))
            await until(pilot, lambda: app.focused.value == "one two three")
            await pilot.press("escape")


@pytest.mark.parametrize(("keys", "answer"), [(("ctrl+j",), "himmt"), (("escape",), "theirs")])
async def test_a_field_says_what_was_changed_there_outside_and_the_user_decides(house, keys, answer):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        path = app.workbench.sets.listed[0].path
        await edit(app, pilot, "turn", 0, "answer", 0)
        await pilot.press("m")
        data = json.loads(path.read_text())
        data["eval_cases"][0]["conversation"][0]["final_response"]["parts"][0]["text"] = "theirs"
        path.write_text(json.dumps(data))
        await app.workbench.editing.merge_outside_changes()
        await until(pilot, lambda: "! Changed outside to theirs" in screen_text(app))
        assert not app.workbench.editing.conflicts
        await pilot.press(*"mt")
        assert app.focused.text == "himmt"
        await pilot.press(*keys)
        await until(pilot, lambda: app.focused is pane(app))
        data["eval_cases"][0]["conversation"][0]["final_response"]["parts"][0]["text"] = answer
        assert app.workbench.editing.data(path) == data


async def test_a_field_stays_on_its_line_when_the_page_scrolls(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(80, 18)) as pilot:
        await in_the_case(app, pilot)
        case = pane(app)
        field = case.query_one("#case-text")

        def is_in_place():
            return field.region.y == case.region.y + case.placed[-2].y - case.scroll_offset.y

        for _ in range(2):
            # The page is longer with the field than without.
            await pilot.press("G", "up", "enter")
            await until(pilot, lambda: case.scroll_offset.y == case.max_scroll_y)
            await until(pilot, is_in_place)
            assert "response     bye" in screen_text(app).splitlines()[field.region.y]
            await pilot.press("escape")
        await pilot.press("enter")
        case.scroll_relative(y=-3, animate=False)
        await until(pilot, is_in_place)


async def test_what_is_typed_on_once_the_field_was_closed_from_outside_is_no_command(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        path = app.workbench.sets.listed[0].path
        await edit(app, pilot, "turn", 1, "answer", 0)
        data = json.loads(path.read_text())
        del data["eval_cases"][0]["conversation"][1]
        path.write_text(json.dumps(data))
        await app.workbench.editing.merge_outside_changes()
        await until(pilot, lambda: app.focused is pane(app))
        await pilot.press(*"bodq")
        assert app.is_running
        assert app.workbench.editing.data(path) == data
        # Another key, and all is as ever.
        await pilot.press("down", "o")
        assert app.focused is not pane(app)


def stored_texts(app):
    stored = (app.workbench.agent.dir / ".evaltui" / "unsaved").glob("*.json")
    return [draft["text"] for file in stored if (draft := json.loads(file.read_text())["draft"])]


async def typed_and_killed(folder, *row, keys=(), paste=""):
    """A process that ends while somebody types in a field, or without a row in the JSON of the case."""
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        if row:
            await edit(app, pilot, *row)
        else:
            await pilot.press("f4")
            await until(pilot, lambda: isinstance(app.screen, RawScreen))
            app.focused.select_all()
        await pilot.press(*keys)
        if paste:
            app.post_message(events.Paste(paste))
        await until(pilot, lambda: draft_text(app) and stored_texts(app) == [draft_text(app)])
        text = draft_text(app)
        # The lock ends with the process; this one goes on.
        app.workbench.editing.open_file(app.workbench.sets.listed[0].path).recovery.lock.release()
        kept = {file: file.read_bytes() for file in (folder / ".evaltui" / "unsaved").iterdir()}
    for file, content in kept.items():
        file.write_bytes(content)
    return text


@pytest.mark.parametrize(
    ("row", "keys", "fixed", "field", "value"),
    [
        (ARG, (",",), ("backspace", "ctrl+j"), "room", {"a": 1}),
        ((*ARG[:5], 1), ("5",), ("6", "enter"), "level", 356),
    ],
    ids=["invalid", "valid"],
)
async def test_a_text_of_a_crash_goes_on_in_its_field(house, row, keys, fixed, field, value):
    text = await typed_and_killed(house, *row, keys=keys)
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "1 text not applied in dim: " in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.focused is not None and app.focused.id in ("case-line", "case-text"))
        assert app.focused.text == text
        await pilot.press(*fixed)
        assert args(app)[field] == value
        assert app.workbench.draft is None
        await until(pilot, lambda: not stored_texts(app))


async def test_the_json_of_a_crash_goes_on_in_its_dialog(house):
    text = await typed_and_killed(house, paste='{"n": [1,')
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await until(pilot, lambda: "1 text not applied in dim: {" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        assert app.focused.text == text
        # The case as it is comes back with an undo.
        await pilot.press("ctrl+z")
        await until(pilot, lambda: json.loads(app.focused.text)["eval_id"] == "dim")
        app.focused.select_all()
        app.post_message(events.Paste(text + '2],"eval_id":"dim"}'))
        await until(pilot, lambda: (draft_text(app) or "").endswith("}"))
        await pilot.press("ctrl+s")
        path = app.workbench.sets.listed[0].path
        await until(pilot, lambda: '"n"' in path.read_text())
        await until(pilot, lambda: not stored_texts(app))


async def test_quitting_asks_about_the_json_of_a_case(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        await pilot.press("x", "ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, UnsavedScreen))
        assert "typed, not in the case" in screen_text(app)
        assert "Typed in the open dialog" not in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        assert app.focused.text.startswith("x{")


async def changed_by_another_program(app, path):
    data = json.loads(path.read_text())
    data["eval_cases"][0]["conversation"][1]["final_response"]["parts"][0]["text"] = "elsewhere"
    path.write_text(json.dumps(data))
    await app.workbench.open()


def turns(app, path):
    return app.workbench.editing.data(path)["eval_cases"][0]["conversation"]


async def test_json_asks_before_it_replaces_a_change_made_elsewhere(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        path = app.workbench.sets.listed[0].path
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        app.focused.select_all()
        app.post_message(events.Paste('{"eval_id": "dim", "conversation": []}'))
        await until(pilot, lambda: draft_text(app))
        await changed_by_another_program(app, path)
        await pilot.press("ctrl+j")
        await until(pilot, lambda: "! The case was changed elsewhere" in screen_text(app))
        assert turns(app, path)[1]["final_response"]["parts"] == [{"text": "elsewhere"}]
        await pilot.press("ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        assert turns(app, path) == []
        assert app.workbench.draft is None


async def test_a_json_dialog_without_a_change_takes_none_back(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        path = app.workbench.sets.listed[0].path
        for key in ("ctrl+j", "escape"):
            await pilot.press("f4")
            await until(pilot, lambda: isinstance(app.screen, RawScreen))
            await changed_by_another_program(app, path)
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(app.screen, RawScreen))
            assert turns(app, path)[1]["final_response"]["parts"] == [{"text": "elsewhere"}]
            assert app.workbench.draft is None


async def test_the_first_key_that_cannot_be_journaled_is_told_of_until_it_can(house):
    in_the_way = house / ".evaltui"
    in_the_way.write_text("")
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        await edit(app, pilot, *ARG[:5], 1)
        await pilot.press("5")
        await until(pilot, lambda: "! No crash recovery: File exists   ctrl+s saves" in screen_text(app))
        in_the_way.unlink()
        await pilot.press("6")
        await until(pilot, lambda: "No crash recovery" not in screen_text(app))
