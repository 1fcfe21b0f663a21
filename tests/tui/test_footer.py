"""The footer offers what a key does where the cursor is, and nothing that would be refused there."""

import pytest
from pilots import screen_lines, screen_text, turn, until, until_ran, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

WIDE = (160, 45)
AGENT = """
    from evaltui import Agent, Rule, ScriptedModel

    def plan(room: str, note: str) -> str:
        "Plans a room."
        return "ok"

    RULES = [
        Rule(user="plan", call=("plan", {"room": "Bedroom", "note": "b" * 600})),
        Rule(after_tool="plan", reply="Planned."),
        Rule(user="hello", reply="Hello."),
    ]
    root_agent = Agent(name="planner", model=ScriptedModel(RULES), instruction="Plan.", tools=[plan])
"""


@pytest.fixture
def planner(write_agent):
    folder = write_agent(AGENT, name="planner")
    call = {"name": "plan", "args": {"room": "Kitchen", "note": "a" * 600}}
    cases = {"fine": [turn("hello", "Hello.")], "wrong": [turn("plan", "Planned.", call)]}
    return write_cases(folder, "plans", cases)


async def opened(app, pilot, path, case):
    await until(pilot, lambda: app.workbench.sets.listed)
    app.workbench.runs.run_all()
    await until_ran(pilot, lambda: app.workbench.runs.current.over)
    app.workbench.navigation.select(Selection(path.name, case))


def footer(app):
    return screen_lines(app)[-1]


async def test_a_passed_case_has_no_next_difference(planner):
    app = WorkbenchApp(Workbench(planner.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, planner, "fine")
        await pilot.press("3")
        await until(pilot, lambda: "e edit expected" in footer(app))
        assert "n next" not in footer(app)
        assert "accept" not in footer(app)
        await pilot.press("n")
        await until(pilot, lambda: "No difference in calls, response or state" in screen_text(app))


async def test_details_are_offered_where_a_difference_has_more_to_show(planner):
    app = WorkbenchApp(Workbench(planner.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, planner, "wrong")
        await pilot.press("3", "n")
        await until(pilot, lambda: "difference 1/2" in screen_text(app))
        # The whole room is in its row.
        await pilot.press("enter")
        await until(pilot, lambda: "Nothing more to show" in screen_text(app))
        await pilot.press("n", "enter")
        await until(pilot, lambda: screen_text(app).count("a" * 60) > 1)


async def test_tab_says_that_it_completes_and_a_menu_that_it_chooses(planner):
    app = WorkbenchApp(Workbench(planner.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, planner, "fine")
        await until(pilot, lambda: app.workbench.agent.info)
        await pilot.press("2", "end", "up", "A")
        await until(pilot, lambda: "enter choose" in footer(app))
        assert "$EDITOR" not in footer(app)
        await pilot.press(*"add call", "enter")
        await until(pilot, lambda: "enter apply" in footer(app))
        await pilot.press("p", "l")
        await until(pilot, lambda: "tab complete" in footer(app))
        await pilot.press("tab")
        await until(pilot, lambda: "tab next field" in footer(app))


async def test_escape_says_that_it_ends_the_zoom(planner):
    app = WorkbenchApp(Workbench(planner.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, planner, "fine")
        await pilot.press("3", "z")
        await until(pilot, lambda: "esc unzoom" in footer(app))
        await pilot.press("escape")
        await until(pilot, lambda: "esc" not in footer(app))
