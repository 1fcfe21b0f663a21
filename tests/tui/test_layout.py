"""Every size of terminal with every kind of content, and what the user does to the layout."""

import pytest
import waiting
from pilots import focused_tab, screen_lines, screen_text, turn, until, until_ran, write_cases
from rich.cells import cell_len
from textual.app import App
from textual.geometry import Offset, Size

from evaltui.project.settings import last_sizes
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.dialogs.keys import JumpLabel
from evaltui.tui.layout import CASE_WIDTH, CASES_WIDTH, DOCK_ROWS, DRAGGED_SIZES, PANES, Layout
from evaltui.tui.main import bars
from evaltui.tui.main.bars import is_too_small
from evaltui.tui.main.panes import make_pane
from evaltui.tui.pane import fit_words
from evaltui.workbench.workbench import Workbench

# Terminals, and the columns of the two wide ones.
WIDTHS = (60, 80, 120, 200, 46, 74, 54)
AGENT = """
    def root_agent(message, session):
        if message == "crash":
            raise ValueError("not today")
        return message
"""
EVIL = "[/x] [bold]b[/] \x1b[31mred\x07 \u202e list[int] [link=x]"
CONTENTS = {
    "empty": {},
    "normal": {"lights": {"on": [turn("light on", "light on")], "off": [turn("light off", "it is on")]}},
    "erroneous": {"boom": {"crash": [turn("crash", "")], "other": [turn("x", "y")]}},
    "long": {
        "wide_" * 30: {
            "case_" * 40: [turn("word " * 400, "x" * 3000, {"name": "tool", "args": {"q": "y" * 500}})] * 4
        }
    },
    "not ascii": {"設定": {"日本語テスト🎉" * 4: [turn("こんにちは" * 30, "مرحبا" * 20)]}},
    "hostile": {EVIL: {EVIL: [turn(EVIL, EVIL, {"name": EVIL, "args": {EVIL: [EVIL]}})]}},
}

WHOLE_RUNS = [((60, 20), "long"), ((80, 24), "hostile"), ((120, 40), "not ascii"), ((200, 50), "erroneous")]


@pytest.fixture
def agent(write_agent):
    def make(content):
        folder = write_agent(AGENT)
        for number, (set_id, cases) in enumerate(content.items()):
            path = write_cases(folder, f"set{number}", cases)
            path.write_text(path.read_text("utf-8").replace(f'"set{number}"', _json(set_id)), "utf-8")
        return folder

    return make


def _json(text):
    import json

    return json.dumps(text)


async def started(app, pilot):
    """Every pane is there: the first frame has the cases alone."""
    await until(pilot, lambda: app.workbench.sets.workspace is not None)
    panes = ", ".join(f"#{kind.id}" for kind in PANES)
    await until(pilot, lambda: len(app.screen_stack[0].query(panes)) == len(PANES))


async def complete(app, pilot, *parts):
    """The screen once all is there that comes later, such as the agent's Python, which a process tells."""
    await until_ran(pilot, lambda: all(part in screen_text(app) for part in (*parts, " · Python ")))
    return screen_text(app)


def check_lines(lines, width):
    assert all(cell_len(line) <= width for line in lines)
    assert not {letter for line in lines for letter in line if letter < " " or letter in "\x7f\u202e"}


class EveryPane(App):
    """Every pane on one workbench, one below the other, as wide as the screen."""

    def __init__(self, workbench):
        super().__init__()
        self.panes = [make_pane(kind.id, workbench) for kind in PANES]

    def compose(self):
        yield from self.panes


@pytest.mark.parametrize("content", CONTENTS)
async def test_every_line_of_every_pane_fits_every_width(agent, content):
    workbench = Workbench(agent(CONTENTS[content]))
    await workbench.open()
    if CONTENTS[content]:
        workbench.runs.run_all()
        await waiting.until(
            lambda: workbench.runs.current and workbench.runs.current.over,
            seconds=waiting.PATIENCE_WITH_PROCESSES,
        )
    app = EveryPane(workbench)
    async with app.run_test(size=(WIDTHS[0], 60)) as pilot:
        for width in WIDTHS:
            await pilot.resize_terminal(width, 60)
            for pane in app.panes:
                pane.follow()
                await until(pilot, lambda pane=pane, width=width: pane.size.width == width)
                lines = [pane.render_line(number).text for number in range(pane.line_count)]
                assert all(cell_len(line) == pane.size.width for line in lines)
                check_lines(lines, width)
        empty = {pane.id for pane in app.panes if not pane.line_count}
        assert empty <= ({"chat"} if CONTENTS[content] else {"chat", "case"})


def check_screen(app, size):
    lines = screen_lines(app)
    assert len(lines) == size[1]
    check_lines(lines, size[0])


def _whole_run(size, content):
    marks = () if content in ("long", "hostile") else (pytest.mark.thorough,)
    return pytest.param(size, content, id=content, marks=marks)


@pytest.mark.parametrize(("size", "content"), [_whole_run(*one) for one in WHOLE_RUNS])
async def test_every_pane_shows_everything_at_every_size(agent, size, content):
    app = WorkbenchApp(Workbench(agent(CONTENTS[content])))
    async with app.run_test(size=size) as pilot:
        await started(app, pilot)
        if CONTENTS[content]:
            await pilot.press("R")
            await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        for number, kind in enumerate(PANES, 1):
            await pilot.press(str(number))
            field = "message-field" if kind.id == "chat" else kind.id
            await until(pilot, lambda field=field: app.screen.focused and app.screen.focused.id == field)
            await until(pilot, lambda title=f"{number} {kind.title}": title in screen_text(app))
            check_screen(app, size)
            # Out of the message; a list has nothing to leave.
            await pilot.press("escape", "end", "home", "z")
            await pilot.pause()
            check_screen(app, size)
            await pilot.press("z")
        for key in ("question_mark", "ctrl+o"):
            await pilot.press(key)
            await until(pilot, lambda: len(app.screen_stack) == 2)
            check_screen(app, size)
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)


def plan(layout, width, height):
    """Each place as its panes, the one on top in brackets, with its column, row, width and height."""
    return [
        (" ".join(f"[{pane}]" if pane == place.shown else pane for pane in place.panes), *place.region)
        for place in layout.places(Size(width, height))
    ]


MAIN = "[case] result chat trace console"


@pytest.mark.parametrize(
    ("size", "places"),
    [
        ((80, 24), [("[cases] case result chat trace console", 0, 0, 80, 19)]),
        ((89, 30), [("[cases] case result chat trace console", 0, 0, 89, 25)]),
        ((100, 30), [("[cases]", 0, 0, 30, 27), (MAIN, 30, 0, 70, 27)]),
        ((120, 36), [("[cases]", 0, 0, 38, 25), ("[recent_runs]", 0, 25, 38, 8), (MAIN, 38, 0, 82, 33)]),
        (
            (160, 45),
            [
                ("[cases]", 0, 0, 40, 29),
                ("[recent_runs]", 0, 29, 40, 13),
                ("[case] result chat", 40, 0, 120, 29),
                ("[trace] console", 40, 29, 120, 13),
            ],
        ),
        ((160, 36), [("[cases]", 0, 0, 40, 25), ("[recent_runs]", 0, 25, 40, 8), (MAIN, 40, 0, 120, 33)]),
        (
            (220, 60),
            [
                ("[cases]", 0, 0, 42, 37),
                ("[recent_runs]", 0, 37, 42, 20),
                ("[case]", 42, 0, 62, 37),
                ("[result] chat", 104, 0, 116, 37),
                ("[trace] console", 42, 37, 178, 20),
            ],
        ),
    ],
)
def test_places_follow_the_size(size, places):
    assert plan(Layout(), *size) == places


def test_a_case_that_is_edited_has_its_result_beside_it():
    layout = Layout()
    layout.go_to("result")
    shown = [place.shown for place in layout.places(Size(160, 45))]
    assert shown == ["cases", "recent_runs", "result", "trace"]
    layout.go_to("case")
    assert plan(layout, 160, 45)[2:4] == [("[case]", 40, 0, 60, 29), ("[result] chat", 100, 0, 60, 29)]
    assert plan(layout, 160, 36)[2:] == [
        ("[case]", 40, 0, 60, 33),
        ("[result] chat trace console", 100, 0, 60, 33),
    ]
    layout.go_to("result")
    assert plan(layout, 160, 45)[2] == ("case [result] chat", 40, 0, 120, 29)


def test_what_was_chosen_survives_every_size():
    layout = Layout()
    layout.go_to("result")
    layout.go_to("chat")
    assert plan(layout, 100, 30)[-1][0] == "case result [chat] trace console"
    assert [place[0] for place in plan(layout, 160, 45)] == [
        "[cases]",
        "[recent_runs]",
        "case result [chat]",
        "[trace] console",
    ]
    layout.go_to("result")
    assert plan(layout, 160, 45)[2][0] == "case [result] chat"
    layout.go_to("chat")
    layout.go_to("cases")
    assert plan(layout, 80, 24)[0][0].startswith("[cases]")
    assert plan(layout, 100, 30)[-1][0] == "case result [chat] trace console"
    layout.hide_cases(True)
    assert layout.focus == "chat"
    assert plan(layout, 120, 36) == [("case result [chat] trace console", 0, 0, 120, 33)]
    layout.maximised = True
    assert plan(layout, 200, 50) == [("cases case result [chat] trace console", 0, 0, 200, 47)]
    layout.go_to("cases")
    assert not layout.cases_hidden


def test_the_runs_are_shown_while_they_have_the_focus_at_every_size():
    layout = Layout()
    layout.go_to("recent_runs")
    assert plan(layout, 80, 24)[0][0] == "cases case result chat trace console [recent_runs]"
    assert plan(layout, 100, 30)[0] == ("cases [recent_runs]", 0, 0, 30, 27)
    layout.hide_cases(True)
    assert layout.focus == "case"


def test_a_hidden_dock_leaves_its_tabs_and_its_rows():
    layout = Layout()
    layout.go_to("trace")
    layout.hide_dock()
    assert layout.focus == "cases"
    assert plan(layout, 160, 45)[2:] == [(MAIN, 40, 0, 120, 42)]
    layout.bring_up("console")
    assert plan(layout, 160, 45)[-1][0] == "trace [console]"


def test_the_cases_are_as_wide_as_the_user_wants_them_where_there_is_room():
    layout = Layout()
    assert layout.widen_cases(160, 2) == 42
    assert layout.widen_cases(160, 200) == 110
    assert [plan(layout, width, 36)[0][3] for width in (90, 120, 160, 220)] == [40, 70, 110, 110]
    assert layout.widen_cases(160, -200) == 20


@pytest.mark.parametrize(
    ("size", "divider", "to", "edge"),
    [
        ((160, 45), CASE_WIDTH, (95, 5), 95),
        ((160, 45), CASE_WIDTH, (2, 5), 70),
        ((220, 60), CASE_WIDTH, (219, 5), 190),
        ((160, 45), DOCK_ROWS, (60, 20), 20),
        ((160, 45), DOCK_ROWS, (60, 0), 10),
        ((160, 45), DOCK_ROWS, (60, 44), 37),
    ],
)
def test_dividers_are_dragged_as_far_as_there_is_room(size, divider, to, edge):
    layout, size = Layout(focus="case"), Size(*size)
    layout.drag(divider, size, Offset(*to))
    region = dict(layout.dividers(size))[divider]
    assert (region.y if divider == DOCK_ROWS else region.x) == edge - 1


def test_there_are_dividers_between_what_is_seen():
    layout = Layout()
    assert [divider for divider, _ in layout.dividers(Size(160, 45))] == [CASES_WIDTH, DOCK_ROWS]
    assert not [*layout.dividers(Size(80, 24))]
    layout.go_to("case")
    assert [divider for divider, _ in layout.dividers(Size(120, 36))] == [CASES_WIDTH]
    layout.hide_cases(True)
    layout.hide_dock()
    assert [divider for divider, _ in layout.dividers(Size(160, 45))] == [CASE_WIDTH]


@pytest.mark.parametrize(("size", "small"), [((60, 16), False), ((59, 16), True), ((60, 15), True)])
def test_what_is_too_small(size, small):
    assert is_too_small(Size(*size)) is small


async def test_a_terminal_that_is_too_small_loses_nothing(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(80, 24)) as pilot:
        await started(app, pilot)
        await pilot.press("down", "2")
        before = await complete(app, pilot, "it is on")
        await pilot.resize_terminal(50, 10)
        await until(pilot, lambda: "evaltui needs 60 columns and 16 rows" in screen_text(app))
        assert "it is on" not in screen_text(app)
        assert "1 Cases" not in screen_text(app)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: screen_text(app) == before)


async def test_maximising_hiding_and_back(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        before = await complete(app, pilot, "○ off", "+ turn, call, argument")
        await pilot.press("z")
        await until(pilot, lambda: "1 Cases ─ 2 Case" in screen_text(app))
        assert "light on" not in screen_text(app)
        await pilot.press("z")
        await until(pilot, lambda: screen_text(app) == before)
        await pilot.press("ctrl+b")
        await until(pilot, lambda: "1 Cases" not in screen_text(app))
        assert app.screen.focused.id == "case"
        await pilot.press("1")
        await until(pilot, lambda: screen_text(app) == before)


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_the_case_has_the_room_of_dock_and_runs_before_the_first_run(agent, size):
    folder = agent(CONTENTS["normal"])
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=size) as pilot:
        await started(app, pilot)
        await pilot.press("2")
        await until(pilot, lambda: "▶ r  Run case   R  Run all 2 cases" in screen_text(app))
        assert "H Runs" not in screen_text(app)
        assert screen_lines(app)[-3 if size[0] > 90 else 4].count("╰") == (2 if size[0] > 90 else 0)
        await pilot.press("5", "1")
        await until(pilot, lambda: focused_tab(app).startswith("1"))
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("2")
        await until(pilot, lambda: "▾ Turn 1 ✓" in screen_text(app) and "Run all" not in screen_text(app))
        if size[0] > 90:
            assert "H Runs" in screen_text(app)
            assert "5 Trace ─ 6 Console" in screen_text(app)


async def test_tab_goes_round_what_is_seen(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("2", "1")
        seen = []
        for key in ("tab", "tab", "tab", "shift+tab", "tab"):
            await pilot.press(key)
            seen.append(app.screen.focused.id)
        assert seen == ["recent_runs", "case", "result", "recent_runs", "result"]
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: len(screen_lines(app)) == 24)
        await pilot.press("tab")
        assert app.screen.focused.id == "message-field"


async def test_the_key_of_the_docks_tab_hides_it_and_shows_it_again(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        await pilot.press("5")
        await until(pilot, lambda: focused_tab(app) == "5 Trace")
        before = await complete(app, pilot, "○ off", "+ turn, call, argument")
        await pilot.press("5")
        await until(pilot, lambda: "2 Case ─ 3 Result ○ ─ 4 Chat ─ 5 Trace" in screen_text(app))
        assert app.screen.focused.id == "cases"
        await pilot.press("5")
        await until(pilot, lambda: screen_text(app) == before)
        assert app.screen.focused.id == "trace"


async def test_the_divider_beside_the_cases_is_dragged(agent, no_settings_of_the_user):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(120, 36)) as pilot:
        await started(app, pilot)
        before = screen_lines(app)[1].index("╮")
        await pilot.mouse_down(offset=(before, 9))
        await pilot.hover(offset=(before + 5, 9))
        await pilot.hover(offset=(before + 12, 9))
        await pilot.mouse_up(offset=(before + 12, 9))
        await until(pilot, lambda: screen_lines(app)[1].index("╮") == before + 11)
        assert not app.screen.selections
    assert last_sizes(DRAGGED_SIZES) == {CASES_WIDTH: before + 12}


async def test_the_border_above_the_dock_is_dragged_and_its_tabs_are_clicked(agent, no_settings_of_the_user):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        await pilot.press("R")
        await until_ran(pilot, lambda: "passed" in screen_text(app))
        dock = app.screen.query_one("#trace-frame").region
        await pilot.mouse_down(offset=(dock.right - 9, dock.y))
        await pilot.hover(offset=(dock.right - 9, dock.y - 4))
        await pilot.mouse_up(offset=(dock.right - 9, dock.y - 4))
        await until(pilot, lambda: app.screen.query_one("#trace-frame").region.y == dock.y - 4)
        lines = screen_lines(app)
        assert await pilot.click(offset=(lines[dock.y - 4].index("6 Console") + 2, dock.y - 4))
        await until(pilot, lambda: "Console" in focused_tab(app))
    assert last_sizes(DRAGGED_SIZES) == {DOCK_ROWS: dock.height + 4}


async def test_the_cases_keep_the_width_that_they_are_given(agent, no_settings_of_the_user):
    folder = agent(CONTENTS["normal"])
    for width in (40, 44):
        app = WorkbenchApp(Workbench(folder))
        async with app.run_test(size=(160, 45)) as pilot:
            await started(app, pilot)
            frame = app.screen.query_one("#cases-frame")
            await until(pilot, lambda frame=frame, width=width: frame.outer_size.width == width)
            await pilot.press("greater_than_sign", "greater_than_sign", "greater_than_sign", "less_than_sign")
            await until(pilot, lambda frame=frame, width=width: frame.outer_size.width == width + 4)


async def test_clicks_on_tabs_rows_and_hints(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(80, 24)) as pilot:
        await started(app, pilot)
        await until(pilot, lambda: "○ off" in screen_text(app))
        await pilot.click("#cases", offset=(5, 2))
        await until(pilot, lambda: app.workbench.navigation.selection.eval_id == "off")
        assert app.screen.focused.id == "cases"
        await pilot.click("#cases", offset=(5, 2), times=2)
        await until(pilot, lambda: app.screen.focused.id == "case")
        await pilot.click("#tabs", offset=(screen_lines(app)[1].index("3 Result"), 0))
        await until(pilot, lambda: app.screen.focused.id == "result")
        await pilot.click("#footer", offset=(screen_lines(app)[-1].index("? help"), 0))
        await until(pilot, lambda: len(app.screen_stack) == 2)


async def test_jumping_to_a_pane_by_the_key_on_it(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        # Each pane has one, and each turn in view.
        await pilot.press("3", "ctrl+o", "a")
        await until(pilot, lambda: app.workbench.navigation.selection.turn == 0)
        await pilot.press("1", "R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: len(app.screen.query(JumpLabel)) >= 7)
        assert "off" in screen_text(app)
        # On the title of every pane, which stays where it is.
        assert {f" {key} " for key in "123456H"} <= {
            label.line(3)[0][0] for label in app.screen.query(JumpLabel)
        }
        assert "3 Result" in screen_text(app)
        await pilot.press("3")
        await until(pilot, lambda: app.screen.focused and app.screen.focused.id == "result")
        await pilot.press("ctrl+o", "escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.screen.focused.id == "result"


async def test_jumping_to_a_section_by_the_key_on_it(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(220, 60)) as pilot:
        await started(app, pilot)
        await pilot.press("r")
        await until_ran(pilot, lambda: "▸ Informational metrics" in screen_text(app))
        await pilot.press("5")
        await until(pilot, lambda: app.screen.query_one("#trace-inspector").region)

        async def jump(target):
            await pilot.press("ctrl+o")
            await until(pilot, lambda: app.screen.query(JumpLabel))
            keys = {label.jump.target: label.jump.key for label in app.screen.query(JumpLabel)}
            await pilot.press(keys[target])
            await until(pilot, lambda: len(app.screen_stack) == 1)

        await jump("result informational")
        await until(pilot, lambda: "▾ Informational metrics" in screen_text(app))
        assert app.screen.focused.id == "result"
        await jump("result metrics")
        assert app.screen.focused.link == app.screen.focused.page.links[0]
        await jump("trace details")
        await until(pilot, lambda: "Inspector" in focused_tab(app))


async def test_running_a_case_brings_its_result_up(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot)
        await until(pilot, lambda: "no calls expected" in screen_text(app))
        await pilot.press("r")
        await until_ran(pilot, lambda: "2/2 metrics" in screen_text(app))
        assert app.screen.focused.id == "cases"


async def test_a_message_goes_with_what_it_speaks_of_and_leaves_the_run_where_it_is(agent, monkeypatch):
    monkeypatch.setattr(bars, "_MESSAGE_SECONDS", waiting.PATIENCE_WITH_PROCESSES)
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(120, 36)) as pilot:
        await started(app, pilot)
        await until(pilot, lambda: "No run yet   R runs all 2 cases" in screen_lines(app)[-2])
        app.workbench.say("Nothing to undo")
        await until(pilot, lambda: screen_lines(app)[-2].endswith("Nothing to undo"))
        assert "No run yet" in screen_lines(app)[-2]
        before = app.workbench.messages.notice.at
        await pilot.press("down")
        await until(pilot, lambda: "Nothing to undo" not in screen_text(app))
        assert app.workbench.messages.notice.at == before


async def test_a_message_goes_by_itself(agent, monkeypatch):
    monkeypatch.setattr(bars, "_MESSAGE_SECONDS", 0.2)
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(120, 36)) as pilot:
        await started(app, pilot)
        app.workbench.say("Nothing to undo")
        await until(pilot, lambda: "Nothing to undo" not in screen_text(app))
        assert app.workbench.messages.notice.text == "Nothing to undo"


@pytest.mark.parametrize(("cases", "runs"), [(0, 13), (29, 13), (33, 9), (37, 5), (38, None), (10_000, None)])
def test_the_runs_give_room_to_the_cases(cases, runs):
    layout = Layout(cases_rows=cases)
    rows = {places[0]: places[4] for places in plan(layout, 160, 45)}
    assert rows.get("[recent_runs]") == runs
    layout.go_to("recent_runs")
    shown = [place.shown for place in layout.places(Size(160, 45))]
    assert "recent_runs" in shown


def test_the_name_of_a_case_stays_where_not_all_of_a_heading_fits():
    heading = [
        ("lights", "muted"),
        (" › ", "muted"),
        ("thermostat_night", "bold"),
        ("   ", ""),
        ("run 1", "muted"),
    ]
    shown = {width: "".join(text for text, _ in fit_words(heading, width)) for width in (40, 24, 16, 12, 7)}
    assert shown == {
        40: "lights › thermostat_night   run 1",
        24: "thermostat_night   run 1",
        16: "thermostat_night",
        12: "thermo…night",
        7: "run 1",
    }
    number = [*heading, ("   ", ""), ("difference ", "muted"), ("1", "bold"), ("/2", "muted")]
    assert "".join(text for text, _ in fit_words(number, 20)) == "difference 1/2"
