"""`evaltui run --budget`: nothing is begun once it is spent, and the rest can be run later."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set
from gemini_server import Hold, calls, fails, says

from evaltui import CasesFailedError, evaluate, generate_responses
from evaltui.core.model.limits import Amount, Budget, parse_budget
from evaltui.core.model.outcome import Status
from evaltui.runner.execution import follow_plan
from evaltui.runner.plan import SpentWithoutResult, Update
from evaltui.runs.evaluation import plan_for
from evaltui.runs.run_file import RunFile
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
# Each response costs 13 tokens.
PRICE = '"gemini-test" = {input_mtok = 1_000_000, output_mtok = 1_000_000}'


def write_cases(agent: Path, count: int, **config: object) -> None:
    write_eval_set(
        agent, "many", *(make_case(f"case_{number}", make_turn("say it", "well")) for number in range(count))
    )
    (agent / "test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 1.0}} | config))


@pytest.fixture
def gemini(gemini):
    gemini.respond = lambda request: says("well")
    return gemini


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
    assert RunFile(RunStore(agent).files()[-1]).header.settings.budget == "30tok"

    assert call("report", agent) == 0
    printed = capsys.readouterr().out
    assert "2 cases not run: budget of 30 tokens reached, 39 tokens spent" in printed
    assert "interrupted" not in printed
    assert call("runs", agent) == 0
    printed = capsys.readouterr().out
    assert "stopped" in printed
    assert "interrupted" not in printed

    # What is kept has spent it already.
    assert run(agent, "--resume", "last", "--budget", "45tok") == 3
    assert len(gemini.requests) == 4
    assert run(agent, "--resume", "last", "--budget", "1Mtok") == 0
    assert len(gemini.requests) == 5
    assert "5 passed" in capsys.readouterr().out

    # Nothing of the calls that were not made was recorded, and a replayed call costs nothing.
    assert run(agent, "--budget", "1tok", "--record", "replay") == 0


def test_the_repeats_of_a_case_without_a_result_are_part_of_the_cost(agent, gemini, capsys):
    assert run(agent, "--runs", 2, "--budget", "30tok") == 3
    printed = capsys.readouterr().out
    assert "– case_1     —  —  not all repeats ran: 1 passed" in printed
    assert "3 calls  27 → 12 tokens" in printed


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


def test_what_cases_without_a_result_have_spent_counts_when_a_run_goes_on(write_agent, gemini, capsys):
    agent = write_agent(WITH_TOOL)
    write_cases(agent, 3)
    gemini.respond = lambda request: says("well") if request.results else calls("look", {})
    # The first case takes 26 tokens, and the second one is cut off behind its first call.
    assert run(agent, "--budget", "30tok") == 3
    assert len(gemini.requests) == 3
    assert RunFile(RunStore(agent).files()[-1]).spent_without_result == Amount(tokens=13)
    assert "spent besides, on calls that no result counts: 13 tokens" in printed(capsys)
    # Once more, and both are kept when it goes on without a budget.
    assert run(agent, "--resume", "last", "--budget", "40tok") == 3
    assert len(gemini.requests) == 4
    assert "52 tokens spent" in printed(capsys)
    assert run(agent, "--resume", "last", "--budget", "52tok") == 3
    assert len(gemini.requests) == 4
    gemini.script(fails(400))
    assert run(agent, "--resume", "last") == 3
    # The second case had an error, the third one has a result.
    log = RunStore(agent).files()[-1]
    assert RunFile(log).spent_without_result == Amount(tokens=26)
    assert run(agent, "--resume", "last", "--budget", "79tok") == 3
    assert len(gemini.requests) == 8
    assert RunFile(RunStore(agent).files()[-1]).spent_without_result == Amount(tokens=39)


def test_what_a_result_with_an_error_has_spent_counts_when_the_case_is_run_again(write_agent, gemini, capsys):
    agent = write_agent(WITH_TOOL)
    write_cases(agent, 1)
    gemini.script(calls("look", {}), fails(400))
    assert run(agent, "--budget", "1ktok") == 3
    gemini.script(calls("look", {}), says("well"))
    assert run(agent, "--resume", "last", "--budget", "13tok") == 3
    assert len(gemini.requests) == 2
    assert "1 case not run: budget of 13 tokens reached" in printed(capsys)
    assert run(agent, "--resume", "last", "--budget", "1ktok") == 0


def test_an_interrupted_run_tells_what_cases_without_a_result_have_spent(agent, gemini):
    held = Hold()
    gemini.respond = lambda request: says("well").after(held) if len(gemini.requests) == 2 else says("well")

    async def interrupted() -> None:
        options = {"budget": "1ktok", "parallel": 1, "timeout": 60.0}
        plan = plan_for(agent, None, None, **options)
        told: list[Update] = []
        running = asyncio.create_task(follow_plan(plan, told.append))
        await asyncio.to_thread(held.reached.wait)
        running.cancel()
        await asyncio.wait({running})
        (amount,) = (one.amount for one in told if isinstance(one, SpentWithoutResult))
        # The call under way counts with its estimate: a few tokens of the request, and an answer of 4.
        assert 4 < amount.tokens < 1000

    try:
        asyncio.run(interrupted())
    finally:
        held.release()


def test_the_variants_of_a_matrix_share_a_budget(agent, gemini, capsys):
    write_cases(agent, 2)
    names = ("base", "one", "two")
    variants = [word for name in names for word in ("--variant", f"{name}:env.NAME={name}")]
    asked = ("--parallel", 1, "--report", "json")

    # Two cases of the first variant, and one of the second.
    assert call("run", agent, *variants, "--budget", "30tok", *asked) == 3
    assert len(gemini.requests) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["notes"] == [
        "one: 1 case not run: budget of 30 tokens reached, 39 tokens spent",
        "not run: two: budget of 30 tokens reached, 39 tokens spent",
        f"`--resume {document['matrix']}` with a higher --budget runs the rest",
    ]
    assert len(RunStore(agent).files()) == 2
    assert call("report", agent, document["matrix"], "--report", "json") == 0
    stored = json.loads(capsys.readouterr().out)
    assert stored["notes"] == [document["notes"][0], "no run of variant two"]
    applied = [one["applied"] for one in stored["variants"]]
    assert applied == [one["applied"] for one in document["variants"]]
    assert applied[1] == [{"what": "env.NAME", "old": "not set", "new": "one"}]

    # All of its runs have spent it already, the complete ones as well.
    assert call("run", agent, "--resume", "last", "--budget", "52tok", *asked) == 3
    assert len(gemini.requests) == 4
    document = json.loads(capsys.readouterr().out)
    assert "not run: two: budget of 52 tokens reached, 52 tokens spent" in document["notes"]
    assert [one["name"] for one in document["variants"]] == ["base", "one"]
    assert document["complete"] is False
    assert call("report", agent, document["matrix"], "--report", "json") == 0
    assert json.loads(capsys.readouterr().out)["complete"] is False
    assert call("report", agent, document["matrix"], "--report", "markdown") == 0
    markdown = capsys.readouterr().out
    assert "> <code>variant two</code> missing" in markdown
    assert "every variant" not in markdown
    assert call("run", agent, "--resume", "last", "--budget", "79tok", *asked) == 0
    assert len(gemini.requests) == 6
    document = json.loads(capsys.readouterr().out)
    (note,) = document["notes"]
    assert note.startswith("one: resumes run ")
    assert document["complete"] is True
    assert [(one["name"], one["applied"][0]["new"]) for one in document["variants"]] == [
        *(("base", "base"), ("one", "one"), ("two", "two"))
    ]


async def test_a_budget_in_python(agent, gemini, tmp_path):
    result = await evaluate(agent, budget="30tok", parallel=1, results_dir=tmp_path / "runs")
    assert len(gemini.requests) == 3
    assert result.stopped == "2 cases not run: budget of 30 tokens reached, 39 tokens spent"
    # Cases without a result have not passed.
    assert [case.passed for case in result.cases] == [True, True, True, False, False]
    assert {case.reason for case in result.cases[3:]} == {"did not run"}
    assert result.status is Status.NOT_EVALUATED
    assert not result.passed
    assert result.stopped in repr(result)
    with pytest.raises(CasesFailedError, match="2 cases not run"):
        result.raise_if_failed()
    assert RunFile(result.log).ending is None
    with pytest.raises(RuntimeError, match="4 cases not run"):
        await generate_responses(agent, repeat_num=1, budget="1tok", parallel=1)
    with pytest.raises(
        ValueError, match=r"budget: '5EUR' is wrong: wanted is an amount such as 5USD or 2Mtok"
    ):
        await evaluate(agent, budget="5EUR")


async def test_a_budget_in_python_that_cannot_count_the_calls(gemini, agent):
    refused = await evaluate(agent, budget="5USD", parallel=1)
    assert "the price of gemini-test is unknown" in refused.stopped
    assert {case.reason for case in refused.cases} == {"did not run"}
    assert not refused.passed
    assert not gemini.requests
    result = await evaluate(agent, budget="5USD", allow_unmetered=True)
    assert result.passed
    assert not result.stopped


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
