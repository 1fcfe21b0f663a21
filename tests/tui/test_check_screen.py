"""The dialog that checks a response."""

import json

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from pilots import screen_text, until, until_ran, workbench_on

EXPECTED = "The order was sent to Anna Smith on 4 Nov 2026 and cost 12 dollars."
AGENT = "def root_agent(message, session):\n    return 'The order was not sent to Anna Smith on 3 Nov 2026.'"


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_check_of_a_passing_response_is_proposed_shown_with_its_effect_and_saved(write_agent, size):
    folder = write_agent(AGENT)
    write_eval_set(folder, "orders", make_case("late", make_turn("hi", EXPECTED)))
    config = write_test_config(folder, response_match_score=0.1)
    async with workbench_on(folder, size) as (app, pilot):
        outcomes, case = app.workbench.outcomes, app.workbench.navigation
        await pilot.press("R")
        await until_ran(pilot, lambda: outcomes.counts_of()["PASSED"])
        await pilot.press("3", "n", "x")
        await until(pilot, lambda: "now failed" in screen_text(app))
        shown = screen_text(app)
        assert 'contains "Anna Smith"' in shown
        assert "threshold of response_match_score" in shown
        await pilot.press("enter")
        await until(pilot, lambda: outcomes.get(case.selection.case).result.status == "FAILED")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "answers" in config.read_text())
    check = {"set": "orders", "case": "late", "turn": 0, "numbers": "equal"}
    assert json.loads(config.read_text())["evaltui"]["answers"] == [check]


async def test_no_check_is_made_of_a_turn_that_is_another_one_by_now(write_agent):
    folder = write_agent(AGENT)
    write_eval_set(folder, "orders", make_case("late", *(make_turn(text, EXPECTED) for text in "ab")))
    write_test_config(folder, response_match_score=0.1)
    async with workbench_on(folder, (160, 45)) as (app, pilot):
        bench = app.workbench
        await pilot.press("R")
        await until_ran(pilot, lambda: bench.outcomes.counts_of()["PASSED"])
        write_eval_set(folder, "orders", make_case("late", make_turn("b", EXPECTED)))
        await bench.open()
        await pilot.press("3", "N", "x")
        await until(pilot, lambda: "Case changed after run 1   r  Run case" in screen_text(app))
        await pilot.press("r")
        await until_ran(pilot, lambda: bench.outcomes.counts_of()["PASSED"])
        await pilot.press("3", "n", "x")
        await until(pilot, lambda: "now failed" in screen_text(app))
