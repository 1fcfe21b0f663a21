"""Which agent the workbench opens."""

from __future__ import annotations

import pytest

from evaltui.files.agent_address import AgentAddress
from evaltui.tui.app import WorkbenchApp, open_workbench
from evaltui.tui.screens.chooser import ChooserApp
from evaltui.workbench.state import Opening
from tests.files.layouts import uv_package, write


@pytest.mark.parametrize("several", [False, True])
def test_a_folder_above_an_agent_opens_it_and_of_several_asks_which(several, tmp_path, monkeypatch):
    uv_package(tmp_path)
    if several:
        write(tmp_path / "src" / "billing" / "agent.py")
    asked: list[list[str]] = []
    opened = []

    def choose(self):
        asked.append(list(self._agents))
        return Opening(self._folder / self._agents[-1])

    monkeypatch.setattr(ChooserApp, "run", choose)
    monkeypatch.setattr(WorkbenchApp, "run", lambda self: opened.append(self.workbench.agent.dir))
    open_workbench(AgentAddress(tmp_path))
    assert opened == [tmp_path / "src" / "shopbot"]
    assert asked == ([["src/billing", "src/shopbot"]] if several else [])
