"""`evaltui run --budget`: nothing is begun once it is spent, and the rest can be run later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call
from gemini_server import GeminiServer, calls, says

from evaltui.core.model.budget import Budget, parse_budget
from evaltui.runs.log_reader import read_header
from evaltui.runs.store import RunStore

AGENT = "from evaltui import Agent\nroot_agent = Agent('parrot', 'gemini-test')\n"
WITH_TOOL = """
from evaltui import Agent

def look() -> str:
    'Looks.'
    return "it is well"

root_agent = Agent("parrot", "gemini-test", tools=[look])
"""
VALID = says('{"reasoning": "the same", "is_the_agent_response_valid": "valid"}')
FUNCTION = "def root_agent(message, session):\n    return 'well'\n"
# Each response costs 13 tokens.
PRICE = '"gemini-test" = {input_mtok = 1_000_000, output_mtok = 1_000_000}'


def write_cases(agent: Path, count: int, **config: object) -> None:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "say it"}]},
        "final_response": {"role": "model", "parts": [{"text": "well"}]},
    }
    cases = [{"eval_id": f"case_{number}", "conversation": [turn]} for number in range(count)]
    data = {"eval_set_id": "many", "eval_cases": cases}
    (agent / "many.evalset.json").write_text(json.dumps(data))
    (agent / "test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 1.0}} | config))


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch):
    with GeminiServer() as server:
        server.use(monkeypatch)
        server.respond = lambda request: says("well")
        yield server


@pytest.fixture
def agent(write_agent, tmp_path) -> Path:
    (tmp_path / ".git").mkdir()
    folder: Path = write_agent(AGENT)
    write_cases(folder, 5)
    return folder


def run(agent: Path, *words: object) -> int:
    return call("run", agent, "--parallel", 1, *words)


def test_a_run_ends_at_its_budget_and_goes_on_with_a_higher_one(agent, gemini, capsys):
    assert run(agent, "--budget", "30tok", "--record", "auto") == 3
    # The third call was begun with 4 tokens left.
    assert len(gemini.requests) == 3
    printed = capsys.readouterr().out
    assert "2 cases not run: budget of 30 tokens reached, 39 tokens spent" in printed
    assert "3 passed" in printed
    assert read_header(RunStore(agent).logs()[-1]).data["budget"] == "30 tokens"

    # What is kept has spent it already.
    assert run(agent, "--resume", "last", "--budget", "45tok") == 3
    assert len(gemini.requests) == 4
    assert run(agent, "--resume", "last", "--budget", "1Mtok") == 0
    assert len(gemini.requests) == 5
    assert "5 passed" in capsys.readouterr().out

    # Nothing of the calls that were not made was recorded, and a replayed call costs nothing.
    assert run(agent, "--budget", "1tok", "--record", "replay") == 0


def test_dollars_need_a_price(agent, gemini, capsys):
    assert run(agent, "--budget", "20USD") == 2
    assert "not run: the price of gemini-test is unknown. Give it" in capsys.readouterr().out
    assert not gemini.requests
    (agent.parent / "pyproject.toml").write_text(f"[tool.evaltui.prices]\n{PRICE}\n")
    assert run(agent, "--budget", "20USD") == 3
    assert len(gemini.requests) == 2
    assert "3 cases not run: budget of 20 USD reached, $26.00 spent" in capsys.readouterr().out


def printed(capsys) -> str:
    """Without the ends of lines."""
    return " ".join(capsys.readouterr().out.split())


def test_calls_that_are_not_seen_are_named_and_no_budget_counts_them(write_agent, capsys):
    agent = write_agent(FUNCTION)
    write_cases(agent, 2)
    assert run(agent, "--budget", "5USD") == 2
    why = "the model calls of the agent: the agent is a callable"
    assert f"2 cases not run: a budget cannot count {why}" in printed(capsys)
    assert run(agent, "--budget", "5USD", "--limit", "*:rpm=9", "--allow-unmetered") == 0
    assert f"note limits and the budget do not reach {why}" in printed(capsys)


def test_a_case_that_needs_one_more_call_has_no_result_and_no_error(write_agent, tmp_path, gemini, capsys):
    agent = write_agent(WITH_TOOL)
    write_cases(agent, 3)
    gemini.respond = lambda request: says("well") if request.results else calls("look", {})
    # A case takes 26 tokens: the second one is in the middle, and others have begun beside it.
    assert call("run", agent, "--parallel", 3, "--workers", 1, "--budget", "14tok") == 3
    text = printed(capsys)
    assert "3 cases not run" in text
    assert "error" not in text
    # Calls under way when it was reached were let come to their end.
    assert 2 <= len(gemini.requests) <= 4
    assert call("run", agent, "--resume", "last", "--budget", "1ktok") == 0
    assert "3 passed" in printed(capsys)


def test_a_case_whose_judge_is_not_asked_has_no_result(agent, gemini, capsys):
    judge = {"judge_model": "gemini-judge", "num_samples": 3}
    criterion = {"threshold": 0.5, "judge_model_options": judge}
    write_cases(agent, 2, criteria={"final_response_match_v2": criterion})
    gemini.respond = lambda request: VALID if request.model == "gemini-judge" else says("well")
    # The agent and two of three questions.
    assert run(agent, "--budget", "35tok") == 3
    text = printed(capsys)
    assert "2 cases not run" in text
    assert "error" not in text
    assert run(agent, "--resume", "last", "--budget", "1ktok") == 0
    assert "2 passed" in printed(capsys)


@pytest.mark.parametrize(
    ("text", "budget", "shown"),
    [
        ("5USD", Budget(5.0, "USD"), "5 USD"),
        ("0.25 usd", Budget(0.25, "USD"), "0.25 USD"),
        ("2Mtok", Budget(2e6, "tok"), "2,000,000 tokens"),
        ("1.5ktok", Budget(1500, "tok"), "1,500 tokens"),
    ],
)
def test_a_budget(text, budget, shown):
    assert parse_budget(text) == budget
    assert str(budget) == shown


@pytest.mark.parametrize("text", ["", "5", "0USD", "-1USD", "5EUR", "2MUSD", "tok", "1e3tok", "infUSD"])
def test_what_is_none(text):
    with pytest.raises(ValueError, match="wanted is an amount such as 5USD or 2Mtok"):
        parse_budget(text)
