"""Two files with the same set id and the same case id are two cases, wherever one of them is named."""

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command_line import call

from evaltui.runs.store import RunStore
from tests.eval_data import make_case, make_turn
from tests.stored_runs import change, interrupt

AGENT = """
    from pathlib import Path

    def root_agent(message, session):
        return Path(__file__).with_name("answers.txt").read_text().split()[int(message)]
"""


def write_set(file: Path, message: str) -> None:
    cases = [make_case("greet", make_turn(message, "right"))]
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
    change(log, f"DELETE FROM repeats WHERE case_id != (SELECT id FROM cases WHERE path = '{finished}')")
    interrupt(log, 1)
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
