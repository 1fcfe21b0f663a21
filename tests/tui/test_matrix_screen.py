"""The matrix of an agent's variants, by keys and mouse."""

import pytest
from pilots import screen_lines, screen_text, until
from stored_matrix import write_variant
from textual.screen import Screen

from evaltui.core.model.variants import Change
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.matrix.screen import MatrixScreen
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.project.layouts import eval_set, write

AGENT = """
    from evaltui.events import text

    def root_agent(message, session):
        yield text("It is 19 °C now.")
"""


@pytest.fixture
def home(write_agent):
    return write_agent(AGENT, name="home")


class MatrixApp(WorkbenchApp):
    """Has nothing but the matrix: no eval set is read."""

    def get_default_screen(self):
        return Screen()

    async def _start(self):
        await self.push_screen(MatrixScreen(self.workbench))


def shows(app, text):
    return lambda: text in screen_text(app)


def line_with(app, text):
    return next(line for line in screen_lines(app) if text in line)


TWO_AGENTS = """
    def root_agent(message, session):
        return "hello"

    def other_agent(message, session):
        return "goodbye"
"""


@pytest.fixture
def two_agents(write_agent, monkeypatch):
    """A folder whose newest matrix is of another agent than its root."""
    folder = write_agent(TWO_AGENTS, name="two_agents")
    write(folder / "s.evalset.json", eval_set("s"))
    monkeypatch.chdir(folder.parent)
    variants = ("--variant", "base", "--variant", "other:env.SHOP=2")
    assert call("run", folder, *variants) == 0
    assert call("run", "-m", "two_agents.agent:other_agent", *variants) == 1
    return folder


async def test_a_matrix_of_another_agent_is_not_shown(two_agents):
    app = MatrixApp(Workbench(two_agents))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, shows(app, "greets"))
        assert "✓" in line_with(app, "greets")
        await pilot.press("o")
        await until(pilot, shows(app, "base, other"))
        assert screen_text(app).count("base, other") == 1


async def test_keys_and_clicks_change_what_is_shown(home):
    for number in range(7):
        changes = [Change("model", f"m{number}")] if number else []
        write_variant(home, f"v{number}", {"lights": {"hello": "p", "bye": "pf"[number % 2]}}, *changes)
    app = MatrixApp(Workbench(home))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, shows(app, "hello"))
        assert "v6" not in screen_text(app)
        await pilot.press(*["right"] * 6)
        await until(pilot, shows(app, "v6"))
        assert " v0  " in line_with(app, "2 cases")
        assert "v1 " not in screen_text(app)
        # A click on a head, and one on a cell.
        heads = line_with(app, "2 cases")
        row = screen_lines(app).index(heads)
        await pilot.click(offset=(heads.index("v5"), row))
        await until(pilot, lambda: app.screen.view.column == 5)
        bye = screen_lines(app).index(line_with(app, "  bye"))
        await pilot.click(offset=(heads.index("v6"), bye))
        await until(pilot, lambda: app.screen.view.column == 6)
        assert app.screen.rows.current.case.eval_id == "bye"
        await pilot.press("d")
        await until(pilot, lambda: "hello" not in screen_text(app))
        await pilot.press("s", "space")
        await until(pilot, shows(app, "sorted by difference"))
        assert "v0 against v6: " in screen_text(app)
        await pilot.press(*["left"] * 7, "space")
        await until(pilot, shows(app, "This is the base"))


async def test_the_footer_counts_the_repeats_of_the_cell(home):
    for name, changes in (("base", []), ("other", [Change("model", "m")])):
        write_variant(home, name, {"lights": {"bye": "p", "hello": "ppf"}}, *changes)
    app = MatrixApp(Workbench(home))
    async with app.run_test(size=(160, 36)) as pilot:
        await until(pilot, shows(app, "distinct trajectory"))
        assert "repeat" not in screen_lines(app)[-1]
        await pilot.press("down")
        await until(pilot, lambda: "] repeat 3/3" in screen_lines(app)[-1])
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "] repeat 1/3" in screen_lines(app)[-1])


async def test_without_a_matrix_it_says_how_to_run_one(home):
    app = MatrixApp(Workbench(home))
    async with app.run_test(size=(80, 24)) as pilot:
        # All of the command, however little room there is.
        command = "evaltui run --variant base --variant flash:model=gemini-2.5-flash"
        await until(pilot, shows(app, command))
        # Nothing is offered that would be refused.
        assert screen_lines(app)[-1].split() == ["esc", "close", "?", "help"]
        await pilot.press("question_mark")
        await until(pilot, shows(app, "Unavailable here"))
        assert "Sort cases" not in screen_text(app)
        await pilot.press(*"sort")
        await until(pilot, lambda: "No matrix yet" in line_with(app, "Sort cases"))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MatrixScreen))
        for key in (
            "enter",
            "space",
            "equals_sign",
            "s",
            "d",
            "left",
            "right",
            "end",
            "E",
            "r",
            "right_square_bracket",
        ):
            await pilot.press(key)
        assert isinstance(app.screen, MatrixScreen)
        await pilot.resize_terminal(50, 24)
        await until(pilot, lambda: all(word in screen_text(app) for word in command.split()))
