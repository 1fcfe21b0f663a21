"""The dialog of failures by reason."""

import pytest
from eval_data import make_case, make_turn, write_eval_set
from pilots import screen_text, until, until_ran, workbench_on


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_cases_that_failed_for_one_reason_are_marked_and_accepted(write_agent, size):
    folder = write_agent("def root_agent(message, session):\n    return int(message) and 'done'")
    cases = [make_case(name, make_turn(text, "else")) for name, text in (("a", "1"), ("b", "x"), ("c", "2"))]
    path = write_eval_set(folder, "numbers", *cases)
    async with workbench_on(folder, size) as (app, pilot):
        navigation = app.workbench.navigation
        await pilot.press("R")
        await until_ran(pilot, lambda: len(navigation.failing) == 3 and not app.workbench.runs.is_running)
        await pilot.press("Q")
        await until(pilot, lambda: "2  response_match_score below threshold" in screen_text(app))
        assert "1  agent.py:2 in root_agent: ValueError" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: [case.eval_id for case in navigation.marking.marked] == ["a", "c"])
        await pilot.press("a")
        await until(pilot, lambda: "All 2 marked" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: not app.workbench.navigation.failing[1:])
        await pilot.press("ctrl+s")
        await until(pilot, lambda: path.read_text().count("done") == 2)
