"""Agents and their eval sets are found in the layouts that projects have."""

from __future__ import annotations

import pytest

from evaltui.files.folders import agents_in
from evaltui.files.workspace import open_workspace
from tests.files.layouts import adk_sample, eval_set, starter_pack, uv_package, write


@pytest.mark.parametrize(
    ("layout", "agent", "sets"),
    [
        (starter_pack, "app", {"basic": "../tests/eval/evalsets/"}),
        (uv_package, "src/shopbot", {"orders": "../../tests/eval/"}),
        (adk_sample, "python/agents/customer-service/customer_service", {"simple": "../eval/eval_data/"}),
    ],
)
@pytest.mark.parametrize("is_relative", [False, True])
def test_the_agent_and_its_sets_are_found(layout, agent, sets, is_relative, tmp_path, monkeypatch):
    folder = layout(tmp_path / "project")
    assert agents_in(tmp_path / "project") == [agent]
    if is_relative:
        monkeypatch.chdir(tmp_path / "project")
        folder = folder.relative_to(tmp_path / "project")
    workspace = open_workspace(folder)
    assert {entry.eval_set_id: entry.origin for entry in workspace.sets} == sets
    assert all(entry.path.is_absolute() != is_relative for entry in workspace.sets)


def test_from_within_the_agents_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(uv_package(tmp_path))
    assert [entry.eval_set_id for entry in open_workspace(type(tmp_path)()).sets] == ["orders"]


def test_nothing_above_the_project_is_looked_at(tmp_path):
    folder = uv_package(tmp_path / "project")
    write(tmp_path / "tests" / "elsewhere.evalset.json", eval_set("elsewhere"))
    write(tmp_path / "pyproject.toml")
    assert [entry.eval_set_id for entry in open_workspace(folder).sets] == ["orders"]


def test_an_agent_among_the_tests_keeps_its_sets(tmp_path):
    folder = uv_package(tmp_path)
    write(tmp_path / "tests" / "fixtures" / "other" / "agent.py")
    write(tmp_path / "tests" / "fixtures" / "other" / "own.evalset.json", eval_set("own"))
    assert [entry.eval_set_id for entry in open_workspace(folder).sets] == ["orders"]


def test_agents_of_one_level_are_found_together(tmp_path):
    uv_package(tmp_path)
    write(tmp_path / "src" / "billing" / "root_agent.yaml")
    write(tmp_path / "src" / "shopbot" / "sub_agents" / "helper" / "agent.py")
    assert agents_in(tmp_path) == ["src/billing", "src/shopbot"]
    assert agents_in(tmp_path / "tests") == []
