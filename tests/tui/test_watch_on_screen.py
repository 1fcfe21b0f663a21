"""Watching on screen: what changed, what follows, and what is old."""

from __future__ import annotations

import re

import pytest
from pilots import screen_lines, screen_text, turn, until, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.workbench import Workbench

AGENT = "def root_agent(message, session):\n    return {!r}\n"


@pytest.fixture
def agent(write_agent):
    folder = write_agent(AGENT.format("no"))
    write_cases(folder, "talk", {"agrees": [turn("well?", "yes")], "refuses": [turn("well?", "no")]})
    return folder


async def test_w_watches_and_the_screen_says_what_follows_from_a_save(agent):
    app = WorkbenchApp(Workbench(agent))
    async with app.run_test(size=(150, 40)) as pilot:
        await until(pilot, lambda: "○ agrees" in screen_text(app))
        await pilot.press("R")
        await until(pilot, lambda: "Run 1 finished: 1 passed, 1 failed" in screen_text(app))
        await pilot.press("3", "1", "w")
        await app.workbench.watch.ready()
        await until(pilot, lambda: "● watch" in screen_lines(app)[0])
        (agent / "agent.py").write_text("def root_agent(:\n")
        await until(pilot, lambda: "! agent.py:1: SyntaxError: " in screen_text(app))
        shown = screen_text(app)
        assert "previous results kept; retries on save" in shown
        assert re.search(r"✗ agrees +stale", shown)
        assert "stale: agent.py changed after run 1" in shown
        (agent / "agent.py").write_text(AGENT.format("yes"))
        await until(pilot, lambda: "agent.py saved   1 case rerun" in screen_text(app))
        await until(pilot, lambda: "verdict after" in screen_text(app))
        shown = screen_text(app)
        assert "✓ agrees" in shown
        assert not re.search(r"agrees +stale", shown)
        assert re.search(r"✓ refuses +stale", shown)
        assert "1 stale, unknown number of live calls   W run stale" in shown
        await pilot.press("W")
        await until(pilot, lambda: "✗ refuses" in screen_text(app))
        await pilot.press("w")
        await until(pilot, lambda: "● watch" not in screen_text(app))


async def test_it_is_watched_from_the_start_where_that_is_asked_for(agent):
    app = WorkbenchApp(Workbench(agent), watch=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.watch.on)
        await app.workbench.watch.ready()
        await until(pilot, lambda: "● watch" in screen_lines(app)[0])
        (agent / "agent.py").write_text(AGENT.format("yes"))
        await until(pilot, lambda: "✓ agrees" in screen_text(app))
        await app.workbench.runs.finished()
        path = app.workbench.sets.listed[0].path
        path.write_text(path.read_text().replace('"text": "yes"', '"text": "certainly not"'))
        await until(pilot, lambda: "talk.evalset.json saved   1 case rescored" in screen_text(app))
        assert "✗ agrees" in screen_text(app)
