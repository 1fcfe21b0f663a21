"""Folders without an agent, and with several: what is seen there, and the way on from there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pilots import screen_lines, screen_text, until

from evaltui.project.agent_address import AgentAddress
from evaltui.project.agent_source import agent_facts
from evaltui.project.folders import may_be_agent
from evaltui.project.settings import recent_agents, remember_agent
from evaltui.project.templates import create_starter
from evaltui.tui.app import WorkbenchApp, open_workbench
from evaltui.tui.start.chooser import ChooserApp, StarterScreen
from evaltui.workbench.state import Opening
from tests.stored_runs import selected, store_run, summary

SIZE = (100, 30)


async def test_a_folder_without_an_agent_says_so_and_offers_a_starter(tmp_path):
    app = ChooserApp(tmp_path, [])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "No agent in" in screen_text(app))
        assert "the folder is empty" in screen_text(app)
        assert "▌ s   Create a starter agent" in screen_text(app)
        await pilot.press("s")
        await until(pilot, lambda: "orders.evalset.json  3 cases" in screen_text(app))
        assert not list(tmp_path.iterdir()), "nothing is written before it is confirmed"
        await pilot.press("enter")
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == Opening(tmp_path, starter=True)
    assert (tmp_path / "agent.py").is_file()


def test_a_package_that_can_hold_no_agent_is_asked_about(tmp_path, monkeypatch):
    (tmp_path / "__init__.py").write_text('"""Helpers."""\n', encoding="utf-8")
    (tmp_path / "helpers.py").write_text("", encoding="utf-8")
    asked: list[Path] = []
    monkeypatch.setattr(ChooserApp, "run", lambda self: asked.append(self._folder))
    assert open_workbench(AgentAddress(tmp_path)) == 0
    assert asked == [tmp_path]


@pytest.mark.parametrize(
    "text", ["from .main import app", "from .main import *", "def __getattr__(name): ..."]
)
def test_a_package_that_may_hold_an_agent_is_imported(tmp_path, text):
    (tmp_path / "__init__.py").write_text(text, encoding="utf-8")
    assert may_be_agent(tmp_path)


async def test_other_files_of_the_folder_are_named(tmp_path):
    for name in ("main.py", "tools.py", "notes.txt"):
        (tmp_path / name).write_text("", encoding="utf-8")
    app = ChooserApp(tmp_path, [])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "2 Python files: main.py, tools.py" in screen_text(app))


async def test_a_starter_that_would_overwrite_is_refused_with_the_name_of_the_file(tmp_path):
    (tmp_path / "test_config.json").write_text("{}", encoding="utf-8")
    app = ChooserApp(tmp_path, [])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "No agent in" in screen_text(app))
        await pilot.press("s")
        await pilot.pause()
        assert not isinstance(app.screen, StarterScreen)
        await until(pilot, lambda: "test_config.json already exists" in screen_text(app))


async def test_another_folder_is_opened_by_its_path(tmp_path):
    (tmp_path / "inner").mkdir()
    app = ChooserApp(tmp_path, [])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "No agent in" in screen_text(app))
        await pilot.press("o")
        await until(pilot, lambda: "Open another folder" in screen_text(app))
        await pilot.press(*"nowhere", "enter")
        await until(pilot, lambda: "No such file or folder" in screen_text(app))
        await pilot.press("ctrl+u", *str(tmp_path / "inner"), "enter")
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == Opening(tmp_path / "inner")


async def test_recent_agents_are_offered_where_there_is_none(tmp_path):
    create_starter(tmp_path / "desk", "native")
    remember_agent(tmp_path / "desk")
    (tmp_path / "empty").mkdir()
    app = ChooserApp(tmp_path / "empty", [])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Recent agent" in screen_text(app))
        await pilot.press("end", "enter")
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == Opening((tmp_path / "desk").resolve())


@pytest.mark.parametrize("width", [80, 120, 160])
async def test_outcomes_of_agents_end_where_the_rule_above_them_does(tmp_path, width):
    create_starter(tmp_path / "desk", "native")
    store_run(tmp_path / "desk", [selected("lights", ["a"])], [summary("lights", "a", "PASSED")])
    app = ChooserApp(tmp_path, ["desk", "shop"])
    async with app.run_test(size=(width, 45)) as pilot:
        await until(pilot, lambda: "last run  ✓ 1" in screen_text(app))
        rule, row = (next(line for line in screen_lines(app) if text in line) for text in ("Open ─", "✓ 1"))
        assert rule.rindex("─") == row.index("✓ 1") + 2


async def test_each_of_several_agents_is_shown_with_what_its_source_says(tmp_path):
    create_starter(tmp_path / "desk", "native")
    create_starter(tmp_path / "shop", "adk") if _has_adk() else (tmp_path / "shop").mkdir()
    app = ChooserApp(tmp_path, ["desk", "shop"])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "native agent" in screen_text(app))
        line = next(line for line in screen_text(app).splitlines() if "▌ desk" in line)
        assert "scripted model" in line
        assert "1 eval set" in line


async def test_agents_far_below_are_told_apart_in_a_small_terminal(tmp_path):
    folder = "packages/shop/src/shop/agents"
    app = ChooserApp(tmp_path, [f"{folder}/billing", f"{folder}/returns", "desk"])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "desk" in screen_text(app))
        assert "…/shop/src/shop/agents/billing" in screen_text(app)
        assert "…/shop/src/shop/agents/returns" in screen_text(app)


async def test_an_agent_that_cannot_be_read_says_where(tmp_path):
    for name, text in (("broken", "x = 1\ndef root_agent(:"), ("fine", "root_agent = None")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.py").write_text(text, encoding="utf-8")
    app = ChooserApp(tmp_path, ["broken", "fine"])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "! agent.py:2: invalid syntax" in screen_text(app))


def _has_adk() -> bool:
    try:
        import google.adk  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("source", "framework", "model"),
    [
        (
            'from google.adk.agents import Agent\nM = "gemini-2.5-pro"\nroot_agent = Agent(model=M)',
            "ADK agent",
            "gemini-2.5-pro",
        ),
        (
            "from evaltui import Agent\nroot_agent = Agent(model=ScriptedModel([]))",
            "native agent",
            "scripted model",
        ),
        ("def root_agent(message, session):\n    return message", "function", ""),
        ("def root_agent(:", "", ""),
    ],
    ids=["adk", "native", "function", "broken"],
)
def test_an_agent_need_not_be_imported_to_be_described(tmp_path, source, framework, model):
    (tmp_path / "agent.py").write_text(source, encoding="utf-8")
    facts = agent_facts(tmp_path)
    assert (facts.framework, facts.model, facts.sets) == (framework, model, 0)


async def test_a_created_starter_is_opened_and_remembered(tmp_path, monkeypatch):
    opened = []

    def create(self):
        create_starter(tmp_path, "native")
        return Opening(tmp_path, starter=True)

    monkeypatch.setattr(ChooserApp, "run", create)
    monkeypatch.setattr(WorkbenchApp, "run", lambda self: opened.append(self))
    open_workbench(AgentAddress(tmp_path))
    workbench = opened[0].workbench
    assert workbench.agent.dir == tmp_path
    assert workbench.messages.notice.text.startswith("Starter created: 3 cases")
    async with opened[0].run_test() as pilot:
        await until(pilot, lambda: recent_agents() == [tmp_path.resolve()])


def test_a_folder_of_eval_sets_alone_is_opened_to_edit_them(tmp_path, monkeypatch):
    (tmp_path / "orders.evalset.json").write_text('{"eval_set_id": "o", "eval_cases": []}', encoding="utf-8")
    opened: list[Path] = []
    monkeypatch.setattr(WorkbenchApp, "run", lambda self: opened.append(self.workbench.agent.dir))
    open_workbench(AgentAddress(tmp_path))
    assert opened == [tmp_path]


def test_eval_sets_of_the_project_above_do_not_hide_that_there_is_no_agent(tmp_path, monkeypatch):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "o.evalset.json").write_text('{"eval_set_id": "o", "eval_cases": []}', "utf-8")
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    (tmp_path / "new").mkdir()
    asked: list[Path] = []

    def leave(self):
        asked.append(self._folder)

    monkeypatch.setattr(ChooserApp, "run", leave)
    assert open_workbench(AgentAddress(tmp_path / "new")) == 0
    assert asked == [tmp_path / "new"]
