"""Runs of a hundred thousand cases: what is held of each case, and what commands take of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import pytest
from large_runs import write_run, write_run_apart

from evaltui.runs.history import open_run
from evaltui.runs.store import RunStore

CASES = 300


@pytest.fixture
def traced():
    """Starts to count what is held; gives bytes for each case."""

    def held_since() -> float:
        return tracemalloc.get_traced_memory()[0] / CASES

    yield held_since
    tracemalloc.stop()


def test_little_is_held_of_each_case_of_an_open_run(tmp_path, traced):
    path = write_run(tmp_path / "run.sqlite", CASES)
    open_run(path)
    tracemalloc.start()
    run = open_run(path)
    assert traced() < 1500
    assert len(run.summary.results) == CASES


@pytest.mark.thorough
def test_a_hundred_thousand_cases_are_listed_reported_compared_and_merged_in_400_mb(write_agent, tmp_path):
    agent = write_agent("root_agent = lambda message: message")
    run = write_run_apart(RunStore(agent).make() / "20260102T030405.000Z-abcdef.sqlite", 100_000)
    shards = [
        write_run_apart(tmp_path / f"{number}.sqlite", 100_000, shard=(number, 8)) for number in range(1, 9)
    ]
    for words in (
        ["runs", agent],
        ["report", agent, "last"],
        ["compare", agent, "last", run],
        ["merge", *shards, "-o", tmp_path / "merged.sqlite"],
    ):
        child = subprocess.Popen([sys.executable, "-m", "evaltui", *map(str, words)], stdout=subprocess.PIPE)
        said = child.stdout.read().decode()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        print(words[0], f"{used.ru_utime + used.ru_stime:.1f} s", f"{used.ru_maxrss / 1000:.0f} MB")
        assert child.returncode in (0, 1)
        assert "99,000" in said or words[0] == "compare"
        assert used.ru_maxrss < 400_000
    merged = open_run(tmp_path / "merged.sqlite").summary
    assert {case: one.status for case, one in merged.cases.items()} == {
        case: one.status for case, one in open_run(run).summary.cases.items()
    }
