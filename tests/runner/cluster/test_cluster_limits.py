"""One gate for all machines of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands.command_line import call
from gemini_server import GeminiServer, says
from quotas import Pairs

AGENT = """
    from evaltui import Agent

    root_agent = Agent("parrot", "gemini-test")
"""
CONFIG = {"criteria": {"response_match_score": 1.0}}


@pytest.fixture
def parrot(write_agent) -> Path:
    return write_agent(AGENT, name="parrot")


def write_cases(folder: Path, count: int) -> None:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "say it"}]},
        "final_response": {"role": "model", "parts": [{"text": "well"}]},
    }
    cases = [{"eval_id": f"case_{number}", "conversation": [turn]} for number in range(count)]
    (folder / "many.evalset.json").write_text(json.dumps({"eval_set_id": "many", "eval_cases": cases}))
    (folder / "test_config.json").write_text(json.dumps(CONFIG))


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
