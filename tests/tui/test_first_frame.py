"""What the first frame waits for, and how much is drawn when one types in the filter."""

import threading

import pytest
from pilots import screen_text, turn, until, write_cases

from evaltui.project.workspace import open_workspace
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.cases.view import CaseTree
from evaltui.tui.layout import PANES
from evaltui.tui.main import screen as main
from evaltui.tui.main.screen import MainScreen
from evaltui.tui.pane import Pane
from evaltui.workbench.messages import FilesChanged
from evaltui.workbench.workbench import Workbench

pytestmark = pytest.mark.usefixtures("every_frame")

SIZE = (160, 45)


async def test_the_cases_are_there_first_and_every_pane_follows(tmp_path, monkeypatch):
    write_cases(tmp_path, "big", {"case_0": [turn("x", "x")]})
    app = WorkbenchApp(Workbench(tmp_path))
    complete, before = MainScreen.complete, []

    def completing(screen: MainScreen) -> None:
        before.append([pane.id for pane in screen.query(Pane)])
        complete(screen)

    monkeypatch.setattr(MainScreen, "complete", completing)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(app.screen.query(Pane)) == len(PANES) + 1)
        await until(pilot, lambda: "case_0" in screen_text(app))
        assert before == [["cases"]]
        assert [pane.parent.id for pane in app.screen.query(Pane)] == [
            f"{name}-frame" for name in ("cases", "recent_runs", "case", "chat", "result", "trace", "console")
        ]


async def test_keys_do_not_wait_for_panes_that_are_still_imported(tmp_path, monkeypatch):
    write_cases(tmp_path, "big", {f"case_{number}": [turn("x", "x")] for number in range(3)})
    app = WorkbenchApp(Workbench(tmp_path))
    imported = threading.Event()

    def importing(known=main.other_panes):
        imported.wait(20)
        return known()

    monkeypatch.setattr(main, "other_panes", importing)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "case_0" in screen_text(app))
        await pilot.press("G")
        assert app.workbench.navigation.selection.eval_id == "case_2"
        assert [pane.id for pane in app.screen.query(Pane)] == ["cases"]
        imported.set()
        await until(pilot, lambda: len(app.screen.query(Pane)) == len(PANES) + 1)


async def test_a_pane_that_is_wanted_before_it_follows_is_made_at_once(tmp_path):
    write_cases(tmp_path, "big", {"case_0": [turn("x", "x")]})
    app = WorkbenchApp(Workbench(tmp_path))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("5")
        assert app.focused is app.screen.query_one("#trace", Pane)


async def test_lines_painted_before_the_list_follows_the_files_are_those_that_it_knows(tmp_path):
    write_cases(tmp_path, "big", {f"case_{number}": [turn("x", "x")] for number in range(5)})
    app = WorkbenchApp(Workbench(tmp_path))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "case_4" in screen_text(app))
        tree = app.screen.query_one(CaseTree)
        write_cases(tmp_path, "big", {"case_0": [turn("x", "x")]})
        # Nothing is drawn until something is awaited.
        app.workbench.sets.workspace = open_workspace(tmp_path)
        assert "case_4" in "".join(text for text, _ in tree.line(5))
        app.workbench.messages.publish(FilesChanged())
        await until(pilot, lambda: "case_4" not in screen_text(app))
