"""An error names its place, what is wrong and what to do, in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import call

AGENT = """
    import time

    def wait_for_boiler():
        time.sleep(60)

    def root_agent(message, session):
        if message == "wait":
            wait_for_boiler()
        return "done"
"""


def turn(text: str) -> dict[str, Any]:
    return {
        "user_content": {"role": "user", "parts": [{"text": text}]},
        "final_response": {"role": "model", "parts": [{"text": "done"}]},
    }


def write(folder: Path, cases: dict[str, list[dict[str, Any]]], **criteria: float) -> Path:
    data = [{"eval_id": eval_id, "conversation": turns} for eval_id, turns in cases.items()]
    path = folder / "lights.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "lights", "eval_cases": data}, indent=2))
    config = {"criteria": criteria or {"response_match_score": 0.5}}
    (folder / "test_config.json").write_text(json.dumps(config))
    return path


def ran(folder: Path, *words: object, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the report, with single spaces."""
    call("run", folder, *words)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_problem_of_a_file_has_its_line(write_agent, capsys, monkeypatch):
    folder = write_agent(AGENT)
    path = write(folder, {"hello": [turn("hi")]})
    path.write_text(path.read_text().replace('"lights"', "5"))
    monkeypatch.chdir(folder)
    assert call("lint", path.name) == 1
    (problem,) = capsys.readouterr().out.splitlines()
    assert problem == "lights.evalset.json:2: error: eval_set_id: must be a string, is the number 5"


def test_a_broken_agent_has_the_line_of_the_error(write_agent, capsys):
    folder = write_agent("import time\nlimit = tols\n" + "def root_agent(message, session): return message\n")
    write(folder, {"hello": [turn("hi")]})
    lines = ran(folder, capsys=capsys)
    assert "! hello error agent.py:2: NameError: name 'tols' is not defined" in lines


def test_a_timeout_has_its_turn_and_the_users_frame(write_agent, capsys):
    folder = write_agent(AGENT)
    write(folder, {"slow": [turn("hi"), turn("wait")]})
    lines = ran(folder, "--timeout", 1, "--report", "csv=-", capsys=capsys)
    where = next(n for n, line in enumerate(AGENT.splitlines(), 1) if "sleep" in line)
    reason = f"no response within 1 s (agent.py:{where} in wait_for_boiler). Raise --timeout or fix the tool"
    assert any(reason in line for line in lines)
    short = ran(folder, "--timeout", 1, capsys=capsys)
    assert any(line.startswith("! slow error turn 2: no response within 1 s (agent.py:") for line in short)


def test_a_metric_that_cannot_run_says_what_it_lacks(write_agent, capsys, monkeypatch):
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = write_agent(AGENT)
    write(folder, {"hello": [turn("hi")]}, safety_v1=0.8)
    text = " ".join(ran(folder, capsys=capsys))
    assert (
        "safety_v1 not evaluated: GOOGLE_API_KEY is not set. "
        "Set it in .env, or list the metric under evaltui.optional"
    ) in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("runn", "."), "Did you mean run?"),
        (("run", "AGENT", "light"), "no eval set 'light' in my_agent. Did you mean lights?"),
        (("run", "AGENT", "lights:helo"), "no case 'helo' in lights. Did you mean hello?"),
        (("run", "AGENT", "--report", "jnit"), "Did you mean junit?"),
        (("run", "AGENT", "--parralel", "2"), "Did you mean --parallel?"),
        (("help", "critera"), "Did you mean criteria?"),
        (("run", "AGENT", "--require", "saftey_v1"), "Did you mean safety_v1?"),
    ],
)
def test_an_unknown_name_comes_with_the_one_that_was_meant(write_agent, capsys, monkeypatch, words, said):
    folder = write_agent(AGENT)
    write(folder, {"hello": [turn("hi")]}, safety_v1=0.8, response_match_score=0.5)
    monkeypatch.chdir(folder)
    assert call(*("." if word == "AGENT" else word for word in words)) == 2
    assert said in capsys.readouterr().err
