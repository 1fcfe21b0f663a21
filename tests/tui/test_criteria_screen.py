"""The criteria screen as a user sees and works it."""

import json

import pytest
from fake_runs import FakeRuns, says
from pilots import screen_lines, screen_text, turn, until, until_ran, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.criteria.screen import CriteriaRows, CriteriaScreen
from evaltui.tui.dialogs.prompt import PromptScreen
from evaltui.workbench.workbench import Workbench

NARROW, WIDE = (80, 24), (160, 45)
ECHO = "def root_agent(message, session):\n    return message\n"
CONFIG = '{\n  "criteria": {\n    "response_match_score": 0.8\n  },\n  "own": 1\n}\n'


@pytest.fixture
def parrot(write_agent):
    folder = write_agent(ECHO, name="parrot")
    cases = {
        "fine": [turn("hello", "hello")],
        "half": [turn("good morning", "good evening")],
        "other": [turn("weather", "weather")],
    }
    write_cases(folder, "talk", cases)
    (folder / "test_config.json").write_text(CONFIG, encoding="utf-8")
    return folder


async def opened(app, pilot, *, run=False):
    """The criteria screen over the main one, after a run if that is wanted."""
    await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.sets.listed)
    if run:
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
    await until(pilot, lambda: app.workbench.navigation.file is not None)
    await pilot.press("m")
    await until(
        pilot,
        lambda: (
            isinstance(app.screen, CriteriaScreen)
            and app.screen.query(CriteriaRows)
            and app.screen.rows.current
        ),
    )
    return app.screen


def config_of(app, parrot):
    return app.workbench.editing.data(parrot / "test_config.json")


def first(app):
    """The line of the first metric, below the problems of the config."""
    return line_with(app, "response_match_score")


def line_with(app, text):
    lines = screen_lines(app)
    return next(number for number, line in enumerate(lines) if text in line)


async def test_the_slider_is_tried_on_the_last_run_without_saving(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        await opened(app, pilot, run=True)
        assert "✗ 2/3 pass" in screen_lines(app)[first(app)]
        await pilot.press("shift+left", "shift+left", "shift+left", "left")
        await until(pilot, lambda: "0.49 ●" in screen_lines(app)[first(app)])
        # Tried in the background.
        await until(pilot, lambda: "✓ 3/3 pass" in screen_lines(app)[first(app)])
        await until(pilot, lambda: "Outcomes   ✗ → ✓ 1" in screen_text(app))
        assert "✗ → ✓  half" in screen_text(app)
        assert '+ "response_match_score": 0.49' in screen_text(app)
        assert (parrot / "test_config.json").read_text() == CONFIG
        assert "save ●1" in screen_lines(app)[-1]
        await pilot.press("u")
        await until(pilot, lambda: "0.80  " in screen_lines(app)[first(app)])
        await until(pilot, lambda: "Outcomes" not in screen_text(app))
        assert not app.workbench.editing.is_dirty(parrot / "test_config.json")


async def test_what_a_metric_cannot_do_without_is_asked_for(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(app, pilot)
        single = next(
            row for row in screen.rows.rows() if getattr(row, "name", "") == "trajectory_single_tool_use"
        )
        screen.rows.go_to(single)
        await pilot.press("o")
        await until(pilot, lambda: "tool of trajectory_single_tool_use" in screen_text(app))
        assert config_of(app, parrot) == json.loads(CONFIG)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, CriteriaScreen))
        assert app.workbench.editing.unsaved() == []
        await pilot.press("o")
        await until(pilot, lambda: "tool of trajectory_single_tool_use" in screen_text(app))
        await pilot.press(*"find_orders", "enter")
        await until(pilot, lambda: isinstance(app.screen, CriteriaScreen))
        block = config_of(app, parrot)["evaltui"]
        assert block == {
            "criteria": {"trajectory_single_tool_use": {"threshold": 1.0, "tool": "find_orders"}}
        }


async def test_what_cannot_be_done_is_said(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        screen = await opened(app, pilot)
        await pilot.press("space")
        await until(pilot, lambda: "response_match_score is already in use" in screen_text(app))
        await pilot.press("ctrl+z")
        await until(pilot, lambda: "Nothing to undo" in screen_text(app))
        await pilot.press("down", "right", "down", "left")
        await until(pilot, lambda: "tool_trajectory_avg_score is not in use   space add" in screen_text(app))
        measured = next(row for row in screen.rows.rows() if getattr(row, "name", "") == "token_usage_v1")
        screen.rows.go_to(measured)
        await pilot.press("space")
        await until(pilot, lambda: "takes no threshold" in screen_text(app))
        assert app.workbench.editing.unsaved() == []


async def test_a_slider_is_set_and_saved_by_mouse(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        await opened(app, pilot)
        knob = screen_lines(app)[first(app)].index("●")
        await pilot.click(offset=(knob - 5, first(app)))
        await until(pilot, lambda: config_of(app, parrot)["criteria"]["response_match_score"] < 0.6)
        footer = screen_lines(app)[-1]
        await pilot.click(offset=(footer.index("save"), NARROW[1] - 1))
        await until(pilot, lambda: not app.workbench.editing.unsaved())


async def test_a_slider_is_dragged_and_what_is_below_it_may_move(parrot):
    both = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
    (parrot / "test_config.json").write_text(json.dumps(both), encoding="utf-8")
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        screen = await opened(app, pilot)
        line = line_with(app, "response_match_score")
        left = screen_lines(app)[line].index("━")
        await pilot.mouse_down(offset=(left + 6, line))
        await until(pilot, lambda: screen.rows.current.name == "response_match_score")
        await pilot.hover(offset=(left + 2, line + 3))
        await until(pilot, lambda: config_of(app, parrot)["criteria"]["response_match_score"] < 0.2)
        await pilot.hover(offset=(left - 9, line))
        await pilot.mouse_up(offset=(left - 9, line))
        await until(pilot, lambda: config_of(app, parrot)["criteria"]["response_match_score"] == 0)
        assert screen.rows.current.name == "response_match_score"
        assert config_of(app, parrot)["criteria"]["tool_trajectory_avg_score"] == 1.0
        await pilot.press("u")
        await until(pilot, lambda: not app.workbench.editing.unsaved())


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_tab_goes_to_the_cases_that_flip_and_enter_to_one(parrot, size):
    app = WorkbenchApp(Workbench(parrot, run_service=FakeRuns(says("good morning"))))
    async with app.run_test(size=size) as pilot:
        screen = await opened(app, pilot, run=True)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.press(*"0.4", "enter")
        await until(pilot, lambda: "✗ → ✓ 1" in screen_text(app))
        await pilot.press("tab")
        await until(pilot, lambda: screen.details.has_focus)
        assert "▌ ✗ → ✓  half" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: screen.rows.has_focus)
        await pilot.press("tab", "enter")
        await until(pilot, lambda: app.screen is not screen)
        assert app.workbench.navigation.selection.eval_id == "half"


async def test_a_change_on_disk_is_shown_while_it_is_open(parrot):
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        screen = await opened(app, pilot)
        await pilot.press("left")
        await until(pilot, lambda: "0.79 ●" in screen_lines(app)[first(app)])
        changed = {"criteria": {"response_match_score": 0.8, "safety_v1": 0.5}, "own": 1}
        (parrot / "test_config.json").write_text(json.dumps(changed), encoding="utf-8")
        app.workbench.editing.merge_outside_changes()
        await until(pilot, lambda: "safety_v1" in screen_text(app))
        assert "0.79 ●" in screen_lines(app)[first(app)]
        assert screen.rows.current.name == "response_match_score"


async def test_what_is_wrong_is_said_above_the_rows(parrot):
    wrong = {"criteria": {"response_match_scor": 0.5, "tool_trajectory_avg_score": 7}}
    (parrot / "test_config.json").write_text(json.dumps(wrong), encoding="utf-8")
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(app, pilot)
        text = screen_text(app)
        assert "! criteria.response_match_scor: unknown metric response_match_scor." in text
        assert "Did you mean response_match_score?" in text
        assert "Config has errors; results stay as they were" in text
        await pilot.press("down", "left")
        await until(pilot, lambda: config_of(app, parrot)["criteria"]["tool_trajectory_avg_score"] == 1)
        await pilot.press("up", "delete")
        await until(pilot, lambda: "Config has errors" not in screen_text(app))
        assert screen.rows.current.name == "tool_trajectory_avg_score"


async def test_marks_that_dangle_are_removed(parrot):
    mark = {"set": "talk", "case": "fined", "turn": 0, "mode": "context"}
    config = {"criteria": {"response_match_score": 0.8}, "evaltui": {"turns": [mark]}}
    (parrot / "test_config.json").write_text(json.dumps(config), encoding="utf-8")
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await pilot.press("G")
        await until(
            pilot, lambda: "▌ context  talk › fined › turn 1  ! no case 'fined' in talk" in screen_text(app)
        )
        await pilot.press("delete")
        await until(pilot, lambda: "Marks on turns" not in screen_text(app))
        await pilot.press("u")
        await until(pilot, lambda: "Marks on turns" in screen_text(app))


async def test_a_broken_config_is_shown_with_its_problem_and_can_be_left(parrot):
    (parrot / "test_config.json").write_text("{", encoding="utf-8")
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.workbench.sets.listed)
        app.push_screen(CriteriaScreen(app.workbench, app.workbench.navigation.file))
        await until(
            pilot, lambda: "! test_config.json is unreadable: line 1: not valid JSON" in screen_text(app)
        )
        await pilot.press("down", "space", "left", "e", "delete", "escape")
        await until(pilot, lambda: not isinstance(app.screen, CriteriaScreen))
        assert (parrot / "test_config.json").read_text() == "{"
