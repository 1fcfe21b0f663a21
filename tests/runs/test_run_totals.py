"""What a run came to: in the footer of its log it is what reading its results comes to."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from evaltui.runs.log import RunLog
from evaltui.runs.log_reader import read_run, totals_of

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost
from evaltui.core.secrets import Secrets
from evaltui.runs.listing import read_row

HEADER = {"started": "2026-11-23T00:00:00+00:00", "number": 1, "sets": []}


def summary_of(number: int, chance: random.Random) -> CaseSummary:
    costs = [{}, {"agent": Cost(0.25, None, 1)}, {"agent": Cost(unseen=1), "judge": Cost(0.5)}]
    return CaseSummary(
        "set",
        f"case {number}",
        chance.choice(list(Status)),
        2,
        policy="majority",
        policy_met=chance.random() < 0.5,
        seconds=chance.choice([None, 0.5, 2.0, 4.0]),
        tokens=None if chance.random() < 0.1 else 8.0,
        costs=chance.choice(costs),
        path="set.evalset.json",
    )


def log_of(path: Path, summaries: list[CaseSummary]) -> RunLog:
    log = RunLog.create_at(path, HEADER, Secrets())
    for one in summaries:
        log.result(one)
    return log


@pytest.mark.parametrize("seed", range(20))
def test_the_footer_has_what_the_results_come_to(tmp_path, seed):
    chance = random.Random(seed)
    summaries = [summary_of(number, chance) for number in range(seed)]
    open_log = log_of(tmp_path / "open.sqlite", summaries)
    log_of(tmp_path / "over.sqlite", summaries).close({"status": Status.PASSED, "seconds": 1.0})
    assert totals_of(tmp_path / "over.sqlite") == totals_of(tmp_path / "open.sqlite")
    assert read_row(tmp_path / "over.sqlite").done == seed
    open_log.close()


def test_of_several_results_of_a_case_the_one_that_stands_counts(tmp_path):
    first, second = (CaseSummary("set", "case", status) for status in (Status.FAILED, Status.PASSED))
    log_of(tmp_path / "twice.sqlite", [first, second]).close({"status": Status.PASSED})
    assert len(read_run(tmp_path / "twice.sqlite").results) == 1
    assert read_row(tmp_path / "twice.sqlite").counts == {"PASSED": 1}


def test_a_list_does_not_read_the_results_of_a_run_that_is_over(tmp_path, monkeypatch):
    path = tmp_path / "over.sqlite"
    log_of(path, [CaseSummary("set", "case", Status.PASSED)]).close({"status": Status.PASSED})
    monkeypatch.setattr("evaltui.runs.log_reader.read_run", None)
    assert read_row(path).counts == {"PASSED": 1}
