"""One gate for all machines of a run."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from commands.command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from gemini_server import GeminiServer, says
from runner.cluster.clusters import Run
from runner.quotas import Counted, Pairs

from evaltui.runs.run_file import RunFile

AGENT = """
    from evaltui import Agent

    root_agent = Agent("parrot", "gemini-test")
"""


@pytest.fixture
def parrot(write_agent) -> Path:
    return write_agent(AGENT, name="parrot")


def write_cases(folder: Path, count: int, turns: int = 1) -> None:
    turn = make_turn("say it", "well")
    write_eval_set(folder, "many", *(make_case(f"case_{number}", *[turn] * turns) for number in range(count)))
    write_test_config(folder, response_match_score=1.0)


def test_calls_of_all_workers_wait_for_each_other(parrot, scheduler, gemini: GeminiServer):
    # Two are there at once, and never a third.
    gemini.respond = pairs = Pairs()
    write_cases(parrot, 8)
    limit = ("--limit", "gemini-*:concurrent=2,rpm=1000")
    options = ("--record", "off", "--parallel", "2", "--scheduler", scheduler)
    assert call("run", parrot, *options, *limit) == 0
    assert pairs.most == 2
    assert len(gemini.requests) == 8


@pytest.mark.thorough
def test_a_budget_that_is_used_up_stops_every_worker(parrot, scheduler, gemini: GeminiServer, capsys):
    gemini.respond = lambda request: says("well", usage={"promptTokenCount": 400, "totalTokenCount": 500})
    write_cases(parrot, 40)
    options = ("--record", "off", "--parallel", "2", "--scheduler", scheduler)
    assert call("run", parrot, *options, "--budget", "5000tok") == 3
    assert "budget of" in capsys.readouterr().out
    assert 8 <= len(gemini.requests) < 40
    assert call("run", parrot, "--resume", "last", "--scheduler", scheduler, "--budget", "1Mtok") == 0
    assert len(gemini.requests) == 40


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("fresh_hosts")
def test_many_calls_of_all_workers_stay_within_the_limits(parrot, gemini: GeminiServer):
    gemini.respond = counted = Counted(0.05)
    write_cases(parrot, 100, turns=5)
    limits = ("--limit", "gemini-*:rpm=400,concurrent=10")
    run = Run(parrot, "--record", "off", "--scheduler", "local:2", "--parallel", "8", *limits)

    code, said = run.end()

    assert code == 0, said
    assert run.results() == {(f"case_{number}", "PASSED"): 1 for number in range(100)}
    assert len(gemini.requests) == 500
    assert counted.most_within(60.0) <= 400
    assert counted.most_at_once <= 10
    assert sum(row.data.get("throttled", 0.0) for row in RunFile(run.log).repeats) > 0.0


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("fresh_hosts")
def test_calls_of_a_killed_worker_are_given_back_to_the_gate(parrot, gemini: GeminiServer):
    """Of four calls at once, the killed worker has at least one each time: all of them would be gone."""
    gemini.respond = counted = Counted(0.05)
    write_cases(parrot, 120, turns=5)
    limits = ("--limit", "gemini-*:rpm=500,concurrent=4")
    run = Run(parrot, "--record", "off", "--scheduler", "local:4", "--parallel", "4", *limits)
    for count in (5, 20, 40, 60):
        run.wait_for_results(count)
        run.own_workers()[0].send_signal(signal.SIGKILL)

    code, said = run.end()

    assert code == 0, said
    assert run.results() == {(f"case_{number}", "PASSED"): 1 for number in range(120)}
    assert len(gemini.requests) >= 600
    assert counted.most_within(60.0) <= 500
    assert counted.most_at_once <= 4
