"""Keys that are typed ahead do what they do when they are typed one by one, however late screens are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pilots import screen_text, turn, until, until_ran, write_cases
from textual import events
from textual.keys import _character_to_key
from textual.message_pump import MessagePump
from textual.screen import Screen

from evaltui.tui import action_screen
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.case.view import CaseView
from evaltui.tui.textual_private import TextField
from evaltui.tui.trace.view import TraceView
from evaltui.workbench.workbench import Workbench

AGENT = """
    from evaltui.events import text, tool_call, tool_result

    def root_agent(message, session):
        for name in ("find", "book", "send"):
            yield tool_call(name, {"day": message}, id=name)
            yield tool_result(name, {"found": name}, id=name)
        yield text("It is there.")
"""
# Seconds: a frame that is far later than the keys, and what each screen and field is held up by.
LATE_FRAME = 1.0
LATE = 0.03

# What opens a place to type in, what is typed there, what ends it, and a key behind that.
TYPED = {
    "search of a trace": ("5", "/", *"book", "enter", "end", "enter"),
    "filter": ("1", "/", *"late", "enter", "end", "2"),
    "palette to a prompt": ("1", "down", "ctrl+p", *"rename", "enter", *"er", "enter", "down"),
    "fields of a case": ("2", "down", "enter", *"more", "tab", *"less", "ctrl+j", "up"),
}


@pytest.fixture
def orders(write_agent):
    folder = write_agent(AGENT, name="orders")
    cases = {name: [turn(name, "It is there."), turn("bye", "bye")] for name in ("early", "late", "one_more")}
    write_cases(folder, "orders", cases)
    return folder


async def opened(app, pilot):
    """The program with a case that was run."""
    await until(pilot, lambda: app.workbench.sets.listed)
    app.workbench.agent.learn_tools = lambda: None
    await pilot.press("down", "r")
    await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
    await pilot.press("5")
    await until(pilot, lambda: app.screen.query_one(TraceView).line_count > 5)
    await pilot.press("1")


async def came_to_rest(app, pilot):
    """Nothing is to be drawn, to be searched for or to be saved any more."""
    await pilot.pause(0.06)
    await until(pilot, lambda: not app.screen_stack[0]._will_draw and app.screen.is_mounted)
    await app.workbench.editing.finished()
    await pilot.pause()


def send(app, keys):
    """All of them are sent before the first one has been looked at."""
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 else key
        app.post_message(events.Key(name, key if len(key) == 1 else None))


def state(app):
    """Where one is, and what was typed."""
    bench, main = app.workbench, app.screen_stack[0]
    trace, case, focused = main.query_one(TraceView), main.query_one(CaseView), app.focused
    case.follow()
    return {
        "screens": [type(screen).__name__ for screen in app.screen_stack],
        "focus": focused and (type(focused).__name__, focused.id),
        "text": focused.typed if isinstance(focused, TextField) else None,
        "selection": bench.navigation.selection,
        "marked": [*bench.navigation.marking.marked],
        "searches": (bench.navigation.trace_search, bench.navigation.filtered.text),
        "span": trace.cursor,
        "row": case.row and case.row.id,
        "cases": [[one.eval_id for one in eval_set.cases] for eval_set in bench.sets.listed],
        "undo": bench.editing.undo_label,
    }


async def played(folder, keys, typed):
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(app, pilot)
        await typed(app, pilot, keys)
        await came_to_rest(app, pilot)
        return state(app), screen_text(app)


async def one_by_one(app, pilot, keys):
    for key in keys:
        await pilot.press(key)
        await came_to_rest(app, pilot)


def late(method):
    """Screens and fields are there a moment after they were asked for."""

    async def later(self: MessagePump) -> Any:
        if isinstance(self, Screen | TextField):
            await asyncio.sleep(LATE)
        return await method(self)

    return later


@pytest.mark.parametrize("name", TYPED)
async def test_what_is_typed_ahead_reaches_what_it_was_typed_for(orders, name, monkeypatch):
    keys = TYPED[name]
    before = {path: path.read_bytes() for path in orders.glob("*.json")}
    wanted, screen = await played(orders, keys, one_by_one)
    for path in orders.glob("*.json"):
        path.unlink()
    for path, content in before.items():
        path.write_bytes(content)

    async def at_once(app, pilot, keys):
        with monkeypatch.context() as patch:
            patch.setattr(action_screen, "_FRAME", LATE_FRAME)
            patch.setattr(MessagePump, "_pre_process", late(MessagePump._pre_process))
            app.screen.drawn_at = asyncio.get_running_loop().time()
            send(app, keys)
            handled = asyncio.Event()
            app.call_later(handled.set)
            await handled.wait()

    found, seen = await played(orders, keys, at_once)
    assert found == wanted, f"{screen}\n{seen}"
