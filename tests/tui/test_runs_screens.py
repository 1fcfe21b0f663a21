"""Repeats, history, the list of runs and their comparison, by keys and mouse."""

import pytest
from pilots import screen_lines, screen_text, turn, until, until_ran, write_cases
from stored_runs import interrupt
from textual import events

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.compare.screen import ComparisonScreen
from evaltui.tui.dialogs.prompt import PromptScreen, RepeatScreen
from evaltui.tui.runs.screen import RunsScreen
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

NARROW, WIDE = (80, 24), (160, 45)

COIN = """
    import os
    from pathlib import Path
    from evaltui.events import text, tool_call

    GREETING = "hello"

    def times():
        file = os.open(Path(__file__).with_name("times"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(file, b"x")
        return os.lseek(file, 0, os.SEEK_CUR)

    def root_agent(message, session):
        if message == "toss" and times() % 2:
            yield tool_call("pick_up", {"coin": "[/bold]\\x1b[2J"})
        yield text(GREETING)
"""


@pytest.fixture
def coin(write_agent):
    folder = write_agent(COIN, name="coin")
    cases = {"toss": [turn("toss", "hello")], "good": [turn("hi", "hello")], "bad": [turn("hi", "goodbye")]}
    return write_cases(folder, "coins", cases)


def rewrite(path, old, new):
    agent = path.with_name("agent.py")
    agent.write_text(agent.read_text().replace(old, new, 1))


async def opened(app, pilot, path, case="toss"):
    await until(pilot, lambda: app.workbench.sets.listed)
    app.workbench.navigation.select(Selection(path.name, case))


async def run_all(app, pilot):
    app.workbench.runs.run_all()
    await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)


def shows(app, text, screen=None):
    return lambda: (screen is None or isinstance(app.screen, screen)) and text in screen_text(app)


def row_with(app, text):
    return next(number for number, line in enumerate(screen_lines(app)) if text in line)


async def test_a_case_is_run_several_times_and_its_runs_are_gone_through(coin):
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=NARROW) as pilot:
        await opened(app, pilot, coin)
        await pilot.press("asterisk")
        await until(pilot, lambda: isinstance(app.screen, RepeatScreen))
        await pilot.press("tab", *"most", "enter")
        await until(pilot, shows(app, "The pass rule is all, majority"))
        await pilot.press(*["backspace"] * 4, *"majority", "enter")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("3")
        await until(pilot, shows(app, "2/5 repeats passed, policy majority not met"))
        assert "2 distinct trajectories" in screen_text(app)
        assert '3×  ✗  pick_up (coin "[/bold]\\u001b[2J")' in screen_text(app)
        result = app.workbench.outcomes.get(CaseId(coin.name, "toss")).result
        failed = result.repeats.index(next(one for one in result.repeats if one.status is Status.FAILED))
        assert f"repeat {failed + 1} of 5 (worst)" in screen_text(app)
        passed = next(n for n, one in enumerate(result.repeats) if one.status is Status.PASSED)
        row = row_with(app, "  repeats  ")
        line = screen_lines(app)[row]
        await pilot.click(offset=(line.index("repeats") + 12 + 2 * passed, row))
        await until(pilot, shows(app, f"repeat {passed + 1} of 5   "))
        await until(pilot, shows(app, " Turn 1 ✓  toss"))


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_after_a_restart_history_and_runs_are_there(coin, size):
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=size) as pilot:
        await opened(app, pilot, coin)
        await run_all(app, pilot)
    rewrite(coin, '"hello"', '"goodbye"')
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=size) as pilot:
        await opened(app, pilot, coin, "good")
        await run_all(app, pilot)
        await pilot.press("3")
        await until(pilot, shows(app, "last passed run "))
        await until(pilot, shows(app, "since then agent: agent.py"))
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=size) as pilot:
        await opened(app, pilot, coin, "good")
        await pilot.press("3")
        # What the last run said of each case is there again.
        await until(pilot, shows(app, "since then agent: agent.py"))
        await until(pilot, lambda: sum(app.workbench.outcomes.counts_of().values()) == 3)
        await until(pilot, lambda: "○ not run" not in screen_text(app))
        assert "stale:" not in screen_text(app)
        await pilot.press("H")
        await until(pilot, shows(app, "2 runs", RunsScreen))
        await until(pilot, lambda: screen_text(app).count("33%") + screen_text(app).count("67%") >= 2)
        if size == WIDE:
            rewrite(coin, '"goodbye"', '"good morning"')
            app.post_message(events.AppFocus())
            await until(pilot, shows(app, "agent.py changed after this", RunsScreen))
            rewrite(coin, '"good morning"', '"goodbye"')
            app.post_message(events.AppFocus())
            await until(pilot, lambda: "changed after this" not in screen_text(app))
        # The older one is named, and held against the newer one.
        await pilot.press("down", "f2")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.press(*"before", "enter")
        await until(pilot, shows(app, "before ", RunsScreen))
        await pilot.press("up", "equals_sign")
        await until(pilot, shows(app, "changed agent: agent.py", ComparisonScreen))
        assert "run 1 before" in screen_text(app)
        assert "▾ Broken" in screen_text(app)
        assert "▾ Fixed  1" in screen_text(app)
        await until(pilot, lambda: "response_match_score 1.00 → 0.00" in screen_text(app))
        # From the case there to its result in that run.
        row = row_with(app, "bad  ")
        await pilot.click(offset=(10, row))
        await until(pilot, lambda: app.screen.rows.current.case.eval_id == "bad")
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.outcomes.previous_run is not None)
        assert app.workbench.navigation.selection.case == CaseId(coin.name, "bad")
        await until(pilot, shows(app, "esc back to the last results"))
        await pilot.press("1", "escape")
        await until(pilot, lambda: app.workbench.outcomes.previous_run is None)


async def test_the_base_is_marked_and_compared_with(coin):
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, coin)
        for _ in range(2):
            await run_all(app, pilot)
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.rows.current)
        newest = app.screen.rows.current
        await until(pilot, lambda: app.screen._runs.row(newest))
        await pilot.press("space")
        await until(pilot, shows(app, "base ● run 2"))
        await pilot.press("equals_sign")
        await until(pilot, shows(app, "This is the base"))
        await pilot.press("down", "equals_sign")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen) and app.screen.compared)
        assert app.screen.compared.base.path == newest
        await pilot.press("y")
        await until(pilot, lambda: (coin.parent / ".evaltui" / "copied.txt").exists())
        assert "compared with" in (coin.parent / ".evaltui" / "copied.txt").read_text()
        await pilot.press("escape", "q")
        await until(pilot, lambda: not isinstance(app.screen, RunsScreen | ComparisonScreen))


async def test_what_did_not_change_is_open_where_there_is_nothing_else(coin):
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=NARROW) as pilot:
        await opened(app, pilot, coin, "good")
        for _ in range(2):
            app.workbench.runs.run_case()
            await until_ran(pilot, lambda: app.workbench.runs.current.over)
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.rows.current)
        await until(pilot, lambda: app.screen._runs.row(app.screen.rows.current))
        await pilot.press("equals_sign")
        await until(pilot, shows(app, "▾ Unchanged  1", ComparisonScreen))
        assert "good      ✓ → ✓" in screen_text(app)
        # What both runs did in it fills the lower half.
        await until(pilot, shows(app, "Turn 1"))
        await pilot.press("space")
        await until(pilot, shows(app, "▸ Unchanged  1"))
        assert "good      ✓ → ✓" not in screen_text(app)


async def test_a_comparison_follows_a_run_that_goes_on(coin):
    waits = "while message == 'toss' and Path(__file__).with_name('wait').exists(): await asyncio.sleep(0.05)"
    rewrite(coin, "import os", "import asyncio\nimport os")
    rewrite(
        coin, "def root_agent(message, session):", f"async def root_agent(message, session):\n    {waits}"
    )
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, coin)
        await run_all(app, pilot)
        (coin.parent / "wait").touch()
        app.workbench.runs.run_all()
        # The list opens with the newest run selected.
        await until_ran(pilot, lambda: len(app.workbench.runs.current.done) == 2)
        await pilot.press("H")
        await until(pilot, shows(app, "2/3", RunsScreen))
        await pilot.press("equals_sign")
        await until(pilot, shows(app, "Not run  1", ComparisonScreen))
        (coin.parent / "wait").unlink()
        await until(pilot, shows(app, "Fixed  1", ComparisonScreen))
        assert "Not run" not in screen_text(app)


async def test_without_a_run_it_is_said(coin):
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=NARROW) as pilot:
        await opened(app, pilot, coin)
        await pilot.press("H")
        await until(pilot, shows(app, "No runs yet", RunsScreen))
        await pilot.press("enter", "equals_sign", "r", "space", "f2")
        await until(pilot, lambda: screen_text(app).count("No runs yet") == 2)
        # No plot is changed that is not there.
        await pilot.press("p")
        await until(pilot, shows(app, "A plot needs at least 2 runs"))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, RunsScreen))


async def test_a_complete_run_is_not_offered_to_be_resumed(coin):
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, coin)
        await run_all(app, pilot)
        await pilot.press("H")
        await until(pilot, shows(app, "open", RunsScreen))
        await until(pilot, lambda: "enter open" in screen_lines(app)[-1])
        assert "resume" not in screen_lines(app)[-1]
        # There is nothing to compare it with either.
        assert "compare" not in screen_lines(app)[-1]
        await pilot.press("r")
        await until(pilot, shows(app, "Nothing to resume: run is complete", RunsScreen))


async def test_an_interrupted_run_is_resumed_from_the_list(coin):
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, coin)
        await run_all(app, pilot)
        log = app.workbench.runs.current.log
    # As if it had been killed before it came to its last case.
    interrupt(log, 2)
    app = WorkbenchApp(Workbench(coin.parent))
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, coin)
        await pilot.press("H")
        await until(pilot, shows(app, "2/3 run", RunsScreen))
        assert "2 of 3 cases" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, shows(app, "run 1: 2 of 3 cases   esc back"))
        await pilot.press("escape", "H")
        await until(pilot, shows(app, "2/3 run", RunsScreen))
        await pilot.press("r")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        assert app.workbench.runs.current.remarks == []
        assert sum(app.workbench.outcomes.counts_of().values()) == 3
