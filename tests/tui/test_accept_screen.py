"""Accepting by keys and mouse: seen as the change to the file, done, undone."""

import json
from pathlib import Path

import pytest
from pilots import screen_lines, screen_text, turn, until, until_ran, workbench_on, write_cases

from evaltui.core.model.case_id import CaseId
from evaltui.tui.dialogs.accept import AcceptScreen
from evaltui.workbench.state import Selection

NARROW, WIDE = (80, 24), (160, 45)

HOUSE = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        session.state["light"] = "off"
        if message == "light off":
            yield tool_call("set_light", {"room": "Kitchen", "on": "no", "[/bold]": "\\x1b[2J"})
            yield tool_call("notify", {})
        yield text("The kitchen light is now off.")
"""
OFF = "The kitchen light is now off."
LIGHT = {"name": "set_light", "args": {"room": "Kitchen", "on": False}}


@pytest.fixture
def house(write_agent):
    folder = write_agent(HOUSE, name="house")
    dark = [turn("hello", OFF), turn("light off", "It is dark.", LIGHT)]
    path = write_cases(folder, "lights", {"dark": dark, "wrong": [turn("hello", "Something else.")]})
    data = json.loads(path.read_text())
    data["eval_cases"][0]["final_session_state"] = {"light": "on"}
    path.write_text(json.dumps(data, indent=2))
    return path


async def ran(app, pilot, path, case="dark"):
    await until(pilot, lambda: app.workbench.sets.listed)
    app.workbench.navigation.select(Selection(path.name, case))
    app.workbench.runs.run_all()
    await until_ran(pilot, lambda: app.workbench.runs.current.over)


async def test_a_case_that_passes_by_its_policy_would_pass(write_agent):
    code = "from itertools import count\nN = count()\ndef root_agent(message, session):\n    "
    folder = write_agent(code + "return 'on' if next(N) % 3 == 2 else 'off'", name="turns")
    path = write_cases(folder, "lights", {"one": [turn("hello", "neither")]})
    repeats = {"runs": 3, "pass_if": "majority"}
    config = {"criteria": {"response_match_score": 1}, "evaltui": {"repeats": repeats}}
    (folder / "test_config.json").write_text(json.dumps(config))
    async with workbench_on(folder, NARROW) as (app, pilot):
        await ran(app, pilot, path, "one")
        await pilot.press("a")
        await until(pilot, is_shown(app, "≈ one  would pass"))
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.outcomes.passed(path.name) == 1)


async def test_in_the_case_accept_says_why_not_or_asks_how_much(house):
    async with workbench_on(house.parent, NARROW) as (app, pilot):
        app.workbench.navigation.select(Selection(house.name, "wrong"))
        await pilot.press("2", "a")
        await until(pilot, lambda: "Not run   r  Run case" in screen_text(app))
        await ran(app, pilot, house, "wrong")
        await pilot.press("a")
        await until(pilot, is_shown(app, "Whole case"))
        await until(pilot, is_shown(app, "✓ wrong  would pass"))
        await pilot.press("enter")
        await until(pilot, lambda: "It is dark." not in screen_text(app) and OFF in screen_text(app))
        assert app.workbench.editing.undo_label == "accept wrong"


def is_shown(app, text):
    return lambda: isinstance(app.screen, AcceptScreen) and text in screen_text(app)


def is_chosen(app, title):
    def chosen():
        return isinstance(app.screen, AcceptScreen) and app.screen.choice.title == title

    return chosen


async def test_the_next_difference_comes_after_the_accepted_one(house):
    async with workbench_on(house.parent, WIDE) as (app, pilot):
        await ran(app, pilot, house)
        await pilot.press("n", "n")
        await until(
            pilot,
            lambda: (
                app.workbench.navigation.difference
                and app.workbench.navigation.difference.path == "['[/bold]']"
            ),
        )
        await pilot.press("a")
        await until(pilot, is_shown(app, "+"))
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.navigation.difference.kind == "call")


async def test_each_choice_shows_its_own_change_and_leaving_changes_nothing(house):
    async with workbench_on(house.parent, NARROW) as (app, pilot):
        await ran(app, pilot, house)
        await pilot.press("n", "a")
        await until(pilot, is_chosen(app, "This argument"))
        await pilot.press("tab")
        await until(pilot, is_shown(app, "\\u001b[2J"))
        assert is_chosen(app, "This call")()
        await pilot.press("right", "right", "right", "right")
        await until(pilot, is_chosen(app, "Whole case"))
        await until(pilot, is_shown(app, '"name": "notify"'))
        await pilot.press("left")
        await until(pilot, is_chosen(app, "This turn"))
        await pilot.press("right", "right")
        await until(pilot, is_shown(app, "in 2 cases"))
        assert "actual as expected in 2 cases" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, AcceptScreen))
        assert app.workbench.editing.unsaved() == []


async def test_places_of_the_file_that_are_apart_are_divided(house):
    async with workbench_on(house.parent, (160, 60)) as (app, pilot):
        await ran(app, pilot, house)
        await pilot.press("1", "a")
        await until(pilot, is_shown(app, '"off"'))
        rows = [line.partition("│")[2].strip(" │") for line in screen_lines(app)]
        rows = [row for row in rows if row.startswith("…") or row.partition(" ")[0].isdigit()]
        # Up to the final state, whose line is the last one of the file.
        state = next(number for number, row in enumerate(rows) if '"light"' in row)
        assert rows[state - 1].startswith("…")


async def test_every_failing_case_from_the_list(house):
    async with workbench_on(house.parent, NARROW) as (app, pilot):
        await ran(app, pilot, house)
        await pilot.press("1", "a")
        await until(pilot, is_chosen(app, "Whole case"))
        await pilot.press("l")
        await until(pilot, is_shown(app, "in 2 cases"))
        await pilot.press("enter")
        for name in ("dark", "wrong"):
            await until(
                pilot, lambda name=name: app.workbench.outcomes.status(CaseId(house.name, name)) == "PASSED"
            )
        await pilot.press("u")
        await until(pilot, lambda: app.workbench.editing.undo_label is None)


async def test_by_mouse(house):
    async with workbench_on(house.parent, WIDE) as (app, pilot):
        await ran(app, pilot, house)
        await until(pilot, lambda: "+  notify" in screen_text(app))
        row = next(n for n, line in enumerate(screen_lines(app)) if "+  notify" in line)
        await pilot.click(offset=(120, row))
        await until(
            pilot,
            lambda: (
                app.workbench.navigation.difference and app.workbench.navigation.difference.kind == "call"
            ),
        )
        await pilot.press("a")
        await until(pilot, is_chosen(app, "This call"))
        lines = screen_lines(app)
        row = next(n for n, line in enumerate(lines) if "This turn" in line)
        await pilot.click(offset=(lines[row].index("This turn "), row))
        await until(pilot, is_chosen(app, "This turn"))
        await until(pilot, is_shown(app, OFF))
        row = next(n for n, line in enumerate(screen_lines(app)) if "enter accept" in line)
        await pilot.click(offset=(screen_lines(app)[row].index("accept"), row))
        await until(pilot, lambda: not isinstance(app.screen, AcceptScreen))
        assert app.workbench.editing.undo_label == "accept turn 2"
        await until(pilot, lambda: app.workbench.navigation.difference.kind == "state")


@pytest.mark.parametrize("size", [NARROW, WIDE, (60, 20)])
async def test_a_long_change_scrolls_and_the_choices_stay_in_sight(house, size):
    data = json.loads(house.read_text())
    many = [{"name": f"tool_{number}", "args": {"n": number}} for number in range(40)]
    data["eval_cases"][0]["conversation"][1]["intermediate_data"]["tool_uses"] = many
    house.write_text(json.dumps(data, indent=2))
    async with workbench_on(house.parent, size) as (app, pilot):
        await ran(app, pilot, house)
        await pilot.press("1", "a")
        await until(pilot, is_shown(app, "tool_0"))
        assert "enter accept" in screen_text(app)
        await pilot.press("G")
        await until(pilot, is_shown(app, '"light": "off"'))
        assert is_chosen(app, "Whole case")()
        await pilot.resize_terminal(100, 30)
        await until(pilot, is_shown(app, "enter accept"))


async def test_of_a_file_in_one_line_only_what_differs_is_shown(house: Path):
    house.write_text(json.dumps(json.loads(house.read_text())))
    async with workbench_on(house.parent, NARROW) as (app, pilot):
        await ran(app, pilot, house)
        await pilot.press("n", "a")
        await until(pilot, is_shown(app, "1 + …"))
        assert '"on": "no"' in screen_text(app)
        assert "eval_set_id" not in screen_text(app)


async def test_a_response_that_fails_because_none_is_expected_is_accepted_as_a_difference(write_agent):
    folder = write_agent(HOUSE, name="house")
    silent = turn("hello", OFF)
    del silent["final_response"]
    path = write_cases(folder, "lights", {"silent": [silent]})
    async with workbench_on(folder, WIDE) as (app, pilot):
        await ran(app, pilot, path, "silent")
        await pilot.press("3", "n")
        await until(pilot, lambda: "no response expected   0.00 < 0.80" in screen_text(app))
        await until(pilot, lambda: "difference 1/1" in screen_text(app))
        await pilot.press("a")
        await until(pilot, is_chosen(app, "This response"))
        await until(pilot, is_shown(app, "✓ silent  would pass"))
