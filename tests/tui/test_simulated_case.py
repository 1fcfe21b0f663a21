"""A case with a simulated user on screen: what was said, what ended it, and a fixed case made of it."""

from __future__ import annotations

import json

from pilots import screen_text, until, until_ran

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.workbench.workbench import Workbench

DESK = """
    def root_agent(message, session):
        return f"You said: {message}"
"""
PEOPLE = """
    def user(prompt):
        return "</finished>" if "You said: a lamp" in prompt else "a lamp"
"""
SET = {
    "eval_set_id": "desk",
    "eval_cases": [
        {
            "eval_id": "buyer",
            "conversation_scenario": {"starting_prompt": "hi", "conversation_plan": "Get a lamp."},
        }
    ],
}
CONFIG = {
    "criteria": {"response_match_score": 0.8},
    "user_simulator_config": {"model": "people:user"},
    "evaltui": {"optional": ["response_match_score"]},
}


async def test_it_is_run_looked_at_and_made_a_case(write_agent):
    folder = write_agent(DESK, name="desk", people=PEOPLE)
    path = folder / "desk.evalset.json"
    path.write_text(json.dumps(SET))
    (folder / "test_config.json").write_text(json.dumps(CONFIG))
    app = WorkbenchApp(Workbench(folder))
    workbench = app.workbench
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: workbench.sets.workspace is not None)
        await pilot.press("down", "r")
        await until_ran(
            pilot,
            lambda: workbench.runs.current and workbench.runs.current.over and not workbench.runs.is_running,
        )
        await pilot.press("3")
        await until(pilot, lambda: "the simulated user ended" in screen_text(app))
        assert "You said: a lamp" in screen_text(app)

        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, SaveCaseScreen) and app.focused is not None)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert workbench.navigation.selection.eval_id == "hi"
        await until(pilot, lambda: app.focused.id == "case")
        await pilot.press("r")
        await until_ran(pilot, lambda: workbench.runs.current.over and workbench.runs.current.number == 2)
        assert workbench.runs.current.counts == {"PASSED": 1}
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not workbench.editing.unsaved())
        case = json.loads(path.read_text("utf-8"))["eval_cases"][-1]
        said = [turn["user_content"]["parts"][0]["text"] for turn in case["conversation"]]
        assert said == ["hi", "a lamp"]
