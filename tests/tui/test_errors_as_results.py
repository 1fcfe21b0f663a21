"""What an error says: what failed, the line of the user's code, what to do; the rest is folded."""

import pytest
from pilots import screen_text, turn, until, until_ran, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.workbench import Workbench

AGENT = """
    import ctypes
    import os
    import time


    def check(boiler):
        raise TimeoutError("no answer of the boiler")


    def root_agent(message, session):
        if message == "raises":
            check("boiler")
        if message == "hangs":
            time.sleep(1000)
        if message == "dies":
            os._exit(3)
        if message == "imports":
            import nothing_like_this
        return message
"""
# By case: why in the list, then what its result says.
SEEN = {
    "raises": ("timeout", "agent.py:8 in check: TimeoutError: no answer of the boiler", "▌   8"),
    "hangs": ("timeout 2 s", "no response within 2 s (agent.py:15 in root_agent). Raise --timeout", "▌  15"),
    "dies": ("process ended", "the agent's process ended itself with exit code 3 (os._exit)"),
    "imports": ("ModuleNotFound", "agent.py:19 in root_agent: ModuleNotFoundError", "▌  19"),
}


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_every_error_says_what_failed_and_shows_where(write_agent, size):
    folder = write_agent(AGENT)
    write_cases(folder, "errors", {name: [turn(name, name)] for name in SEEN})
    (folder / "pyproject.toml").write_text("[tool.evaltui]\ntimeout = 2\n")
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        for name, (why, *words) in SEEN.items():
            await pilot.press("1", *(["f"] if name != "raises" else []))
            await until(pilot, lambda name=name: app.workbench.navigation.selection.eval_id == name)
            await until(pilot, lambda why=why: f" {why}" in screen_text(app))
            await pilot.press("3")
            await until(pilot, lambda words=words: all(word in screen_text(app) for word in words))
