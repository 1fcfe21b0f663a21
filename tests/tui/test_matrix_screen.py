"""The matrix of an agent's variants, by keys."""

import pytest
from pilots import screen_lines, screen_text, until
from stored_matrix import BASE, PRO, write_matrix, write_variant

from evaltui.core.model.variants import Change
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.screens.comparison import ComparisonScreen
from evaltui.tui.screens.matrix import MatrixScreen
from evaltui.workbench.workbench import Workbench

AGENT = """
    from evaltui.events import text

    def root_agent(message, session):
        yield text("It is 19 °C now.")
"""


@pytest.fixture
def home(write_agent):
    return write_agent(AGENT, name="home")


async def opened(app, pilot):
    await until(pilot, lambda: app.workbench.sets.listed or app.workbench.sets.workspace)
    await pilot.press("V")
    await until(pilot, lambda: isinstance(app.screen, MatrixScreen) and "Reading" not in app.screen.note)


def line_with(app, text):
    return next(line for line in screen_lines(app) if text in line)


async def test_cells_are_read_compared_and_opened(home):
    write_matrix(home)
    app = WorkbenchApp(Workbench(home))
    async with app.run_test(size=(160, 45)) as pilot:
        await opened(app, pilot)
        await until(pilot, lambda: "2 variants   50 executions   sorted by set" in screen_text(app))
        assert "5 cases × 5" in screen_text(app)
        assert "✓✗✓✗✓ 3/5" in line_with(app, "movie_mode")
        assert line_with(app, "movie_mode").rstrip("│ ").endswith("▲")
        assert "!!!!! 0/5" in line_with(app, "away")
        assert "pro against base: better on 2, worse on 1 of 5 cases" in screen_text(app)
        assert "p = 1" in screen_text(app)
        # What both did in the current case.
        await pilot.press("down")
        await until(pilot, lambda: "repeats 2, 4 fail the same way" in screen_text(app))
        assert "lights › movie_mode" in screen_text(app)
        # Call by call.
        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen) and app.screen.compared)
        await until(pilot, lambda: "movie_mode" in screen_text(app) and "Turn 1 ≠" in screen_text(app))
        assert app.screen.rows.current.case.eval_id == "movie_mode"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MatrixScreen))
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.outcomes.previous_run is not None)
        assert app.workbench.navigation.selection.eval_id == "movie_mode"
        assert "pro" in app.workbench.outcomes.previous_run.title


async def test_the_base_is_chosen_rows_are_sorted_and_hidden(home):
    write_matrix(home)
    app = WorkbenchApp(Workbench(home))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot)
        await until(pilot, lambda: "hello" in screen_text(app))
        await pilot.press("d")
        await until(pilot, lambda: "hello" not in screen_text(app))
        await pilot.press("s")
        await until(pilot, lambda: "sorted by difference" in screen_text(app))
        names = [row.case.eval_id for row in app.screen.rows_now()]
        assert names == ["away", "night", "movie_mode"]
        await pilot.press("space")
        await until(pilot, lambda: app.screen.opened.matrix.base == 1)
        assert "base against pro: better on 1, worse on 2" in screen_text(app)
        await pilot.press("left", "space")
        await until(pilot, lambda: "This is the base" in screen_text(app))
        await pilot.press("V")
        await until(pilot, lambda: not isinstance(app.screen, MatrixScreen))


async def test_without_a_matrix_it_says_how_to_run_one(home):
    app = WorkbenchApp(Workbench(home))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot)
        await until(pilot, lambda: "--variant" in screen_text(app))
        for key in ("enter", "space", "equals_sign", "s", "d", "left", "right", "end"):
            await pilot.press(key)
        assert isinstance(app.screen, MatrixScreen)


async def test_a_matrix_grows_and_its_columns_scroll(home):
    write_variant(home, "base", BASE)
    names = [f"variant {number}" for number in range(6)]
    for name in names:
        open_case = {**PRO, "thermostat": {"night": "p", "away": ""}}
        write_variant(home, name, open_case, Change("model", name))
    app = WorkbenchApp(Workbench(home))
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(app, pilot)
        await until(pilot, lambda: "6 results missing" in screen_text(app))
        assert "○ not run" in line_with(app, "away")
        assert "variant 5" not in screen_text(app)
        await pilot.press(*["right"] * 8)
        await until(pilot, lambda: "variant 5" in screen_text(app))
        assert " base  " in line_with(app, "5 cases")
        assert "variant 0" not in screen_text(app)
        # The variant is run again, to its end.
        for name in names:
            write_variant(home, name, PRO, Change("model", name))
        await pilot.press("f5")
        await until(pilot, lambda: "missing" not in screen_text(app))
        assert app.screen.column == 6
