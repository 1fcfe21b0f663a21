"""The demo: opened from a folder without an agent, gone when it is left, and never a step by itself."""

from __future__ import annotations

from pilots import screen_text, until, until_ran

from evaltui.files.agent_address import AgentAddress
from evaltui.files.templates import create_demo
from evaltui.tui.app import WorkbenchApp, open_demo, open_workbench
from evaltui.tui.screens.chooser import ChooserApp
from evaltui.workbench.state import Opening
from evaltui.workbench.tour import STEPS
from evaltui.workbench.workbench import Workbench

SIZE = (80, 24)


async def test_the_line_says_what_to_press_and_goes_on_once_it_is_done(tmp_path):
    app = WorkbenchApp(Workbench(create_demo(tmp_path)), tour=True)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: f"Demo 1/{len(STEPS)}   R  Run all cases" in screen_text(app))
        await pilot.press("j")
        await pilot.pause()
        assert "Demo 1/" in screen_text(app), "another key is no step"
        await pilot.press("R")
        await until_ran(pilot, lambda: f"Demo 2/{len(STEPS)}" in screen_text(app))


def test_the_demo_is_gone_when_it_is_left(monkeypatch):
    shown = []
    monkeypatch.setattr(WorkbenchApp, "run", lambda self: shown.append(self.workbench.agent.dir))
    assert open_demo() == 0
    assert shown[0].name == "order_desk"
    assert not shown[0].exists()


def test_d_opens_it_where_there_is_no_agent(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(ChooserApp, "run", lambda self: Opening(tmp_path, demo=True))
    monkeypatch.setattr(WorkbenchApp, "run", lambda self: shown.append(self.workbench.agent.dir.name))
    assert open_workbench(AgentAddress(tmp_path)) == 0
    assert shown == ["order_desk"]
