"""What cannot become a case yet is told of, kept where it belongs, and asked about when leaving."""

import json

import pytest
from pilots import screen_text, turn, until, write_cases
from textual import events
from textual.widgets import Input

from evaltui.core.model.case_id import CaseId
from evaltui.documents.editing.json_paths import put_field
from evaltui.documents.style import laid_out
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.screens.details import RawScreen
from evaltui.tui.screens.merge_conflict import MergeConflictScreen
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.tui.screens.unsaved import UnsavedScreen
from evaltui.workbench.state import Selection
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


def unapplied(app):
    return [one.text for one in app.workbench.editing.unapplied.now()]


async def test_a_text_that_is_in_no_case_is_told_of_when_saving_and_asked_about_when_leaving(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        await edit(app, pilot, *ARG)
        await pilot.press(",", "ctrl+s")
        await until(pilot, lambda: "Not applied: " in screen_text(app))
        await until(pilot, lambda: stored_texts(app) == unapplied(app))
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, UnsavedScreen))
        await pilot.press("escape", "alt+1")
        assert len(unapplied(app)) == 1
        await pilot.press("q")
        await until(pilot, lambda: "typed, not in the case" in screen_text(app))
        # All is saved that can be; that one is shown, and nobody leaves.
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.screen_stack[0])
        assert len(unapplied(app)) == 1
        await edit(app, pilot, *ARG)
        await pilot.press("backspace", "escape", "q")
        await until(pilot, lambda: not app.is_running)


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


@pytest.mark.parametrize("where", ["turn moved", "case renamed", "case moved away", "deleted and back"])
async def test_a_text_that_is_in_no_case_goes_where_its_place_goes(house, where):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        path = app.workbench.sets.listed[0].path
        await edit(app, pilot, *ARG)
        await pilot.press(",", "alt+1", "2")
        (left,) = unapplied(app)
        row = ARG
        if where == "turn moved":
            pane(app).move_to_id(("turn", 0))
            await pilot.press("J")
            row = ("turn", 1, *ARG[2:])
        elif where == "case renamed":
            await pilot.press("1", "f2")
            await until(pilot, lambda: isinstance(app.screen, PromptScreen))
            await pilot.press("2", "enter")
            await until(pilot, lambda: app.workbench.navigation.selection == Selection(path.name, "2"))
        elif where == "case moved away":
            other = write_cases(house, "more", {"one": []})
            await app.workbench.open()
            app.workbench.navigation.select(Selection(path.name, "dim"))
            await pilot.press("1", "X")
            app.workbench.navigation.select(Selection(other.name))
            await pilot.press("P")
            await until(
                pilot, lambda: app.workbench.editing.unapplied.now()[0].case == CaseId(other.name, "dim")
            )
            app.workbench.navigation.select(Selection(other.name, "dim"))
        else:
            pane(app).move_to_id(("turn", 0))
            await pilot.press("delete")
            assert unapplied(app) == []
            await pilot.press("u")
        assert unapplied(app) == [left]
        await pilot.press("2")
        await edit(app, pilot, *row)
        assert app.focused.text == left
        await pilot.press("backspace", "escape")
        assert unapplied(app) == []


async def test_escape_takes_back_what_was_typed_in_its_field_and_no_other_step(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        editing, path = app.workbench.editing, app.workbench.sets.listed[0].path
        await edit(app, pilot, *ARG[:5], 1)
        await pilot.press("5")
        assert args(app)["level"] == 35
        # Something else is done meanwhile.
        data = json.loads(path.read_text())
        data["eval_cases"][1]["note"] = "theirs"
        path.write_text(json.dumps(data))
        await editing.look_outside()
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


async def test_nobody_is_asked_about_two_versions_while_typing(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        path = app.workbench.sets.listed[0].path
        await edit(app, pilot, "turn", 0, "answer", 0)
        await pilot.press("m")
        data = json.loads(path.read_text())
        data["eval_cases"][0]["conversation"][0]["final_response"]["parts"][0]["text"] = "theirs"
        path.write_text(json.dumps(data))
        await app.workbench.editing.look_outside()
        assert app.workbench.editing.conflicts
        await pilot.press(*"mt")
        assert app.screen is app.screen_stack[0]
        assert app.focused.text == "himmt"
        await pilot.press("ctrl+j")
        await until(pilot, lambda: isinstance(app.screen, MergeConflictScreen))


async def test_nobody_is_asked_about_two_versions_once_what_was_typed_is_taken_back(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        editing, path = app.workbench.editing, app.workbench.sets.listed[0].path
        await edit(app, pilot, "turn", 0, "call", 0, "arg", 1)
        await pilot.press("9")
        data = json.loads(path.read_text())
        call = data["eval_cases"][0]["conversation"][0]["intermediate_data"]["tool_uses"][0]
        call["args"]["level"] = 5
        path.write_text(json.dumps(data))
        await editing.look_outside()
        assert editing.conflicts
        await pilot.press("escape")
        await until(pilot, lambda: "level  5" in screen_text(app))
        assert len(app.screen_stack) == 1
        assert not editing.conflicts
        assert not editing.unsaved()


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
        await app.workbench.editing.look_outside()
        await until(pilot, lambda: app.focused is pane(app))
        await pilot.press(*"bodq")
        assert app.is_running
        assert app.workbench.editing.data(path) == data
        # Another key, and all is as ever.
        await pilot.press("down", "o")
        assert app.focused is not pane(app)


def laid_out_case(path):
    return laid_out(json.dumps(json.loads(path.read_text())["eval_cases"][0]))


def stored_texts(app):
    stored = (app.workbench.agent.dir / ".evaltui" / "unsaved").glob("*.json")
    return [draft["text"] for file in stored for draft in json.loads(file.read_text())["drafts"]]


async def test_unfinished_texts_of_a_crash_go_on_where_they_were_typed(house):
    before = Workbench(house)
    await before.open()
    (path,) = (one.path for one in before.sets.listed)
    case = ("eval_cases", 0)
    before.editing.data(path)
    call = (*case, "conversation", 0, "intermediate_data", "tool_uses", 0, "args", "room")
    unapplied_texts = before.editing.unapplied
    base = '{\n  "a": 1\n}'
    unapplied_texts.keep(path.name, call, "turn/call/arg value", '{"a": 1,', "not JSON", base)
    unapplied_texts.keep(path.name, case, "raw", '{"n": [1,', "draft", laid_out_case(path))
    before.editing.write_drafts()
    # The lock ends with the process; this one goes on.
    before.editing.open_file(path).recovery.lock.release()
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await until(pilot, lambda: "2 texts not applied in dim: {" in screen_text(app))
        await pilot.press("enter", "2")
        await until(pilot, lambda: screen_text(app).count("Not applied: {") == 2)
        await edit(app, pilot, *ARG)
        assert app.focused.text == '{"a": 1,'
        await pilot.press("backspace", "}", "ctrl+j", "f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        assert app.focused.text == '{"n": [1,'
        await pilot.press("end", *'2],"eval_id":"dim"}', "ctrl+s")
        await until(pilot, lambda: '"n"' in path.read_text())
        assert unapplied(app) == []
        await until(pilot, lambda: not stored_texts(app))


async def test_a_long_draft_of_a_case_stays_when_another_case_is_selected(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        case = app.focused.text
        app.post_message(events.Paste(' "draft": ["' + "lorem ipsum " * 45))
        await until(pilot, lambda: len(app.focused.text) > len(case) + 500)
        draft = app.focused.text
        await until(pilot, lambda: stored_texts(app) == [draft])
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, UnsavedScreen))
        assert "typed, not in the case" in screen_text(app)
        assert "Typed in the open dialog" not in screen_text(app)
        await pilot.press("escape", "escape", "1", "down")
        await until(pilot, lambda: app.workbench.navigation.selection.case.eval_id == "other")
        assert unapplied(app) == [draft]
        await pilot.press("up", "2", "f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        assert app.focused.text == draft
        # The case as it is comes back with an undo, and the draft is gone.
        await pilot.press("ctrl+z")
        assert app.focused.text == case
        await pilot.press("escape")
        await until(pilot, lambda: unapplied(app) == [])


async def changed_by_another_program(app, path):
    data = json.loads(path.read_text())
    data["eval_cases"][0]["conversation"][1]["final_response"]["parts"][0]["text"] = "elsewhere"
    path.write_text(json.dumps(data))
    await app.workbench.open()


async def changed_in_a_field(app, path):
    def change(eval_set):
        place = ("eval_cases", 0, "conversation", 1, "final_response", "parts", 0, "text")
        return put_field(eval_set.data, place, "elsewhere")

    assert app.workbench.editing.do("change the answer", path, change)


async def draft_of_another_session(folder):
    before = Workbench(folder)
    await before.open()
    (path,) = (one.path for one in before.sets.listed)
    before.editing.data(path)
    text, base = '{"eval_id": "dim", "conversation": []}', laid_out_case(path)
    before.editing.unapplied.keep(path.name, ("eval_cases", 0), "raw", text, "draft", base)
    before.editing.write_drafts()
    before.editing.open_file(path).recovery.lock.release()
    return path


def turns(app, path):
    return app.workbench.editing.data(path)["eval_cases"][0]["conversation"]


@pytest.mark.parametrize("change", [changed_by_another_program, changed_in_a_field])
async def test_a_recovered_draft_asks_before_it_replaces_a_change_made_elsewhere(house, change):
    path = await draft_of_another_session(house)
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await until(pilot, lambda: "1 text not applied in dim: {" in screen_text(app))
        await pilot.press("enter", "2")
        await until(pilot, lambda: "Not applied: {" in screen_text(app))
        await change(app, path)
        for _ in range(2):
            await pilot.press("f4")
            await until(pilot, lambda: isinstance(app.screen, RawScreen))
            await pilot.press("ctrl+j")
            await until(pilot, lambda: "! The case was changed elsewhere" in screen_text(app))
            assert turns(app, path)[1]["final_response"]["parts"] == [{"text": "elsewhere"}]
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        await pilot.press("ctrl+j", "ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        assert turns(app, path) == []
        assert unapplied(app) == []


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
            assert unapplied(app) == []


async def test_a_text_kept_for_a_field_says_what_was_changed_there_elsewhere(house):
    app = WorkbenchApp(Workbench(house))
    async with app.run_test(size=(150, 40)) as pilot:
        await in_the_case(app, pilot)
        await edit(app, pilot, *ARG)
        await pilot.press(",")
        await until(pilot, lambda: len(unapplied(app)) == 1)
        await pilot.press("alt+1")
        path = app.workbench.sets.listed[0].path
        data = json.loads(path.read_text())
        call = data["eval_cases"][0]["conversation"][0]["intermediate_data"]["tool_uses"][0]
        call["args"]["room"] = {"a": 2}
        path.write_text(json.dumps(data))
        await app.workbench.open()
        await pilot.press("2")
        await edit(app, pilot, *ARG)
        await until(pilot, lambda: "Changed outside to {" in screen_text(app))
        await pilot.press("escape")
        assert args(app)["room"] == {"a": 2}
        assert unapplied(app) == []


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
