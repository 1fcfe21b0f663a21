"""What can be done at a difference: relax it, go to its event, to its expectation, and back; copy it."""

import json

import pytest
from pilots import screen_lines, screen_text, turn, until, until_ran, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.dialogs.relax import RelaxScreen
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

AGENT = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        for number in range(8):
            yield tool_call("step", {"number": number})
        yield tool_call("set", {"room": "Kitchen", "degrees": "19"})
        yield text("Done.")
"""
STEPS = [{"name": "step", "args": {"number": number}} for number in range(8)]
WANTED = {"name": "set", "args": {"room": "Kitchen", "degrees": 19}}
WIDE = (160, 45)


@pytest.fixture
def heating(write_agent):
    folder = write_agent(AGENT, name="heating")
    cases = {
        "kitchen": [turn("warm", "Done.", *STEPS, WANTED)],
        "again": [turn("warm", "Done.", *STEPS, WANTED)],
        "never": [turn("warm", "Done.")],
    }
    write_cases(folder, "heating", cases)
    return folder


async def at_the_difference(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None)
    app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, "kitchen"))
    await pilot.press("R")
    await until_ran(pilot, lambda: app.workbench.runs.current is not None and app.workbench.runs.current.over)
    await pilot.press("n")
    await until(pilot, lambda: app.workbench.navigation.difference is not None)


def current_lines(app):
    return [line for line in screen_lines(app) if "▌" in line]


async def test_an_argument_is_relaxed_with_its_effect_shown_first(heating):
    app = WorkbenchApp(Workbench(heating))
    async with app.run_test(size=WIDE) as pilot:
        await at_the_difference(app, pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, RelaxScreen))
        await until(pilot, lambda: "fixed" in screen_text(app))
        await pilot.press("down", "down", "left")
        await until(pilot, lambda: "test_config.json +" in screen_text(app))
        await until(pilot, lambda: screen_text(app).count("fixed") == 2)
        assert not (heating / "test_config.json").exists()
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.outcomes.counts_of()["PASSED"] == 2)
        await until(pilot, lambda: "allowed by rule: type" in screen_text(app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: (heating / "test_config.json").exists())
        written = json.loads((heating / "test_config.json").read_text())
        assert written["evaltui"]["rules"] == [{"tool": "set", "arg": "degrees", "match": "type"}]
        await pilot.press("u")
        await until(pilot, lambda: app.workbench.outcomes.counts_of()["PASSED"] == 0)


async def test_a_rule_can_be_typed_and_is_checked(heating):
    app = WorkbenchApp(Workbench(heating))
    async with app.run_test(size=WIDE) as pilot:
        await at_the_difference(app, pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, RelaxScreen))
        await pilot.press("e", *'{"regex": "("}', "enter")
        await until(pilot, lambda: "is not a regular expression" in screen_text(app))
        await pilot.press("ctrl+u", *'{"regex": "1."}', "enter")
        await until(pilot, lambda: isinstance(app.screen, RelaxScreen))
        await until(pilot, lambda: "scored on run 1, no model calls" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, RelaxScreen))
        assert not app.workbench.editing.unsaved()


async def test_only_an_argument_is_relaxed(heating):
    app = WorkbenchApp(Workbench(heating))
    async with app.run_test(size=WIDE) as pilot:
        await at_the_difference(app, pilot)
        app.workbench.navigation.select_difference(None)
        await pilot.press("x")
        await until(pilot, lambda: "No difference selected" in screen_text(app))


async def test_from_a_difference_to_its_event_and_back(heating):
    app = WorkbenchApp(Workbench(heating))
    async with app.run_test(size=WIDE) as pilot:
        await at_the_difference(app, pilot)
        await pilot.press("t")
        await until(pilot, lambda: any("≠    tool  set" in line for line in current_lines(app)))
        await pilot.press("backspace")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "result")
        assert app.workbench.navigation.difference is not None


async def test_from_a_difference_to_what_is_expected(heating):
    app = WorkbenchApp(Workbench(heating))
    async with app.run_test(size=WIDE) as pilot:
        await at_the_difference(app, pilot)
        await pilot.press("e")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "case")
        await until(pilot, lambda: any("degrees  19  " in line for line in current_lines(app)))


async def test_calls_as_expected_are_one_line_until_they_are_asked_for(heating):
    app = WorkbenchApp(Workbench(heating))
    async with app.run_test(size=WIDE) as pilot:
        await at_the_difference(app, pilot)
        await until(pilot, lambda: "▸ = 8 equal calls" in screen_text(app))
        await pilot.press("space")
        await until(pilot, lambda: "8 equal calls" not in screen_text(app))
        await until(pilot, lambda: sum("number  7" in line for line in screen_lines(app)) == 1)


async def test_a_result_is_copied_as_json(heating):
    app = WorkbenchApp(Workbench(heating))
    async with app.run_test(size=WIDE) as pilot:
        await at_the_difference(app, pilot)
        await pilot.press("Y")
        await until(pilot, lambda: app.clipboard.startswith("{"))
        copied = json.loads(app.clipboard)
        assert copied["turns"][0]["calls"][-1]["args"][1]["actual"] == "19"
        await until(pilot, lambda: "copied the result of" in screen_text(app))
        app.workbench.agent.code_changed(["agent.py"])
        await pilot.press("Y")
        await until(pilot, lambda: "copied the stale result of" in screen_text(app))
