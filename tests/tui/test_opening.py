"""Which agent the workbench opens."""

from __future__ import annotations

import pytest
from pilots import screen_lines, screen_text, turn, until, write_cases

from evaltui.project.agent_address import AgentAddress
from evaltui.tui.app import WorkbenchApp, open_workbench
from evaltui.tui.start.chooser import ChooserApp
from evaltui.workbench.state import Opening
from evaltui.workbench.workbench import Workbench
from tests.project.layouts import uv_package, write


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


async def test_what_was_seen_last_is_seen_again(write_agent):
    agent = write_agent("def root_agent(message, session): return message")
    for name in ("heat", "lights"):
        write_cases(agent, name, {"first": [turn("hi", "hi")], "second": [turn("hi", "hi")]})
    (agent / ".evaltui").mkdir()
    app = WorkbenchApp(Workbench(agent))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: len(app.workbench.sets.listed) == 2)
        await pilot.press("left", "left", "G", "3", "6", "1", "q")
        await until(pilot, lambda: app.leaving)
    app = WorkbenchApp(Workbench(agent))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: "▸ heat" in screen_text(app) and "No output yet" in screen_text(app))
        assert app.workbench.navigation.selection == ("lights.evalset.json", "second", None)
        assert "○ NOT RUN" in screen_text(app)


async def test_what_was_folded_of_a_result_is_folded_again(write_agent):
    agent = write_agent("def root_agent(message, session): return message")
    write_cases(agent, "heat", {"first": [turn("hi", "hi")], "second": [turn("hi", "hi")]})
    opened, folded = "▾ Turn 1", "▸ Turn 1"
    app = WorkbenchApp(Workbench(agent))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: len(app.workbench.sets.listed) == 1)
        await pilot.press("3", "r")
        await until(pilot, lambda: opened in screen_text(app))
        row, line = next((row, line) for row, line in enumerate(screen_lines(app)) if opened in line)
        await pilot.click(offset=(line.index(opened), row))
        await until(pilot, lambda: folded in screen_text(app))
        await pilot.press("q")
        await until(pilot, lambda: app.leaving)
    app = WorkbenchApp(Workbench(agent))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: folded in screen_text(app))
        # As long as the case is selected.
        await pilot.press("1", "down", "up")
        await until(pilot, lambda: opened in screen_text(app))
