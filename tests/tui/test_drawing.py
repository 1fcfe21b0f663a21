"""Each pane is drawn after messages of what it shows, and after no others."""

from collections import Counter
from functools import partial
from string import ascii_lowercase

import pytest
from pilots import screen_text, turn, until, until_ran, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.cases.view import CaseTree
from evaltui.tui.main.panes import other_panes
from evaltui.workbench.messages import (
    ChatProgressed,
    DraftChanged,
    Notice,
    RunsRead,
    SessionsReceived,
    WorkbenchMessage,
)
from evaltui.workbench.workbench import Workbench

ECHO = "def root_agent(message, session):\n    return message\n"


@pytest.fixture
def drawn(monkeypatch):
    """How often each pane was drawn, by its id."""
    counts = Counter()

    def counting(kind):
        draw = kind.follow

        def follow(pane):
            counts[pane.id] += 1
            draw(pane)

        monkeypatch.setattr(kind, "follow", follow)

    for kind in {CaseTree, *other_panes().values()}:
        if "follow" in vars(kind):
            counting(kind)
    return counts


@pytest.fixture
async def shown(write_agent, drawn):
    """The app with all panes made."""
    folder = write_agent(ECHO, name="house")
    write_cases(folder, "lights", {"dim": [turn("hello", "hi")], "other": []})
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: app.workbench.sets.listed and len(app.screen.query("RecentRuns")))
        await pilot.press("2")
        await until(pilot, lambda: "  id           dim" in screen_text(app))
        yield app, pilot


async def test_typing_in_a_field_draws_the_case_alone(drawn, shown):
    app, pilot = shown
    await pilot.press("e")
    await until(pilot, lambda: app.screen.query_one("#case").is_editing)
    others = []
    kinds = {*WorkbenchMessage.__subclasses__()} - {DraftChanged}
    app.workbench.messages.subscribe(others.append, *kinds)

    def shows(text):
        return text in screen_text(app)

    typed = "dim"
    # What is read in the background meanwhile is drawn too: until it has ended, type more.
    for letter in ascii_lowercase:
        typed += letter
        app.screen.draw_now()
        others.clear()
        drawn.clear()
        await pilot.press(letter)
        await until(pilot, partial(shows, typed))
        if not others:
            break
    assert not others
    assert drawn.keys() == {"case"}


@pytest.mark.parametrize(
    ("message", "panes"),
    [
        (Notice("Saved"), set()),
        (SessionsReceived(), set()),
        (ChatProgressed(), {"trace"}),
        (RunsRead(), {"recent_runs"}),
    ],
)
async def test_a_message_draws_the_panes_that_show_it(drawn, shown, message, panes):
    app, pilot = shown
    # Trace and Runs are closed until there is something in them.
    await pilot.press("R")
    await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
    await until(pilot, lambda: {"trace", "recent_runs"} <= drawn.keys())
    # In one step, so that nothing that is read in the background comes between.
    app.screen.draw_now()
    drawn.clear()
    app.workbench.messages.publish(message)
    app.screen.draw_now()
    assert drawn.keys() == panes


async def test_a_pane_that_is_gone_hears_of_nothing_more(drawn, shown):
    app, _ = shown
    pane = app.screen.query_one("#recent_runs")
    await pane.remove()
    pane.is_outdated = False
    app.workbench.messages.publish(RunsRead())
    assert not pane.is_outdated
