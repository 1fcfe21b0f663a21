"""Every size of terminal with every kind of content, and what the user does to the layout."""

import pytest
import waiting
from pilots import focused_tab, screen_lines, screen_text, turn, until, until_ran, write_cases
from rich.cells import cell_len
from textual.app import App
from textual.geometry import Size

from evaltui.tui.app import WorkbenchApp
from evaltui.tui.layout import PANES, Column, Layout, make_pane
from evaltui.tui.panes.bars import is_too_small
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
    await until(pilot, lambda: app.workbench.sets.workspace is not None)


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


@pytest.mark.parametrize(("size", "content"), WHOLE_RUNS, ids=[content for _, content in WHOLE_RUNS])
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


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (60, [("cases", "case", "result")]),
        (89, [("cases", "case", "result")]),
        (90, [("cases",), ("case", "result")]),
        (139, [("cases",), ("case", "result")]),
        (140, [("cases",), ("case",), ("result",)]),
    ],
)
def test_columns_follow_the_width(width, columns):
    known = {"cases", "case", "result"}
    shown = [tuple(pane for pane in column.panes if pane in known) for column in Layout().columns(width)]
    assert shown == columns


def test_what_was_chosen_survives_every_width():
    layout = Layout()
    layout.go_to("result")
    layout.go_to("case")
    assert layout.columns(100)[-1].shown == "case"
    assert layout.columns(200)[-1].shown == "result"
    layout.go_to("chat")
    assert [column.shown for column in layout.columns(200)] == ["cases", "chat", "result"]
    layout.go_to("case")
    layout.go_to("cases")
    assert layout.columns(80)[0].shown == "cases"
    layout.hide_cases(True)
    assert [column.shown for column in layout.columns(200)] == ["case", "result"]
    assert layout.focus == "case"
    layout.maximised = True
    assert layout.columns(200) == (Column(tuple(kind.id for kind in PANES), "case"),)
    layout.go_to("cases")
    assert not layout.cases_hidden


@pytest.mark.parametrize(("size", "small"), [((60, 16), False), ((59, 16), True), ((60, 15), True)])
def test_what_is_too_small(size, small):
    assert is_too_small(Size(*size)) is small


async def test_a_terminal_that_is_too_small_loses_nothing(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(80, 24)) as pilot:
        await started(app, pilot)
        await pilot.press("down", "2")
        await until(pilot, lambda: "it is on" in screen_text(app))
        before = screen_text(app)
        await pilot.resize_terminal(50, 10)
        await until(pilot, lambda: "evaltui needs 60 columns and 16 rows" in screen_text(app))
        assert "it is on" not in screen_text(app)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: screen_text(app) == before)


async def test_maximising_hiding_and_back(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        await until(pilot, lambda: "○ off" in screen_text(app))
        before = screen_text(app)
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


async def test_tab_goes_round_what_is_seen(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        seen = []
        for key in ("tab", "tab", "tab", "shift+tab"):
            await pilot.press(key)
            seen.append(app.screen.focused.id)
        assert seen == ["case", "result", "cases", "result"]
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: len(screen_lines(app)) == 24)
        await pilot.press("tab")
        assert app.screen.focused.id == "message-field"


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
        await pilot.click("#footer", offset=(screen_lines(app)[-1].index("? keys"), 0))
        await until(pilot, lambda: len(app.screen_stack) == 2)


async def test_a_click_on_a_tab_in_the_border_shows_its_pane(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(120, 36)) as pilot:
        await started(app, pilot)
        await until(pilot, lambda: "○ off" in screen_text(app))
        for tab, pane in (("3 Result", "result"), ("5 Trace", "trace"), ("1 Cases", "cases")):
            await pilot.click(offset=(screen_lines(app)[1].index(tab) + 3, 1))
            await until(pilot, lambda pane=pane: app.screen.focused.id == pane)
            assert focused_tab(app).startswith(tab)


async def test_jumping_to_a_pane_by_the_key_on_it(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(160, 45)) as pilot:
        await started(app, pilot)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "  3  Result" in screen_text(app))
        await pilot.press("3")
        await until(pilot, lambda: app.screen.focused and app.screen.focused.id == "result")
        await pilot.press("ctrl+o", "escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.screen.focused.id == "result"


async def test_running_a_case_brings_its_result_up(agent):
    app = WorkbenchApp(Workbench(agent(CONTENTS["normal"])))
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot)
        await until(pilot, lambda: "must call nothing" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "2/2 metrics passed" in screen_text(app))
        assert app.screen.focused.id == "cases"
