"""What a key paints, counted: the lines that are others than before, once, and no result twice."""

from __future__ import annotations

import re

import pytest
from pilots import screen_lines, turn, until, until_ran, write_cases
from rich.cells import cell_len
from textual._compositor import LayoutUpdate
from textual.app import App

from evaltui.tui.app import WorkbenchApp
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


async def ran_all(app, pilot):
    await started(app, pilot)
    app.workbench.runs.run_all()
    await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)


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


_AGE = re.compile(r"\d+ s ago")


def without_age(texts):
    return [_AGE.sub("", text) for text in texts]


# Changes at the top, at the bottom and in the borders of panes that are far from each other.
KEYS = "G g j j F f space slash 9 backspace c escape 2 G 3 1 question_mark escape t j 1 G k"


async def test_a_terminal_that_gets_changes_alone_shows_all_of_the_screen(
    parrot, written, monkeypatch, every_frame
):
    monkeypatch.setattr(outcomes, "_PAUSE", 60)
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=WIDE) as pilot:
        await ran_all(app, pilot)
        await app.workers.wait_for_complete()
        for key in KEYS.split():
            await pilot.press(key)
            await until(pilot, lambda: without_age(written(app)) == without_age(screen_lines(app)))


def drawn_now(app):
    """The screen with its colours, each line by itself, but for what a second changes."""
    return [
        [(_AGE.sub("", segment.text), str(segment.style)) for segment in strip]
        for strip in app.screen._compositor.render_strips()
    ]


# Through panes, selections, marks, a filter, dialogs, the details of a result and its trace, and back.
WALK = (
    "j j space j space F f enter n n escape t j j z o h l 2 j j enter escape 3 j 5 end home 6 1 G k g slash"
    " c a s e enter escape question_mark escape ctrl+p escape tab tab shift+tab pagedown pageup"
    " 4 h e escape 1"
)


# What comes from beside the screen may be drawn between the two looks where the machine is busy.
@pytest.mark.thorough
@pytest.mark.parametrize("size", [(80, 24), WIDE], ids=["narrow", "wide"])
async def test_what_is_painted_in_parts_is_what_is_painted_as_a_whole(parrot, size, monkeypatch, every_frame):
    """After each key, whatever was left as it was is as it would be drawn now."""
    # What earlier runs say of a case is read later, and drawn then.
    monkeypatch.setattr(outcomes, "_PAUSE", 60)
    app = WorkbenchApp(Workbench(parrot))
    async with app.run_test(size=size) as pilot:
        await ran_all(app, pilot)
        await app.workers.wait_for_complete()
        keys = WALK.split()
        for number, key in enumerate(keys):
            await pilot.press(key)
            if number % 9 == 8:
                app.theme = "evaltui-light" if app.theme == "evaltui-dark" else "evaltui-dark"
            await until(pilot, lambda: not app.screen_stack[0]._will_draw)
            await pilot.pause()
            in_parts = drawn_now(app)
            for widget in app.screen.walk_children():
                widget.refresh()
            await pilot.pause()
            stale = [(old, new) for old, new in zip(in_parts, drawn_now(app), strict=True) if old != new]
            assert not stale, f"after {' '.join(keys[: number + 1])}"
