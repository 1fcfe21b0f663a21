"""Screens take nothing before they are complete, while they are covered, or once they were left."""

import importlib
import json
import pkgutil
import re
from itertools import product
from pathlib import Path

import pytest
from pilots import focused_tab, screen_text, turn, until, until_ran, write_cases
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Label

import evaltui.tui
from evaltui.tui import textual_private
from evaltui.tui.action_screen import ActionApp, ActionScreen, DialogScreen
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.criteria.screen import CriteriaScreen
from evaltui.tui.dialogs.details import DetailsScreen, RawScreen
from evaltui.tui.dialogs.finding import FindCaseScreen
from evaltui.tui.dialogs.framed import FramedScreen
from evaltui.tui.dialogs.keys import HelpScreen
from evaltui.tui.dialogs.palette import PaletteScreen
from evaltui.tui.dialogs.unsaved import RecoveryScreen
from evaltui.tui.layout import KEYS, Layout
from evaltui.tui.main import dialogs
from evaltui.tui.main.screen import MainScreen
from evaltui.tui.pane import PaneFrame
from evaltui.tui.runs.screen import RunsScreen
from evaltui.workbench.actions import Scope
from evaltui.workbench.cases import set_editing
from evaltui.workbench.state import Selection, Stage
from evaltui.workbench.workbench import Workbench

NARROW, MEDIUM, WIDE = (80, 24), (100, 30), (160, 45)
ECHO = "def root_agent(message, session):\n    return message\n"


@pytest.fixture
def parrot(write_agent):
    folder = write_agent(ECHO, name="parrot")
    return write_cases(folder, "talk", {"fine": [turn("hello", "hello")], "wrong": [turn("hello", "bye")]})


CALLER = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        yield tool_call("book", {"date": "2026-11-22"})
        yield text("booked")
"""


@pytest.fixture
def caller(write_agent):
    folder = write_agent(CALLER, name="caller")
    book = {"name": "book", "args": {"date": "2026-01-01"}}
    return write_cases(
        folder, "talk", {"fine": [turn("hi", "booked")], "wrong": [turn("hi", "booked", book)]}
    )


async def started(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.sets.listed)
    await until(pilot, lambda: app.screen.focused is not None)


def press_at_once(app, *keys):
    """All of them are sent before the first one has been looked at."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


def modules():
    for found in pkgutil.walk_packages(evaltui.tui.__path__, "evaltui.tui."):
        yield importlib.import_module(found.name)


def every_screen():
    return {
        one
        for module in modules()
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Screen) and one.__module__.startswith("evaltui.")
    }


def test_every_screen_has_keys_wherever_the_focus_is():
    # The whole of a raw screen is one text field, which has its keys.
    bases = {
        ActionScreen,
        DialogScreen,
        FramedScreen,
        textual_private.HearingScreen,
        RawScreen,
    }
    without = {one for one in every_screen() - bases if not one._merge_bindings().key_to_bindings}
    assert without == set()


def test_every_screen_is_an_action_screen():
    screens = every_screen()
    assert len(screens) > 20
    assert {one for one in screens if not issubclass(one, ActionScreen)} == {textual_private.HearingScreen}


def test_no_timer_that_ticks_once_is_one_that_may_never_tick():
    sources = Path(evaltui.tui.__file__).parent.rglob("*.py")
    found = [path.name for path in sources if ".set_timer(" in path.read_text("utf-8")]
    assert found == [Path(textual_private.__file__).name]


def test_every_late_method_of_the_main_screen_is_added():
    names = {name for name in vars(dialogs) if name.startswith(("action_", "on_", "ask_pending"))}
    assert names
    assert names <= vars(MainScreen).keys()


def test_work_is_started_by_its_function():
    """A coroutine that is made before its worker begins is never awaited where the app is left meanwhile."""
    sources = Path(evaltui.tui.__file__).parent.rglob("*.py")
    coroutine = re.compile(r"\.run_worker\((?!partial\()[\w.]+\(")
    assert [path.name for path in sources if coroutine.search(path.read_text("utf-8"))] == []


async def test_a_timer_whose_time_has_passed_before_it_began_ticks_all_the_same():
    app = App()
    async with app.run_test() as pilot:
        ticked = []
        textual_private.call_later_once(app, 1e-9, lambda: ticked.append("once"))
        await until(pilot, lambda: ticked)


async def test_a_pane_that_another_one_comes_over_does_not_keep_the_focus(parrot):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=MEDIUM) as pilot:
        await started(app, pilot)
        await pilot.press("4", "escape", "r")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("tab")
        await until(pilot, lambda: focused_tab(app) == "1 Cases")
        await pilot.press("tab")
        await until(pilot, lambda: app.screen.focused.id == "result")


def test_the_pane_with_the_focus_is_shown_at_every_size():
    for pane, other in product(KEYS, KEYS):
        layout = Layout()
        layout.go_to(pane)
        if other != "cases":
            layout.bring_up(other)
        for (width, height), maximised in product(((80, 24), (100, 30), (160, 45), (220, 60)), (False, True)):
            layout.maximised = maximised
            assert pane in {place.shown for place in layout.places(Size(width, height))}


class _LooksForItsText(DialogScreen[None]):
    def compose(self) -> ComposeResult:
        yield Label("here")

    def on_mount(self) -> None:
        self.query_one(Label)


async def test_an_app_may_be_left_while_a_screen_opens():
    app = ActionApp[None]()
    async with app.run_test() as pilot:
        app.push_screen(_LooksForItsText())
        app.exit()
        await pilot.pause()


async def test_what_leaves_a_screen_twice_leaves_it_once(parrot, thorough):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        opened = (("question_mark", HelpScreen), ("ctrl+g", FindCaseScreen))
        for opening, kind in opened if thorough else opened[1:]:
            press_at_once(app, opening)
            await until(pilot, lambda kind=kind: isinstance(app.screen, kind))
            screen = app.screen
            screen.dismiss(None)
            screen.dismiss(None)
            await app.run_action("close_help", screen)
            await pilot.click(offset=(0, 0))
            await until(pilot, lambda: isinstance(app.screen, MainScreen))
        press_at_once(app, "question_mark", "enter", "enter", "enter")
        await pilot.click(offset=(0, 0))
        await pilot.click(offset=(0, 0))
        await until(pilot, lambda: isinstance(app.screen, MainScreen))


OPENED = {
    "question_mark": HelpScreen,
    "ctrl+g": FindCaseScreen,
    "ctrl+p": PaletteScreen,
    "m": CriteriaScreen,
    "H": RunsScreen,
}


async def test_keys_that_come_before_a_screen_is_there_are_for_it(parrot, thorough):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        for opening, kind in OPENED.items() if thorough else [*OPENED.items()][:2]:
            # On the main screen one of them would run every case, another one a case.
            press_at_once(app, opening, "down", "up", "R", "r")
            app.post_message(events.Paste("late"))
            await until(pilot, lambda kind=kind: isinstance(app.screen, kind) and app.screen.is_mounted)
            press_at_once(app, "escape")
            await until(pilot, lambda: isinstance(app.screen, MainScreen))
            assert app.workbench.runs.current is None


async def test_escape_never_cancels_a_run_and_ctrl_c_does_from_every_screen(write_agent):
    folder = write_agent("import time\ndef root_agent(message, session):\n    time.sleep(600)\n", name="slow")
    write_cases(folder, "talk", {"endless": [turn("hello", "hello")]})
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=WIDE) as pilot:
        await started(app, pilot)
        await pilot.press("r")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.running)
        run = app.workbench.runs.current
        for pane in "123456":
            await pilot.press(pane, "escape", "escape")
        await pilot.press("1")
        for opening, kind in OPENED.items():
            await pilot.press(opening)
            await until(pilot, lambda kind=kind: isinstance(app.screen, kind) and app.screen.is_mounted)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, MainScreen))
            assert run.stage is Stage.RUNNING
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, CriteriaScreen) and app.screen.is_mounted)
        await pilot.press("ctrl+c")
        await until_ran(pilot, lambda: run.over)
        assert run.stage is Stage.CANCELLED


async def test_clicks_and_keys_in_the_palette_come_as_fast_as_they_like(parrot, thorough):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        for _ in range(10 if thorough else 1):
            press_at_once(app, "ctrl+p", *"to console", "down", "up")
            await until(pilot, lambda: isinstance(app.screen, PaletteScreen))
            press_at_once(app, "enter", "enter", "escape")
            await pilot.click(offset=(40, 12), times=2)
            await until(pilot, lambda: isinstance(app.screen, MainScreen))
        await until(pilot, lambda: app.screen.scope is Scope.CONSOLE)


async def test_a_covered_screen_follows_the_size_and_the_run_once_it_is_seen_again(parrot):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=WIDE) as pilot:
        await started(app, pilot)
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await until(pilot, lambda: app.screen.takes_input)
        app.workbench.runs.run_all()
        await until_ran(pilot, lambda: app.workbench.runs.current.over)
        await pilot.resize_terminal(80, 24)
        await pilot.press("escape")
        await until(pilot, lambda: "Run 1" in screen_text(app))
        assert [one.id for one in app.screen.query(PaneFrame) if one.display] == ["cases-frame"]


async def test_keys_do_nothing_that_cannot_be_seen(parrot):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: "evaltui needs" in screen_text(app))
        await pilot.press("D", "R", "question_mark")
        assert isinstance(app.screen, MainScreen)
        assert app.workbench.runs.current is None
        assert not app.workbench.editing.unsaved()
        await pilot.resize_terminal(80, 24)
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)


async def test_a_run_that_is_cancelled_before_its_first_step_ends(parrot):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        app.workbench.runs.run_all()
        app.workbench.runs.cancel()
        await until_ran(pilot, lambda: app.workbench.runs.current.over)
        assert app.workbench.runs.refuses_to_run() is None
        await until(pilot, lambda: "Run 1 cancelled after 0 of 2" in screen_text(app))


async def test_what_was_lost_is_offered_although_another_screen_is_shown_first(
    parrot, no_settings_of_the_user
):
    before = Workbench(parrot.parent)
    await before.open()
    assert set_editing.new_case(before.editing)
    before.editing.open_file(parrot).recovery.lock.release()
    no_settings_of_the_user.mkdir()
    (no_settings_of_the_user / "keys.toml").write_text("no_such_action = 'x'\n")
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen) and app.workbench.sets.listed)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))


async def test_nothing_is_begun_any_more_once_it_is_being_left(parrot):
    app = WorkbenchApp(Workbench(parrot.parent))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        app.leaving = True
        press_at_once(app, "R", "question_mark")
        await pilot.pause()
        assert app.workbench.runs.current is None
        assert isinstance(app.screen, MainScreen)


def without_cases(path):
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"eval_cases": []}))


def without_file(path):
    path.unlink()


def broken(path):
    path.write_text('{"eval_cases": [')


DIALOGS = {
    "accept cases": ("1", ["a"], ["enter"]),
    "rename": ("1", ["f2"], [*"other", "enter"]),
    "chat from": ("1", ["c"], ["enter"]),
    "criteria": ("1", ["m"], ["right", "enter"]),
    "accept": ("3", ["n", "a"], ["enter"]),
    "relax": ("3", ["n", "x"], ["enter"]),
}
# The others take longer than they find.
DAILY = (("relax", without_file),)


@pytest.mark.parametrize(
    ("dialog", "gone"),
    [
        pytest.param(dialog, gone, marks=() if (dialog, gone) in DAILY else pytest.mark.thorough)
        for dialog, gone in product(DIALOGS, (without_cases, without_file, broken))
    ],
)
async def test_a_case_may_go_while_a_dialog_about_it_is_open(caller, dialog, gone):
    pane, keys, then = DIALOGS[dialog]
    app = WorkbenchApp(Workbench(caller.parent))
    async with app.run_test(size=NARROW) as pilot:
        await started(app, pilot)
        app.workbench.runs.run_all()
        await until_ran(pilot, lambda: app.workbench.runs.current.over)
        app.workbench.navigation.select(Selection(caller.name, "wrong"))
        # Keys are about what is shown.
        await until(pilot, lambda: not app.screen._will_draw)
        await pilot.press(pane, *keys)
        await until(pilot, lambda: not isinstance(app.screen, MainScreen) and app.screen.is_mounted)
        gone(caller)
        await app.workbench.open()
        await pilot.press(*then, "escape", "escape", "escape", "1")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        await until(pilot, lambda: "1 Cases" in screen_text(app))
