"""The workbench calls a case as runs do, wherever its set is, and finds the file of the set again."""

from pathlib import Path

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.cases import set_editing
from evaltui.workbench.state import Selection

ECHO = "def root_agent(message, session):\n    return message\n"
HELLO = ("hello", "hello")


@pytest.fixture
async def workbench(tmp_path, write_agent, write_set, open_workbench):
    """Sets in the agent's folder, beside it and given, of which two have the same id, and a link to one."""
    folder = write_agent(ECHO)
    for name in ("evals", "given", "my_agent/evals"):
        (tmp_path / name).mkdir()
    write_set(folder, "own", a=HELLO)
    write_set(folder / "evals", "own", "twin", a=HELLO)
    write_set(tmp_path / "evals", "own", "twin", a=HELLO)
    (tmp_path / "pyproject.toml").touch()
    write_set(tmp_path / "given", "real", a=HELLO)
    (folder / "linked.evalset.json").symlink_to(tmp_path / "given" / "real.evalset.json")
    elsewhere = write_set(tmp_path / "given", "elsewhere", a=HELLO)
    return await open_workbench(folder, [elsewhere])


async def test_every_set_has_a_path_of_its_own_and_is_found_by_it(workbench, tmp_path):
    sets = workbench.sets
    files = {key.path: sets.file_of(key.path) for key in sets.every_case()}
    assert {path: file.relative_to(tmp_path).as_posix() for path, file in files.items()} == {
        "own.evalset.json": "my_agent/own.evalset.json",
        "evals/own.evalset.json": "my_agent/evals/own.evalset.json",
        "../evals/own.evalset.json": "evals/own.evalset.json",
        "linked.evalset.json": "my_agent/linked.evalset.json",
        "../given/elsewhere.evalset.json": "given/elsewhere.evalset.json",
    }
    for path, file in files.items():
        assert sets.case_path(file) == path
        assert sets.by_case_path(path) is sets.by_path(file)
        workbench.navigation.select(Selection(path))
        assert workbench.navigation.file == file


async def test_a_case_of_a_run_is_found_unless_several_sets_may_be_meant(workbench):
    find = workbench.sets.find_case
    own, twin = CaseId("own.evalset.json", "a"), CaseId("evals/own.evalset.json", "a")
    assert find(own, "own") == own
    assert find(twin, "twin") == twin
    assert find(CaseId("own", "a"), "own") == own
    assert find(CaseId("twin", "a"), "twin") is None
    assert find(CaseId("own.evalset.json", "gone"), "own") is None


async def test_a_set_that_is_new_or_gone_has_the_same_path(workbench):
    assert set_editing.new_set(workbench.editing, "new")
    path = workbench.navigation.selection.path
    assert path == "../evals/new.evalset.json"
    assert set_editing.new_case(workbench.editing)
    case = workbench.navigation.selection.case
    assert case == (path, "case_1")
    assert workbench.sets.by_case_path(path).number(case.eval_id) == 0
    file = workbench.navigation.file
    assert await workbench.editing.save_all()
    file.unlink()
    await workbench.editing.merge_outside_changes()
    await workbench.sets.read()
    assert workbench.sets.by_case_path(path) is None
    assert workbench.sets.file_of(path) == file


async def test_a_folder_that_is_no_absolute_one_has_the_files_as_it_names_them(
    workbench, monkeypatch, open_workbench
):
    monkeypatch.chdir(workbench.agent.dir)
    here = await open_workbench(Path())
    assert here.sets.file_of("evals/own.evalset.json") == Path("evals/own.evalset.json")
