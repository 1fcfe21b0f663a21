"""Screens of real runs of the sample agents, as SVG."""

from __future__ import annotations

import html
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import PATIENCE_WITH_PROCESSES, until

from evaltui.text.figures import show_duration
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.main.panes import other_panes
from evaltui.workbench.workbench import Workbench

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "screenshots"
WIDE, NARROW = (160, 40), (80, 24)
# What is different in every run, beside the durations.
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d|invocation_duration_v1\s+[\d.]+|\d+ (?:s|min) ago|[█▏▎▍▌▋▊▉━╸╺│─]+"
    # How many lines the libraries of an agent have printed by then.
    r"|6\s+Console\s+\d+"
)
_WORDS = re.compile(r"<desc>(.*?)</desc>", flags=re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """A sample agent, the size of the terminal, the theme, and the keys that lead to the screen."""

    name: str
    agent: str
    size: tuple[int, int]
    theme: str
    keys: tuple[str, ...]

    @property
    def needs_adk(self) -> bool:
        return self.agent == "travel_desk"


TO_THE_FAILURE = ("R", "end of run", "f", "f", "f", "f", "history")
TO_AN_ARGUMENT = (*TO_THE_FAILURE, "n", "e", "enter")
# The thermostat does as it is told, and one case passes.
MENDED = ("LOWEST_TARGET = 15", "LOWEST_TARGET = 12")
TO_A_PROMISE = ("R", "end of run", "M", "gaps", "left", "j", "j", "right", "j", "both turns")
TALK = ("Turn off the bedroom light",)
TALK_ON = ("Set the kitchen to 19 degrees",)
PICTURES = (
    Picture("wide-dark", "home_automation", WIDE, "evaltui-dark", TO_THE_FAILURE),
    Picture("wide-light", "home_automation", WIDE, "evaltui-light", TO_THE_FAILURE),
    Picture("narrow-dark", "home_automation", NARROW, "evaltui-dark", (*TO_THE_FAILURE, "enter")),
    Picture("narrow-light", "home_automation", NARROW, "evaltui-light", (*TO_THE_FAILURE, "enter")),
    Picture("trace", "travel_desk", NARROW, "evaltui-dark", ("R", "end of run", "j", "j", "t")),
    Picture(
        "relax", "home_automation", NARROW, "evaltui-dark", (*TO_THE_FAILURE, "enter", "n", "x", "effect")
    ),
    Picture(
        "chat",
        "home_automation",
        WIDE,
        "evaltui-dark",
        ("4", *TALK, "enter", "end of turn", *TALK_ON, "enter", "end of turn"),
    ),
    Picture("edit", "home_automation", WIDE, "evaltui-dark", TO_AN_ARGUMENT),
    Picture(
        "watch", "home_automation", WIDE, "evaltui-dark", ("w", "R", "end of run", "mend agent", "history")
    ),
    Picture("gaps", "travel_desk", (120, 38), "evaltui-dark", TO_A_PROMISE),
)


async def draw(picture: Picture) -> str:
    """The screen of a real run, and as its description the words that are equal in all runs."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", await _export(picture), flags=re.DOTALL)
    words = html.escape(" ".join(await words_now(picture)))
    return re.sub(r"(<svg[^>]*>)", lambda start: f"{start[1]}\n<desc>{words}</desc>", svg, count=1)


async def words_now(picture: Picture) -> list[str]:
    """What the program shows now. Every duration reads the same: the text beside it is cut to fit."""
    # Imported while patched, they would stay so.
    other_panes()
    with pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in sys.modules.items() if name.startswith("evaltui.")]:
            if getattr(module, "show_duration", None) is show_duration:
                patch.setattr(module, "show_duration", lambda _: "1 s")
        return _words_of(await _export(picture))


def stored_words(picture: Picture) -> list[str]:
    """What the program showed when the picture was made."""
    found = _WORDS.search((FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8"))
    return _TIMES.sub("", html.unescape(found[1])).split() if found else []


async def _export(picture: Picture) -> str:
    """Run the agent and export the screen. The agent is copied first: a run writes into its folder."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / picture.agent
        source = ROOT / "sample_agents" / picture.agent
        shutil.copytree(source, agent, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        app = WorkbenchApp(Workbench(agent))
        async with app.run_test(size=picture.size) as pilot:
            app.theme = picture.theme
            await _until(
                app, lambda: bool(app.workbench.sets.workspace and app.workbench.sets.workspace.sets)
            )
            for key in picture.keys:
                if key in _DEEDS:
                    await _DEEDS[key](app)
                else:
                    await pilot.press(*(_letters(key) if " " in key else (key,)))
            await _until(app, lambda: not app.screen_stack[0]._will_draw)
            await pilot.pause()
            return app.export_screenshot(title=f"evaltui {picture.agent}")


def _letters(text: str) -> list[str]:
    """A text is typed letter by letter."""
    return ["space" if letter == " " else letter for letter in text]


async def _end_of_run(app: WorkbenchApp) -> None:
    await _until(app, lambda: app.workbench.runs.current is not None and not app.workbench.runs.is_running)
    await _listed(app, "1 run")


async def _listed(app: WorkbenchApp, runs: str) -> None:
    """Runs are listed a little later than they end, where there is room for the list."""
    if app.size.width >= WIDE[0]:
        await _until(app, lambda: runs in " ".join(_words_of(app.export_screenshot())))


async def _end_of_turn(app: WorkbenchApp) -> None:
    def ended() -> bool:
        transcript = app.workbench.chat.transcript
        return transcript is not None and bool(transcript.turns) and not app.workbench.chat.busy

    await _until(app, ended)


async def _effect(app: WorkbenchApp) -> None:
    """What a rule would do is known."""
    await _until(app, lambda: "no model calls" in " ".join(_words_of(app.export_screenshot())))


async def _history(app: WorkbenchApp) -> None:
    """What earlier runs say of the case has been read."""

    def read() -> bool:
        key, run = app.workbench.navigation.selection.case, app.workbench.runs.current
        past = app.workbench.outcomes.history(key) if key else None
        return past is not None and run is not None and len(past.points) == run.number

    await _until(app, read)


async def _gaps(app: WorkbenchApp) -> None:
    """All gaps have been found and are shown."""

    def shown() -> bool:
        gaps = app.workbench.gaps
        if gaps.seconds is None or gaps.report is None:
            return False
        return f"{gaps.report.noticed} of {gaps.report.changes}" in " ".join(
            _words_of(app.export_screenshot())
        )

    await _until(app, shown)


async def _both_turns(app: WorkbenchApp) -> None:
    """The recorded and the changed turn have been read."""
    await _until(app, lambda: "recorded run 1" in " ".join(_words_of(app.export_screenshot())))


async def _mend_agent(app: WorkbenchApp) -> None:
    """From outside, while the agent is watched."""
    watching = app.workbench.watch
    await watching.ready()
    agent = app.workbench.agent.dir / "agent.py"
    code = agent.read_text(encoding="utf-8")
    agent.write_text(code.replace(*MENDED), encoding="utf-8")
    await _until(app, lambda: watching.last is not None and watching.last.seconds is not None)
    await _listed(app, "2 runs")


async def _until(app: WorkbenchApp, condition: Callable[[], bool]) -> None:
    await until(condition, lambda: " ".join(_words_of(app.export_screenshot())), PATIENCE_WITH_PROCESSES)


def _words_of(svg: str) -> list[str]:
    text = " ".join(html.unescape(found) for found in re.findall(r"<text[^>]*>(.*?)</text>", svg))
    return _TIMES.sub("", text.replace("\xa0", " ")).split()


_DEEDS = {
    "end of run": _end_of_run,
    "end of turn": _end_of_turn,
    "effect": _effect,
    "history": _history,
    "gaps": _gaps,
    "both turns": _both_turns,
    "mend agent": _mend_agent,
}
