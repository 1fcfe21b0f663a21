"""Where the runs of an agent are, and which of them stay."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from evaltui.core.model.problems import SelectionError
from evaltui.project.agent_files import files_of
from evaltui.project.run_settings import run_settings
from evaltui.project.workspace import open_workspace
from evaltui.runs.history import find_run, name_run, prune
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import begin_run, next_number
from evaltui.runs.store import RunStore


@pytest.fixture
def repository(tmp_path) -> Path:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    return root


def agent(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text("root_agent = print\n")
    return folder


def log_in(store: RunStore, number: int) -> Path:
    """An empty log of a run at this second."""
    path = store.make() / f"20260102T000{number:03}.000Z-abcdef.sqlite"
    path.write_text("")
    return path


def test_each_agent_has_its_own_folder_in_one_that_they_share(repository, tmp_path):
    (repository / "one").mkdir()
    (repository / "one" / "pyproject.toml").write_text("")
    folders = [agent(repository / place) for place in ("", "one/desk", "two/desk", "results/desk")]
    inside, outside = repository / "results", tmp_path / "results"
    assert [RunStore(one, inside).folder for one in folders] == [
        *(inside, inside / "one/desk", inside / "two/desk", inside / "results/desk")
    ]
    assert [RunStore(one, outside).folder.relative_to(outside).as_posix() for one in folders] == [
        *("repository", "repository/one/desk", "repository/two/desk", "repository/results/desk")
    ]
    stores = [RunStore(one, folder) for one in folders for folder in (inside, outside, None)]
    logs = [log_in(store, number) for number, store in enumerate(stores)]
    assert [store.files() for store in stores] == [[log] for log in logs]


def test_without_a_repository_the_outermost_project_counts_or_the_name(tmp_path):
    results = tmp_path / "results"
    desk = agent(tmp_path / "project" / "member" / "desk")

    def place() -> str:
        """Without the digest of where the root is."""
        seen = RunStore(desk, results).folder.relative_to(results).as_posix()
        return re.sub(r"^(\w+)-[0-9a-f]{12}\b", r"\1", seen)

    assert place() == "desk"
    (desk.parent / "pyproject.toml").write_text("")
    assert place() == "member/desk"
    (desk.parents[1] / "pyproject.toml").write_text("")
    assert place() == "project/member/desk"
    assert RunStore(desk / "agent.py", results).folder == RunStore(desk, results).folder


def test_a_folder_is_the_same_however_it_is_named(repository, tmp_path, monkeypatch):
    desk = agent(repository / "desk")
    (tmp_path / "link").symlink_to(repository)
    monkeypatch.chdir(repository)
    named = (desk, Path("desk"), tmp_path / "link" / "desk", Path("../repository/desk"))
    stores = [
        RunStore(one, folder) for one in named for folder in (repository / "out", tmp_path / "link/out")
    ]
    assert {store.folder.resolve() for store in stores} == {repository / "out" / "desk"}


def test_the_home_folder_is_no_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    desk = agent(tmp_path / "work" / "desk")
    assert RunStore(desk, tmp_path / "out").folder.relative_to(tmp_path / "out").name.startswith("desk-")


def test_its_title_says_where_runs_are_looked_for(repository, monkeypatch):
    agent(repository / "desk")
    monkeypatch.chdir(repository)
    with pytest.raises(SelectionError, match=r"^no runs of desk yet$"):
        find_run(RunStore(Path("desk")), "last")
    with pytest.raises(SelectionError, match=r"^no runs of desk in out/desk yet$"):
        find_run(RunStore(Path("desk"), repository / "out"), "last")


def test_it_is_found_by_the_settings(repository):
    desk = agent(repository / "desk")
    assert RunStore.of(desk, run_settings(desk)).folder == desk / ".evaltui" / "runs"
    (repository / "pyproject.toml").write_text('[tool.evaltui]\nresults-dir = "out"\n')
    assert RunStore.of(desk, run_settings(desk)).folder == repository / "out" / "desk"


def test_logs_names_and_numbers_in_a_folder_of_ones_own(repository):
    store = RunStore(agent(repository / "desk"), repository / "deep" / "out")
    assert (store.files(), store.latest(), store.names(), next_number(store)) == ([], None, {}, 1)
    log = begin_run(store, RunHeader())
    log.close()
    assert log.path.parent == repository / "deep" / "out" / "desk"
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert next_number(store) == 2
    assert name_run(store, "last", "first") == log.path.stem
    assert find_run(store, "first") == log.path
    # Nothing of it is elsewhere.
    assert not (repository / "desk" / ".evaltui").exists()
    assert not list(repository.rglob(".gitignore"))


def test_runs_in_the_folder_of_an_agent_are_no_part_of_it(repository):
    desk = agent(repository / "desk")
    before = files_of(desk)
    for results in (desk, desk / "out"):
        store = RunStore(desk, results)
        log = begin_run(store, RunHeader())
        log.close()
        store.name(log.path.stem, "best")
    assert before == files_of(desk)
    assert open_workspace(desk).sets == ()


def test_a_name_that_is_given_meanwhile_saves_its_run(tmp_path):
    """Naming and deleting take turns: a run is named and stays, or is gone and cannot be named."""
    store = RunStore(agent(tmp_path / "desk"))
    for number in range(30):
        log_in(store, number)
    runs = [log.stem for log in store.files()]
    threads = [threading.Thread(target=store.name, args=(run, f"n{run}")) for run in runs[:8]]
    threads.insert(4, threading.Thread(target=prune, args=(store, 2)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prune(store, 2)
    left = {log.stem for log in store.files()}
    assert set(runs[-2:]) <= left
    assert left - set(runs[-2:]) <= set(store.names().values())


@pytest.mark.parametrize("text", ['{"base": "2026', "[]", "\udcff"])
def test_damaged_names_cost_no_run_and_stay(repository, text):
    store = RunStore(agent(repository / "desk"))
    logs = [log_in(store, number) for number in range(4)]
    name_run(store, logs[0].stem, "base")
    names = store.folder / "names.json"
    names.write_text(text, errors="surrogateescape")
    damaged = names.read_bytes()
    for change in (lambda: prune(store, 1), lambda: name_run(store, logs[1].stem, "other")):
        with pytest.raises(OSError, match=r"names\.json: .* Restore the file, or delete it"):
            change()
    assert store.files() == logs
    assert names.read_bytes() == damaged
    assert store.names() == {}
