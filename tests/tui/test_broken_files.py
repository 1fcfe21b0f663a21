"""A file that is no JSON is mended as text: shown with its place, edited, undone, saved, recovered."""

import json
from pathlib import Path

import pytest
from pilots import screen_text, turn, until, write_cases

from evaltui.documents.merge import Choices
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.dialogs.details import RawScreen
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

SIZE = (120, 40)
ECHO = "def root_agent(message, session):\n    return message\n"


@pytest.fixture
def broken(write_agent):
    """A set without a comma on its third line, with the line ends and the mark that it is to keep."""
    folder = write_agent(ECHO, name="house")
    path = write_cases(folder, "lights", {"dim": [turn("hello", "hi")], "off": [turn("bye", "bye")]})
    text = json.dumps(json.loads(path.read_text()), indent=2)
    path.write_bytes(("\ufeff" + text.replace("[\n", "[ oops\n", 1).replace("\n", "\r\n")).encode())
    return path


def whole(text):
    return text.replace(b" oops", b"")


async def in_the_text(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.sets.listed)
    await pilot.press("1", "f4")
    await until(pilot, lambda: isinstance(app.screen, RawScreen))


def mend(app):
    """Takes the word out that is no JSON."""
    app.focused.text = app.focused.text.replace(" xoops", "").replace(" oops", "")


async def test_a_set_that_is_no_json_is_mended_as_text_and_saved(broken):
    before = broken.read_bytes()
    app = WorkbenchApp(Workbench(broken.parent))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.workbench.sets.listed)
        await pilot.press("2")
        await until(pilot, lambda: "f4  Edit JSON" in screen_text(app))
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, RawScreen))
        await until(pilot, lambda: "! line 3, column 19: " in screen_text(app))
        assert "JSON of lights.evalset.json" in screen_text(app)
        assert app.focused.cursor_location == (2, 18)
        await pilot.press("x", "ctrl+j")
        await until(pilot, lambda: app.workbench.draft is not None and app.workbench.draft.problem)
        assert isinstance(app.screen, RawScreen)
        mend(app)
        await pilot.press("ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        await until(pilot, lambda: "dim" in screen_text(app) and "off" in screen_text(app))
        bench = app.workbench
        assert broken.read_bytes() == before
        assert bench.editing.unsaved() == [broken]
        bench.editing.undo()
        await until(pilot, lambda: "f4  Edit JSON" in screen_text(app))
        assert not bench.editing.unsaved()
        bench.editing.redo()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: broken.read_bytes() == whole(before))
        await until(pilot, lambda: not bench.editing.unsaved())
        assert bench.editing.refuses_to_edit(broken) is None


async def killed(app):
    """The recovery files that a process which is gone would leave behind."""
    bench = app.workbench
    (path,) = (eval_set.path for eval_set in bench.sets.listed)
    bench.editing.open_file(path).recovery.lock.release()
    return {file: file.read_bytes() for file in (path.parent / ".evaltui" / "unsaved").iterdir()}


@pytest.mark.parametrize("applied", [False, True], ids=["typed", "applied"])
async def test_what_was_typed_and_applied_in_such_a_text_survives_a_crash(broken, applied):
    app = WorkbenchApp(Workbench(broken.parent))
    unsaved = broken.parent / ".evaltui" / "unsaved"
    async with app.run_test(size=SIZE) as pilot:
        await in_the_text(app, pilot)
        mend(app)
        if applied:
            await pilot.press("ctrl+j")
        await until(pilot, lambda: any(unsaved.glob("*.json")))
        left = await killed(app)
    for file, content in left.items():
        file.write_bytes(content)
    app = WorkbenchApp(Workbench(broken.parent))
    async with app.run_test(size=SIZE) as pilot:
        says = "1 edit: edit the JSON of" if applied else "1 text not applied in lights.evalset.json: {"
        await until(pilot, lambda: says in screen_text(app))
        await pilot.press("enter")
        if not applied:
            await until(pilot, lambda: isinstance(app.screen, RawScreen))
            await pilot.press("ctrl+j")
        await until(pilot, lambda: app.workbench.editing.unsaved() == [broken])
        assert [case.eval_id for case in app.workbench.sets.listed[0].cases] == ["dim", "off"]


async def test_an_outside_change_of_a_mended_text_is_only_merged_whole(broken):
    before = broken.read_bytes()
    bench = Workbench(broken.parent)
    await bench.open()
    draft = bench.drafting.open_file(broken)
    bench.drafting.type(draft.text.replace(" oops", ""))
    assert bench.drafting.apply()
    broken.write_bytes(whole(before).replace(b"dim", b"bright"))
    assert not await bench.editing.save_all()
    (clash,) = bench.editing.conflicts
    assert clash.conflict.reason == "the common base is not valid JSON"
    assert await bench.editing.settle(clash, Choices(), "mine")
    assert broken.read_bytes() == whole(before)
    # From here on it is a set as any other.
    case = '{"eval_id": "low"}'
    assert bench.editing.do("rename", broken, lambda eval_set: eval_set.replace_case(0, "low", case))
    bench.editing.undo()
    bench.editing.undo()
    assert bench.sets.listed[0].format is None
    await bench.close()


async def test_a_text_that_another_program_mends_is_asked_about(broken):
    bench = Workbench(broken.parent)
    await bench.open()
    draft = bench.drafting.open_file(broken)
    bench.drafting.type("{}")
    broken.write_bytes(whole(broken.read_bytes()))
    await bench.open()
    assert not bench.drafting.apply()
    assert bench.draft.problem.startswith("The file was changed elsewhere   ctrl+j replace it")
    assert bench.drafting.apply()
    assert bench.editing.whole(broken).value == {}
    assert draft.problem == ""
    bench.editing.undo()
    assert not bench.editing.unsaved()
    assert [case.eval_id for case in bench.sets.listed[0].cases] == ["dim", "off"]
    await bench.close()


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        ('{"eval_cases": [], "eval_cases": [{"eval_id": "a", "conversation": []}]}', ["a"]),
        ('{"eval_set_id": "s", "cases": []}', []),
        ('[{"query": "hello", "reference": "hi"}]', ["lights"]),
        ("[]", []),
        ('"a"', []),
        ("", []),
    ],
)
async def test_a_file_that_is_not_cut_into_cases_is_edited_as_text(broken, text, cases):
    broken.write_text(text)
    bench = Workbench(broken.parent)
    await bench.open()
    assert [case.eval_id for case in bench.sets.listed[0].cases] == cases
    assert bench.editing.refuses_whole(broken) is None
    bench.drafting.open_file(broken)
    bench.drafting.type("[1, 2")
    assert not bench.drafting.apply()
    assert bench.draft.problem.startswith("line 1, column 6: ")
    bench.drafting.type('{"eval_set_id": "s", "eval_cases": [{"eval_id": "b", "conversation": []}]}')
    assert bench.drafting.apply()
    assert [case.eval_id for case in bench.sets.listed[0].cases] == ["b"]
    assert bench.editing.refuses_whole(broken) == "No case selected"
    bench.editing.undo()
    assert [case.eval_id for case in bench.sets.listed[0].cases] == cases
    assert bench.editing.refuses_whole(broken) is None
    bench.editing.redo()
    assert await bench.editing.save_all()
    assert json.loads(broken.read_text())["eval_cases"][0]["eval_id"] == "b"
    await bench.close()


async def test_a_file_that_is_no_text_says_what_to_do(broken):
    broken.write_bytes(b'{"eval_set_id": "\xff"}')
    bench = Workbench(broken.parent)
    await bench.open()
    assert bench.editing.refuses_whole(broken).endswith("save the file as UTF-8")
    await bench.close()


async def test_the_json_of_a_case_with_a_twin_is_edited(broken):
    case = '{"eval_id": "a", "conversation": []}'
    broken.write_text(f'{{"eval_set_id": "s", "eval_cases": [{case}, {case}]}}')
    bench = Workbench(broken.parent)
    await bench.open()
    bench.sets.open(broken)
    bench.navigation.select(Selection(broken.name, "a"))
    for text in ('{"eval_id": "a", "conversation": [], "note": 1}', '{"eval_id": "b", "conversation": []}'):
        bench.selected.follow()
        assert bench.drafting.open((), "json", bench.selected.json_field(()), text)
        assert bench.drafting.apply()
    assert [case.eval_id for case in bench.sets.listed[0].cases] == ["b", "a"]
    await bench.close()


CONFIG = '{\r\n  "criteria": {"response_match_score": 0.5},, "own": 1.50\r\n}\r\n'


@pytest.fixture
def broken_config(write_agent):
    """A config with a comma too many on its second line, beside a set."""
    folder = write_agent(ECHO, name="house")
    write_cases(folder, "lights", {"dim": [turn("hello", "hi")]})
    path = folder / "test_config.json"
    path.write_bytes(CONFIG.encode())
    return path


async def in_the_config(app, pilot):
    await until(pilot, lambda: app.workbench.sets.listed)
    await pilot.press("m")
    await until(pilot, lambda: "test_config.json is unreadable: " in screen_text(app))
    await until(pilot, lambda: "f4  Edit JSON" in screen_text(app))
    await pilot.press("f4")
    await until(pilot, lambda: isinstance(app.screen, RawScreen))
    assert "JSON of test_config.json" in screen_text(app)


def without_comma(app):
    app.focused.text = app.focused.text.replace(",x,", ",").replace(",,", ",")


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
async def test_a_config_that_is_no_json_is_mended_as_text_and_saved(broken_config, monkeypatch, relative):
    monkeypatch.chdir(broken_config.parent.parent)
    app = WorkbenchApp(Workbench(Path("house") if relative else broken_config.parent))
    async with app.run_test(size=SIZE) as pilot:
        await in_the_config(app, pilot)
        await until(pilot, lambda: "! line 2, column 45: " in screen_text(app))
        assert app.focused.cursor_location == (1, 44)
        await pilot.press("ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        await pilot.press("f4", "x", "ctrl+j")
        await until(pilot, lambda: app.workbench.draft is not None and app.workbench.draft.problem)
        without_comma(app)
        await pilot.press("ctrl+j")
        await until(pilot, lambda: not isinstance(app.screen, RawScreen))
        await until(pilot, lambda: "In use" in screen_text(app))
        bench = app.workbench
        assert [path.name for path in bench.editing.unsaved()] == ["test_config.json"]
        await pilot.press("u")
        await until(pilot, lambda: "test_config.json is unreadable: " in screen_text(app))
        assert not bench.editing.unsaved()
        await pilot.press("U")
        await until(pilot, lambda: "In use" in screen_text(app))
        await pilot.press("right", "ctrl+s")
        await until(pilot, lambda: not bench.editing.unsaved())
        saved = CONFIG.replace(",,", ",").replace("0.5", "0.51")
        assert broken_config.read_bytes() == saved.encode()
        assert not bench.sets.broken("lights.evalset.json")


@pytest.mark.parametrize("applied", [False, True], ids=["typed", "applied"])
async def test_what_was_typed_in_the_text_of_a_config_survives_a_crash(broken_config, applied):
    app = WorkbenchApp(Workbench(broken_config.parent))
    unsaved = broken_config.parent / ".evaltui" / "unsaved"
    async with app.run_test(size=SIZE) as pilot:
        await in_the_config(app, pilot)
        without_comma(app)
        if applied:
            await pilot.press("ctrl+j")
        await until(pilot, lambda: any(unsaved.glob("*.json")))
        app.workbench.editing.open_file(broken_config).recovery.lock.release()
        left = {file: file.read_bytes() for file in unsaved.iterdir()}
    for file, content in left.items():
        file.write_bytes(content)
    app = WorkbenchApp(Workbench(broken_config.parent))
    async with app.run_test(size=SIZE) as pilot:
        says = "1 edit: edit the JSON of" if applied else "1 text not applied in test_config.json: {"
        await until(pilot, lambda: says in screen_text(app))
        await pilot.press("enter")
        if not applied:
            await until(pilot, lambda: isinstance(app.screen, RawScreen))
            await pilot.press("ctrl+j")
        await until(pilot, lambda: app.workbench.editing.unsaved() == [broken_config])
        assert app.workbench.navigation.selection.case is not None
        app.workbench.editing.undo()
        assert not app.workbench.editing.unsaved()


async def test_an_outside_change_of_a_mended_config_is_asked_about(broken_config):
    bench = Workbench(broken_config.parent)
    await bench.open()
    draft = bench.drafting.open_file(broken_config)
    bench.drafting.type(draft.text.replace(",,", ","))
    assert bench.drafting.apply()
    broken_config.write_bytes(CONFIG.replace(",,", ",").replace("0.5", "0.7").encode())
    assert not await bench.editing.save_all()
    (clash,) = bench.editing.conflicts
    assert await bench.editing.settle(clash, Choices(), "mine")
    assert broken_config.read_bytes() == CONFIG.replace(",,", ",").encode()
    await bench.close()
