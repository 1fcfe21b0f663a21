"""A read-only workbench: every way to edit, write, run, chat or open an editor is closed, and says so."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from pilots import screen_text, turn, until, write_cases
from stored_matrix import write_matrix

from evaltui.core.model.case_id import CaseId
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.main.screen import MainScreen
from evaltui.tui.matrix.screen import MatrixScreen
from evaltui.tui.runs.screen import RunsScreen
from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID, Scope, chain_of
from evaltui.workbench.state import READ_ONLY, Selection
from evaltui.workbench.workbench import Workbench

SIZE = (160, 45)
# Whoever presses these leaves, or is asked by Textual for a terminal.
LEAVING = {"quit", "jump"}


@pytest.fixture
async def ran(write_agent):
    """A folder with an agent, an eval set and a stored run of it, in which a case fails."""
    folder = write_agent("def root_agent(message, session):\n    return message\n", name="parrot")
    write_cases(folder, "talk", {"fine": [turn("hello", "hello")], "wrong": [turn("hello", "goodbye")]})
    await run_all(folder)
    return folder


async def run_all(folder: Path) -> None:
    workbench = Workbench(folder)
    await workbench.open()
    workbench.runs.run_all()
    await workbench.runs.finished()
    await workbench.close()


def everything(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """What is in a folder, and when it was written."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture
def no_process(monkeypatch):
    """Fails where a process is started."""

    def started(*words, **options):
        raise AssertionError(f"started {words}")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    monkeypatch.setattr(asyncio, "create_subprocess_shell", started)
    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(os, "fork", started)
    monkeypatch.setenv("EDITOR", "editor-that-does-not-exist")


async def read(folder: Path) -> Workbench:
    workbench = Workbench(folder, read_only=True)
    await workbench.open()
    await workbench.outcomes.restore()
    return workbench


async def test_the_workbench_itself_refuses(ran, no_process):
    before = everything(ran)
    workbench = await read(ran)
    case = CaseId(workbench.sets.listed[0].case_path, "wrong")
    workbench.navigation.select(Selection(*case))
    path = workbench.sets.listed[0].path
    assert workbench.outcomes.get(case) is not None
    said = {"role": "user", "parts": [{"text": "hi"}]}

    async def refused(attempt):
        workbench.say("")
        done = attempt()
        if asyncio.isfuture(done) or asyncio.iscoroutine(done):
            done = await done
        assert not done
        assert workbench.messages.notice is not None
        assert workbench.messages.notice.text == READ_ONLY

    await refused(workbench.runs.run_case)
    await refused(workbench.runs.run_all)
    await refused(workbench.watch.start)
    await refused(lambda: workbench.chat.send(said))
    await refused(lambda: workbench.editing.do("edit", path, lambda editor: editor.rename("other")))
    await refused(lambda: workbench.editing.do_edits("edit", {path: []}))
    await refused(lambda: workbench.editing.new_file(ran / "new.evalset.json", "{}"))
    workbench.received.start()
    assert workbench.received.problem == READ_ONLY
    assert not workbench.received.is_on
    workbench.chat.new()
    await until_idle(workbench)
    assert READ_ONLY in workbench.chat.transcript.broken.message
    workbench.agent.load_again()
    workbench.agent.keep_host_warm()
    await workbench.close()
    assert everything(ran) == before


async def until_idle(workbench: Workbench) -> None:
    while workbench.chat.busy:
        await asyncio.sleep(0)


async def test_a_key_says_so_and_the_palette_and_the_footer_are_without_it(ran, no_process):
    app = WorkbenchApp(Workbench(ran, read_only=True))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.workbench.outcomes.counts())
        assert "read-only" in screen_text(app).splitlines()[0]
        assert " run " not in screen_text(app).splitlines()[-1]
        await pilot.press("r")
        await until(pilot, lambda: READ_ONLY in screen_text(app))
        await pilot.press("ctrl+p", *"run case")
        await until(pilot, lambda: "Unavailable" in screen_text(app))
        await pilot.press("escape", "H")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and "Run 1" in screen_text(app))
        app.workbench.say("")
        await pilot.press("f2")
        await until(pilot, lambda: READ_ONLY in screen_text(app))


async def confirmed(pilot, *kinds):
    """Gives each dialog that lies over screens of these kinds what it asks for, and leaves it if it stays."""
    if not isinstance(pilot.app.screen, kinds):
        await pilot.press("enter")
    while not isinstance(pilot.app.screen, kinds):
        await pilot.app.pop_screen()


async def test_no_key_of_a_matrix_writes_anything(ran, no_process, monkeypatch):
    """With what its dialogs suggest, such as the name of a file."""
    write_matrix(ran)
    monkeypatch.chdir(ran)
    before = everything(ran)
    app = WorkbenchApp(Workbench(ran, read_only=True))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.workbench.outcomes.counts())
        for one in ACTIONS:
            if Scope.MATRIX not in one.where or one.id == "close":
                continue
            for key in one.keys:
                if not isinstance(app.screen, MatrixScreen):
                    await pilot.press("V")
                    await until(pilot, lambda: "executions" in screen_text(app))
                await pilot.press(key)
                await confirmed(pilot, MatrixScreen, MainScreen)
    assert everything(ran) == before


async def test_what_others_run_and_save_is_shown_without_a_key(ran):
    app = WorkbenchApp(Workbench(ran, read_only=True))
    async with app.run_test(size=SIZE) as pilot:
        workbench = app.workbench
        await until(pilot, lambda: workbench.outcomes.counts()["FAILED"])
        case = CaseId(workbench.sets.listed[0].case_path, "wrong")
        (ran / "agent.py").write_text("def root_agent(message, session):\n    return 'goodbye'\n")
        await until(pilot, lambda: workbench.outcomes.is_stale(case))
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and "Run 1" in screen_text(app))
        await run_all(ran)
        await until(pilot, lambda: "Run 2" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: workbench.outcomes.last_status(case) == "PASSED")
        assert not workbench.outcomes.is_stale(case)
        write_cases(ran, "talk", {"fine": [turn("hello", "hello")], "added": [turn("hi", "hi")]})
        await until(pilot, lambda: "added" in screen_text(app))
        assert "wrong" not in screen_text(app)
        assert workbench.agent.info is None


@pytest.mark.thorough
@pytest.mark.parametrize("scope", [*Scope][:11])
async def test_no_key_writes_or_starts_anything(ran, no_process, scope):
    """In every pane, every key that works there."""
    before = everything(ran)
    app = WorkbenchApp(Workbench(ran, read_only=True))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.workbench.outcomes.counts())
        pane = scope.name.lower()
        main = app.screen_stack[0]
        assert isinstance(main, MainScreen)
        here = {one.id for one in ACTIONS if set(one.where) & set(chain_of(scope))} - LEAVING
        for action in sorted(here):
            if pane in ("cases", "case", "result", "trace", "console", "chat"):
                main.go_to(pane)
            for key in ACTIONS_BY_ID[action].keys:
                await pilot.press(key)
                await confirmed(pilot, MainScreen)
                await pilot.pause()
        await pilot.click(offset=(60, 10), times=2)
    assert everything(ran) == before
    config = Path(os.environ["XDG_CONFIG_HOME"])
    assert not [*config.rglob("*.toml"), *config.rglob("*.json")]
