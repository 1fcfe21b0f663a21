"""The first screen, driven by keys, on real agents."""

import re
import sys
from pathlib import Path

import pytest
from pilots import focused_tab, in_panes, screen_lines, screen_text, turn, until, until_ran, write_cases

from evaltui.core.model.case_id import CaseId
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.screens.keys import HelpScreen
from evaltui.workbench.state import Selection, Stage
from evaltui.workbench.workbench import Workbench

SAMPLES = Path(__file__).parents[2] / "sample_agents"
NARROW, WIDE, VAST = (80, 24), (160, 45), (200, 50)

HOUSE = """
    import time
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        while message == "wait for ever":
            time.sleep(0.01)
        if message == "crash":
            raise ValueError("[/boom] \\x1b[2J not today")
        if message == "light off":
            yield tool_call("set_light", {"room": "Kitchen", "on": "no"})
            yield tool_call("notify", {})
        yield text("The kitchen light is now off.")
"""
LIGHT = {"name": "set_light", "args": {"room": "Kitchen", "on": False}}


@pytest.fixture
def house(write_agent):
    folder = write_agent(HOUSE, name="house")
    off = turn("light off", "The kitchen light is off.", LIGHT)
    write_cases(
        folder,
        "lights",
        {
            "dark": [turn("hello", "The kitchen light is now off."), off],
            "fine": [turn("hello", "The kitchen light is now off.")],
            "crashes": [turn("crash", "")],
            "endless": [turn("wait for ever", "")],
        },
    )
    return folder


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch):
    for name in ("NO_COLOR", "COLORTERM", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)


def app_for(folder, set_name=None):
    return WorkbenchApp(Workbench(folder), set_name)


async def ready(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None)


async def running(app, pilot):
    await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.running)


async def finished(app, pilot):
    await until_ran(pilot, lambda: app.workbench.runs.current is not None and app.workbench.runs.current.over)


async def test_narrow_shows_one_pane_at_a_time(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        await until(pilot, lambda: "▌  ○ dark" in screen_text(app))
        tabs = screen_lines(app)[1]
        assert focused_tab(app) == "1 Cases"
        assert screen_lines(app)[2] == "━" * 80
        for tab in ("1 Cases", "2 Case", "3 Result ○", "4 Chat", "5 Trace", "6 Console"):
            assert tab in tabs
        await pilot.press("enter")
        await until(pilot, lambda: re.search("Turn 1 +no calls expected", screen_text(app)))
        assert "○ fine" not in screen_text(app)
        await pilot.press("3")
        await until(pilot, lambda: "Run case" in screen_text(app))
        await pilot.press("1")
        await until(pilot, lambda: "○ fine" in screen_text(app))
        assert "Run case" not in screen_text(app)


async def test_a_result_says_why_first_and_then_everything(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        await pilot.press("r", "3")
        await finished(app, pilot)
        await until(pilot, lambda: "FAILED" in screen_text(app))
        await pilot.resize_terminal(80, 60)
        await until(pilot, lambda: "Informational metrics" in screen_text(app))
        lines = [line.strip() for line in screen_lines(app)]
        shown = "\n".join(lines)
        assert lines[3].startswith('✗ FAILED   Turn 2  set_light: on is "no" (string), expected false')
        (strip,) = (line for line in lines if line.startswith("✗ trajectory"))
        assert strip.startswith("✗ trajectory 0.50 ≥1.00  ✓ response 0.95")
        turns = shown.index("Turn 1 ✓  hello"), shown.index("Turn 2 ✗  light off")
        assert turns[0] < turns[1] < shown.index("≠ set_light") < shown.index(strip)
        args = [line.split() for line in lines if line.startswith(("−", "+"))]
        assert ["−", "on", "false", "expected", "boolean"] in args
        assert ["+", "on", '"no"', "actual", "string"] in args
        assert ["+", "notify", "unexpected", "call"] in args
        assert "~ The kitchen light is now off." in shown
        await pilot.press("y")
        assert "The kitchen light is {+now+} off." in app.clipboard
        assert screen_lines(app)[0].endswith("✗ 1  ○ 3")


async def test_wide_shows_both_panes_and_streams_results(house):
    app = app_for(house)
    async with app.run_test(size=WIDE) as pilot:
        await ready(app, pilot)
        await pilot.press("R")
        await until_ran(pilot, lambda: "3/4   1 in flight" in screen_text(app))

        await until_ran(pilot, lambda: re.search("◐ endless +turn 1 of 1", screen_text(app)))
        tree = [line[:36].rstrip() for line in in_panes(app)]
        assert "ctrl+c cancel run" in screen_lines(app)[-1]
        assert any(line.startswith("   ! crashes") and line.endswith("ValueError") for line in tree)
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: "wait for ever" in screen_text(app))
        await pilot.press("escape")
        assert app.workbench.runs.current.stage is Stage.RUNNING
        # It may be gone before the next look.
        said = []
        app.workbench.subscribe(lambda: said.append(app.workbench.notice and app.workbench.notice.text))
        await pilot.press("ctrl+c")
        await finished(app, pilot)
        assert "Cancelling… (force-stop in 3 s)" in said
        await until(
            pilot, lambda: "Run 1 cancelled after 3 of 4; finished results are kept" in screen_text(app)
        )
        await until(pilot, lambda: "▌  ○ endless" in [line[:36].rstrip() for line in in_panes(app)])


async def test_an_error_is_shown_with_its_place_and_nothing_of_it_is_obeyed(house):
    app = app_for(house)
    async with app.run_test(size=WIDE) as pilot:
        await ready(app, pilot)
        path = app.workbench.sets.listed[0].path
        app.workbench.navigation.select(Selection(path.name, "crashes"))
        await pilot.press("r")
        await finished(app, pilot)
        await until(pilot, lambda: "! ERROR" in screen_text(app))
        shown = screen_text(app)
        assert "ValueError: [/boom] \\x1b[2J not today" in shown
        assert "at agent.py:9 in root_agent" in shown
        assert "\x1b" not in shown


async def test_hostile_names_and_texts_are_shown_as_they_are(write_agent):
    evil = "[/x] [bold]b[/] \x1b[31mred\x07 \u202e list[int] 日本語"
    folder = write_agent("def root_agent(message, session):\n    return '[/] ' + message\n")
    write_cases(folder, "[b]set[/]", {evil: [turn(evil, evil, {"name": evil, "args": {evil: evil}})]})
    app = app_for(folder)
    async with app.run_test(size=VAST) as pilot:
        await ready(app, pilot)
        await pilot.press("r")
        await finished(app, pilot)
        await until(pilot, lambda: "✗ FAILED" in screen_text(app))
        shown = screen_text(app)
        assert "[b]set[/]" in shown
        assert "[/x] [bold]b[/] \\x1b[31mred\\x07" in shown
        assert not set("\x1b\x07\u202e") & set(shown)


async def test_turns_unfold_below_their_case_and_lead_to_their_place(house):
    app = app_for(house)
    async with app.run_test(size=WIDE) as pilot:
        await ready(app, pilot)
        await pilot.press("r")
        await finished(app, pilot)
        # Those of a selected case that fails are there; down leads on to the next case.
        await until(pilot, lambda: "✗ 2  light off" in screen_text(app))
        assert "✓ 1  hello" in screen_text(app)
        await pilot.press("down")
        assert app.workbench.navigation.selection.eval_id == "fine"
        await until(pilot, lambda: "✗ 2  light off" not in screen_text(app))
        await pilot.press("up")
        await until(pilot, lambda: "✗ 2  light off" in screen_text(app))
        await pilot.press("right", "down")
        assert app.workbench.navigation.selection.turn == 1
        await pilot.press("left", "left", "left", "left")
        assert app.workbench.navigation.selection == Selection(app.workbench.sets.listed[0].case_path)
        await until(
            pilot,
            lambda: (
                not any("○ fine" in line[:40] for line in screen_lines(app))
                and "▸ lights" in screen_text(app)
            ),
        )


async def test_failing_cases_are_reached_by_key_also_inside_a_folded_set(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        await pilot.press("f")
        await until(pilot, lambda: "Nothing run yet" in screen_text(app))
        await pilot.press("r")
        await finished(app, pilot)
        await pilot.press("home", "space")
        await until(pilot, lambda: "✗ dark" not in screen_text(app))
        await pilot.press("f")
        await until(pilot, lambda: "▌  ✗ dark" in screen_text(app))


async def test_help_lists_the_registry_and_closes(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await until(pilot, lambda: "New case" in screen_text(app))
        await pilot.press("R")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))
        assert app.workbench.runs.current is None


async def test_no_sets_says_where_was_looked_and_f5_looks_again(write_agent):
    folder = write_agent(HOUSE, name="house")
    (folder / "evals").mkdir()
    (folder / "evals" / "other.json").write_text('{"eval_cases": []}')
    app = app_for(folder)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "Create your first eval case" in screen_text(app))
        await pilot.press("1")
        await until(pilot, lambda: "No eval sets yet" in screen_text(app))
        assert "1 file under other names" in screen_text(app)
        assert "Searched for" in screen_text(app)
        await pilot.press("2")
        await until(pilot, lambda: focused_tab(app) == "Start")
        write_cases(folder, "lights", {"fine": [turn("hello", "x")]})
        await pilot.press("f5", "1")
        await until(pilot, lambda: "○ fine" in screen_text(app))


async def test_a_broken_set_is_a_node_that_says_so(house):
    (house / "torn.evalset.json").write_text('{"eval_set_id": "torn",\n', encoding="utf-8")
    app = app_for(house)
    async with app.run_test(size=VAST) as pilot:
        await ready(app, pilot)
        await until(pilot, lambda: "! torn  line 1: not valid JSON" in screen_text(app))
        await pilot.press("end")
        await until(pilot, lambda: "Cannot run: fix these first" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "Cannot run torn.evalset.json" in screen_text(app))
        assert app.workbench.runs.current is None


async def test_a_broken_agent_comes_first_and_its_sets_can_be_read(write_agent):
    folder = write_agent("import nonexistent_module\n")
    write_cases(folder, "lights", {"fine": [turn("hello", "x")], "other": [turn("what else", "y")]})
    app = app_for(folder)
    async with app.run_test(size=VAST) as pilot:
        await ready(app, pilot)
        await pilot.press("r")
        await finished(app, pilot)
        await until(pilot, lambda: "cannot be imported" in screen_lines(app)[0])
        assert "No module named 'nonexistent_module'" in screen_text(app)
        await pilot.press("down")
        await until(pilot, lambda: "what else" in screen_text(app))
        assert "No module named 'nonexistent_module'" in screen_text(app)


async def test_resizing_during_a_run_changes_the_layout(house):
    app = app_for(house, set_name="lights")
    async with app.run_test(size=WIDE) as pilot:
        await ready(app, pilot)
        app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, "endless"))
        await pilot.press("r")
        await running(app, pilot)
        for size in (NARROW, (40, 12), WIDE, NARROW):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: len(screen_lines(app)) == size[1])
            assert all(len(line) <= size[0] for line in screen_lines(app))
        await until(pilot, lambda: screen_lines(app)[1].startswith(" 1 Cases "))


async def test_quitting_cancels_the_run_first(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, "endless"))
        await pilot.press("r")
        await running(app, pilot)
        await pilot.press("q")
        await finished(app, pilot)
    assert app.workbench.runs.current.stage is Stage.CANCELLED
    assert app.return_code == 0


async def test_keys_pressed_before_anything_is_read_do_no_harm(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        for key in ("r", "s", "R", "f", "F", "space", "enter", "left", "right", "end", "escape"):
            await pilot.press(key)
        await pilot.press("1")
        await until(pilot, lambda: app.workbench.sets.workspace is not None and "lights" in screen_text(app))


async def test_an_unknown_set_is_wrong_use(house):
    app = app_for(house, set_name="ligths")
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.refusal)
    assert app.return_code == 2
    assert "Did you mean lights" in app.refusal


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_a_click_selects_and_hints_are_buttons(house, size):
    app = app_for(house)
    async with app.run_test(size=size) as pilot:
        await ready(app, pilot)
        await until(pilot, lambda: "○ fine" in screen_text(app))
        await pilot.click("#cases", offset=(5, 2))
        await until(pilot, lambda: app.workbench.navigation.selection.eval_id == "fine")
        await pilot.click("#footer", offset=(2, 0))
        await finished(app, pilot)
        path = app.workbench.sets.listed[0].path
        assert app.workbench.outcomes.status(CaseId(path.name, "fine")) == "PASSED"


async def test_the_sample_house_on_a_narrow_terminal():
    app = app_for(SAMPLES / "home_automation")
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        # Its Python is looked at by a process.
        await until_ran(pilot, lambda: "▌  ○ hello" in screen_text(app) and "Python" in screen_lines(app)[0])
        lines = screen_lines(app)
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        assert lines[0].split() == ["home_automation", "recordings", "off", "·", "Python", python, "○", "9"]
        assert lines[3].split() == ["/", "filter", "cases"]
        assert lines[5].split() == ["▾", "lights", "5"]
        assert lines[-2] == " No run yet   R runs all 9 cases"
        assert lines[-1] == " r run   s run set   R run all   o new case   c chat   / filter          ? help"
