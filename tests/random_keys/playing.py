"""Rounds of random input on a copy of a sample agent, in this process or in a real terminal."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from input import SIZES, Action, Keys, Mouse, Outside, Paste, Resize, Wait, actions, mouse_bytes
from outside import Files
from textual import events
from textual._xterm_parser import XTermParser

ROOT = Path(__file__).parents[2]
SAMPLES = ("calculator", "home_automation", "travel_desk", "library_desk")
ACTIONS = 120
# Seconds without any progress after which it hangs; the machine may be slow.
PATIENCE = 90.0
_SHOWN = 40


@dataclass
class Round:
    """What is played, and what has been done so far. `seed` decides all of it."""

    seed: str
    sample: str
    done: deque[str] = field(default_factory=lambda: deque(maxlen=_SHOWN))
    progress: float = field(default_factory=time.monotonic)
    state: Callable[[], str] = str

    def note(self, action: object) -> None:
        self.done.append(repr(action)[:200])
        self.progress = time.monotonic()

    def story(self, what: str) -> str:
        again = f"python -m tests.random_keys --seed {self.seed} --sample {self.sample} --once"
        return "\n".join([what, f"\nAgain: {again}\nThe last actions:", *self.done])


class RoundFailed(AssertionError):
    """What went wrong, and how to do it again."""


@contextmanager
def copied(sample: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="random-keys-") as folder:
        ignored = shutil.ignore_patterns(".evaltui", ".adk", "__pycache__", "recordings")
        agent = Path(shutil.copytree(ROOT / "sample_agents" / sample, Path(folder) / sample, ignore=ignored))
        yield agent


@contextmanager
def watched(played: Round) -> Iterator[None]:
    """Ends the process, and says where it stands, when nothing goes on any more."""
    over, loop = threading.Event(), asyncio.get_running_loop()

    def watch() -> None:
        while not over.wait(1):
            if time.monotonic() - played.progress > PATIENCE:
                sys.stderr.write(played.story(f"nothing has gone on for {PATIENCE:g} s"))
                sys.stderr.write(f"\n{played.state()}\n")
                for task in asyncio.all_tasks(loop):
                    if "message pump" not in task.get_name():
                        task.print_stack(file=sys.stderr)
                faulthandler.dump_traceback(file=sys.__stderr__)
                os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


async def play(played: Round, count: int = ACTIONS) -> None:
    """One round in this process. Raises RoundFailed."""
    from evaltui.tui.app import WorkbenchApp
    from evaltui.workbench.workbench import Workbench

    chance = random.Random(played.seed)
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: complaints.append(_complaint(context))
    )
    with copied(played.sample) as agent, watched(played):
        files = Files(agent)
        watch, size = chance.random() < 0.5, chance.choice(SIZES)
        played.note(("watch", watch, "size", size))
        app = WorkbenchApp(Workbench(agent), watch=watch)
        played.state = lambda: f"{app.screen_stack} {app.workbench.runs.current} {app.workbench._task}"
        try:
            async with app.run_test(size=size) as pilot:
                hand = _Hand(app, pilot, files, size)
                for action in actions(chance, count):
                    if app._exit or not app.is_running:
                        break
                    played.note(action)
                    await hand.do(action)
                    if chance.random() < 0.4:
                        await _settled(app)
                played.note("the end")
                await _settled(app)
                await _come_to_rest(app)
        except Exception:
            raise RoundFailed(played.story(traceback.format_exc())) from None
        if complaints:
            raise RoundFailed(played.story("\n".join(complaints)))
        if problems := files.problems():
            raise RoundFailed(played.story("\n".join(problems)))


def _complaint(context: dict[str, Any]) -> str:
    error, told = context.get("exception"), f"{context.get('message')} {context.get('future', '')}"
    return "\n".join([told, *(traceback.format_exception(error) if error else ())])


async def _settled(app: Any) -> None:
    """Wait until the app has taken what was sent to it; where it is being left, until it is gone."""
    done = asyncio.Event()
    if not app._exit and app.is_running and app.call_later(done.set):
        while not done.is_set() and not app._exit and app.is_running:
            await asyncio.sleep(0.005)


async def _come_to_rest(app: Any) -> None:
    """A run that is cancelled ends, and the screen shows what has changed last."""
    if not app._exit and app.is_running and not app.leaving:
        app.workbench.runs.cancel()
        await _until(lambda: not app.workbench.runs.is_running or app._exit)
        main = app.screen_stack[0]
        await _until(lambda: not main._will_draw or app._exit)


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


class _Hand:
    """Sends what a terminal would send, read by Textual's own parser."""

    def __init__(self, app: Any, pilot: Any, files: Files, size: tuple[int, int]) -> None:
        self._app = app
        self._pilot = pilot
        self._files = files
        self._size = size
        self._parser = XTermParser()

    async def do(self, action: Action) -> None:
        match action:
            case Keys(keys):
                for key in keys:
                    self._send(key)
            case Mouse():
                self._send(mouse_bytes(action, *self._size))
            case Paste(text):
                self._send(f"\x1b[200~{text}\x1b[201~")
            case Resize(columns, rows):
                self._size = columns, rows
                size = events.Size(columns, rows)
                self._app._driver._size = size
                self._app.post_message(events.Resize(size, size))
            case Outside():
                self._files.change(action)
            case Wait(seconds):
                await asyncio.sleep(seconds)

    def _send(self, sent: str) -> None:
        driver = self._app._driver
        if sent == "\x1b":
            driver.process_message(events.Key("escape", sent))
            return
        for message in self._parser.feed(sent):
            driver.process_message(message)
