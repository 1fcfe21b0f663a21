"""Limits of model calls on the command line and in the table of the project: asked, divided, written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call
from fake_runs import run_without_processes
from gemini_server import fails, says
from numbered_cases import act, write_set

from evaltui.core.model.limits import Limit
from evaltui.project.run_settings import run_settings
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore


@pytest.fixture
def agent(write_agent, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Path:
    run_without_processes(monkeypatch, act)
    (tmp_path / ".git").mkdir()
    folder: Path = write_agent("root_agent = lambda message: message")
    write_set(folder, "numbers", range(4))
    return folder


def table(agent: Path, text: str) -> None:
    (agent.parent / "pyproject.toml").write_text(f"[tool.evaltui.limits]\n{text}\n")


def logged(agent: Path) -> dict[str, dict[str, float]]:
    limits = RunFile(RunStore(agent).files()[-1]).header.settings.limits
    return {one.model: one.to_json() for one in limits}


def test_options_go_before_the_table_of_the_project(agent, capsys):
    table(agent, '"gemini-*" = {rpm = 600, tpm = 1e6}\n"gpt-*" = {concurrent = 2}')
    call("run", agent, "--limit", "gemini-*:rpm=60", "--limit", "*:tpm=1M,concurrent=8")
    assert logged(agent) == {
        "gemini-*": {"rpm": 60},
        "gpt-*": {"concurrent": 2},
        "*": {"tpm": 1_000_000, "concurrent": 8},
    }
    assert "gemini-*:rpm=60; gpt-*:concurrent=2; *:tpm=1000000,concurrent=8" in capsys.readouterr().out


def test_a_shard_has_its_part_and_says_so(agent, capsys):
    call("run", agent, "--limit", "*:rpm=600,concurrent=5", "--shard", "1/4")
    assert logged(agent) == {"*": {"rpm": 600, "concurrent": 5}}
    printed = capsys.readouterr().out
    assert "limits  *:rpm=600,concurrent=5" in printed
    assert "1/4 of the limits for this shard: *:rpm=150,concurrent=1" in printed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gemini", "wanted is MODEL:rpm=N,tpm=N,concurrent=N"),
        ("gemini:rpm=0", "rpm (requests per minute) is not a number above 0"),
        ("gemini:rps=3", "rps is unknown. Known: rpm, tpm, concurrent"),
        ("gemini:concurrent=1.5", "concurrent (calls at once) is not a whole number above 0"),
    ],
)
def test_a_limit_that_is_none_is_refused(text, said, agent, capsys):
    assert call("run", agent, "--limit", text) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"gemini-*" = 600', "gemini-* has no table of limits"),
        ('"gemini-*" = {rpm = "many"}', "gemini-*: rpm (requests per minute) is not a number above 0"),
        ('"gemini-*" = {}', "gemini-*: no limit is given"),
    ],
)
def test_a_table_that_is_wrong_is_named(text, said, agent, capsys):
    table(agent, text)
    assert call("run", agent) == 2
    assert said in capsys.readouterr().err
    assert call("lint", agent) == 1
    assert said in capsys.readouterr().out


def test_the_workbench_and_pytest_have_them(agent):
    table(agent, '"gemini-*" = {rpm = 600}')
    limits = (Limit("gemini-*", rpm=600.0),)
    assert run_settings(agent).limits == limits
    more = (Limit("gpt-*", concurrent=1),)
    assert run_settings(agent, {"limits": more}).limits == limits + more


def test_throttled_time_is_told_and_kept(write_agent, gemini, tmp_path, capsys):
    agent = write_agent("from evaltui import Agent\nroot_agent = Agent('parrot', 'gemini-test')\n")
    write_set(agent, "numbers", [1])
    report = tmp_path / "report.json"
    gemini.script(fails(429, retry_delay="0.2s"), says("1"))
    call("run", agent, "--limit", "*:rpm=600", "--report", f"json={report}", "--report", "console")
    (case,) = json.loads(report.read_text())["cases"]
    (repeat,) = case["repeats"]
    assert repeat["throttled"] > 0.1
    assert repeat["error"] is None
    assert ", throttled 0." in capsys.readouterr().out
    page = tmp_path / "report.html"
    call("report", agent, "--report", f"json={report}", "--report", f"html={page}")
    assert json.loads(report.read_text())["cases"][0]["repeats"][0]["throttled"] == repeat["throttled"]
    assert " · throttled " in page.read_text()
