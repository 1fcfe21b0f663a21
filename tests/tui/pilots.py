"""Driving the app in a test: wait for conditions, read what is on screen."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import waiting
from textual.app import App
from textual.color import Color
from textual.pilot import Pilot

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.documents.editing.set import CaseEditor
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.case.rows import write_rows
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.case.fields import RowSource
from evaltui.workbench.case.selected_case import case_rows
from evaltui.workbench.workbench import Workbench


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for a condition, and until the app has nothing to do; where it does not come, tell the screen."""
    await waiting.until(condition, lambda: screen_text(pilot.app))
    await _drawn(pilot)


async def until_ran(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """The same for a run or a turn of an agent, whose process may take longer on a busy machine."""
    seconds = waiting.PATIENCE_WITH_PROCESSES
    await waiting.until(condition, lambda: screen_text(pilot.app), seconds)
    await _drawn(pilot)


async def _drawn(pilot: Pilot[Any]) -> None:
    """Draw what waits for the next frame: bars follow a change at once, panes with the frame."""
    draw = getattr(pilot.app.screen, "draw_now", None) if pilot.app.screen_stack else None
    if draw is not None:
        draw()
    await pilot.pause()


@asynccontextmanager
async def workbench_on(
    folder: Path, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[WorkbenchApp, Pilot[int]]]:
    """The app on an agent, once its sets are read, and its pilot."""
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.workbench.sets.is_read)
        yield app, pilot


def screen_lines(app: App[Any]) -> list[str]:
    """The text on screen, line by line, without spaces at the ends of lines."""
    # Textual has no public way to read the screen as text.
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def screen_text(app: App[Any]) -> str:
    return "\n".join(screen_lines(app))


def focused_tab(app: App[Any]) -> str:
    """The tab of the pane with the focus, which alone is filled with the accent."""
    accent = Color.parse(app.theme_variables["primary"]).rich_color.triplet
    segments = (segment for strip in app.screen._compositor.render_strips() for segment in strip)
    filled = (
        one.text
        for one in segments
        if one.style and one.style.bgcolor and one.style.bgcolor.triplet == accent
    )
    return "".join(filled).strip()


def in_panes(app: App[Any]) -> list[str]:
    """The screen line by line, without the borders of panes at its left."""
    return [line.removeprefix("│ ") for line in screen_lines(app)]


def turn(said: str, answer: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {
        "user_content": {"role": "user", "parts": [{"text": said}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": list(calls)},
    }


def write_cases(folder: Path, name: str, cases: dict[str, list[dict[str, Any]]]) -> Path:
    """An eval set file of cases, id to turns; returns its path."""
    data = {
        "eval_set_id": name,
        "eval_cases": [{"eval_id": eval_id, "conversation": turns} for eval_id, turns in cases.items()],
    }
    path = folder / f"{name.replace('/', '_')}.evalset.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def write_case(page: Page, case: EvalCase, eval_set_id: str, config: EvalConfig | None) -> None:
    """The page of a case; `config` is the one that scores the set."""
    data = {"eval_set_id": eval_set_id, "eval_cases": [case.model_dump(mode="json", exclude_unset=True)]}
    marks = [mark.model_dump() for mark in config.evaltui.turns] if config else []
    write_rows(page, case_rows(RowSource(CaseEditor(data, 0, {"evaltui": {"turns": marks}}))))
