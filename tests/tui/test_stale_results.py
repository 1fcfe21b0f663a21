"""The page of a result that is not of the case as it is now."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fake_runs import FakeRuns, NoHost, says
from pilots import screen_text, turn, until, until_ran, write_cases
from textual import events

from evaltui.runs import execution
from evaltui.text.lines import draw
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.result.selected import View, write_page
from evaltui.tui.widgets.writer import DEFAULT_FOLDING, Page
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

RAN, NOW = "Hello there", "Good evening"


async def run(request, sets, on_update, start_host):
    settings = SimpleNamespace(agent=SimpleNamespace(variant=None))
    return await execution.run(request, sets, on_update, lambda: NoHost(settings))


def write(folder, message, response="Something else entirely"):
    (folder / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
    return write_cases(folder, "talk", {"a": [turn(message, response), turn("Bye", "Bye")]})


async def page_of(workbench):
    workbench.navigation.select(Selection("talk.evalset.json", "a"))
    await workbench.outcomes.rescored([])
    page = Page(120, 180)
    write_page(page, workbench, View(DEFAULT_FOLDING, 60, is_small=False))
    return "\n".join(draw(line, color=False) for line in page.lines)


@pytest.mark.parametrize("where", ["here", "between two starts"])
async def test_a_stale_result_shows_the_messages_of_its_run(where, tmp_path, monkeypatch):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns(says("Bye")).follow)
    write(tmp_path, RAN)
    workbench = Workbench(tmp_path, run_service=run)
    await workbench.open()
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert "expected talk.evalset.json:1" in await page_of(workbench)
    write(tmp_path, NOW, "Other words")
    if where == "here":
        await workbench.open()
    else:
        await workbench.close()
        workbench = Workbench(tmp_path, run_service=run)
        await workbench.open()
        await workbench.outcomes.restore()
    shown = await page_of(workbench)
    await workbench.close()
    assert "stale: case changed" in shown
    assert RAN in shown
    assert NOW not in shown
    # The expectations that are shown are in no file any more.
    assert "Something else" in shown
    assert "talk.evalset.json" not in shown


@pytest.mark.parametrize("name", ["agent.py", "talk.evalset.json", "test_config.json"])
async def test_what_was_changed_elsewhere_is_stale_when_the_terminal_gets_the_focus(name, tmp_path):
    set_path = write(tmp_path, RAN, RAN)
    app = WorkbenchApp(Workbench(tmp_path, run_service=FakeRuns()))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.workbench.sets.is_read)
        await pilot.press("R")
        await until_ran(pilot, lambda: "✓ PASSED" in screen_text(app))
        app.post_message(events.AppBlur())
        if name == "agent.py":
            (tmp_path / name).write_text("def root_agent(message, session):\n    return 'other'\n")
        elif name == "test_config.json":
            (tmp_path / name).write_text("{oops")
        else:
            set_path.write_text(set_path.read_text().replace(RAN, NOW))
        app.post_message(events.AppFocus())
        reason = {"talk.evalset.json": "case", "test_config.json": "config"}.get(name, name)
        app.workbench.navigation.select(Selection("talk.evalset.json", "a"))
        await until(pilot, lambda: f"stale: {reason} changed after run 1" in screen_text(app))
        assert not app.workbench.outcomes.counts()["PASSED"]


@pytest.mark.parametrize("watches", [False, True])
async def test_a_run_of_another_process_is_shown_when_the_terminal_gets_the_focus(watches, tmp_path):
    # Of what a subprocess reads, nobody knows.
    service, folder = tmp_path / "service.txt", tmp_path / "desk"
    folder.mkdir()
    service.write_text(RAN)
    write_cases(folder, "talk", {"a": [turn("Hi", RAN)]})
    (folder / "agent.py").write_text(
        "import subprocess\n\ndef root_agent(message, session):\n"
        f"    return subprocess.check_output(['cat', {str(service)!r}], text=True)\n"
    )
    app, other = WorkbenchApp(Workbench(folder)), Workbench(folder)
    async with app.run_test(size=(120, 36)) as pilot:
        bench = app.workbench
        await until(pilot, lambda: bench.sets.is_read)
        if watches:
            bench.watch.start()
            await bench.watch.ready()
        await pilot.press("R")
        await until_ran(pilot, lambda: bench.outcomes.counts()["PASSED"] == 1 and not bench.is_running)
        service.write_text("Something else")
        await other.open()
        other.runs.run_all()
        await other.runs.finished()
        app.post_message(events.AppFocus())
        await until(pilot, lambda: bench.outcomes.counts()["FAILED"] == 1)
    await other.close()


@pytest.mark.parametrize("name", ["agent.py", "talk.evalset.json"])
async def test_what_was_changed_elsewhere_during_a_run_is_stale_before_the_run_ends(name, tmp_path):
    (tmp_path / "agent.py").write_text(
        "import asyncio, pathlib\n\nasync def root_agent(message, session):\n"
        "    while message == 'wait' and not pathlib.Path(__file__).with_name('go').exists():\n"
        "        await asyncio.sleep(0.05)\n    return message\n"
    )
    cases = {"a": [turn(RAN, RAN)], "slow": [turn("wait", "wait")]}
    set_path = write_cases(tmp_path, "talk", cases)
    app = WorkbenchApp(Workbench(tmp_path))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.workbench.sets.is_read)
        app.workbench.navigation.select(Selection("talk.evalset.json", "a"))
        await pilot.press("R")
        await until_ran(pilot, lambda: "✓ PASSED" in screen_text(app))
        path = tmp_path / name
        path.write_text(path.read_text().replace(RAN, NOW) + "\n")
        app.post_message(events.AppFocus())
        reason = "case" if path == set_path else name
        await until(pilot, lambda: f"stale: {reason} changed after run 1" in screen_text(app))
        assert app.workbench.is_running
        (tmp_path / "go").touch()
        await until_ran(pilot, lambda: app.workbench.runs.current.over)


async def test_a_turn_has_no_verdict_of_another_turn_and_none_that_is_stale(tmp_path, monkeypatch):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns(says("Bye")).follow)
    write(tmp_path, RAN)
    app = WorkbenchApp(Workbench(tmp_path, run_service=run))
    async with app.run_test(size=(120, 36)) as pilot:
        bench = app.workbench
        await until(pilot, lambda: bench.sets.is_read)
        await pilot.press("R")
        await until(pilot, lambda: "✓ PASSED" in screen_text(app) or "✗ FAILED" in screen_text(app))
        bench.navigation.select(Selection("talk.evalset.json", "a"))
        await until(pilot, lambda: f"✗ 1  {RAN}" in screen_text(app) and "✓ 2  Bye" in screen_text(app))
        await bench.outcomes.open_run(bench.agent.store.files()[0], "run 1")
        write_cases(tmp_path, "talk", {"a": [turn("Bye", "Bye")]})
        await bench.open()
        for _ in range(2):
            # As it came out in the opened run, then stale.
            await until(pilot, lambda: "1  Bye" in screen_text(app))
            assert "✗ 1  " not in screen_text(app)
            bench.outcomes.leave_previous_run()
        write(tmp_path, RAN)
        await bench.open()
        await until(pilot, lambda: f"✗ 1  {RAN}" in screen_text(app))
        (tmp_path / "agent.py").write_text("# another\n")
        await bench.open()
        await until(pilot, lambda: "1  Hello" in screen_text(app) and "✗ 1  " not in screen_text(app))
