"""Telling that the files of an agent have changed."""

import os

import pytest

from evaltui.project.agent_files import AgentFiles, changed_files, used_files


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


@pytest.mark.parametrize(("size", "when_touched"), [(1_100_000, ()), (64_100_000, ("big.bin",))])
def test_only_very_large_files_are_told_by_size_and_time(folder, size, when_touched):
    big = folder / "big.bin"
    with big.open("wb") as file:
        file.truncate(size)
    os.utime(big, (1, 1))
    files = AgentFiles(folder)
    before = files.contents()
    assert files.contents() == before
    os.utime(big, (2, 2))
    assert changed_files(before, files.contents()) == when_touched
    with big.open("ab") as file:
        file.write(b"y")
    assert changed_files(before, files.contents()) == ("big.bin",)


def test_what_is_opened_in_the_repository_counts(tmp_path):
    opened = ("prompts/system.md", "libs/common/data.txt", ".git/data.txt")
    for name in (".git/config", "apps/desk/pyproject.toml", "apps/desk/desk/agent.py", *opened):
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    folder, root = tmp_path / "repository" / "apps" / "desk" / "desk", tmp_path / "repository"
    used = used_files(folder, [tmp_path / "data.txt", *(root / name for name in opened)])
    assert {*used} == {f"../../../{name}" for name in opened[:2]}
