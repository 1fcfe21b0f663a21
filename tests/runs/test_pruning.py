"""Which runs stay when one more is over: the newest, and what somebody still needs."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from stored_runs import add_case

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import Status
from evaltui.core.secrets import Secrets
from evaltui.runs.history import prune
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter
from evaltui.runs.store import RunStore


@pytest.fixture
def store(tmp_path) -> RunStore:
    (tmp_path / "agent.py").write_text("root_agent = print\n")
    return RunStore(tmp_path)


def run_of(store: RunStore, second: int, *cases: str, **header: str) -> Path:
    """The file of a run of cases, each with the letter of its set before its id."""
    # Within a millisecond, ids do not tell which run came first.
    path = store.make() / f"20260102T0000{second:02}.000Z-abcdef.sqlite"
    ids = {name[0]: tuple(case[1:] or case for case in cases if case[0] == name[0]) for name in cases}
    selected = tuple(SelectedSet(name, name, eval_ids) for name, eval_ids in ids.items())
    log = RunWriter(path, RunHeader(selected, **header), Secrets())
    for name, *eval_id in cases:
        case = CaseSummary(
            name, "".join(eval_id) or name, Status.PASSED, passed=1, policy_met=True, path=name
        )
        add_case(log, case)
    log.close(Ending(Status.PASSED))
    return path


@pytest.mark.parametrize("seed", range(10))
def test_the_newest_stay_those_with_a_name_and_the_last_of_each_case(store, seed):
    chance = random.Random(seed)
    runs = []
    for number in range(chance.randint(1, 12)):
        cases = chance.sample(["a1", "a2", "b1", "b2"], chance.randint(0, 3))
        runs.append((run_of(store, number, *cases), cases))
    keep = chance.randint(1, 5)
    named = {path for path, _ in runs if chance.random() < 0.2}
    for path in named:
        store.name(path.stem, f"name of {path.stem}")
    newest = {path for path, _ in runs[-keep:]} | named
    last = {[path for path, cases in runs if one in cases][-1] for _, some in runs for one in some}
    deleted = prune(store, keep)
    assert set(store.files()) == newest | last
    assert set(deleted) == {path for path, _ in runs} - newest - last
    assert prune(store, keep) == []


def test_runs_of_another_agent_do_not_replace_the_last_one(store):
    """--baseline last would find no run of the root agent any more."""
    root, other = run_of(store, 0, "a"), run_of(store, 1, "a", agent_name="other")
    newest = run_of(store, 2, "a", agent_name="other")
    assert prune(store, 1) == [other]
    assert store.files() == [root, newest]


def test_all_runs_of_a_matrix_stay_with_the_last_one_of_a_set(store):
    matrix = [run_of(store, number, "a", matrix="m1") for number in range(3)]
    run_of(store, 3, "b")
    newest = run_of(store, 4, "b")
    prune(store, 1)
    assert store.files() == [*matrix, newest]


def test_the_baseline_of_a_run_that_stays_does(store):
    first, _, third = (run_of(store, number, "a") for number in range(3))
    last = run_of(store, 3, "a", baseline=first.stem)
    assert prune(store, 1) == [store.folder / "20260102T000001.000Z-abcdef.sqlite", third]
    assert store.files() == [first, last]


def test_a_run_of_another_process_is_not_touched(store):
    code = (
        "import sys; from pathlib import Path; from evaltui.core.secrets import Secrets\n"
        "from evaltui.runs.run_header import RunHeader\n"
        "from evaltui.runs.run_writer import RunWriter\n"
        "RunWriter(Path(sys.argv[1]), RunHeader(), Secrets())\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    # It began long ago.
    going_on = store.make() / "20250101T000000.000Z-abcdef.sqlite"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(going_on)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    older, newest = (run_of(store, number, "a") for number in (1, 2))
    assert prune(store, 1) == [older]
    assert store.files() == [going_on, newest]
    child.communicate("")
    assert prune(store, 1) == [going_on]


def test_a_run_that_is_being_read_can_still_be_read_when_it_is_deleted(store):
    first, _ = (run_of(store, number, "a") for number in (1, 2))
    file = RunFile(first)
    assert prune(store, 1) == [first]
    assert [case.id.eval_id for case in file.cases] == ["a"]


def test_two_that_delete_at_once_delete_each_run_once(store):
    for number in range(30):
        run_of(store, number, "a")
    found: list[list[Path]] = []
    threads = [threading.Thread(target=lambda: found.append(prune(store, 3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.files()) == 3
    deleted = [path for some in found for path in some]
    assert sorted(deleted) == sorted(set(deleted))
    assert len(deleted) == 27
