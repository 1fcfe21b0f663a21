"""Commands that are called above an agent say which one is meant, before anything runs."""

from __future__ import annotations

import pytest

from evaltui.runner.starting import StartedHost
from tests.commands.command_line import call
from tests.project.layouts import adk_sample, starter_pack, uv_package, write


@pytest.fixture
def nothing_starts(monkeypatch):
    def started(*_):
        raise AssertionError("a host was started")

    monkeypatch.setattr("evaltui.commands.run.start_host", started)
    monkeypatch.setattr(StartedHost, "__init__", started)


@pytest.mark.parametrize(
    ("layout", "agent"),
    [
        (uv_package, "src/shopbot"),
        (starter_pack, "app"),
        (adk_sample, "python/agents/customer-service/customer_service"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ("run", "."),
        ("run", ".", "--watch"),
        ("chat", "."),
        ("record", ".", "x.evalset.json", "--case", "a", "--turns", "b"),
        ("metrics", "."),
        ("runs", "."),
        ("compare", "last", "last"),
    ],
)
def test_a_root_names_its_agent(words, layout, agent, tmp_path, monkeypatch, capsys, nothing_starts):
    layout(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert call(*words) == 2
    assert capsys.readouterr().err == (f"evaltui {words[0]}: . is the parent of an agent; use {agent}\n")


def test_several_are_all_named(tmp_path, capsys, nothing_starts):
    uv_package(tmp_path)
    write(tmp_path / "src" / "billing" / "agent.py")
    assert call("run", tmp_path) == 2
    both = f"{tmp_path}/src/billing, {tmp_path}/src/shopbot"
    several = f"{tmp_path} has several agents: {both}. Name one of them"
    assert capsys.readouterr().err == f"evaltui run: {several}, or give its name with --agent\n"
    assert call("runs", tmp_path) == 2
    assert capsys.readouterr().err == f"evaltui runs: {several}\n"


def test_a_folder_without_an_agent_is_refused(tmp_path, capsys, nothing_starts):
    write(tmp_path / "tests" / "eval" / "a.evalset.json")
    assert call("run", tmp_path) == 2
    assert capsys.readouterr().err == (
        f"evaltui run: {tmp_path} has no agent: agent.py, __init__.py or root_agent.yaml is missing\n"
        "evaltui run: see `evaltui help agents`\n"
    )


def test_sets_at_the_root_of_the_project_are_run(tmp_path, monkeypatch, capsys):
    uv_package(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert call("run", "src/shopbot", "--workers", "1") == 0
    assert "orders" in capsys.readouterr().out
