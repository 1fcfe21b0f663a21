"""An agent without cases, and one that cannot be loaded: what is seen, and the way on."""

from __future__ import annotations

import pytest
from pilots import screen_text, turn, until, until_ran, workbench_on, write_cases

from evaltui.core.model.outcome import ErrorInfo
from evaltui.project.agent_source import SourcePlace
from evaltui.project.interpreters import OWN
from evaltui.runs.run_file import RunFile
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.case.view import CaseView
from evaltui.tui.chat.view import ChatView
from evaltui.tui.inspector import InspectorLines
from evaltui.workbench.agent.agent_state import api_key
from evaltui.workbench.agent.first_minute import missing_package
from evaltui.workbench.workbench import Workbench

AGENT = """\
from evaltui import Agent, Rule, ScriptedModel


def find(name: str) -> str:
    \"\"\"Looks a person up.\"\"\"
    return name


RULES = [
    Rule(user="find", call=("find", {"name": "Ada"})),
    Rule(user="find", after_tool="find", reply="Found."),
]
root_agent = Agent("finder", model=ScriptedModel(RULES), instruction="Find.", tools=[find])
"""
SIZE = (100, 30)


@pytest.fixture
def opened(monkeypatch):
    """The places that were opened in the editor."""
    places: list[SourcePlace | None] = []

    def open_source(app, agent_dir, place):
        places.append(place)
        return "opened"

    monkeypatch.setenv("EDITOR", "vim")
    monkeypatch.setattr("evaltui.tui.main.dialogs.open_source", open_source)
    return places


async def test_a_set_without_cases_is_no_way_out_of_the_first_minute(write_agent):
    folder = write_agent(AGENT, name="people")
    write_cases(folder, "people", {})
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until_ran(pilot, lambda: "✓ READY" in screen_text(app))
        assert "people.evalset.json  no cases yet" in screen_text(app)
        await until(pilot, lambda: "✓ Agent loaded in " in screen_text(app))
        await pilot.press("o")
        await until(pilot, lambda: "case_1" in screen_text(app))
        await until(pilot, lambda: "2 Case" in screen_text(app))


async def test_broken_code_is_shown_opened_and_loaded_again_once_it_is_saved(write_agent, opened):
    folder = write_agent(AGENT.replace("tools=[find]", "tools=[fnd]"), name="people")
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until_ran(pilot, lambda: "Cannot load agent  agent.py:13" in screen_text(app))
        text = screen_text(app)
        assert "NameError: name 'fnd' is not defined" in text
        assert "▌  13  root_agent = Agent(" in text
        await pilot.press("E")
        await until(pilot, lambda: opened == [SourcePlace((folder / "agent.py").resolve(), 13)])
        await until(pilot, lambda: app.workbench.retry.is_watching)
        (folder / "agent.py").write_text(AGENT, encoding="utf-8")
        await until_ran(pilot, lambda: "✓ READY" in screen_text(app))


async def test_a_syntax_error_leads_to_its_line(write_agent, opened):
    folder = write_agent("x = 1\ndef root_agent(:\n", name="people")
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until_ran(pilot, lambda: "Cannot load agent  agent.py:2" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: opened == [SourcePlace((folder / "agent.py").resolve(), 2)])


async def test_of_a_missing_package_the_command_is_shown_and_copied(write_agent):
    folder = write_agent("import yamlx_of_nobody\n", name="people")
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until_ran(pilot, lambda: "Copy the command" in screen_text(app))
        assert "pip install" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.clipboard.endswith(" yamlx_of_nobody"))


async def test_from_calls_to_the_tool_and_from_the_model_to_the_instruction(write_agent, opened):
    folder = write_agent(AGENT, name="people")
    call = {"name": "find", "args": {"name": "Bob"}}
    write_cases(folder, "people", {"bob": [turn("find Bob", "Found.", call)]})
    tool = SourcePlace(folder / "agent.py", 4)
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until(pilot, lambda: "○ bob" in screen_text(app))
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("3", "n", "E")
        await until(pilot, lambda: opened == [tool])
        await pilot.press("t", "E")
        await until(pilot, lambda: len(opened) == 2)
        assert opened[1] == tool
        await pilot.press("up", "E")
        await until(pilot, lambda: len(opened) == 3)
        assert opened[2] == SourcePlace(folder / "agent.py", 13)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "Event  Request  Response" in screen_text(app))
        await pilot.press("E")
        await until(pilot, lambda: len(opened) == 4)
        assert opened[3] == tool


async def test_a_file_without_an_agent_says_what_was_looked_for_and_opens_it(write_agent, opened):
    folder = write_agent("x = 1\n", name="people")
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until_ran(pilot, lambda: "Open agent.py:1" in screen_text(app))
        assert "root_agent, app" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: opened == [SourcePlace(folder / "agent.py", 1)])


def error(message, kind="ModuleNotFoundError"):
    return ErrorInfo(kind, message, kind=None)


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("No module named 'yaml'", "pyyaml"),
        ("No module named 'google.genai'", "google-genai"),
        ("No module named 'requests.adapters'", "requests"),
        ("this agent needs google-adk, which is not installed", "google-adk"),
    ],
)
def test_a_package_is_named_as_it_is_installed(tmp_path, message, command):
    assert missing_package(tmp_path, error(message), OWN).command.endswith(f" {command}")


def test_a_project_of_uv_adds_the_package(tmp_path):
    (tmp_path / "uv.lock").write_text("", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    assert missing_package(tmp_path, error("No module named 'yaml'"), OWN).command == "uv add pyyaml"


def test_a_module_of_the_agents_own_is_not_installed_from_anywhere(tmp_path):
    (tmp_path / "tools.py").write_text("", encoding="utf-8")
    missing = missing_package(tmp_path, error("No module named 'tols'"), OWN)
    assert (missing.command, missing.own_module) == ("", "tools")
    assert missing_package(tmp_path, error("x", "ValueError"), OWN) is None


def test_the_key_of_a_gemini_model_is_named_and_never_shown(tmp_path, monkeypatch):
    assert api_key(tmp_path, "scripted") is None
    assert api_key(tmp_path, "gemini-2.5-flash") == ("", ".env")
    (tmp_path / ".env").write_text("GOOGLE_API_KEY=secret\n", encoding="utf-8")
    assert api_key(tmp_path, "gemini-2.5-flash") == ("GOOGLE_API_KEY", ".env")
    monkeypatch.setenv("GEMINI_API_KEY", "secret")
    assert api_key(tmp_path, "gemini-2.5-flash") == ("GEMINI_API_KEY", "environment")


async def test_a_stored_run_has_no_places_of_this_machine(write_agent):
    folder = write_agent(AGENT, name="people")
    write_cases(folder, "people", {"bob": [turn("find Bob", "Found.")]})
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until(pilot, lambda: "○ bob" in screen_text(app))
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        assert app.workbench.agent.info["places"]["find"][1] == 4
        agent = RunFile(app.workbench.runs.current.log).agent
        assert "tools" in agent
        assert "places" not in agent


async def test_from_an_expected_call_and_from_one_in_the_chat_to_the_tool(write_agent, opened):
    folder = write_agent(AGENT, name="people")
    write_cases(folder, "people", {"bob": [turn("find Bob", "Found.", {"name": "find", "args": {}})]})
    tool = SourcePlace(folder / "agent.py", 4)
    async with workbench_on(folder, SIZE) as (app, pilot):
        await until(pilot, lambda: "○ bob" in screen_text(app))
        await pilot.press("2")
        case = app.screen.query_one(CaseView)
        await until(pilot, lambda: case.rows)
        while case.row is None or case.row.role != "call":
            await pilot.press("down")
        await pilot.press("E")
        await until(pilot, lambda: opened == [tool])
        await pilot.press("4", *"find", "enter")
        await until_ran(pilot, lambda: "Found." in screen_text(app) and not app.workbench.chat.busy)
        await pilot.press("escape")
        while app.screen.query_one(ChatView)._current.kind != "call":
            await pilot.press("up")
        await pilot.press("E")
        await until(pilot, lambda: opened == [tool, tool])


async def test_without_an_editor_the_key_says_what_to_set(write_agent, monkeypatch):
    for name in ("VISUAL", "EDITOR", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    app = WorkbenchApp(Workbench(write_agent(AGENT, name="people")))
    async with app.run_test(size=SIZE) as pilot:
        await until_ran(pilot, lambda: "✓ READY" in screen_text(app))
        await pilot.press("E")
        await until(pilot, lambda: "No editor: set $VISUAL or $EDITOR" in screen_text(app))


FAILS = """
import json


def helper(text):
    return json.loads(text)


def root_agent(message, session):
    return helper("no json")
"""


@pytest.mark.parametrize("size", [(80, 24), (220, 60)])
async def test_in_the_inspector_a_frame_of_a_traceback_is_chosen_and_opened(write_agent, opened, size):
    folder = write_agent(FAILS, name="fails")
    write_cases(folder, "talk", {"one": [turn("hi", "hello")]})
    helper, root = SourcePlace(folder / "agent.py", 6), SourcePlace(folder / "agent.py", 10)
    async with workbench_on(folder, size) as (app, pilot):
        await until(pilot, lambda: "○ one" in screen_text(app))
        await pilot.press("R")
        await until_ran(pilot, lambda: app.workbench.runs.current and app.workbench.runs.current.over)
        await pilot.press("t", "enter")
        await until(pilot, lambda: isinstance(app.focused, InspectorLines))
        await until(pilot, lambda: app.focused.frame is not None)
        # At first the innermost frame of the agent's own code, not the one of a library below it.
        frame = app.focused.frame
        await pilot.press("E")
        await until(pilot, lambda: opened == [helper])
        assert app.focused.line(frame.first)[0][0] == "▌"
        assert app.focused.scroll_offset.y + app.focused.size.height >= frame.last
        await pilot.press("up", "E")
        await until(pilot, lambda: opened[1:] == [root])
        await pilot.press("down", "down", "E")
        await until(pilot, lambda: len(opened) == 3)
        assert (opened[2].path.parent.name, opened[2].path.name) == ("json", "__init__.py")
        # Below the last frame the keys scroll as on any page.
        await pilot.press("down", "down")
        last, top = app.focused.frame, app.focused.scroll_offset.y
        assert last == app.focused.page.frames[-1]
        await pilot.press("down")
        await until(pilot, lambda: app.focused.scroll_offset.y == top + 1)
        assert app.focused.frame == last
        app.focused.show_line(frame.first)
        await pilot.pause()
        top = frame.first - app.focused.scroll_offset.y
        await pilot.click(app.focused, offset=(8, top), times=2)
        await until(pilot, lambda: opened[3:] == [helper])
        # Another tab has no traceback: the source is that of the span.
        while app.focused.frame is not None:
            await pilot.press("right")
        await pilot.press("E")
        await until(pilot, lambda: opened[4:] == [helper])
