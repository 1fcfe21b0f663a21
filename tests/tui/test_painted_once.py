"""What a key paints, counted: the lines that are others than before, once, and no result twice."""

from __future__ import annotations

import asyncio
import math
import random
import re
import shutil
from pathlib import Path

import pytest
from fake_runs import FakeRuns, as_expected, says
from pilots import screen_lines, turn, until, write_cases
from rich.cells import cell_len
from textual._compositor import LayoutUpdate
from textual.app import App
from textual.widgets import Input, TextArea

from evaltui.tui.action_screen import ActionScreen
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.pane import PagePane
from evaltui.workbench.actions import actions_in, chain_of
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.result import outcomes
from evaltui.workbench.workbench import Workbench

WIDE = (160, 45)
ECHO = "def root_agent(message, session):\n    return message\n"
CASES = {f"case_{number:02d}": [turn("hello", "bye" if number % 5 == 4 else "hello")] for number in range(30)}


@pytest.fixture
def parrot(write_agent):
    folder = write_agent(ECHO, name="parrot")
    write_cases(folder, "talk", CASES)
    return folder


async def started(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None and app.workbench.sets.listed)
    await until(pilot, lambda: any("case_05" in line for line in screen_lines(app)))


_SEQUENCE = re.compile(r"\x1b\[(?:(\d+);(\d+)H|[0-?]*[ -/]*[@-~])|(.)", re.DOTALL)


class Written:
    """What a terminal shows that gets the updates of a screen; its texts alone."""

    def __init__(self, app):
        self._app = app
        self._cells = {}

    def write(self, update):
        if isinstance(update, LayoutUpdate):
            for y, strip in enumerate(update.strips, update.region.y):
                self._put(update.region.x, y, "".join(segment.text for segment in strip))
        elif update is not None:
            x = y = 0
            for row, column, character in _SEQUENCE.findall(update.render_segments(self._app.console)):
                if row:
                    x, y = int(column) - 1, int(row) - 1
                elif character != "\n":
                    self._put(x, y, character)
                    x += cell_len(character)

    def _put(self, x, y, text):
        for character in text:
            self._cells[x, y] = character
            # What lies below the second half of a wide character.
            self._cells.update(dict.fromkeys([(x + 1, y)][: cell_len(character) - 1], ""))
            x += cell_len(character)

    def lines(self):
        width, height = self._app.size
        return ["".join(self._cells.get((x, y), "") for x in range(width)).rstrip() for y in range(height)]


@pytest.fixture
def written(monkeypatch):
    """Has what is sent to the terminal, which a test does not have, put together."""
    terminals = {}

    def display(app, screen, update, _display=App._display):
        terminals.setdefault(app, Written(app)).write(update)
        _display(app, screen, update)

    monkeypatch.setattr(App, "_display", display)
    return lambda app: terminals[app].lines()


SAMPLE = Path(__file__).parents[2] / "sample_agents" / "home_automation"


class Hand:
    """Does what users, runs, agents and other programs do, as chance has it."""

    def __init__(self, app, pilot, folder, runs, chance):
        self.app, self.pilot, self.folder, self.runs, self.chance = app, pilot, folder, runs, chance
        self.deeds = []
        self._first = {path: path.read_text() for path in folder.iterdir() if path.is_file()}

    async def act(self):
        """One thing, of whose kinds what leads on comes more often."""
        kinds = [self.key] * 12 + [self.pane] * 3 + [self.outside, self.run, self.say, self.light] * 2
        await self.chance.choice(kinds)()

    async def press(self, *keys):
        self.deeds.append(" ".join(keys))
        await self.pilot.press(*keys)

    async def pane(self):
        await self.press(self.chance.choice("12345613"))

    async def key(self):
        """The key of an action that is not refused here; in a field and in a dialog what one does there."""
        app, chance = self.app, self.chance
        if isinstance(app.focused, Input | TextArea):
            text = [*chance.choice(("new words", "5", '{"a": [1]}', "fail"))]
            text = ["space" if letter == " " else letter for letter in text]
            await self.press(*text, chance.choice(("enter", "ctrl+j", "escape", "ctrl+s")))
        elif app.screen is app.screen_stack[0]:
            scopes = chain_of(app.screen.scope)
            able = [
                one for one in actions_in(*scopes) if one.refusal(app.workbench, app.screen.scope) is None
            ]
            await self.press(chance.choice([one for one in able if one.id not in _LEAVING]).keys[0])
        else:
            await self.press(chance.choice(("escape", "enter", "down", "right", "space", "escape")))

    async def run(self):
        """A run begins, goes on, waits or is cancelled."""
        bench, deed = self.app.workbench, self.chance.choice(("run_all", "wait", "go_on", "cancel", "go_on"))
        self.deeds.append(deed)
        if deed == "run_all" and bench.runs.refuses_to_run() is None:
            self.runs.act = self.chance.choice((as_expected, says("19 degrees")))
            bench.runs.run_all()
        elif deed == "cancel" and bench.is_running:
            bench.runs.cancel()
            self.runs.go_on.set()
        else:
            (self.runs.go_on.clear if deed == "wait" else self.runs.go_on.set)()

    async def say(self):
        bench = self.app.workbench
        if not bench.chat.busy:
            self.deeds.append("chat")
            bench.chat.send({"role": "user", "parts": [{"text": "Turn off the bedroom light"}]})

    async def light(self):
        size = self.chance.choice(((80, 24), (120, 36), WIDE, None))
        self.deeds.append(f"size {size}")
        if size is None:
            self.app.theme = self.chance.choice(("evaltui-dark", "evaltui-light", "ansi-dark"))
        else:
            await self.pilot.resize_terminal(*size)

    async def outside(self):
        """Another program changes, breaks, deletes or restores a file."""
        path = self.chance.choice(sorted(self._first))
        text = self._first[path]
        deed = self.chance.choice(("break", "delete", "restore", "change", "restore"))
        self.deeds.append(f"{deed} {path.name}")
        if deed == "delete":
            path.unlink(missing_ok=True)
        else:
            changed = {"break": text[: len(text) // 2], "change": text.replace("hello", "good day")}
            path.write_text(changed.get(deed, text))


# They end the round, or wait for another program.
_LEAVING = ("quit", "in_editor", "open_source")
_PASSES = re.compile(r"\d+ s ago|\d+:\d\d|\b\d+(\.\d+)? m?s\b")


def drawn_now(app):
    """The screen with its colours, each line by itself, but for what a second changes."""
    rows = []
    for strip in app.screen._compositor.render_strips():
        spans = [(_PASSES.sub("", segment.text).strip(), str(segment.style)) for segment in strip]
        rows.append([span for span in spans if span[0]])
    return rows


async def at_rest(app, heard):
    """Waits until nothing is read, sent or drawn any more; a run may wait, as nothing of it changes then."""
    quiet = 0
    while quiet < 5:
        known = len(heard)
        await asyncio.sleep(0.01)
        draws = any(getattr(screen, "_will_draw", False) for screen in app.screen_stack)
        waits = any(one.message_queue_size for one in app.screen.walk_children(with_self=True))
        chats = app.workbench.has_chat and app.workbench.chat.busy
        quiet = 0 if draws or waits or chats or known < len(heard) else quiet + 1


async def draw_anew(app, heard):
    for screen in app.screen_stack:
        for widget in screen.walk_children(with_self=True):
            if isinstance(widget, PagePane):
                widget._written = None
            widget.refresh()
    for screen in app.screen_stack:
        if isinstance(screen, ActionScreen):
            screen.draw_soon()
    await at_rest(app, heard)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [11, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(8))])
async def test_what_is_painted_in_parts_is_what_is_painted_as_a_whole(
    tmp_path, written, monkeypatch, every_frame, thorough, seed
):
    """After each step the terminal, which gets changes alone, shows all of the screen, and each pane what it
    shows drawn anew."""
    monkeypatch.setattr("evaltui.tui.main.bars._MESSAGE_SECONDS", math.inf)
    monkeypatch.setattr(outcomes, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr("evaltui.tui.cases.view._FLASH_SECONDS", 0)
    monkeypatch.setattr(Input, "_toggle_cursor", lambda _: None)
    monkeypatch.setattr(TextArea, "_toggle_cursor_blink_visible", lambda _: None)
    folder = tmp_path / "home"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    runs = FakeRuns()
    app = WorkbenchApp(Workbench(folder, run_service=runs))
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.workbench.sets.listed)
        heard = []
        app.workbench.messages.subscribe(heard.append, WorkbenchMessage)
        hand = Hand(app, pilot, folder, runs, random.Random(seed))
        for _ in range(100 if thorough else 25):
            await hand.act()
            known = -1
            # What is heard of meanwhile may have changed what is seen.
            while known < len(heard):
                await at_rest(app, heard)
                known, in_parts = len(heard), drawn_now(app)
                sent, seen = ([_PASSES.sub("", line) for line in one(app)] for one in (written, screen_lines))
                assert sent == seen, f"after {hand.deeds}"
                await draw_anew(app, heard)
                now = drawn_now(app)
            stale = [(old, new) for old, new in zip(in_parts, now, strict=True) if old != new]
            assert not stale, f"after {hand.deeds}"
        runs.go_on.set()
