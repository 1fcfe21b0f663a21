"""The demo: opened from a folder without an agent, and gone when it is left."""

from __future__ import annotations

import pytest
from pilots import screen_text, until, until_ran

from evaltui.project.agent_address import AgentAddress
from evaltui.project.templates import create_demo
from evaltui.tui.app import WorkbenchApp, open_demo, open_workbench
from evaltui.tui.start.chooser import ChooserApp
from evaltui.workbench.state import Opening
from evaltui.workbench.workbench import Workbench


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_the_demo_opens_at_the_difference_of_a_failing_case(tmp_path, size):
    app = WorkbenchApp(Workbench(create_demo(tmp_path)), tour=True)
    async with app.run_test(size=size) as pilot:
        await until_ran(pilot, lambda: "Demo 2/11" in screen_text(app))
        await until(pilot, lambda: "Done. You get a mail within the hour." in screen_text(app))
        assert "difference 1/1" in screen_text(app)
        await pilot.press("a", "enter")
        await until(pilot, lambda: "Demo 3/11" in screen_text(app))


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
