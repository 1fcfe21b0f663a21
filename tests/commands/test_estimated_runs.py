"""`evaltui run --estimate`: by the last run of each case, without running anything."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import call

from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.spending import ModelSpending, Spending, Tokens
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore
from tests.numbered_cases import write_set

GEMINI = ModelSpending("agent", "gemini-2.5-flash", calls=2, tokens=Tokens(100, 0, 0, 20), usd=0.01)
REPLAYED = ModelSpending(
    "agent", "gemini-2.5-flash", replayed=2, saved_tokens=Tokens(100, 0, 0, 20), saved_usd=0.03
)


@pytest.fixture
def agent(write_agent) -> Path:
    folder: Path = write_agent("raise RuntimeError('imported')")
    write_set(folder, "numbers", range(1, 5))
    return folder


def write_run(folder: Path, seconds: float, **spent: ModelSpending | None) -> None:
    """A run of these cases, each run twice."""
    ids = tuple(spent)
    log = begin_run(RunStore(folder), RunHeader((SelectedSet("numbers.evalset.json", "numbers", ids),)))
    for eval_id, models in spent.items():
        case = CaseId("numbers.evalset.json", eval_id)
        repeat = RepeatResult(
            Status.PASSED, (), seconds=seconds, spent=Spending((models,)) if models else None
        )
        log.start(case, "numbers", 0)
        for number in (0, 1):
            log.add_repeat(case, "numbers", number, repeat)
        done = CaseResult(
            eval_id, Status.PASSED, eval_set_id="numbers", repeats=(repeat, repeat), path=case.path
        )
        log.add_case(summarize(done), done)
    log.close(Ending(Status.PASSED, 1.0))


def estimated(folder: Path, tmp_path: Path, *words: str) -> dict:
    report = tmp_path / "estimate.json"
    assert call("run", folder, "--estimate", f"--report=json={report}", *words) == 0
    return json.loads(report.read_text())["estimate"]


def test_the_last_run_of_each_case_counts_and_others_are_the_median(agent, tmp_path, capsys):
    write_run(agent, 4.0, case_1=GEMINI, case_2=GEMINI)
    write_run(agent, 8.0, case_2=REPLAYED, case_3=replace(GEMINI, usd=0.02))
    found = estimated(agent, tmp_path, "--runs", "3", "--parallel", "2")
    assert found["cases"] == 4
    assert found["runs"] == 12
    assert found["unknown_cases"] == 1
    assert found["calls"] == pytest.approx(4 * 3 * 2)
    assert found["tokens"] == pytest.approx(4 * 3 * 120)
    # 0.01, 0.03, 0.02, and the median of these.
    assert found["usd"] == pytest.approx(3 * 0.08)
    assert found["seconds"] == pytest.approx(3 * (4 + 8 + 8 + 8) / 2)
    assert call("run", agent, "--estimate", "numbers:case_1") == 0
    out = capsys.readouterr().out
    assert "cases   1, 1 run\n" in out
    assert "calls   2 model calls" in out
    assert "cost    $0.01" in out
    assert len(RunStore(agent).files()) == 2


def test_the_time_is_no_less_than_the_limits_allow(agent, tmp_path, capsys):
    write_run(agent, 1.0, case_1=GEMINI, case_2=GEMINI)
    # 4 cases of 2 calls and 120 tokens, each 5 times; a minute's worth is spent at once.
    limits = ("--runs", "5", "--limit", "gemini-*:rpm=10,tpm=1M", "--limit", "gpt-*:rpm=1")
    found = estimated(agent, tmp_path, *limits)
    assert found["at_limit"] == {"limit": "gemini-*:rpm=10,tpm=1000000", "seconds": pytest.approx(3 * 60)}
    assert found["seconds"] == pytest.approx(3 * 60)
    found = estimated(agent, tmp_path, "--runs", "5", "--limit", "gemini-*:tpm=1200")
    assert found["at_limit"]["seconds"] == pytest.approx(60)
    assert estimated(agent, tmp_path, "--limit", "gemini-*:rpm=600,concurrent=1")["at_limit"] is None
    assert call("run", agent, "--estimate", *limits) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "time 3 min, 4 at once, at least 3 min by --limit gemini-*:rpm=10,tpm=1000000" in out


def test_what_is_not_known_of_a_case_is_not_known_of_all(agent, tmp_path):
    unpriced = replace(GEMINI, usd=None, unpriced=2)
    write_run(agent, 1.0, case_1=GEMINI, case_2=unpriced)
    found = estimated(agent, tmp_path)
    assert (found["usd"], found["calls"], found["tokens"]) == (None, 8, 480)
    write_run(agent, 1.0, case_3=None)
    found = estimated(agent, tmp_path)
    assert (found["usd"], found["calls"], found["tokens"]) == (None, None, None)
    assert found["seconds"] is not None


def test_more_machines_take_less_time_until_a_limit_is_what_takes_it(agent, tmp_path, capsys):
    write_run(agent, 600.0, case_1=GEMINI, case_2=GEMINI, case_3=GEMINI, case_4=GEMINI)
    words = ("--runs", "100", "--parallel", "2")
    here = estimated(agent, tmp_path, *words)
    there = estimated(agent, tmp_path, *words, "--machines", "10")
    assert (here["machines"], here["parallel"], here["seconds"]) == (1, 2, 120_000)
    assert (there["machines"], there["parallel"], there["seconds"]) == (10, 20, 12_000)
    limited = estimated(agent, tmp_path, *words, "--machines", "10", "--limit", "gemini-*:rpm=1")
    assert limited["at_limit"]["seconds"] == limited["seconds"] == 799 * 60
    assert call("run", agent, "--estimate", *words, "--machines", "10", "--limit", "gemini-*:rpm=1") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "20 at once on 10 machines, at least 13 h 19 min by --limit gemini-*:rpm=1" in shown
