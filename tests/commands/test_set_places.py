"""Eval sets are looked for in the agent's folder and in its project; names that hide a set are named."""

from __future__ import annotations

import json

import pytest

from evaltui.files.lint import lint
from evaltui.files.workspace import open_workspace
from tests.commands.command_line import call
from tests.files.layouts import AGENT, eval_set, write

pytest_plugins = "pytester"


@pytest.fixture
def agent(tmp_path):
    """An agent without a project, with a passing set of its own and a failing one in a folder beside it."""
    write(tmp_path / "parent" / "desk" / "agent.py", AGENT)
    write(tmp_path / "parent" / "desk" / "good.evalset.json", eval_set("good"))
    write(tmp_path / "parent" / "evals" / "bad.evalset.json", eval_set("bad", "other words"))
    return tmp_path / "parent" / "desk"


def labels(agent):
    return sorted(one.eval_set_id for one in open_workspace(agent).sets)


def test_without_a_project_only_the_folder_of_the_agent_is_searched(agent, capsys):
    assert call("run", agent) == 0
    assert "bad" not in capsys.readouterr().out
    assert labels(agent) == ["good"]
    assert lint([agent]) == []


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_in_a_project_its_folders_of_sets_are_searched_too(agent, mark, capsys):
    (agent.parent / mark).touch()
    assert call("run", agent) == 1
    assert "bad" in capsys.readouterr().out
    assert labels(agent) == ["bad", "good"]


def test_an_agent_that_is_the_root_of_its_project_has_only_its_own(agent):
    (agent / "pyproject.toml").touch()
    assert labels(agent) == ["good"]


def test_where_nothing_is_found_the_places_are_named(agent, capsys):
    (agent / "good.evalset.json").unlink()
    assert call("run", agent) == 2
    assert "it is in no project (pyproject.toml, .git), whose eval*/ and tests/" in capsys.readouterr().err
    (agent.parent / "pyproject.toml").touch()
    (agent.parent / "evals" / "bad.evalset.json").unlink()
    assert call("run", agent) == 2
    assert "and above, up to the root of its project" in capsys.readouterr().err


def test_pytest_takes_no_agent_from_beside_a_set_outside_of_a_project(agent, pytester):
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent.parent)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no agent at or above *evals*--evaltui-agent DIR*"])
    (agent.parent / "pyproject.toml").touch()
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent.parent)
    result.stdout.fnmatch_lines(["*2 tests collected*"])
