"""The runs below the cases: as text at two heights, and opened by key."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pilots import screen_text, turn, until, until_ran, write_cases

from evaltui.runs.listing import RunRow
from evaltui.text.lines import draw
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.pages.recent_runs import recent_lines
from evaltui.workbench.workbench import Workbench

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)


def run(seconds, passed, failed, name="", changed=()):
    counts = {"PASSED": passed, "FAILED": failed}
    started = NOW - timedelta(seconds=seconds)
    names = (name,) if name else ()
    return RunRow(Path(f"{seconds}.jsonl"), started, names, counts=counts, selected=16, changed=changed)


RUNS = [run(12, 7, 9, changed=("agent.py",)), run(190, 12, 4), run(660, 16, 0, "baseline")]


def shown(height):
    lines, first = recent_lines(RUNS, 36, height, NOW)
    return [draw(line, color=False) for line in lines], first


def test_a_plot_of_columns_where_there_is_room():
    lines, first = shown(11)
    assert first == 5
    assert lines[0].startswith("100%")
    assert lines[0].endswith("44%")
    assert lines[1].endswith("7/16 passed")
    assert lines[5] == " 12 s ago   ━━━━━━━━  7/16  agent.py"


def test_a_sparkline_where_there_is_not():
    lines, first = shown(3)
    assert first == 1
    assert lines[0] == "█▆▄                  44% 7/16 passed"
    assert len(lines) == 3


async def test_a_run_is_listed_when_it_has_ended_and_opened_by_enter(write_agent):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    write_cases(folder, "talk", {"fine": [turn("hello", "hello")], "wrong": [turn("hello", "bye")]})
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: "No runs yet   R runs all cases" in screen_text(app))
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await until(pilot, lambda: "1/2 passed" in screen_text(app) and "1 run ─╯" in screen_text(app))
        await pilot.press("tab", "enter")
        await until(pilot, lambda: app.workbench.outcomes.previous_run is not None)
