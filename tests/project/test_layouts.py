"""Agents and their eval sets are found in the layouts that projects have."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltui.project.agents import agents_in, agents_named
from evaltui.project.workspace import open_workspace
from tests.project.layouts import AGENT, PYPROJECT, adk_sample, eval_set, starter_pack, uv_package, write


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


WORKSPACE = """
[project]
name = "all"
[tool.uv.workspace]
members = ["packages/*", "services/**/app", "/absolute", 7]
exclude = ["packages/old"]
"""


def workspace(root: Path) -> None:
    """A uv workspace: agents in the root project, in members, and where none is looked for."""
    write(root / "pyproject.toml", WORKSPACE)
    for agent in (
        "agents/calc",
        "packages/desk/src/desk/agents/billing",
        "packages/desk/src/desk/agents/returns",
        "packages/till",
        "services/eu/shop/app/src/shop",
        "packages/old/src/old",
        "packages/desk/.venv/lib/python3.11/site-packages/other",
        "packages/desk/node_modules/thing",
        "packages/no_project",
    ):
        write(root / agent / "agent.py", AGENT)
    for project in ("packages/desk", "packages/till", "packages/old", "services/eu/shop/app", ".hidden/app"):
        write(root / project / "pyproject.toml", PYPROJECT.format(name=Path(project).name))


OF_MEMBERS = [
    "packages/desk/src/desk/agents/billing",
    "packages/desk/src/desk/agents/returns",
    "packages/till",
]


def test_the_agents_of_all_members_of_a_workspace_are_found(tmp_path):
    workspace(tmp_path)
    agents = agents_in(tmp_path)
    # What lies as high as the first agent of the root project belongs to it.
    assert agents == sorted(
        ["agents/calc", "packages/no_project", *OF_MEMBERS, "services/eu/shop/app/src/shop"]
    )
    assert agents_in(tmp_path / "packages" / "desk") == ["src/desk/agents/billing", "src/desk/agents/returns"]


def test_a_folder_of_projects_holds_the_agents_of_each(tmp_path):
    workspace(tmp_path)
    (tmp_path / "packages" / "no_project" / "agent.py").unlink()
    found = [f"packages/{one}" for one in agents_in(tmp_path / "packages")]
    assert found == sorted([*OF_MEMBERS, "packages/old/src/old"])


def test_examples_in_a_project_are_not_among_its_agents(tmp_path):
    uv_package(tmp_path)
    write(tmp_path / "examples" / "pyproject.toml")
    write(tmp_path / "examples" / "src" / "toy" / "agent.py")
    assert agents_in(tmp_path) == ["src/shopbot"]


@pytest.mark.parametrize(
    ("name", "agents"),
    [
        ("src/shop/desk", ["src/shop/desk"]),
        ("desk", ["src/shop/desk", "src/till/desk"]),
        ("till/desk", ["src/till/desk"]),
        ("till.desk", ["src/till/desk"]),
        ("./till/desk", ["src/till/desk"]),
        ("clerk", ["src/clerk"]),
        ("lerk", []),
        ("", []),
    ],
)
def test_an_agent_is_named_by_its_path_or_its_end(name, agents):
    assert agents_named(name, ["src/clerk", "src/shop/desk", "src/till/desk"]) == agents
