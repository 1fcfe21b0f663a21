"""The second pages of the palette: a run or an agent is previewed while it is chosen."""

import sys
from pathlib import Path

import pytest
from pilots import screen_lines, screen_text, turn, until, until_ran, workbench_on, write_cases
from stored_runs import FOREIGN

from evaltui.project.settings import remember_agent
from evaltui.tui.dialogs.palette import AgentScreen, PickRunScreen
from evaltui.tui.widgets.writer import PageLines

SIZES = [(80, 24), (160, 45)]
ANSWERS = "def root_agent(message, session):\n    return {'hi': 'hello'}.get(message, 'ANSWER')\n"
IMPORTED = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"


async def second_page(pilot, app, title, screen):
    await pilot.press("ctrl+p", *("space" if letter == " " else letter for letter in title))
    await until(pilot, lambda: f"{title.capitalize()}…" in screen_text(app))
    while app.screen.current.title[0][0] != f"{title.capitalize()}…":
        await pilot.press("down")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, screen) and app.screen.matches)


def previewed(app):
    """The text of the preview, line by line."""
    page = app.screen.query_one(PageLines)
    return ["".join(text for text, _ in line).strip() for line in page.page.lines]


def all_seen(app):
    """Whether each line of the preview is on the screen."""
    return all(any(line[:30] in seen for seen in screen_lines(app)) for line in previewed(app))


@pytest.fixture
async def two_runs(write_agent):
    """An agent with two runs: all three cases, of which one fails; then one, which passes."""
    folder = write_agent(ANSWERS.replace("ANSWER", "no idea"), name="desk")
    cases = {"greets": [turn("hi", "hello")], "asks": [turn("why", "because")], "ends": [turn("hi", "hello")]}
    write_cases(folder, "talk", cases)
    async with workbench_on(folder, (80, 24)) as (app, pilot):
        app.workbench.runs.run_all()
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("r")
        await until_ran(pilot, lambda: app.workbench.runs.current.number == 2)
        await until_ran(pilot, lambda: app.workbench.runs.current.over)
    return folder


@pytest.mark.parametrize("size", SIZES)
async def test_a_run_is_previewed_with_what_failed_in_it(two_runs, size):
    async with workbench_on(two_runs, size) as (app, pilot):
        await second_page(pilot, app, "open run", PickRunScreen)
        await until(pilot, lambda: previewed(app)[:1] and previewed(app)[0].startswith("run 2 "))
        await until(pilot, lambda: "✓ All cases passed" in previewed(app))
        assert previewed(app)[1].endswith("talk:greets")
        assert "ago" in previewed(app)[0]
        await pilot.press("down")
        await until(pilot, lambda: "1 case did not pass" in previewed(app))
        # What is known of a run came later than the list: the cursor has stayed.
        assert previewed(app)[0].startswith("run 1 ")
        assert previewed(app)[1].startswith("✓ 2  ✗ 1 ")
        assert "✗ asks" in previewed(app)
        assert any("response 0.00" in line for line in previewed(app))
        assert all_seen(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.workbench.outcomes.previous_run is not None)
        assert app.workbench.outcomes.previous_run.title == "run 1"


async def test_a_run_that_cannot_be_read_is_previewed_with_why(two_runs):
    log = max((two_runs / ".evaltui" / "runs").glob("*.sqlite"))
    log.write_bytes(FOREIGN["text"])
    async with workbench_on(two_runs, (80, 24)) as (app, pilot):
        await second_page(pilot, app, "open run", PickRunScreen)
        await until(pilot, lambda: len(previewed(app)) > 1 and "is not a run of" in " ".join(previewed(app)))
        await pilot.press("down")
        await until(pilot, lambda: "1 case did not pass" in previewed(app))


@pytest.mark.parametrize("size", SIZES)
async def test_an_agent_is_previewed_without_being_imported(write_agent, tmp_path, size):
    here = write_agent(ANSWERS, name="here")
    other = write_agent(IMPORTED + ANSWERS, name="other")
    write_cases(other, "first", {"a": [turn("hi", "hello")], "b": [turn("hi", "hello")]})
    write_cases(other, "second", {"c": [turn("hi", "hello")]})
    (other / "third.evalset.json").write_text("{")
    (other / ".venv" / "bin").mkdir(parents=True)
    python = Path(sys.executable).resolve()
    (other / ".venv" / "bin" / "python").symlink_to(python)
    version = f"3.{sys.version_info.minor}.0"
    (other / ".venv" / "pyvenv.cfg").write_text(f"home = {python.parent}\nversion = {version}\n")
    broken = write_agent("def root_agent(:\n", name="broken")
    (broken / ".evaltui" / "runs").mkdir(parents=True)
    for one in (broken, other):
        remember_agent(one)
    async with workbench_on(here, size) as (app, pilot):
        await until(pilot, lambda: app.workbench.agent is not None)
        await second_page(pilot, app, "open agent", AgentScreen)
        await until(pilot, lambda: "3 eval sets, 3 cases" in " ".join(previewed(app)))
        await until(pilot, lambda: "Reading…" not in " ".join(previewed(app)))
        text = "\n".join(previewed(app))
        assert previewed(app)[0] == "other"
        assert "agent       function" in text
        assert f"python      Python 3.{sys.version_info.minor} (.venv)" in text
        assert "last run    No runs yet" in text
        if size[0] == 160:
            assert any(line.startswith("first") and line.endswith("2 cases") for line in previewed(app))
            assert any(line.startswith("third") and line.endswith("!") for line in previewed(app))
        else:
            assert previewed(app)[-1] == "eval sets   3 eval sets, 3 cases  first, second, third !"
        assert all_seen(app)
        assert not (other / "imported").exists()
        await pilot.press("down")
        await until(pilot, lambda: "! agent.py:1: invalid syntax" in "\n".join(previewed(app)))
        await until(pilot, lambda: "No eval sets" in "\n".join(previewed(app)))


async def test_an_agent_that_is_gone_meanwhile_says_so(write_agent):
    here, gone = (write_agent(ANSWERS, name=name) for name in ("here", "gone"))
    remember_agent(gone)
    async with workbench_on(here, (80, 24)) as (app, pilot):
        screen = AgentScreen(here)
        gone.rename(gone.with_name("elsewhere"))
        await app.push_screen(screen)
        await until(pilot, lambda: "! No such file or folder" in "\n".join(previewed(app)))
        await until(pilot, lambda: "Reading…" not in " ".join(previewed(app)))
