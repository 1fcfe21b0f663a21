"""Two files with the same set id and the same case id are two cases, wherever one of them is named."""

import csv
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command_line import call

from evaltui.runs.store import RunStore

AGENT = """
    from pathlib import Path

    def root_agent(message, session):
        return Path(__file__).with_name("answers.txt").read_text().split()[int(message)]
"""


def write_set(file: Path, message: str) -> None:
    turn = {
        "user_content": {"parts": [{"text": message}]},
        "final_response": {"parts": [{"text": "right"}]},
    }
    cases = [{"eval_id": "greet", "conversation": [turn]}]
    file.write_text(json.dumps({"eval_set_id": "orders", "eval_cases": cases}))


@pytest.fixture
def agent(write_agent) -> Path:
    folder = write_agent(AGENT)
    (folder / "evals").mkdir()
    write_set(folder / "evals" / "a.evalset.json", "0")
    write_set(folder / "evals" / "b.evalset.json", "1")
    return folder


def answer(agent: Path, *answers: str) -> None:
    (agent / "answers.txt").write_text(" ".join(answers))


def lines_of(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def interrupted(log: Path, eval_path: str) -> None:
    """As if the run had been killed when only this file's case had been finished."""
    kept = [
        line
        for line in lines_of(log)
        if line["kind"] not in ("index", "footer") and line.get("path", eval_path) == eval_path
    ]
    rewritten(log, kept)


def rewritten(log: Path, lines: list[dict]) -> None:
    for line in lines:
        # The places are others now.
        line.pop("repeats_at", None)
        line.pop("events", None)
    # The agent's files must not seem to be younger than the run.
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def as_by_an_earlier_version(log: Path) -> None:
    """It kept neither files nor an order in which sets could be told apart."""
    lines = [line for line in lines_of(log) if line["kind"] not in ("index", "footer")]
    header = lines[0]
    sets = header.pop("sets")
    header["version"] = 2
    header["sets"] = {one["eval_set_id"]: {"config": one["config"], "path": one["path"]} for one in sets}
    header["selected"] = {"orders": [eval_id for one in sets for eval_id in one["eval_ids"]]}
    for line in lines[1:]:
        line.pop("path", None)
        if line["kind"] == "case_result":
            line["eval_set_id"] = line.pop("eval_set_id")
            line["eval_id"] = line.pop("eval_id")
    rewritten(log, lines)


def statuses(report: dict) -> dict[str, str]:
    return {case["path"]: case["status"] for case in report["cases"]}


def test_reports_tell_them_apart(agent, capsys, tmp_path):
    answer(agent, "right", "wrong")
    files = [tmp_path / name for name in ("run.json", "run.xml", "run.csv")]
    reports = [f"--report={kind}={file}" for kind, file in zip(("json", "junit", "csv"), files, strict=True)]
    assert call("run", agent, *reports, "--report=console") == 1
    paths = {"evals/a.evalset.json": "PASSED", "evals/b.evalset.json": "FAILED"}
    assert statuses(json.loads(files[0].read_text())) == paths
    root = ET.fromstring(files[1].read_text())
    assert [suite.get("tests") for suite in root] == ["1", "1"]
    assert [case.get("classname") for case in root.iter("testcase")] == [
        "orders (evals/a.evalset.json)",
        "orders (evals/b.evalset.json)",
    ]
    rows = csv.DictReader(files[2].read_text().splitlines())
    assert {row["path"]: row["case_status"] for row in rows} == paths
    out = capsys.readouterr().out
    assert out.count("orders (evals/") == 2
    results = list((agent / ".adk" / "eval_history").iterdir())
    assert len(results) == 2
    # The failing one is not covered up by its twin.
    assert call("run", agent, "--failed", "--report", "json") == 1
    assert statuses(json.loads(capsys.readouterr().out)) == {"evals/b.evalset.json": "FAILED"}


@pytest.mark.parametrize("finished", ["evals/a.evalset.json", "evals/b.evalset.json"])
def test_an_interrupted_run_goes_on_with_both(agent, capsys, finished):
    answer(agent, "right", "wrong")
    call("run", agent)
    log = RunStore(agent).latest()
    interrupted(log, finished)
    capsys.readouterr()
    assert call("run", agent, "--resume", "last", "--report", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert statuses(report) == {"evals/a.evalset.json": "PASSED", "evals/b.evalset.json": "FAILED"}
    assert report["notes"] == [f"resumes run {log.stem}: 1 result kept"]


def test_a_baseline_excuses_a_case_by_its_own_failure_only(agent, capsys):
    answer(agent, "wrong", "right")
    assert call("run", agent) == 1
    answer(agent, "right", "wrong")
    command = ("run", agent, "--baseline", RunStore(agent).latest().stem, "--fail-on-regression")
    capsys.readouterr()
    assert call(*command, "--report", "json") == 1
    compared = json.loads(capsys.readouterr().out)["comparison"]["cases"]
    assert {case["path"]: case["change"] for case in compared} == {
        "evals/a.evalset.json": "fixed",
        "evals/b.evalset.json": "broken",
    }
    # On another machine, with everything elsewhere, it is the same case.
    moved = agent.rename(agent.parent / "elsewhere")
    assert call("run", moved, *command[2:]) == 1
    assert "1 broken, 1 fixed" in capsys.readouterr().out


def test_a_log_of_an_earlier_version_is_read_and_twins_in_it_are_named(agent, capsys):
    answer(agent, "wrong", "right")
    call("run", agent)
    log = RunStore(agent).latest()
    as_by_an_earlier_version(log)
    answer(agent, "right", "wrong")
    capsys.readouterr()
    assert call("run", agent, "--resume", log.stem) == 2
    assert "several files had the set id orders and a case greet" in capsys.readouterr().err
    # It is not known which one of them passed.
    assert call("run", agent, "--baseline", log.stem, "--fail-on-regression", "--report", "json") == 1
    compared = json.loads(capsys.readouterr().out)["comparison"]["cases"]
    unclear = [case for case in compared if any("several files have it" in why for why in case["reasons"])]
    assert unclear
    RunStore(agent).latest().unlink()
    assert call("run", agent, "--failed", "--report", "json") == 1
    assert len(json.loads(capsys.readouterr().out)["cases"]) == 2


def test_a_log_of_an_earlier_version_without_twins(agent, capsys):
    (agent / "evals" / "b.evalset.json").unlink()
    answer(agent, "right")
    call("run", agent)
    log = RunStore(agent).latest()
    as_by_an_earlier_version(log)
    os.utime(agent / "answers.txt", (0, 0))
    assert call("run", agent, "--failed") == 2
    assert "every selected case passed in the last run" in capsys.readouterr().err
    answer(agent, "wrong")
    assert call("run", agent, "--baseline", log.stem, "--fail-on-regression") == 1
    assert "1 broken" in capsys.readouterr().out
