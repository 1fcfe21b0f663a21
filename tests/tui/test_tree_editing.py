"""The list of cases as a place to work: keys, questions, what is shown of it, and ten thousand cases."""

import json

import pytest
from pilots import in_panes, screen_lines, screen_text, turn, until, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.cases.view import CaseTree
from evaltui.tui.dialogs.details import ConvertScreen
from evaltui.tui.dialogs.prompt import PromptScreen
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

NARROW, MEDIUM = (80, 24), (110, 30)
ECHO = "def root_agent(message, session):\n    return message\n"


@pytest.fixture
def parrot(write_agent):
    folder = write_agent(ECHO, name="parrot")
    write_cases(folder, "more", {"sun": [turn("sunshine", "x")], "rain": [turn("rainfall", "x")]})
    cases = {name: [turn(f"say {name}", name)] for name in ("one", "two", "three")}
    write_cases(folder, "talk", cases)
    return folder


async def started(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.sets.listed)


def ids(app, name):
    entry = next(entry for entry in app.workbench.sets.listed if entry.path.name.startswith(name))
    return [case.eval_id for case in entry.cases]


def line_with(app, text):
    return next(line for line in in_panes(app) if text in line)


def row_of(app, text):
    return next(number for number, line in enumerate(screen_lines(app)) if text in line)


def select(app, name, eval_id=None):
    path = next(entry.path for entry in app.workbench.sets.listed if entry.path.name.startswith(name))
    app.workbench.navigation.select(Selection(path.name, eval_id))


async def at(app, pilot, name, eval_id=None):
    """The list shows what is selected."""
    select(app, name, eval_id)
    tree = app.screen.query_one(CaseTree)
    await until(pilot, lambda: tree._selection_at(tree.cursor) == app.workbench.navigation.selection)


async def test_marked_cases_are_shown_and_counted_and_moved_to_another_set(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=MEDIUM) as pilot:
        await started(app, pilot)
        await at(app, pilot, "talk", "one")
        await pilot.press("v", "v")
        await until(pilot, lambda: "2 marked  5 ─╯" in screen_text(app))
        assert line_with(app, "○ one").startswith(" ◆ ○ one")
        assert app.workbench.navigation.selection.eval_id == "three"
        await pilot.press("X")
        await until(pilot, lambda: line_with(app, "○ one").startswith("   ○ one  cut"))
        await at(app, pilot, "more", "sun")
        await pilot.press("P")
        await until(pilot, lambda: ids(app, "more") == ["sun", "one", "two", "rain"])
        assert ids(app, "talk") == ["three"]
        await until(pilot, lambda: "▾ more ●" in screen_text(app))
        assert "○ one ●" in screen_text(app)
        assert "○ sun ●" not in screen_text(app)
        await pilot.press("u")
        await until(pilot, lambda: ids(app, "talk") == ["one", "two", "three"])
        await until(pilot, lambda: "●" not in screen_text(app))
        assert app.workbench.navigation.selection.eval_id == "sun"


async def test_run_case_runs_every_marked_case(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=MEDIUM) as pilot:
        await started(app, pilot)
        await at(app, pilot, "talk", "one")
        await pilot.press("v", "v", "r")
        await until(pilot, lambda: "✗ one" in screen_text(app) and "✗ two" in screen_text(app))
        assert "○ three" in screen_text(app)


async def test_a_set_marks_all_its_cases_and_a_click_with_ctrl_one(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        await at(app, pilot, "talk")
        await pilot.press("v")
        await until(pilot, lambda: " 3 marked " in screen_lines(app)[1])
        await pilot.press("v")
        await until(pilot, lambda: " marked " not in screen_lines(app)[1])
        await pilot.click(offset=(6, row_of(app, "○ two")), control=True)
        await until(pilot, lambda: " 1 marked " in screen_lines(app)[1])
        assert app.workbench.navigation.selection.eval_id == "two"
        await pilot.press("d")
        await until(pilot, lambda: ids(app, "talk") == ["one", "two", "two_2", "three"])
        assert not app.workbench.navigation.marking.marked


async def test_deleting_asks_nothing_and_undo_brings_back(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        await at(app, pilot, "talk", "two")
        await pilot.press("D")
        await until(pilot, lambda: "Deleted two   u undo" in screen_text(app))
        assert ids(app, "talk") == ["one", "three"]
        await pilot.press("u", "K")
        await until(pilot, lambda: ids(app, "talk") == ["two", "one", "three"])
        await pilot.press("shift+down", "J")
        await until(pilot, lambda: ids(app, "talk") == ["one", "three", "two"])
        await until(pilot, lambda: line_with(app, "two").startswith("▌  ○ two"))


async def test_tags_are_typed_behind_those_that_there_are(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=MEDIUM) as pilot:
        await started(app, pilot)
        await at(app, pilot, "talk", "one")
        await pilot.press("v", "v", "number_sign", *"smoke")
        await until(pilot, lambda: "# Tag case  2 cases" in screen_text(app))
        await pilot.press("enter", "escape")
        await until(pilot, lambda: line_with(app, "○ two").startswith("   ○ two  #smoke"))
        await at(app, pilot, "talk", "one")
        await pilot.press("number_sign", *"a*")
        await until(pilot, lambda: "! a* must have no space" in screen_text(app))
        await pilot.press("backspace", "enter")
        await until(pilot, lambda: "○ one  #smoke  #a" in screen_text(app))
        assert "tags         smoke a" in screen_text(app)
        await pilot.press(*"/#a", "enter")
        await until(pilot, lambda: "○ two" not in screen_text(app))
        assert "1 of 5" in screen_text(app)


async def test_a_question_can_be_answered_with_the_mouse(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        await at(app, pilot, "talk")
        await pilot.press("f2", *"speech")
        await until(pilot, lambda: "The file name stays talk.evalset.json" in screen_text(app))
        line = line_with(app, "enter apply")
        await pilot.click(offset=(line.index("apply"), row_of(app, "enter apply")))
        await until(pilot, lambda: "▾ speech" in screen_text(app))
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.click(offset=(1, 22))
        await until(pilot, lambda: not isinstance(app.screen, PromptScreen))


async def test_from_no_set_at_all_to_a_case(write_agent):
    folder = write_agent(ECHO, name="parrot")
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        await pilot.press("1")
        await until(pilot, lambda: "o   New case" in screen_text(app))
        await pilot.press("o")
        await until(pilot, lambda: "for the first case" in screen_text(app))
        await pilot.press(*"my-set")
        await until(pilot, lambda: "! A set id has letters" in screen_text(app))
        await pilot.press("backspace", "backspace", "backspace", "backspace", "enter")
        await until(pilot, lambda: ids(app, "my") == ["case_1"])
        await until(pilot, lambda: app.focused.id == "case-text")
        await pilot.press("escape", "1")
        await until(pilot, lambda: "▾ my ●  new" in screen_text(app))
        assert "○ case_1 ●" in screen_text(app)
        assert not (folder / "my.evalset.json").exists()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: (folder / "my.evalset.json").exists())
        await until(pilot, lambda: "▾ my  " in screen_text(app) and "●" not in screen_text(app))


async def test_the_first_case_is_edited_however_late_the_screen_is_drawn(write_agent, monkeypatch):
    app = WorkbenchApp(Workbench(write_agent(ECHO, name="parrot")))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "An empty case" in screen_text(app))
        await pilot.press("o", *"my")
        main = app.screen_stack[0]
        monkeypatch.setattr(main, "draw", lambda: None)
        await pilot.press("enter")
        await until(pilot, lambda: ids(app, "my") == ["case_1"])
        monkeypatch.undo()
        main.draw_soon()
        await until(pilot, lambda: "id           case_1" in screen_text(app))
        assert app.focused.id == "case-text"


async def test_the_filter_shows_what_can_be_typed_and_what_it_does_not_understand(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=MEDIUM) as pilot:
        await started(app, pilot)
        await pilot.press("slash")
        await until(pilot, lambda: "fail tool:book_hotel" in screen_text(app))
        assert "a word   pass   tool:x" in screen_text(app)
        await pilot.press(*"score<high")
        await until(pilot, lambda: "! score<high needs a" in screen_text(app))
        assert "number, e.g. score<0.8" in screen_text(app)
        await pilot.press("escape", "slash", *"id:t* -id:two", "enter")
        await until(pilot, lambda: "1 of 5 ─╯" in screen_text(app))
        before = app.workbench.sets.workspace
        await pilot.press("f5")
        await until(pilot, lambda: app.workbench.sets.workspace is not before)
        await until(pilot, lambda: "1 of 5 ─╯" in screen_text(app))
        assert "id:t* -id:two" in screen_text(app)
        await pilot.press("o")
        await until(pilot, lambda: "○ case_4 ●" in screen_text(app))


async def test_an_old_file_with_errors_says_what_to_mend(parrot):
    (parrot / "older.test.json").write_text(json.dumps([{"query": 3, "expected_tool_use": []}]))
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        await at(app, pilot, "older")
        await pilot.press("i")
        await until(pilot, lambda: "Fix these problems before" in screen_text(app))
        assert "write file" not in screen_text(app)
        await pilot.press("enter", "down", "escape")
        await until(pilot, lambda: not isinstance(app.screen, ConvertScreen))
