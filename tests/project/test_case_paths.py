"""A set of cases is called the same, however the agent and the set are addressed."""

import os
from pathlib import Path

import pytest

from evaltui.project.folders import case_path, file_of


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An agent in a project, links to it and to its eval sets, and an eval set inside and outside of it."""
    for folder in ("src/shop/evals", "tests/eval", "elsewhere/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/shop/agent.py").touch()
    for file in ("src/shop/evals/in.json", "tests/eval/out.json"):
        (tmp_path / file).touch()
    (tmp_path / "elsewhere/deep/agent").symlink_to(tmp_path / "src/shop")
    (tmp_path / "elsewhere/sets").symlink_to(tmp_path / "tests/eval")
    monkeypatch.chdir(tmp_path)
    return tmp_path


AGENTS = ("src/shop", "src/shop/", "src/../src/shop", "src/shop/agent.py", "elsewhere/deep/agent")
SETS = {
    "../../tests/eval/out.json": (
        "tests/eval/out.json",
        "./tests/../tests/eval/out.json",
        "elsewhere/sets/out.json",
    ),
    "evals/in.json": ("src/shop/evals/in.json", "elsewhere/deep/agent/evals/in.json"),
}


@pytest.mark.parametrize("folder", ["", "src/shop", "elsewhere/deep/agent", "tests"])
def test_the_path_is_the_same_from_everywhere(project, folder, monkeypatch):
    monkeypatch.chdir(project / folder)
    for agent in AGENTS:
        for name, files in SETS.items():
            for file in files:
                for form in (os.path.relpath, str):
                    agent_dir = Path(form(project / agent))
                    set_path = Path(form(project / file))
                    # Of what is relative, `..` goes up from where a link leads to.
                    if not (agent_dir.exists() and set_path.exists()):
                        continue
                    assert case_path(agent_dir, set_path) == name
                    assert file_of(agent_dir, name).samefile(set_path)


def test_links_to_one_set_are_sets_of_their_own(project):
    """Each has the config beside it."""
    (project / "tests/other").mkdir()
    (project / "tests/other/out.json").symlink_to(project / "tests/eval/out.json")
    assert case_path(project / "src/shop", project / "tests/other/out.json") == "../../tests/other/out.json"
