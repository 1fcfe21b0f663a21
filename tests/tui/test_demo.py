"""The demo: opened from a folder without an agent, and gone when it is left."""

from __future__ import annotations

from evaltui.files.agent_address import AgentAddress
from evaltui.tui.app import WorkbenchApp, open_demo, open_workbench
from evaltui.tui.start.chooser import ChooserApp
from evaltui.workbench.state import Opening


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
