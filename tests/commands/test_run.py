"""`evaltui run` as CI uses it: exit codes, reports, what is on stdout, what is left after an interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from waiting import wait_until

from evaltui.cli import main
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from tests.stored_runs import count

AGENT = """
    import asyncio, itertools, os

    print("hello from the agent")

    async def root_agent(message, session):
        os.write(1, b"raw output\\n")
        if message == "raise":
            raise RuntimeError("judge 500")
        if message == "hang":
            sum(itertools.repeat(1))
        if message == "wait":
            await asyncio.sleep(1000)
        return message
"""


def one_case(eval_id: str, says: str, expected: str) -> dict[str, Any]:
    return {
        "eval_id": eval_id,
        "conversation": [
            {
                "user_content": {"role": "user", "parts": [{"text": says}]},
                "final_response": {"role": "model", "parts": [{"text": expected}]},
            }
        ],
    }


PASSING = one_case("turn_off_bedroom", "all is well", "all is well")
FAILING = one_case("set_thermostat", "all is well", "something entirely different")
ERRING = one_case("judged", "raise", "raise")


@pytest.fixture
def agent(write_agent) -> Path:
    return write_agent(AGENT)


def write_set(agent: Path, *cases: dict[str, Any], name: str = "basics") -> Path:
    path = agent / f"{name}.evalset.json"
    path.write_text(json.dumps({"eval_set_id": name, "eval_cases": list(cases)}))
    return path


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main(["run", *map(str, words)])
    assert isinstance(left.value.code, int)
    return left.value.code


def start(*words: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evaltui", "run", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize(
    ("cases", "code"),
    [
        ([PASSING], 0),
        ([PASSING, FAILING], 1),
        ([PASSING, ERRING], 3),
        ([FAILING, ERRING], 1),
    ],
    ids=["passed", "failed", "error", "failed and error"],
)
def test_exit_codes(agent, cases, code, capsys):
    write_set(agent, *cases)
    assert run(agent) == code
    assert run(agent, "--exit-zero") == 0
    capsys.readouterr()


WRONG_USES = {
    "unknown case": (["basics:turn_of_bedroom"], "Did you mean turn_off_bedroom"),
    "unknown set": (["basic"], "basics"),
    "empty set": (["empty"], "no cases"),
    "no runs": (["--runs", "0"], "--runs"),
    "no such config": (["--config", "nowhere.json"], "nowhere.json"),
    "unknown report": (["--report", "yaml"], "yaml"),
    "two reports on stdout": (["--report", "json", "--report", "junit"], "stdout"),
    "two reports in one file": (["--report", "json=out", "--report", "junit=out"], "two reports"),
    "no earlier run": (["--failed"], "no runs of"),
    "no seconds": (["--timeout", "0"], "--timeout"),
}


@pytest.mark.parametrize("kind", WRONG_USES)
def test_wrong_use_is_two_with_one_line_that_says_what(agent, kind, capsys):
    write_set(agent, PASSING, FAILING)
    write_set(agent, name="empty")
    words, says = WRONG_USES[kind]
    assert run(agent, *words, "--exit-zero") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1
    assert "passed" not in err or kind == "no earlier run"


def test_command_lines_of_adk_eval_run(agent, tmp_path, capsys):
    file = write_set(agent, PASSING, FAILING)
    config = tmp_path / "config.json"
    config.write_text('{"criteria": {"response_match_score": 0.0}}')
    words = (f"--config_file_path={config}", "--print_detailed_results", "--num_runs", "2")
    assert run(agent, file, *words) == 0
    assert "(2 cases, 2 runs each" in capsys.readouterr().out
    assert run(agent, f"{file}:{FAILING['eval_id']}", "--config_file_path", config) == 0
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "_file_path" not in capsys.readouterr().out


def test_an_explicit_config_that_does_not_parse_is_an_error_with_a_line(agent, tmp_path, capsys):
    write_set(agent, PASSING)
    config = tmp_path / "config.json"
    config.write_text('{\n  "criteria": {"response_match_score": 0.5},\n}')
    assert run(agent, "--config", config) == 2
    assert "config.json:2: " in capsys.readouterr().err


def test_a_broken_set_is_two_and_names_every_place(agent, capsys):
    write_set(agent, {"eval_id": "one", "conversation": [{}, {"user_content": "hi"}]})
    assert run(agent) == 2
    err = capsys.readouterr().err
    assert ":1: eval_cases[0].conversation[0].user_content: missing" in err
    assert "eval_cases[0].conversation[1].user_content" in err


def test_the_reports_of_ci(agent, tmp_path):
    write_set(agent, PASSING, FAILING, ERRING)
    junit = tmp_path / "out.xml"
    process = start(agent, "--report", "json=-", "--report", f"junit={junit}")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    report = json.loads(out)
    assert [case["status"] for case in report["cases"]] == ["PASSED", "FAILED", "ERROR"]
    assert report["status"] == "FAILED"
    assert report["cases"][2]["error"]["message"] == "judge 500"
    assert "agent.py" in report["cases"][2]["error"]["traceback"]
    config = report["sets"][0]["config"]
    assert config["path"] is None
    assert config["effective"]["criteria"] == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    assert set(config["defaulted"]) == {"tool_trajectory_avg_score", "response_match_score"}
    suites = ElementTree.parse(junit).getroot()
    assert len(suites.findall(".//testcase")) == 3
    assert len(suites.findall(".//failure")) == 1
    assert len(suites.findall(".//error")) == 1


def test_only_what_failed_last_time_is_run_again(agent, capsys):
    write_set(agent, PASSING, FAILING, ERRING)
    assert run(agent) == 1
    capsys.readouterr()
    run(agent, "--failed", "--report", "json")
    again = json.loads(capsys.readouterr().out)
    assert [case["eval_id"] for case in again["cases"]] == ["set_thermostat", "judged"]


def test_named_cases_of_a_set_keep_its_order(agent, capsys):
    write_set(agent, PASSING, FAILING, ERRING)
    run(agent, "basics:judged,turn_off_bedroom", "--report", "json")
    report = json.loads(capsys.readouterr().out)
    assert [case["eval_id"] for case in report["cases"]] == ["turn_off_bedroom", "judged"]


def test_a_misspelt_metric_is_refused(agent, capsys):
    write_set(agent, PASSING)
    (agent / "test_config.json").write_text(
        '{"criteria": {"response_match_scor": 0.5, "response_match_score": 0.5}}'
    )
    for verdicts in ((), ("--adk-verdicts",)):
        assert run(agent, *verdicts) == 2
        assert "test_config.json:1: criteria.response_match_scor: unknown" in capsys.readouterr().err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "SIGKILL"])
@pytest.mark.parametrize("says", ["wait", "hang"])
def test_an_interrupted_run_leaves_what_was_finished(agent, how, says):
    write_set(agent, PASSING, FAILING, one_case("endless", says, "never"))
    process = start(agent, "--parallel", "1")

    def both_are_finished() -> bool:
        assert process.poll() is None, process.communicate()
        log = RunStore(agent).latest()
        return log is not None and count(log, "cases") == 2

    wait_until(both_are_finished)
    os.kill(process.pid, how)
    out, err = process.communicate(timeout=30)
    cases = RunFile(RunStore(agent).latest()).cases
    assert [(case.id.eval_id, case.summary.status) for case in cases] == [
        ("turn_off_bedroom", "PASSED"),
        ("set_thermostat", "FAILED"),
    ]
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert b"2 of 3" in out
        assert b"Traceback" not in err


def test_a_run_that_cannot_be_stored_with_its_agent_is_stored_for_the_user(agent, capsys):
    write_set(agent, PASSING)
    (agent / ".evaltui").write_text("in the way")
    assert run(agent) == 0
    folder = RunStore(agent).folder_of_user
    assert f"Run stored in {folder}: " in capsys.readouterr().out
    assert [path.parent for path in RunStore(agent).files()] == [folder]
    assert run(agent, "--baseline", "last", "--fail-on-regression") == 0
    assert len(RunStore(agent).files()) == 2


def test_a_run_that_cannot_be_stored_at_all_still_reports(agent, capsys):
    write_set(agent, PASSING)
    (agent / ".evaltui").write_text("in the way")
    RunStore(agent).folder_of_user.parent.parent.write_text("in the way")
    assert run(agent) == 0
    assert "Run not stored" in capsys.readouterr().out


def test_a_broken_agent_is_named_once_and_nothing_passes(write_agent, capsys):
    agent = write_agent("root_agent = tols\n")
    write_set(agent, PASSING, FAILING)
    assert run(agent) == 3
    out = capsys.readouterr().out
    assert "agent.py:1" in out
    assert out.count("NameError: name 'tols' is not defined") <= 3
    assert "0 passed" in out or "passed" not in out


def test_as_adk_has_it_an_agent_that_raises_fails_and_the_error_is_kept(agent, tmp_path, capsys):
    path = write_set(agent, PASSING, ERRING)
    junit, report = tmp_path / "junit.xml", tmp_path / "report.json"

    words = ["--report", "console", "--report", f"junit={junit}", "--report", f"json={report}"]
    code = run(agent, path, "--adk-verdicts", *words)

    assert code == 1
    assert "judge 500" in capsys.readouterr().out
    cases = {case["eval_id"]: case for case in json.loads(report.read_text())["cases"]}
    assert (cases["judged"]["status"], cases["judged"]["error"]["message"]) == ("FAILED", "judge 500")
    assert cases["turn_off_bedroom"]["status"] == "PASSED"
    (failure,) = ElementTree.parse(junit).iter("failure")
    assert "judge 500" in (failure.get("message") or "") + (failure.text or "")
