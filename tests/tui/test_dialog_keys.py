"""Each key in each dialog: esc changes nothing, enter and ctrl+s do the same, the shown keys work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from pilots import screen_lines, screen_text, turn, until, until_ran, workbench_on, write_cases

from evaltui.documents.values import put
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.chat.begin import ChatFromScreen, NewChatScreen
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.dialogs.accept import AcceptScreen
from evaltui.tui.dialogs.details import ConvertScreen
from evaltui.tui.dialogs.finding import FindCaseScreen
from evaltui.tui.dialogs.keys import GuideScreen, HelpScreen
from evaltui.tui.dialogs.merge_conflict import MergeConflictScreen
from evaltui.tui.dialogs.palette import PaletteScreen
from evaltui.tui.dialogs.prompt import Dialog, DialogKeys, Hint, PromptScreen, RepeatScreen
from evaltui.tui.dialogs.relax import RelaxScreen
from evaltui.tui.dialogs.unsaved import Recovery, RecoveryScreen, UnsavedScreen
from evaltui.tui.start.chooser import ChooserApp, StarterScreen
from evaltui.workbench.actions import ACTIONS_BY_ID
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

SIZES = ((80, 24), (60, 16), (120, 36), (220, 60))
HOUSE = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        if message == "light off":
            yield tool_call("set_light", {"room": "Kitchen", "on": "no"})
        yield text("It is off.")
"""
LIGHT = {"name": "set_light", "args": {"room": "Kitchen", "on": False}}
OLD = [{"query": "hello", "expected_tool_use": [], "reference": "hi"}]
# Of every dialog; letters are those that are bound in it.
MOVES = ("tab", "down", "right", "ctrl+c")
MORE_MOVES = ("shift+tab", "up", "left", "pagedown", "pageup", "home", "end", "space", "ctrl+z", "f5")
# What they do is looked at apart.
LEAVING = {
    *("confirm", "confirm", "confirm", "confirm", "save_and_leave", "discard_and_leave", "next_difference"),
}
CANCELLING = {"close"}
PAIRS = {"←→": ("left", "right"), "↑↓": ("down", "up")}


class Way(NamedTuple):
    """The keys that open a dialog from the list of cases, and those that make a change in it."""

    screen: type[Any]
    keys: tuple[str, ...]
    change: tuple[str, ...] = ()
    compared: str = "every day"
    """When enter and ctrl+s are compared: `every day`, `thoroughly` or `never`."""


WAYS = {
    "accept": Way(AcceptScreen, ("3", "n", "a")),
    "relax": Way(RelaxScreen, ("3", "n", "x")),
    "rename": Way(PromptScreen, ("f2",), ("x",)),
    "new set": Way(PromptScreen, ("O",), compared="never"),
    "new set without a name": Way(PromptScreen, ("O",)),
    "convert": Way(ConvertScreen, ("end", "i"), compared="never"),
    "repeat": Way(RepeatScreen, ("asterisk",), ("2",), "thoroughly"),
    "repeat for nothing": Way(RepeatScreen, ("asterisk",), ("x",)),
    "save as case": Way(SaveCaseScreen, ("4", "ctrl+t"), ("n",)),
    "chat from": Way(ChatFromScreen, ("c",), (), "thoroughly"),
    "new chat": Way(NewChatScreen, ("4", "ctrl+n"), (), "thoroughly"),
    "help": Way(HelpScreen, ("question_mark",), compared="never"),
    "guide": Way(GuideScreen, ("f1", "f1"), compared="never"),
    "palette": Way(PaletteScreen, ("ctrl+p",), compared="never"),
    "find": Way(FindCaseScreen, ("ctrl+g",), ("h",), "thoroughly"),
}


# Others of their kind are among the rest; these are looked at with --thorough alone.
OF_A_KIND = {"new set", "new set without a name", "repeat for nothing", "guide", "palette", "find"}


@pytest.fixture
def house(write_agent):
    folder = write_agent(HOUSE, name="house")
    write_cases(folder, "lights", {"dark": [turn("light off", "It is off.", LIGHT)], "hi": [turn("hi", "x")]})
    (folder / "older.test.json").write_text(json.dumps(OLD), encoding="utf-8")
    return folder


def state(app):
    """What a dialog must not change before it is confirmed: the files, here and on disk, and undo."""
    editing, folder = app.workbench.editing, app.workbench.agent.dir
    files = {path.name: path.read_text("utf-8") for path in folder.glob("*.json")}
    opened = {}
    for name, text in files.items():
        file = editing.open_file(folder / name)
        opened[name] = file.document.text if file is not None and file.document.text != text else None
    return files, opened, editing.undo_label, tuple(path.name for path in editing.unsaved())


async def home(app, pilot):
    """The list of cases, on the case with the difference, as it was on disk at first."""
    for _ in range(9):
        if len(app.screen_stack) == 1:
            break
        await pilot.press("escape")
    await until(pilot, lambda: len(app.screen_stack) == 1)
    runs = app.workbench.runs
    await until_ran(pilot, lambda: runs.current is None or runs.current.over)
    while app.workbench.editing.undo_label:
        app.workbench.editing.undo()
    app.workbench.navigation.select(Selection("lights.evalset.json", "dark"))
    app.screen.go_to("cases")


async def opened(app, pilot, way):
    await home(app, pilot)
    before = state(app)
    await pilot.press(*way.keys)
    await until(pilot, lambda: isinstance(app.screen, way.screen) and app.screen.is_mounted)
    await settled(app, pilot)
    return before


async def settled(app, pilot):
    """What a change would do is known."""
    await until(pilot, lambda: "Reading the run log" not in screen_text(app))
    await until(pilot, lambda: "◐" not in screen_text(app))


def letters(screen):
    """The letters that are bound in a dialog and neither apply nor cancel it."""
    for key, one in screen.active_bindings.items():
        if len(key) == 1 and one.binding.id in ACTIONS_BY_ID and one.binding.id not in LEAVING | CANCELLING:
            yield key


def shown_hints(screen) -> list[Hint]:
    return [hint for keys in screen.query(DialogKeys) for hint in keys._hints()]


def check_shown_keys(app, name):
    """Every key of the line has an action that something in the dialog does; the footer has none."""
    screen = app.screen
    assert screen.query(Dialog), name
    assert not app.screen_stack[0].query("Footer") or not screen_lines(app)[-1].strip(" │╰─╯"), name
    hints = shown_hints(screen)
    assert hints[-1].action in {*CANCELLING, "leave_field"}, f"{name}: esc is the last key"
    for hint in hints:
        for key in PAIRS.get(hint.keys, ACTIONS_BY_ID[hint.action].keys[:1]):
            binding = screen.active_bindings.get(key)
            assert binding is not None, f"{name}: {key} is shown and not bound"
            nodes = (screen.focused or screen).ancestors_with_self
            method = ACTIONS_BY_ID[binding.binding.action].method
            assert any(hasattr(node, method) for node in nodes), f"{name}: {key} does nothing"


async def check_cancelled(app, pilot, name, way, keys):
    """After these keys esc leads out, and nothing is changed."""
    before = await opened(app, pilot, way)
    check_shown_keys(app, name)
    for key in keys or (*MOVES, *letters(app.screen)):
        await pilot.press(key)
        assert app.is_running, f"{name}: {key} quits"
        assert len(app.screen_stack) > 1, f"{name}: {key} closes it"
        assert state(app) == before, f"{name}: {key} changes something"
    dialogs = len(app.screen_stack) - 1
    await pilot.press(*["escape"] * dialogs)
    await until(pilot, lambda: len(app.screen_stack) == 1)
    assert state(app) == before, f"{name}: esc changes something"


async def check_applied(app, pilot, name, way):
    """Enter and ctrl+s do the same: they close the dialog, or say why not and change nothing."""
    effects = []
    for key in ("enter", "ctrl+s"):
        before = await opened(app, pilot, way)
        await pilot.press(*way.change)
        await settled(app, pilot)
        dialog, text = app.screen, screen_text(app)
        await pilot.press(key)
        await until(pilot, lambda d=dialog, t=text: app.screen is not d or screen_text(app) != t or "!" in t)
        await pilot.pause()
        refused = app.screen is dialog
        if refused:
            assert state(app) == before, f"{name}: {key} changes something and does not close it"
        effects.append((refused, state(app)))
        for path in {*app.workbench.agent.dir.glob("*.json")}:
            if path.name not in before[0]:
                path.unlink()
    assert effects[0] == effects[1], f"{name}: enter and ctrl+s differ"


async def prepared(app, pilot):
    """A run with a difference, and a conversation of one turn."""
    await until(pilot, lambda: app.workbench.sets.listed)
    app.workbench.runs.run_all()
    await until_ran(pilot, lambda: app.workbench.runs.current.over)
    app.workbench.chat.send({"role": "user", "parts": [{"text": "hello"}]})
    chat = app.workbench.chat
    await until_ran(pilot, lambda: chat.transcript and chat.transcript.turns and not chat.busy)


async def test_esc_leads_out_of_each_dialog_after_any_key_and_changes_nothing(house):
    async with workbench_on(house, SIZES[0]) as (app, pilot):
        await prepared(app, pilot)
        for name, way in WAYS.items():
            if name not in OF_A_KIND:
                await check_cancelled(app, pilot, name, way, ())


async def test_enter_and_ctrl_s_apply_each_dialog_or_say_why_not(house):
    async with workbench_on(house, SIZES[0]) as (app, pilot):
        await prepared(app, pilot)
        for name, way in WAYS.items():
            if way.compared == "every day":
                await check_applied(app, pilot, name, way)


@pytest.mark.thorough
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
async def test_each_key_alone_at_each_size(house, size, name):
    app, way = WorkbenchApp(Workbench(house)), WAYS[name]
    async with app.run_test(size=size) as pilot:
        await prepared(app, pilot)
        await opened(app, pilot, way)
        for key in (*MOVES, *MORE_MOVES, *letters(app.screen)):
            await check_cancelled(app, pilot, name, way, (key, "ctrl+c", key))
        if way.compared != "never":
            await check_applied(app, pilot, name, way)


# Those that come up by themselves


def edit(app, house, text):
    where = ("eval_cases", 0, "conversation", 0, "final_response", "parts", 0, "text")
    path = house / "lights.evalset.json"
    assert app.workbench.editing.do("change the response", path, lambda one: put(one.data, where, text))
    return path


async def check_keys(app, pilot, name, is_open: Callable[[], bool]):
    await until(pilot, is_open)
    check_shown_keys(app, name)
    before = state(app)
    for key in (*MOVES, *letters(app.screen)):
        await pilot.press(key)
        assert is_open(), f"{name}: {key} closes it"
        assert state(app) == before, f"{name}: {key} changes something"
    await pilot.press("escape")
    await until(pilot, lambda: not is_open())
    assert state(app) == before, f"{name}: esc changes something"


async def test_dialogs_that_come_up_by_themselves(house):
    async with workbench_on(house, SIZES[0]) as (app, pilot):
        path = edit(app, house, "mine")
        await pilot.press("q")
        await check_keys(app, pilot, "unsaved", lambda: isinstance(app.screen, UnsavedScreen))
        assert app.is_running
        data = json.loads(path.read_text("utf-8"))
        data["eval_cases"][0]["conversation"][0]["final_response"]["parts"][0]["text"] = "theirs"
        path.write_text(json.dumps(data), encoding="utf-8")
        for key in ("enter", "ctrl+s"):
            assert not await app.workbench.editing.save_all()
            await until(pilot, lambda: isinstance(app.screen, MergeConflictScreen))
            before = state(app)
            await pilot.press(key)
            await until(pilot, lambda: "1 undecided" in screen_text(app))
            assert state(app) == before
            await check_keys(app, pilot, "conflict", lambda: isinstance(app.screen, MergeConflictScreen))


async def test_what_a_crash_left_is_there_until_it_is_confirmed(house, monkeypatch):
    workbench = Workbench(house)
    await workbench.open()
    where = ("eval_cases", 0, "conversation", 0, "final_response", "parts", 0, "text")
    path = house / "lights.evalset.json"
    assert workbench.editing.do("change the response", path, lambda one: put(one.data, where, "mine"))
    # The lock ends with the process; this one goes on.
    workbench.editing.open_file(path).recovery.lock.release()
    applied: list[Recovery] = []
    async with workbench_on(house, SIZES[0]) as (app, pilot):
        with monkeypatch.context() as patch:
            patch.setattr(Recovery, "apply", applied.append)
            await check_keys(app, pilot, "recovery", lambda: isinstance(app.screen, RecoveryScreen))
    assert not applied


async def test_a_starter_is_written_only_once_it_is_confirmed(tmp_path):
    for key in ("escape", "ctrl+c", "enter", "ctrl+s"):
        folder = tmp_path / key
        folder.mkdir()
        app = ChooserApp(folder, [])
        async with app.run_test(size=SIZES[0]) as pilot:
            await pilot.press("s")
            await until(pilot, lambda app=app: isinstance(app.screen, StarterScreen))
            check_shown_keys(app, "starter")
            await pilot.press("tab", "right", "left", "up", key)
            await pilot.pause()
            is_written = (folder / "agent.py").exists()
            assert is_written is (key in ("enter", "ctrl+s"))
