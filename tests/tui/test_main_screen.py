"""The first screen, driven by keys, on real agents."""

import pytest
from pilots import focused_tab, screen_lines, screen_text, turn, until, until_ran, write_cases

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.state import Selection, Stage
from evaltui.workbench.workbench import Workbench

NARROW, WIDE, VAST = (80, 24), (160, 45), (200, 50)

HOUSE = """
    import time
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        while message == "wait for ever":
            time.sleep(0.01)
        if message == "crash":
            raise ValueError("[/boom] \\x1b[2J not today")
        if message == "light off":
            yield tool_call("set_light", {"room": "Kitchen", "on": "no"})
            yield tool_call("notify", {})
        yield text("The kitchen light is now off.")
"""
LIGHT = {"name": "set_light", "args": {"room": "Kitchen", "on": False}}


@pytest.fixture
def house(write_agent):
    folder = write_agent(HOUSE, name="house")
    off = turn("light off", "The kitchen light is off.", LIGHT)
    write_cases(
        folder,
        "lights",
        {
            "dark": [turn("hello", "The kitchen light is now off."), off],
            "fine": [turn("hello", "The kitchen light is now off.")],
            "crashes": [turn("crash", "")],
            "endless": [turn("wait for ever", "")],
        },
    )
    return folder


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch):
    for name in ("NO_COLOR", "COLORTERM", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)


def app_for(folder, set_name=None):
    return WorkbenchApp(Workbench(folder), set_name)


async def ready(app, pilot):
    await until(pilot, lambda: app.workbench.sets.workspace is not None)


async def running(app, pilot):
    await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.running)


async def finished(app, pilot):
    await until_ran(pilot, lambda: app.workbench.runs.current is not None and app.workbench.runs.current.over)


async def test_hostile_names_and_texts_are_shown_as_they_are(write_agent):
    evil = "[/x] [bold]b[/] \x1b[31mred\x07 \u202e list[int] 日本語"
    folder = write_agent("def root_agent(message, session):\n    return '[/] ' + message\n")
    write_cases(folder, "[b]set[/]", {evil: [turn(evil, evil, {"name": evil, "args": {evil: evil}})]})
    app = app_for(folder)
    async with app.run_test(size=VAST) as pilot:
        await ready(app, pilot)
        await pilot.press("r")
        await finished(app, pilot)
        await until(pilot, lambda: "✗ FAILED" in screen_text(app))
        shown = screen_text(app)
        assert "[b]set[/]" in shown
        assert "[/x] [bold]b[/] \\x1b[31mred\\x07" in shown
        assert not set("\x1b\x07\u202e") & set(shown)


async def test_turns_unfold_below_their_case_and_lead_to_their_place(house):
    app = app_for(house)
    async with app.run_test(size=WIDE) as pilot:
        await ready(app, pilot)
        await pilot.press("r")
        await finished(app, pilot)
        # Those of a selected case that fails are there; down leads on to the next case.
        await until(pilot, lambda: "✗ 2  light off" in screen_text(app))
        assert "✓ 1  hello" in screen_text(app)
        await pilot.press("down")
        assert app.workbench.navigation.selection.eval_id == "fine"
        await until(pilot, lambda: "✗ 2  light off" not in screen_text(app))
        await pilot.press("up")
        await until(pilot, lambda: "✗ 2  light off" in screen_text(app))
        await pilot.press("right", "down")
        assert app.workbench.navigation.selection.turn == 1
        await pilot.press("left", "left", "left", "left")
        assert app.workbench.navigation.selection == Selection(app.workbench.sets.listed[0].case_path)
        await until(
            pilot,
            lambda: (
                not any("○ fine" in line[:40] for line in screen_lines(app))
                and "▸ lights" in screen_text(app)
            ),
        )


async def test_failing_cases_are_reached_by_key_also_inside_a_folded_set(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        await pilot.press("f")
        await until(pilot, lambda: "Nothing run yet" in screen_text(app))
        await pilot.press("r")
        await finished(app, pilot)
        await pilot.press("home", "space")
        await until(pilot, lambda: "✗ dark" not in screen_text(app))
        await pilot.press("f")
        await until(pilot, lambda: "▌  ✗ dark" in screen_text(app))


async def test_no_sets_says_where_was_looked_and_f5_looks_again(write_agent):
    folder = write_agent(HOUSE, name="house")
    (folder / "evals").mkdir()
    (folder / "evals" / "other.json").write_text('{"eval_cases": []}')
    app = app_for(folder)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "Create your first eval case" in screen_text(app))
        await pilot.press("1")
        await until(pilot, lambda: "No eval sets yet" in screen_text(app))
        assert "1 file under other names" in screen_text(app)
        assert "Searched for" in screen_text(app)
        await pilot.press("2")
        await until(pilot, lambda: focused_tab(app) == "Start")
        write_cases(folder, "lights", {"fine": [turn("hello", "x")]})
        await pilot.press("f5", "1")
        await until(pilot, lambda: "○ fine" in screen_text(app))
        assert "1 file not read" in screen_text(app)
        await pilot.press("R")
        await until(pilot, lambda: "1 file not read: other.json" in screen_text(app))


async def test_resizing_during_a_run_changes_the_layout(house):
    app = app_for(house, set_name="lights")
    async with app.run_test(size=WIDE) as pilot:
        await ready(app, pilot)
        app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, "endless"))
        await pilot.press("r")
        await running(app, pilot)
        for size in (NARROW, (40, 12), WIDE, NARROW):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: len(screen_lines(app)) == size[1])
            assert all(len(line) <= size[0] for line in screen_lines(app))
        await until(pilot, lambda: screen_lines(app)[1].startswith(" 1 Cases "))


async def test_quitting_cancels_the_run_first(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, pilot)
        app.workbench.navigation.select(Selection(app.workbench.sets.listed[0].case_path, "endless"))
        await pilot.press("r")
        await running(app, pilot)
        await pilot.press("q")
        await finished(app, pilot)
    assert app.workbench.runs.current.stage is Stage.CANCELLED
    assert app.return_code == 0


async def test_keys_pressed_before_anything_is_read_do_no_harm(house):
    app = app_for(house)
    async with app.run_test(size=NARROW) as pilot:
        for key in ("r", "s", "R", "f", "F", "space", "enter", "left", "right", "end", "escape"):
            await pilot.press(key)
        await pilot.press("1")
        await until(pilot, lambda: app.workbench.sets.workspace is not None and "lights" in screen_text(app))


async def test_an_unknown_set_is_wrong_use(house):
    app = app_for(house, set_name="ligths")
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: app.refusal)
    assert app.return_code == 2
    assert "Did you mean lights" in app.refusal
