"""Differences, the trace and the console, driven by keys."""

import pytest
from eval_data import write_test_config
from pilots import focused_tab, screen_lines, screen_text, turn, until, until_ran, write_cases

from evaltui.core.model.case_id import CaseId
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.dialogs.details import DetailsScreen
from evaltui.tui.inspector import Inspector, InspectorLines
from evaltui.tui.result.view import ResultView
from evaltui.tui.trace.view import TraceView
from evaltui.workbench.messages import RunProgressed
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

NARROW, WIDE = (80, 24), (160, 45)
SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])

DESK = """
    import sys
    import time
    from evaltui.events import text, tool_call, tool_result

    def root_agent(message, session):
        if message == "forever":
            number = 0
            while True:
                number += 1
                time.sleep(0.005)
                yield tool_call("step", {"number": number})
        if message == "shout":
            print("[/x] \\x1b[2J " + "日本" * 3000)
            print("second", file=sys.stderr, flush=True)
        if message == "raise":
            raise ValueError("[/boom] \\x1b[2J not today")
        if message == "no key":
            raise RuntimeError("Set the `OPENAI_API_KEY` environment variable or pass it")
        if message == "many":
            for number in range(10_000):
                yield tool_call("step", {"number": number})
        yield tool_call("find", {"[/where]": "\\x1b[31m" + "very " * 200, "day": "2"}, id="c1")
        yield tool_result("find", {"found": ["a", "b"]}, id="c1")
        yield text("It is there.")
"""
WANTED = {"name": "find", "args": {"[/where]": "here", "day": 2}}


@pytest.fixture
def desk(write_agent):
    folder = write_agent(DESK, name="desk")
    write_cases(
        folder,
        "desk",
        {
            "differs": [turn("where is it", "It is here.", WANTED)],
            "shouts": [turn("shout", "x")],
            "raises": [turn("raise", "")],
            "lacks a key": [turn("no key", "")],
            "lacks it, too": [turn("no key", "")],
            "many": [turn("many", "x")],
            "endless": [turn("forever", "x")],
        },
    )
    return folder


async def ran(app, pilot, eval_id):
    await until(pilot, lambda: app.workbench.sets.workspace is not None)
    app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, eval_id))
    await pilot.press("r")
    await until_ran(pilot, lambda: app.workbench.runs.current is not None and app.workbench.runs.current.over)


def page_text(app):
    """What the inspector of the trace says, as far as it is written."""
    lines = app.screen.query_one("#trace-inspector", Inspector).lines.page.lines
    return "\n".join("".join(text for text, _ in line) for line in lines)


def marked(app):
    """The lines of the current difference, event or printed line in the pane on the right."""
    return [line.rpartition("▌")[2].strip() for line in screen_lines(app) if "▌" in line]


@SIZES
async def test_n_walks_the_differences_and_enter_shows_them_in_full(desk, size):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=size) as pilot:
        await ran(app, pilot, "differs")
        await pilot.press("n")
        await until(pilot, lambda: any("[/where]" in line for line in marked(app)))
        assert "…" in "".join(marked(app))
        if size == WIDE:
            # The dock goes along.
            trace = app.screen.query_one(TraceView)
            await until(pilot, lambda: "find" in "".join(text for text, _ in trace.line(trace.cursor)))
        await pilot.press("enter")
        await until(pilot, lambda: "very " * 10 in screen_text(app))
        shown = "\n".join(marked(app))
        assert "expected" in shown
        assert "actual" in shown
        assert "\x1b" not in shown
        await pilot.press("enter")
        await until(pilot, lambda: "very " * 10 not in screen_text(app))
        await pilot.press("n")
        await until(pilot, lambda: any("day" in line for line in marked(app)))
        await pilot.press("n")
        await until(pilot, lambda: any("0.67 < 0.80" in line for line in marked(app)))
        await until(pilot, lambda: "3/3" in screen_text(app))
        await pilot.press("n")
        await until(pilot, lambda: "Wrapped to the first" in screen_text(app))
        await pilot.press("N")
        await until(pilot, lambda: any("0.67 < 0.80" in line for line in marked(app)))


async def test_e_goes_to_the_first_difference_where_none_is_selected(desk):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=NARROW) as pilot:
        await ran(app, pilot, "differs")
        await pilot.press("3", "e")
        await until(pilot, lambda: any("[/where]" in line for line in marked(app)))
        assert app.workbench.navigation.difference is not None


async def test_n_says_when_there_is_nothing_to_walk(desk):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        await pilot.press("n")
        await until(pilot, lambda: "Case not run" in screen_text(app))
        await ran(app, pilot, "raises")
        await pilot.press("n")
        await until(pilot, lambda: "No difference in calls, response or state" in screen_text(app))


async def test_calls_that_are_not_checked_are_no_differences_in_the_trace(desk):
    mark = {"set": "desk", "case": "differs", "turn": 0, "mode": "skip"}
    write_test_config(desk, criteria={"tool_trajectory_avg_score": 1}, evaltui={"turns": [mark]})
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=NARROW) as pilot:
        await ran(app, pilot, "differs")
        await pilot.press("5")
        await until(pilot, lambda: "tool  find" in screen_text(app))
        await pilot.press("n")
        await until(pilot, lambda: "No difference in the trace" in screen_text(app))


@SIZES
async def test_an_error_says_what_to_do_and_its_traceback_is_folded(desk, size):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=size) as pilot:
        await ran(app, pilot, "lacks it, too")
        await ran(app, pilot, "lacks a key")
        await pilot.press("3")
        sentence = "OPENAI_API_KEY is not set. Set it in desk/.env or the environment."
        await until(pilot, lambda: "▸ Traceback" in screen_text(app))
        assert "1 other case ended with the same error" in screen_text(app)
        # The trace has it, too.
        assert screen_text(app).count(sentence) == (1 if size == NARROW else 2)
        assert "Traceback (most recent call last)" not in screen_text(app)
        assert size == NARROW or "no API key" in screen_text(app)
        await pilot.press("space")
        await until(pilot, lambda: "Traceback (most recent call last)" in screen_text(app))


@SIZES
async def test_the_trace_shows_every_event_and_all_of_each(desk, size):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        await pilot.press("t")
        await until(pilot, lambda: "Not run   r  Run case" in screen_text(app))
        await ran(app, pilot, "differs")
        await until(pilot, lambda: "It is there." in screen_text(app))
        shown = screen_text(app)
        assert shown.index("tool  find") < shown.index("It is there.")
        await pilot.press("home", "down", "down", "enter")
        await until(pilot, lambda: isinstance(app.focused, InspectorLines))
        await until(pilot, lambda: "≠ argument differs" in page_text(app))
        await pilot.press("left", "left", "left")
        await until(pilot, lambda: '"kind": "tool_call"' in page_text(app))
        assert '"kind": "tool_result"' in page_text(app)
        await pilot.press("right", "right")
        await until(pilot, lambda: '"found": [' in page_text(app))
        await pilot.press("right", "right")
        await until(pilot, lambda: "→ find   by root_agent" in page_text(app))
        await pilot.press("right")
        await until(pilot, lambda: "agent.py:6" in page_text(app))
        assert "\x1b" not in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.focused, TraceView))
        assert "tool  find" in screen_text(app)


@pytest.mark.parametrize(
    ("size", "keys", "is_beside"),
    [((160, 45), "z", True), ((120, 36), "z", False), ((220, 60), "", True)],
    ids=["zoomed", "below", "dock"],
)
async def test_where_there_is_room_the_inspector_follows_the_trace(desk, size, keys, is_beside):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=size) as pilot:
        await ran(app, pilot, "differs")
        await pilot.press("t", *keys, "home")
        await until(pilot, lambda: "turn 1" in page_text(app))
        inspector, trace = (
            app.screen.query_one("#trace-inspector", Inspector),
            app.screen.query_one(TraceView),
        )
        assert (inspector.region.x > trace.region.right) == is_beside
        assert (inspector.region.y > trace.region.bottom) != is_beside
        # The next difference is what the inspector shows next; the focus stays.
        await pilot.press("n")
        await until(pilot, lambda: "tool find" in page_text(app))
        await until(pilot, lambda: "≠ argument differs" in page_text(app))
        await pilot.press("left")
        await until(pilot, lambda: '"found": [' in page_text(app))
        assert isinstance(app.focused, TraceView)
        await pilot.press("enter")
        # One of the two frames has the accent.
        await until(pilot, lambda: focused_tab(app) == "Inspector")
        await pilot.press("escape")
        await until(pilot, lambda: focused_tab(app).startswith("5 Trace"))
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.focused, ResultView))


async def test_a_page_of_the_inspector_goes_with_its_pane(desk):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=NARROW) as pilot:
        await ran(app, pilot, "differs")
        await pilot.press("t", "enter")
        await until(
            pilot, lambda: isinstance(app.focused, InspectorLines) and "Inspector" not in screen_text(app)
        )
        await pilot.press("3", "5")
        await until(pilot, lambda: isinstance(app.focused, TraceView) and "tool  find" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.focused, InspectorLines))
        await pilot.resize_terminal(220, 60)
        await until(pilot, lambda: "tool  find" in screen_text(app) and " Inspector" in screen_text(app))


async def test_a_trace_grows_while_the_case_runs(desk):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, "endless"))
        await pilot.press("t", "r")
        await until(pilot, lambda: "number 4" in screen_text(app) and "Turn 1" not in screen_text(app))
        await pilot.press("home")
        await until(pilot, lambda: "Turn 1" in screen_text(app))
        seen = len(app.workbench.outcomes.trace(app.workbench.navigation.selection.case).events)
        await until(
            pilot,
            lambda: (
                len(app.workbench.outcomes.trace(app.workbench.navigation.selection.case).events) > seen + 20
            ),
        )
        assert "Turn 1" in screen_text(app)
        await pilot.press("ctrl+c")
        await until_ran(pilot, lambda: app.workbench.runs.current.over)
        await until(pilot, lambda: "Not run   r  Run case" in screen_text(app))


async def test_a_trace_is_folded_and_searched(desk):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=NARROW) as pilot:
        await ran(app, pilot, "differs")
        await pilot.press("t")
        await until(pilot, lambda: "It is there." in screen_text(app))
        await pilot.press("down", "space")
        await until(pilot, lambda: "It is there." not in screen_text(app))
        await pilot.press("space", "slash", *"kind:tool")
        await until(pilot, lambda: "kind:tool" in screen_text(app) and "tool  find" in screen_text(app))
        assert "It is there." not in screen_text(app)
        await pilot.press("x")
        await until(pilot, lambda: "unknown kind 'toolx'; kinds are" in screen_text(app))
        assert "Did you mean tool?" in screen_text(app)
        assert "No match   / search   esc clear" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: "It is there." in screen_text(app))


@SIZES
async def test_the_console_shows_what_was_printed_and_counts_what_was_not_seen(desk, size):
    app = WorkbenchApp(Workbench(desk))
    async with app.run_test(size=size) as pilot:
        await ran(app, pilot, "shouts")
        await until(pilot, lambda: app.workbench.console.total == 2)
        await until(pilot, lambda: "6 Console 2" in screen_text(app))
        await pilot.press("6", "z")
        await until(pilot, lambda: "stderr" in screen_text(app) and "stdout" in screen_text(app))
        # Which case printed a line that comes when it is over cannot be known.
        key = CaseId(app.workbench.sets.listed[0].case_path, "shouts")
        app.workbench.console.add(1, "stdout", "a line of its own", key)
        app.workbench.messages.publish(RunProgressed())
        await until(pilot, lambda: "stdout shouts a line of its own" in " ".join(screen_text(app).split()))
        assert "6 Console 2" not in screen_text(app)
        shown = screen_text(app)
        assert "[/x] \\x1b[2J 日本" in shown
        assert "\x1b" not in shown
        assert all(len(line) <= size[0] for line in screen_lines(app))
        first = next(n for n, line in enumerate(app.workbench.console) if line.source == "stdout")
        await pilot.press("home", *["down"] * first, "enter")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        await until(pilot, lambda: screen_text(app).count("日本日本日本日本") > 5)
