"""The dialog that drafts what would notice a change, and marks on changes that are meant so."""

from __future__ import annotations

import json

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from pilots import screen_text, until, until_ran, workbench_on

TEXT = "Your order 7 for Ada Smith is on its way."
AGENT = """
from evaltui import Agent, Rule, ScriptedModel


def find_orders(limit: int, urgent: bool = False) -> dict:
    \"\"\"Finds orders.\"\"\"
    return {}


root_agent = Agent(
    name="desk", tools=[find_orders], model=ScriptedModel([Rule(user=".", reply="TEXT")])
)
"""


@pytest.fixture
def desk(write_agent):
    folder = write_agent(AGENT.replace("TEXT", TEXT))
    write_eval_set(folder, "orders", make_case("late", make_turn("hi", TEXT, [])))
    write_test_config(folder, tool_trajectory_avg_score=1.0, response_match_score=0.8)
    return folder


async def open_gaps(app, pilot):
    """Runs the case, and opens its gaps at the first change."""
    await pilot.press("R")
    await until_ran(pilot, lambda: app.workbench.outcomes.counts_of()["PASSED"])
    await pilot.press("home", "M")
    await until(pilot, lambda: "changes noticed" in screen_text(app))
    await until(pilot, lambda: not app.workbench.gaps.is_running)
    await pilot.press("down")


async def go_to(app, pilot, text):
    """Moves down to the row with a text."""
    for _ in range(60):
        rows = app.screen.rows
        if text in "".join(part for part, _ in rows.line(rows.cursor)):
            return
        await pilot.press("down")
    raise AssertionError(screen_text(app))


def block_of(config):
    return json.loads(config.read_text()).get("evaltui", {})


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_draft_is_proven_shown_accepted_and_saved(desk, size):
    async with workbench_on(desk, size) as (app, pilot):
        await open_gaps(app, pilot)
        before = app.workbench.gaps.report.noticed
        await go_to(app, pilot, "answer negated")
        await pilot.press("right", "right", "c")
        await until(pilot, lambda: "notices this change" in screen_text(app))
        shown = screen_text(app)
        assert 'not contains "not", "never", "cannot" and 7 more' in shown
        assert "1/1 of this kind in the case" in shown
        assert "still passes   1/1 passing results of the case" in shown
        assert "late  passes" in shown
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.gaps.report.noticed == before + 1)
        await pilot.press("u")
        await until(pilot, lambda: app.workbench.gaps.report.noticed == before)
        await pilot.press("U")
        await until(pilot, lambda: app.workbench.gaps.report.noticed == before + 1)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: block_of(desk / "test_config.json"))
    (check,) = block_of(desk / "test_config.json")["answers"]
    assert (check["case"], check["turn"]) == ("late", 0)
    assert "not" in check["not_contains"]


async def test_a_change_that_is_meant_so_is_marked_and_counted_again_by_one_key(desk):
    async with workbench_on(desk) as (app, pilot):
        await open_gaps(app, pilot)
        before = app.workbench.gaps.report.changes
        await pilot.press("space")
        await until(pilot, lambda: "1 meant so" in screen_text(app))
        assert app.workbench.gaps.report.changes == before - 1
        await pilot.press("ctrl+s")
        await until(pilot, lambda: block_of(desk / "test_config.json"))
        assert len(block_of(desk / "test_config.json")["meant_so"]) == 1
        assert not app.workbench.gaps.stale
        await go_to(app, pilot, "1 meant so")
        await pilot.press("right", "down", "space")
        await until(pilot, lambda: "meant so" not in screen_text(app))
        assert app.workbench.gaps.report.changes == before


async def test_a_cell_that_no_case_reaches_gets_a_case_with_its_call(desk):
    async with workbench_on(desk) as (app, pilot):
        await open_gaps(app, pilot)
        await go_to(app, pilot, "values")
        await pilot.press("right")
        await go_to(app, pilot, "find_orders.urgent true")
        await pilot.press("c")
        await until(pilot, lambda: "find_orders_urgent_true" in screen_text(app))
        await pilot.press("h", "i", "ctrl+s")
        await until(
            pilot, lambda: len(json.loads((desk / "orders.evalset.json").read_text())["eval_cases"]) == 2
        )
    case = json.loads((desk / "orders.evalset.json").read_text())["eval_cases"][1]
    (turn,) = case["conversation"]
    assert case["eval_id"] == "find_orders_urgent_true"
    assert turn["user_content"]["parts"] == [{"text": "hi"}]
    (call,) = turn["intermediate_data"]["tool_uses"]
    assert (call["name"], call["args"]) == ("find_orders", {"limit": 0, "urgent": True})
