"""The dialog of failures by reason."""

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from fake_runs import FakeRuns, as_expected, says
from pilots import screen_text, until, until_ran, workbench_on

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.workbench import Workbench


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


async def test_groups_are_by_the_repeat_that_decides_and_stale_failures_are_named(tmp_path):
    by_repeat = (says("no"), as_expected, says("no"))
    runs = FakeRuns(lambda case, repeat: by_repeat[repeat](case, repeat))
    (tmp_path / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
    write_eval_set(tmp_path, "s", *(make_case(name, make_turn("hi", "hi there")) for name in "ab"))
    write_test_config(
        tmp_path, criteria={"response_match_score": 0.8}, evaltui={"repeats": {"runs": 3, "pass_if": "all"}}
    )
    app = WorkbenchApp(Workbench(tmp_path, run_service=runs))
    async with app.run_test(size=(120, 36)) as pilot:
        bench = app.workbench
        await until(pilot, lambda: bench.sets.is_read)
        await pilot.press("R")
        await until(pilot, lambda: bench.runs.has_run and not bench.is_running)
        await pilot.press("]", "1", "Q")
        await until(pilot, lambda: "2  response_match_score below threshold" in screen_text(app))
        assert "stale" not in screen_text(app)
        await pilot.press("escape")
        (tmp_path / "agent.py").write_text("# another\n")
        await bench.open()
        await pilot.press("Q")
        await until(pilot, lambda: screen_text(app).count("a  stale") == 1)
        await pilot.press("escape", "ctrl+g", "a")
        await until(pilot, lambda: app.screen.find("a"))
        assert app.screen.match_line(app.screen.find("a")[0], 80)[0][1] == "faint"
