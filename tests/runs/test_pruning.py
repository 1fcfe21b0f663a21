"""Which runs stay when one more is over: the newest, and what somebody still needs."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import Status
from evaltui.core.secrets import Secrets
from evaltui.runs.log import RunLog
from evaltui.runs.log_header import LoggedSet
from evaltui.runs.logged_results import LoggedResults
from evaltui.runs.pruning import prune
from evaltui.runs.store import RunStore


@pytest.fixture
def store(tmp_path) -> RunStore:
    (tmp_path / "agent.py").write_text("root_agent = print\n")
    return RunStore(tmp_path)


def run_of(store: RunStore, second: int, *sets: str, **header: str) -> Path:
    """The log of a run of a case of each set."""
    log = RunLog.create(store, {"sets": [LoggedSet(one, one, ("a",)).to_json() for one in sets], **header})
    for one in sets:
        log.result(CaseSummary(one, "a", Status.PASSED, passed=1, policy_met=True, path=one))
    log.close({"status": "PASSED"})
    # Within a millisecond, ids do not tell which run came first.
    return log.path.rename(log.path.with_name(f"20260102T0000{second:02}.000Z-abcdef.jsonl"))


@pytest.mark.parametrize("seed", range(10))
def test_the_last_run_of_each_set_stays(store, seed):
    chance = random.Random(seed)
    runs = []
    for number in range(chance.randint(1, 12)):
        sets = chance.sample("abcd", chance.randint(0, 2))
        runs.append((run_of(store, number, *sets), sets))
    keep = chance.randint(1, 5)
    newest = {path for path, _ in runs[-keep:]}
    last = {[path for path, sets in runs if one in sets][-1] for _, some in runs for one in some}
    deleted = prune(store, keep)
    assert set(store.logs()) == newest | last
    assert set(deleted) == {path for path, _ in runs} - newest - last
    assert prune(store, keep) == []


def test_runs_of_another_agent_do_not_replace_the_last_one(store):
    """--baseline last would find no run of the root agent any more."""
    root, other = run_of(store, 0, "a"), run_of(store, 1, "a", agent_name="other")
    newest = run_of(store, 2, "a", agent_name="other")
    assert prune(store, 1) == [other]
    assert store.logs() == [root, newest]


def test_all_runs_of_a_matrix_stay_with_the_last_one_of_a_set(store):
    matrix = [run_of(store, number, "a", matrix="m1") for number in range(3)]
    run_of(store, 3, "b")
    newest = run_of(store, 4, "b")
    prune(store, 1)
    assert store.logs() == [*matrix, newest]


def test_the_baseline_of_a_run_that_stays_does(store):
    first, _, third = (run_of(store, number, "a") for number in range(3))
    last = run_of(store, 3, "a", baseline=first.stem)
    assert prune(store, 1) == [store.folder / "20260102T000001.000Z-abcdef.jsonl", third]
    assert store.logs() == [first, last]


def test_a_run_of_another_process_is_not_touched(store):
    code = (
        "import sys; from pathlib import Path; from evaltui.runs.log import RunLog\n"
        "from evaltui.runs.store import RunStore\n"
        "log = RunLog.create(RunStore(Path(sys.argv[1])), {})\n"
        "print(log.path, flush=True); sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(store.agent_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    going_on = Path(child.stdout.readline().strip())
    # It began long ago.
    going_on = going_on.rename(going_on.with_name("20250101T000000.000Z-abcdef.jsonl"))
    older, newest = (run_of(store, number, "a") for number in (1, 2))
    assert prune(store, 1) == [older]
    assert store.logs() == [going_on, newest]
    child.communicate("")
    assert prune(store, 1) == [going_on]


def test_a_log_that_is_being_read_stays(store):
    first, last = (run_of(store, number, "a") for number in (1, 2))
    results = LoggedResults(first, [], Secrets())
    assert prune(store, 1) == []
    del results
    assert prune(store, 1) == [first]
    assert store.logs() == [last]


def test_two_that_delete_at_once_delete_each_run_once(store):
    for number in range(30):
        run_of(store, number, "a")
    found: list[list[Path]] = []
    threads = [threading.Thread(target=lambda: found.append(prune(store, 3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.logs()) == 3
    deleted = [path for some in found for path in some]
    assert sorted(deleted) == sorted(set(deleted))
    assert len(deleted) == 27
