"""Each pane is drawn after messages of what it shows, and after no others."""

from collections import Counter

import pytest
from pilots import screen_text, turn, until, until_ran, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.cases.view import CaseTree
from evaltui.tui.main.panes import other_panes
from evaltui.workbench.messages import ChatProgressed, Notice, RunsRead, SessionsReceived
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
        await until(pilot, lambda: not app.workbench.outcomes.is_loading)
        await settled(pilot, drawn)
        yield app, pilot


async def settled(pilot, drawn):
    """Waits until nothing is drawn any more, and counts from then on."""
    before = -1
    while before != drawn.total():
        before = drawn.total()
        await pilot.pause(0.2)
    drawn.clear()


async def test_typing_in_a_field_draws_the_case_alone(drawn, shown):
    app, pilot = shown
    await pilot.press("e")
    await until(pilot, lambda: app.screen.query_one("#case").is_editing)
    await settled(pilot, drawn)
    await pilot.press("n", "e", "w", "x")
    await until(pilot, lambda: "dimnewx" in screen_text(app))
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
    # Its end publishes more.
    await app.workbench.runs.finished()
    await settled(pilot, drawn)
    app.workbench.messages.publish(message)
    await pilot.pause(0.1)
    assert drawn.keys() == panes


async def test_a_pane_that_is_gone_hears_of_nothing_more(drawn, shown):
    app, _ = shown
    pane = app.screen.query_one("#recent_runs")
    await pane.remove()
    pane.is_outdated = False
    app.workbench.messages.publish(RunsRead())
    assert not pane.is_outdated
