"""Screens are drawn once for the keys that are pressed and when a test looks, not sixty times a second.

Frames that nobody waits for were a third of what the tests of screens cost. Each frame shows what the widgets
are when it is drawn. With --thorough, and for tests that ask for `every_frame`, all are drawn as for users.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator
from functools import wraps
from typing import Any

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.strip import Strip
from waiting import PATIENCE


@pytest.fixture(autouse=True)
def frames_when_looked_at(request: pytest.FixtureRequest, thorough: bool) -> Iterator[None]:
    if thorough or "every_frame" in request.fixturenames:
        yield
        return
    draw, draw_all = Compositor.render_update, Compositor.render_strips

    def put_off(compositor: Compositor, full: bool = False, **named: Any) -> object:
        return draw(compositor, full, **named) if full else None

    def look(compositor: Compositor) -> list[Strip]:
        compositor._dirty_regions.clear()
        if compositor.root is not None:
            visible_screen_stack.set(compositor.root.app._background_screens)
        return draw_all(compositor)

    def then_drawn(method: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @wraps(method)
        async def done_and_drawn(pilot: Pilot[Any], *given: Any) -> None:
            await method(pilot, *given)
            if pilot.app.screen_stack:
                draw(pilot.app.screen._compositor, screen_stack=pilot.app._background_screens)

        return done_and_drawn

    # Not the one of the test, which may undo its own patches.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", put_off)
        patch.setattr(Compositor, "render_strips", look)
        patch.setattr(Pilot, "press", then_drawn(Pilot.press))
        yield


@pytest.fixture(scope="session", autouse=True)
def style_sheets_parsed_once(thorough: bool) -> Iterator[None]:
    """Each app has the same style sheets, and would parse them for itself."""
    parse = Stylesheet._parse_rules
    parsed: dict[Hashable, list[RuleSet]] = {}

    def parsed_rules(sheet: Stylesheet, css: str, **named: Any) -> list[RuleSet]:
        key = (css, *named.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse(sheet, css, **named)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        if not thorough:
            patch.setattr(Stylesheet, "_parse_rules", parsed_rules)
        yield


@pytest.fixture(autouse=True)
def clicks_of_one_call_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second click of a double click may come late on a busy machine."""
    click = Pilot.click

    @wraps(click)
    async def clicked(pilot: Pilot[Any], *given: Any, times: int = 1, **named: Any) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            if times > 1:
                patch.setattr(App, "CLICK_CHAIN_TIME_THRESHOLD", PATIENCE)
            return await click(pilot, *given, times=times, **named)

    monkeypatch.setattr(Pilot, "click", clicked)


@pytest.fixture
def every_frame() -> None:
    """Each frame is drawn as it is for users: what drawing does is what the test is about."""
