"""`evaltui run` as CI uses it: what is on stdout, which cases run, where a run is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config

from evaltui.cli import main
from evaltui.runs.store import RunStore

AGENT = """
    import os

    print("hello from the agent")

    async def root_agent(message, session):
        os.write(1, b"raw output\\n")
        if message == "raise":
            raise RuntimeError("judge 500")
        return message
"""


def one_case(eval_id: str, says: str, expected: str) -> dict[str, Any]:
    return make_case(eval_id, make_turn(says, expected))


PASSING = one_case("turn_off_bedroom", "all is well", "all is well")
FAILING = one_case("set_thermostat", "all is well", "something entirely different")
ERRING = one_case("judged", "raise", "raise")


@pytest.fixture
def agent(write_agent) -> Path:
    return write_agent(AGENT)


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main(["run", *map(str, words)])
    assert isinstance(left.value.code, int)
    return left.value.code


def start(*words: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evaltui", "run", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_command_lines_of_adk_eval_run(agent, tmp_path, capsys):
    file = write_eval_set(agent, "basics", PASSING, FAILING)
    config = tmp_path / "config.json"
    config.write_text('{"criteria": {"response_match_score": 0.0}}')
    words = (f"--config_file_path={config}", "--print_detailed_results", "--num_runs", "2")
    assert run(agent, file, *words) == 0
    assert "(2 cases, 2 runs each" in capsys.readouterr().out
    assert run(agent, f"{file}:{FAILING['eval_id']}", "--config_file_path", config) == 0
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "_file_path" not in capsys.readouterr().out


def test_a_report_on_stdout_is_all_that_is_there(agent):
    """Whatever the agent prints, also past Python."""
    write_eval_set(agent, "basics", PASSING, FAILING, ERRING)
    process = start(agent, "--report", "json=-")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert [case["status"] for case in json.loads(out)["cases"]] == ["PASSED", "FAILED", "ERROR"]


def test_an_error_has_its_turn(agent, capsys):
    write_eval_set(agent, "basics", make_case("two", *PASSING["conversation"], *ERRING["conversation"]))
    assert run(agent) == 3
    assert "! two  error  turn 2: agent.py:" in capsys.readouterr().out


def test_named_cases_of_a_set_keep_its_order(agent, capsys):
    write_eval_set(agent, "basics", PASSING, FAILING, ERRING)
    run(agent, "basics:judged,turn_off_bedroom", "--report", "json")
    report = json.loads(capsys.readouterr().out)
    assert [case["eval_id"] for case in report["cases"]] == ["turn_off_bedroom", "judged"]


def test_a_misspelt_metric_is_refused(agent, capsys):
    write_eval_set(agent, "basics", PASSING)
    write_test_config(agent, response_match_scor=0.5, response_match_score=0.5)
    for verdicts in ((), ("--adk-verdicts",)):
        assert run(agent, *verdicts) == 2
        assert "test_config.json:1: criteria.response_match_scor: unknown" in capsys.readouterr().err


def test_a_run_that_cannot_be_stored_with_its_agent_is_stored_for_the_user(agent, capsys):
    write_eval_set(agent, "basics", PASSING)
    (agent / ".evaltui").write_text("in the way")
    assert run(agent) == 0
    folder = RunStore(agent).folder_of_user
    # However long the path is, and where the line ends.
    assert f"Run stored in {folder}: " in " ".join(capsys.readouterr().out.split()) + " "
    assert [path.parent for path in RunStore(agent).files()] == [folder]
    assert run(agent, "--baseline", "last", "--fail-on-regression") == 0
    assert len(RunStore(agent).files()) == 2


def test_a_run_that_cannot_be_stored_at_all_still_reports(agent, capsys):
    write_eval_set(agent, "basics", PASSING)
    (agent / ".evaltui").write_text("in the way")
    RunStore(agent).folder_of_user.parent.parent.write_text("in the way")
    assert run(agent) == 0
    assert "Run not stored" in capsys.readouterr().out
