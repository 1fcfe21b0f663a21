"""Golden screens: the workbench is driven by keys, and its screen is kept as text.

`python -m tests.golden.screens [WALK...]` writes `screens/SCENE.80x24.txt` and `screens/SCENE.160x45.txt`.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from textual._context import visible_screen_stack
from textual.pilot import Pilot

from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import Interpreter
from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.workbench import Workbench
from tests.golden.deeds import DEEDS
from tests.golden.scenes import WALKS, Scene, Walk
from tests.golden.steady import steady
from tests.waiting import PATIENCE_WITH_PROCESSES

FOLDER = Path(__file__).with_name("screens")
SIZES = {"80x24": (80, 24), "160x45": (160, 45)}
# Shown; the Python of the tests is what runs.
PYTHON = Interpreter(Path("/env/bin/python"), "")
# Seconds without a change after which a screen is written.
_QUIET = 2.0
_STEP = re.compile(r'"(?P<text>[^"]*)"|<(?P<deed>[^>]*)>|(?P<key>\S+)')

# One form of the same width for what else is different in every run.
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"Python 3\.\d\d", "Python 3.xx"),
        (r"evaltui-golden-\w{8}", "evaltui-golden-xxxxxxxx"),
        (r"127\.0\.0\.1:\d{5}", "127.0.0.1:ppppp"),
        (r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6}", "20260102T030405.678Z-abcdef"),
        (r"(invocation_duration_v1\s+)\d\.\d\d", r"\g<1>0.01"),
        # Of the Python of the tests, which is somewhere else on another machine.
        (r'"/[^"│\n]*/python3\.\d+/[^│\n]*', '"/lib/python3.xx/…'),
    )
)
# Bars of times: the waterfall of a trace with its scale, the slowest cases; and the Python of the tests.
_OF_NO_RUN = re.compile(
    r"(?<=  )[━╸╺│ ]*(?=  1 s\b)|(?<=  1 s  )[━╸─]*(?=  \d+ calls?|  overhead)|[━╸─]*(?= +1 s)"
    r"|(?<=Python      )3\.[^│\n]*|(?<=google-adk  )[^│\n]*"
)


def screen_of(app: WorkbenchApp) -> str:
    """The text on screen, with one form for what is different in every run."""
    # Textual has no public way to read the screen as text. What lies behind a dialog is drawn, too.
    visible_screen_stack.set(app._background_screens)
    strips = app.screen._compositor.render_strips()
    text = "".join("".join(segment.text for segment in strip) + "\n" for strip in strips)
    for pattern, fixed in _PATTERNS:
        text = pattern.sub(fixed, text)
    text = _OF_NO_RUN.sub(lambda found: " " * len(found[0]), text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


async def play(walk: Walk, size: tuple[int, int]) -> AsyncIterator[tuple[Scene, WorkbenchApp]]:
    """Every scene of a walk, once it shows what tells that it is there."""
    with (
        steady(),
        tempfile.TemporaryDirectory(prefix="evaltui-golden-", ignore_cleanup_errors=True) as folder,
    ):
        agent = walk.agent(Path(folder))
        if walk.before is not None:
            await walk.before(agent)
        app = WorkbenchApp(Workbench(AgentAddress(agent, interpreter=PYTHON)))
        async with app.run_test(size=size) as pilot:
            for scene in walk.scenes:
                await _press(pilot, scene.keys)
                await until(app, lambda scene=scene: scene.shows in screen_of(app), PATIENCE_WITH_PROCESSES)
                yield scene, app
                await pilot.pause()


async def _press(pilot: Pilot[int], keys: str) -> None:
    """Keys one after the other; texts in quotes are typed, deeds in brackets done."""
    for step in _STEP.finditer(keys):
        if step["deed"]:
            await DEEDS[step["deed"]](pilot)
        elif step["key"]:
            await pilot.press(step["key"])
        else:
            await pilot.press(*("space" if letter == " " else letter for letter in step["text"]))


async def until(app: WorkbenchApp, condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds; TimeoutError tells the screen where it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come within {seconds:g} s:\n{screen_of(app)}")
        await asyncio.sleep(0.06)


async def settled(app: WorkbenchApp) -> str:
    """The screen once it does not change any more."""
    text, since = screen_of(app), time.monotonic()
    while time.monotonic() - since < _QUIET:
        await asyncio.sleep(0.05)
        if (now := screen_of(app)) != text:
            text, since = now, time.monotonic()
    return text


async def _write(walk: Walk) -> None:
    for label, size in SIZES.items():
        async for scene, app in play(walk, size):
            if scene.name:
                (FOLDER / f"{scene.name}.{label}.txt").write_text(await settled(app), encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or WALKS:
        print(name)
        asyncio.run(_write(WALKS[name]))
