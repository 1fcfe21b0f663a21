"""Recordings of variants: each has its own, and none is played to another."""

from __future__ import annotations

import json

import pytest
from command_line import call
from gemini_server import says
from variant_agents import NATIVE, write_cases


@pytest.fixture
def agent(write_agent):
    folder = write_agent(NATIVE)
    write_cases(folder, "gemini-a gemini-a")
    return folder


def statuses(capsys):
    report = json.loads(capsys.readouterr().out)
    return {one["variant"]: one["status"] for row in report["cases"] for one in row["results"]}


def test_variants_record_and_replay_answers_of_their_own(agent, gemini, capsys):
    gemini.respond = lambda request: says(f"{request.model} {request.model}")
    variants = ("--variant", "base", "--variant", "b:model=gemini-b", "--report", "json")
    assert call("run", agent, *variants, "--record", "auto") == 1
    came = statuses(capsys)
    assert came == {"base": "PASSED", "b": "FAILED"}
    assert len(gemini.requests) == 2
    files = sorted(path.relative_to(agent / "recordings") for path in agent.rglob("recordings/**/*.jsonl"))
    assert [len(one.parts) for one in files] == [2, 1]
    assert files[0].parts[0].startswith("b-")
    assert "gemini-b" not in (agent / "recordings/greetings.jsonl").read_text()
    assert call("run", agent, *variants, "--record", "replay") == 1
    assert statuses(capsys) == came
    assert len(gemini.requests) == 2
    # A miss names the file that was looked in.
    assert call("run", agent, "--variant", "b:model=gemini-c", "--record", "replay") == 3
    assert "recordings/b-" in capsys.readouterr().out


@pytest.mark.thorough
def test_equal_requests_of_variants_have_different_answers(agent, gemini, capsys):
    """Of a variable nothing shows in a request."""
    answers = iter(["gemini-a gemini-a", "Good bye."])
    gemini.respond = lambda request: says(next(answers))
    variants = ("--variant", "base", "--variant", "warm:env.PLACE=warm", "--report", "json")
    for mode in ("record", "replay"):
        assert call("run", agent, *variants, "--record", mode) == 1
        assert statuses(capsys) == {"base": "PASSED", "warm": "FAILED"}
    assert len(gemini.requests) == 2


def test_the_config_of_a_native_agent_is_part_of_what_was_asked(agent, gemini, capsys):
    gemini.respond = lambda request: says(f"At {request.body['generationConfig']['temperature']}.")
    variant = ("--variant", "v:config.temperature=0.5")
    assert call("run", agent, *variant, "--record", "auto") == 1
    [file] = agent.glob("recordings/v-*/greetings.jsonl")
    assert '"config": {"temperature": 0.5}' in file.read_text()
    # The same file, by a name that another variant has: its answers do not fit.
    other = ("--variant", "v:config.temperature=0.6")
    assert call("run", agent, *other, "--record", "auto") == 1
    [second] = set(agent.glob("recordings/v-*/greetings.jsonl")) - {file}
    second.write_text(file.read_text())
    capsys.readouterr()
    assert call("run", agent, *other, "--record", "replay") == 3
    assert "temperature" in capsys.readouterr().out
