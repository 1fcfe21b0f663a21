"""Telling that the files of an agent have changed."""

import os

import pytest

from evaltui.project.agent_files import AgentFiles, changed_files


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "agent.py").write_text("a = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["tools.py", "prompt.md", "deep/er/prompt.txt", "root_agent.yaml", "data.json", ".env", "a.yml"]
)
def test_code_prompts_and_data_are_looked_at(folder, name):
    files = AgentFiles(folder)
    before = files.contents()
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("new")
    there = files.contents()
    assert changed_files(before, there) == (name,)
    path.write_text("other")
    assert changed_files(there, files.contents()) == (name,)
    path.unlink()
    assert files.contents() == before


@pytest.mark.parametrize(
    "name",
    [
        "x.evalset.json",
        "x.test.json",
        "eval/test_config.json",
        ".adk/eval_history/x.py",
        ".evaltui/runs/x.json",
        "recordings/x.json",
        "__pycache__/x.py",
        "venv/x.py",
        ".#agent.py",
        "server.log",
    ],
)
def test_what_is_made_from_an_agent_is_not(folder, name):
    files = AgentFiles(folder)
    before = files.contents()
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    assert files.contents() == before


def test_a_file_that_was_only_touched_has_not_changed(folder):
    files = AgentFiles(folder)
    before = files.contents()
    os.utime(folder / "agent.py", (1, 1))
    assert files.contents() == before


def test_a_single_file_is_looked_at_with_what_is_beside_it(folder):
    files = AgentFiles(folder / "agent.py")
    before = files.contents()
    (folder / "helper.py").write_text("")
    assert changed_files(before, files.contents()) == ("helper.py",)


def test_what_cannot_be_read_is_left_out(folder):
    (folder / "gone.py").symlink_to(folder / "nowhere.py")
    (folder / "folder.py").mkdir()
    assert list(AgentFiles(folder).contents()) == ["agent.py"]
    assert AgentFiles(folder / "nothing").contents() == {}


def test_large_files_are_told_by_size_and_time(folder):
    (folder / "big.txt").write_bytes(b"x" * 1_100_000)
    files = AgentFiles(folder)
    before = files.contents()
    assert files.contents() == before
    with (folder / "big.txt").open("ab") as file:
        file.write(b"y")
    assert changed_files(before, files.contents()) == ("big.txt",)
