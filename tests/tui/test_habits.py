"""Filter, help, palette, copying, themes, own keys, the chooser of agents."""

from pathlib import Path

import pytest
from pilots import focused_tab, screen_lines, screen_text, turn, until, until_ran, workbench_on, write_cases

from evaltui.text import glyphs
from evaltui.tui.dialogs.keys import GuidePage, GuideScreen, HelpScreen, keys_here, matching_rows
from evaltui.tui.dialogs.palette import PaletteScreen, PickRunScreen, ThemeScreen
from evaltui.tui.result.view import ResultView
from evaltui.tui.start.chooser import ChooserApp
from evaltui.workbench.actions import ACTIONS_BY_ID, Scope
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

NARROW, WIDE, TALL = (80, 24), (160, 45), (160, 60)
ECHO = "def root_agent(message, session):\n    return message\n"


@pytest.fixture
def parrot(write_agent):
    folder = write_agent(ECHO, name="parrot")
    cases = {
        "fine": [turn("hello", "hello")],
        "wrong": [turn("hello", "bye bye now")],
        "other": [turn("weather", "weather")],
        "[/x] [b]y": [turn("hostile [/]", "x")],
    }
    write_cases(folder, "talk", cases)
    return folder


async def ran(app, pilot, number):
    await until(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.number == number)
    await until_ran(pilot, lambda: app.workbench.runs.current.over)


async def test_a_filter_by_outcome_follows_the_runs(parrot):
    async with workbench_on(parrot, NARROW) as (app, pilot):
        await pilot.press("R")
        await ran(app, pilot, 1)
        await pilot.press("slash", *"fail", "enter")
        await until(pilot, lambda: screen_lines(app)[1].endswith(" 2 of 4"))
        assert "✓ fine" not in screen_text(app)
        await pilot.press("f")
        assert app.workbench.navigation.selection.eval_id == "[/x] [b]y"
        await pilot.press("escape")
        await until(pilot, lambda: "✓ fine" in screen_text(app))


async def test_running_what_failed_and_running_again(parrot):
    async with workbench_on(parrot, NARROW) as (app, pilot):
        await pilot.press("ctrl+f")
        await until(pilot, lambda: "Nothing run yet" in screen_text(app))
        await pilot.press("R")
        await ran(app, pilot, 1)
        await pilot.press("ctrl+f")
        await ran(app, pilot, 2)
        assert {key.eval_id for key in app.workbench.runs.current.done} == {"wrong", "[/x] [b]y"}
        await pilot.press("ctrl+r")
        await ran(app, pilot, 3)
        assert {key.eval_id for key in app.workbench.runs.current.done} == {"wrong", "[/x] [b]y"}


async def test_the_help_does_what_is_chosen_and_says_why_not(parrot):
    async with workbench_on(parrot, TALL) as (app, pilot):
        await pilot.press("6", "question_mark")
        await until(pilot, lambda: "Keys for Console" in screen_text(app))
        assert "Unavailable here" in screen_text(app)
        assert "Unfold" not in screen_text(app)
        await pilot.press(*"next", "space", *"fail")
        await until(pilot, lambda: "Next failing case" in screen_text(app))
        assert "Nothing run yet" in screen_text(app)
        await pilot.press(*["backspace"] * 9)
        await until(pilot, lambda: "Run case" in screen_text(app))
        lines = screen_lines(app)
        row = max(number for number, line in enumerate(lines) if "Run case" in line)
        await pilot.click(offset=(lines[row].index("Run case"), row))
        await ran(app, pilot, 1)
        assert not isinstance(app.screen, HelpScreen)
        await pilot.press("question_mark", *"zoom")
        await until(pilot, lambda: "Show only this pane" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: focused_tab(app) == "6 Console")


async def test_subjects_of_the_help_unfold_and_f1_opens_the_page_of_the_guide(parrot):
    async with workbench_on(parrot, (80, 24)) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: "▸ Look" in screen_text(app))
        lines = screen_lines(app)
        row = next(number for number, line in enumerate(lines) if "▸ Look" in line)
        await pilot.click(offset=(lines[row].index("Look"), row))
        await until(pilot, lambda: "▾ Look" in screen_text(app) and "Zoom pane" in screen_text(app))
        await pilot.press("f1")
        await until(
            pilot, lambda: isinstance(app.screen, GuidePage) and "Guide › Eval sets" in screen_text(app)
        )
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.screen is app.screen_stack[0])


async def test_f1_opens_the_page_of_the_pane_and_from_it_all_pages(parrot):
    async with workbench_on(parrot, (80, 24)) as (app, pilot):
        await pilot.press("3", "f1")
        await until(pilot, lambda: "Guide › Why a case fails" in screen_text(app))
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, GuideScreen))
        await pilot.press(*"rename tool")
        await until(pilot, lambda: "Rename a tool" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Guide › Eval sets and cases" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.screen_stack[0])


@pytest.mark.parametrize("key", ["question_mark", "ctrl+p"])
async def test_the_keys_and_the_palette_find_pages_of_the_guide(parrot, key):
    async with workbench_on(parrot, WIDE) as (app, pilot):
        await pilot.press(key, *"timestamp")
        await until(pilot, lambda: "Let an argument vary" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, GuidePage))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, GuidePage))


async def palette(pilot, app, query):
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(app.screen, PaletteScreen))
    await pilot.press(*query)


async def test_the_palette_finds_actions_cases_and_themes(parrot, no_settings_of_the_user):
    async with workbench_on(parrot, WIDE) as (app, pilot):
        path = app.workbench.sets.listed[0].path
        await palette(pilot, app, "weather")
        await until(pilot, lambda: "○ other  talk" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.navigation.selection == Selection(path.name, "other"))
        await palette(pilot, app, "hostile")
        await until(pilot, lambda: "○ [/x] [b]y  talk" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.navigation.selection == Selection(path.name, "[/x] [b]y"))
        await palette(pilot, app, ("z", "o", "o", "m", "space", "p", "a", "n", "e"))
        await until(pilot, lambda: "Show only this pane" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "1 Cases ─ 2 Case" in screen_lines(app)[1])
        before = app.theme
        for leave, theme in (("escape", before), ("enter", "nord")):
            await palette(pilot, app, "theme")
            await until(pilot, lambda: "Choose the colours, with a preview" in screen_text(app))
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ThemeScreen))
            await pilot.press(*"nord")
            await until(pilot, lambda: app.theme == "nord")
            assert not (no_settings_of_the_user / "theme.toml").exists()
            await pilot.press(leave)
            await until(pilot, lambda theme=theme: app.theme == theme)
            await until(pilot, lambda: app.screen is app.screen_stack[0])
        await until(pilot, lambda: (no_settings_of_the_user / "theme.toml").exists())
    async with workbench_on(parrot, WIDE) as (again, _):
        assert again.theme == "nord"


async def test_the_palette_shows_what_can_be_done_by_place_and_the_rest_once_it_is_typed(parrot):
    async with workbench_on(parrot, (100, 40)) as (app, pilot):
        await palette(pilot, app, "")
        await until(pilot, lambda: "In Cases" in screen_text(app))
        assert "Everywhere" not in screen_lines(app)[4]
        assert "Undo" not in screen_text(app)
        await pilot.press(*"undo")
        await until(
            pilot, lambda: "Unavailable" in screen_text(app) and "Nothing to undo" in screen_text(app)
        )
        await pilot.press(*["backspace"] * 4, *"run", "space", *"case")
        await until(pilot, lambda: "Run the marked cases, else the selected case" in screen_text(app))
        await pilot.press("enter")
        await ran(app, pilot, 1)
        await palette(pilot, app, ["o", "p", "e", "n", "space", "r", "u", "n"])
        await until(pilot, lambda: "Show the results of an earlier run" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, PickRunScreen) and len(app.screen.matches) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.outcomes.previous_run is not None)


@pytest.mark.parametrize("text", ["theme = 'no such theme'\n", "theme = 3\n", "theme ="])
async def test_a_theme_that_cannot_be_used_is_no_obstacle(parrot, no_settings_of_the_user, text):
    no_settings_of_the_user.mkdir()
    (no_settings_of_the_user / "theme.toml").write_text(text)
    async with workbench_on(parrot, NARROW) as (app, _):
        assert app.theme in app.available_themes


async def test_own_keys_work_and_are_shown(parrot, no_settings_of_the_user):
    no_settings_of_the_user.mkdir()
    (no_settings_of_the_user / "keys.toml").write_text("[keys]\nrun = 'f9'\nnext_pane = ['f7', 'tab']\n")
    async with workbench_on(parrot, NARROW) as (app, pilot):
        await until(pilot, lambda: " f9 run " in screen_lines(app)[-1])
        await pilot.press("r")
        assert app.workbench.runs.current is None
        await pilot.press("f7")
        assert app.screen.focused.id == "case"
        await pilot.press("f9")
        await ran(app, pilot, 1)


async def test_copying_says_what_and_where(parrot):
    async with workbench_on(parrot, WIDE) as (app, pilot):
        await until(pilot, lambda: "no calls expected" in screen_text(app))
        await pilot.press("y")
        said = "copied the id fine (4 B) to the terminal's clipboard and .evaltui/copied.txt"
        await until(pilot, lambda: said in screen_text(app))
        assert app.clipboard == "fine"
        await pilot.press("2", "y")
        await until(pilot, lambda: "copied the case of fine" in screen_text(app))
        copied = (parrot / ".evaltui" / "copied.txt").read_text("utf-8")
        assert copied == app.clipboard
        assert copied.startswith("  id           fine\n  session      ADK defaults")
        assert (parrot / ".evaltui" / ".gitignore").read_text() == "*\n"


async def test_ascii_only_where_the_terminal_has_no_more(parrot, monkeypatch):
    monkeypatch.setenv("EVALTUI_ASCII", "1")
    glyphs.ascii_only.cache_clear()
    try:
        async with workbench_on(parrot, WIDE) as (app, pilot):
            await pilot.press("R")
            await ran(app, pilot, 1)
            await until(pilot, lambda: "+ fine" in screen_text(app))
            assert "x wrong" in screen_text(app)
            assert screen_text(app).isascii()
            await pilot.press("v", "d", "X", "ctrl+g", *"fi")
            await until(pilot, lambda: "fi" in screen_text(app))
            assert screen_text(app).isascii()
    finally:
        glyphs.ascii_only.cache_clear()


async def test_without_colours_nothing_is_lost(parrot, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with workbench_on(parrot, WIDE) as (app, pilot):
        await pilot.press("R")
        await ran(app, pilot, 1)
        await until(pilot, lambda: "✓ fine" in screen_text(app) and "failed" in screen_text(app))
        for strip in app.screen._compositor.render_strips():
            for segment in strip.apply_filter(app._filters[0], app.screen.background_colors[1]):
                color = segment.style.color if segment.style else None
                assert color is None or color.triplet is None or len(set(color.triplet)) == 1


async def test_the_chooser_can_be_left():
    app = ChooserApp(Path("agents"), ["calculator", "travel"])
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "▌ calculator" in screen_text(app))
        await pilot.press("q")
    assert app.return_value is None


@pytest.mark.parametrize(("key", "action"), [("R", "run_all"), ("H", "runs"), ("ctrl+s", "save")])
def test_a_key_that_is_typed_into_the_help_finds_its_action_first(key, action):
    workbench = Workbench(Path("nowhere"))
    here = keys_here(Scope.CASES, lambda name: ACTIONS_BY_ID[name].refusal(workbench, Scope.CASES))
    assert matching_rows(here, key, 80).order[0][1].target == action


async def test_copying_a_page_leaves_what_is_drawn_alone(parrot):
    """The copy has marks and lines of its own: a pane that is hidden meanwhile would not be written again."""
    async with workbench_on(parrot, WIDE) as (app, pilot):
        await pilot.press("R")
        await ran(app, pilot, 1)
        view = app.screen.query_one(ResultView)
        await until(pilot, lambda: view.page.differences or view.page.links)
        page = view.page
        assert view.copied().text
        assert view.page is page
        assert view.line_count == len(page.lines)


async def test_a_title_typed_whole_is_the_first_of_the_palette(parrot):
    async with workbench_on(parrot, WIDE) as (app, pilot):
        await palette(pilot, app, "")
        found = app.screen.find("")
        titles = ["".join(text for text, _ in entry.title) for entry in found]
        assert {"Open runs", "Open run…", "Theme…"} <= set(titles)
        first = {title: app.screen.find(title.rstrip("…"))[0].title[0][0] for title in titles}
        assert first == {title: title for title in titles}
