"""The runs below the cases: as text at two heights, and opened by key."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pilots import screen_text, turn, until, until_ran, write_cases

from evaltui.core.compare.totals import Totals
from evaltui.runs.listing import RunRow
from evaltui.text.lines import draw
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.compare.screen import ComparisonScreen
from evaltui.tui.runs.recent import RecentRun, RecentRuns, recent_lines
from evaltui.workbench.workbench import Workbench

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)


def run(number, seconds, passed, failed, name="", changed=()):
    counts = {"PASSED": passed, "FAILED": failed}
    started = NOW - timedelta(seconds=seconds)
    names = (name,) if name else ()
    row = RunRow(Path(f"{seconds}.sqlite"), started, number, names, totals=Totals(counts), selected=16)
    return RecentRun(row, changed)


RUNS = [
    run(18, 12, 7, 9, changed=("agent.py",)),
    run(17, 190, 12, 4),
    run(15, 660, 16, 0, "baseline", changed=("tools.py",)),
]


def shown(height, runs=RUNS):
    lines, first = recent_lines(runs, 36, height, NOW)
    return [draw(line, color=False) for line in lines], first


def test_a_sparkline_where_there_is_not():
    lines, first = shown(3)
    assert first == 1
    assert lines[0] == "█▆▄                  44% 7/16 passed"
    assert len(lines) == 3


def test_a_run_of_some_cases_is_hollow_and_not_in_the_headline():
    row = replace(run(19, 7, 1, 0).row, selected=1)
    some = RecentRun(row, ("agent.py",), is_whole=False)
    none_passed = RecentRun(replace(RUNS[1].row, totals=Totals({"FAILED": 16})))
    lines, first = shown(11, [some, RUNS[0], none_passed, RUNS[2]])
    assert lines[:first] == [
        "100% ███         ───             44%",
        "     ███                 7/16 passed",
        "     ███     ▆▆▆              run 18",
        "  0% ███ ▁▁▁ ███",
        "",
    ]
    assert lines[first].endswith("1/1    1 case")
    # Without any other run it is what there is to say.
    assert shown(11, [some])[0][1].endswith("1/1 passed")


def test_cases_without_a_verdict_are_named_beside_the_rate_of_the_others():
    some = RecentRun(replace(RUNS[0].row, totals=Totals({"PASSED": 1, "NOT_EVALUATED": 3}), selected=4))
    assert [line[-14:].strip() for line in shown(11, [some])[0][:3]] == ["100%", "1/1 passed", "– 3"]
    assert shown(5, [some])[0][0].endswith("100% 1/1 passed – 3")


def test_a_run_that_did_not_run_all_its_cases_has_no_rate_of_all():
    cut = replace(run(19, 7, 1, 0).row, selected=3, ending="interrupted")
    lines, first = shown(11, [RecentRun(cut, (), is_whole=False)])
    assert lines[1].endswith("1/3 passed")
    # One column below the first line.
    assert [line[5:8].strip() for line in lines[:4]] == ["", "", "───", ""]
    assert not any("%  " in line or line[4:].endswith("100%") for line in lines[:first])
    assert lines[first].endswith("1/3     3 cases")


async def test_one_case_that_is_run_again_leaves_the_pass_rate_of_all_and_is_opened(write_agent):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    write_cases(folder, "talk", {"fine": [turn("hello", "hello")], "wrong": [turn("hello", "bye")]})
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: "No run yet   R runs all 2 cases" in screen_text(app))
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await until(pilot, lambda: "1 run ─╯" in screen_text(app))
        await pilot.press("r")
        await until_ran(pilot, lambda: " 1 case " in screen_text(app))
        assert "50%" in screen_text(app)
        assert "1/2 passed" in screen_text(app)
        await pilot.press("tab", "enter")
        await until(pilot, lambda: app.workbench.outcomes.previous_run is not None)


def test_a_run_that_goes_on_is_listed_and_is_not_in_the_plot():
    row = run(19, 7, 3, 1).row
    lines, first = shown(11, [RecentRun(replace(row, ending="going on")), *RUNS])
    assert lines[first] == "19 ◐ 0:07   ━━━─────  4/16"
    assert lines[1].endswith("7/16 passed")
    lines, first = shown(3, [RecentRun(replace(row, ending="going on", totals=Totals()))])
    assert lines == ["19 ◐ 0:07   ──────── 0/16"]


def test_of_an_interrupted_run_the_cases_without_a_result_have_not_passed():
    row = replace(run(19, 7, 3, 0).row, ending="interrupted")
    cut = RecentRun(row, is_whole=False)
    lines, first = shown(11, [cut])
    assert lines[first] == "19 7 s ago  ━━────── 3/16   16 cases"
    for height in (3, 11):
        lines, first = shown(height, [cut])
        assert any(line.endswith("3/16 passed") for line in lines[:first])
        assert not any(line[4:].endswith("100%") or "100% 3" in line for line in lines[:first])


def test_the_rate_is_beside_the_cases_that_it_is_of():
    row = replace(RUNS[0].row, totals=Totals({"PASSED": 8, "FAILED": 2, "NOT_EVALUATED": 6}))
    assert shown(3, [RecentRun(row)])[0][0].endswith("80% 8/10 passed – 6")


def test_runs_that_cannot_be_read_or_have_no_number():
    broken = replace(RUNS[0].row, problem="is damaged", totals=Totals())
    of_adk = replace(RUNS[1].row, path=Path("a.evalset_result.json"), number=None)
    assert shown(11, [RecentRun(broken)]) == (["18 12 s ago unreadable"], 0)
    lines, first = shown(11, [RecentRun(broken), RecentRun(of_adk)])
    assert lines[first:] == [" 18 12 s ago unreadable", "adk 3 min    ━━━━━━━━ 12/16"]


async def test_runs_of_the_pane_are_compared_with_the_one_before_or_a_base(write_agent):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    write_cases(folder, "talk", {"fine": [turn("hello", "hello")]})
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 45)) as pilot:
        for number in (1, 2):
            await until(pilot, lambda: app.workbench.sets.listed)
            app.workbench.runs.run_all()
            await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
            runs = "1 run ─╯" if number == 1 else "2 runs ─╯"
            await until(pilot, lambda runs=runs: runs in screen_text(app))
        await pilot.press("tab", "equals_sign")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen) and app.screen.compared)
        assert "run 1 → run 2" in screen_text(app)
        await pilot.press("escape", "space", "equals_sign")
        await until(pilot, lambda: "This is the base; select another run" in screen_text(app))


async def test_runs_that_are_read_when_the_pane_is_gone_are_shown_nowhere(write_agent):
    """As when the workbench is left while its logs are looked for."""
    app = WorkbenchApp(Workbench(write_agent("root_agent = lambda message: message")))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.screen.query(RecentRuns))
        pane = app.screen.query_one(RecentRuns)
        runs = pane._runs
        await pane.remove()
        await runs.load()
        await pilot.pause()
