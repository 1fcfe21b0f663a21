"""`evaltui run --confidence`: a case is repeated until it is known whether it passes; else never green."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command_line import call
from fake_runs import run_without_processes

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.outcome import Status
from evaltui.reports.json_report import case_result_json
from evaltui.runs.history import open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from tests.eval_data import make_case, make_turn, write_eval_set, write_test_config
from tests.stored_runs import change, interrupt

CONFIDENT = ("--confidence", "0.95", "--max-runs", "20")


def one_case(eval_id: str) -> dict:
    turn = make_turn(eval_id)
    answer = {"final_response": {"role": "model", "parts": [{"text": "right"}]}}
    return make_case(eval_id, turn | answer)


def act(case: EvalCase, repeat: int) -> list[Invocation]:
    """The id of a case begins with what its runs come to, over and over: p passes, f fails, e raises."""
    script = case.eval_id.partition("_")[0]
    outcome = script[repeat % len(script)]
    if outcome == "e":
        raise RuntimeError("out of order")
    text = "right" if outcome == "p" else "wrong"
    answer = {"final_response": {"role": "model", "parts": [{"text": text}]}}
    return [
        Invocation.model_validate({**turn.model_dump(include={"user_content"}), **answer})
        for turn in case.conversation or []
    ]


ALWAYS, NEVER, OPEN, FLAKY_FAILED = "p", "f", "ppppf_open", "pfff_rather"
FLAKY = f"f{'p' * 19}_flaky"


@pytest.fixture
def agent(write_agent, monkeypatch) -> Path:
    run_without_processes(monkeypatch, act)
    folder: Path = write_agent("root_agent = lambda message: message")
    write_test_config(folder, response_match_score=1.0)
    write_eval_set(
        folder, "lights", *(one_case(eval_id) for eval_id in (ALWAYS, NEVER, FLAKY, OPEN, FLAKY_FAILED))
    )
    return folder


def run(agent, *words, cases=(), resumed=False):
    """The exit code, and the JSON report."""
    selected = [] if resumed else [f"lights:{','.join(cases)}"] if cases else []
    report = agent.with_name("report.json")
    options = () if resumed else CONFIDENT
    code = call("run", agent, *selected, *options, *words, "--report", f"json={report}")
    return code, json.loads(report.read_text())


def decisions(report):
    return {case["eval_id"]: (case["status"], case["decision"]["answer"]) for case in report["cases"]}


def runs_of(report):
    return {case["eval_id"]: len(case["repeats"]) for case in report["cases"]}


def test_each_case_is_run_until_it_is_decided(agent, capsys):
    code, report = run(agent)
    assert decisions(report) == {
        ALWAYS: ("PASSED", "passes"),
        NEVER: ("FAILED", "does not pass"),
        FLAKY: ("FLAKY", "passes"),
        OPEN: ("NOT_EVALUATED", "undecided"),
        FLAKY_FAILED: ("FLAKY", "does not pass"),
    }
    counts = runs_of(report)
    assert counts == {ALWAYS: 12, NEVER: 3, FLAKY: 18, OPEN: 18, FLAKY_FAILED: 4}
    assert code == 1
    assert report["cases"][0]["decision"] == {
        "answer": "passes",
        "confidence": 0.95,
        "max_runs": 20,
        "low": 0.7,
        "high": 0.9,
    }
    out = capsys.readouterr().out
    assert "lights (5 cases, at most " in out
    assert "undecided between pass rates 0.7 and 0.9 (95% confidence)" in out
    assert "pass rate below 0.9 (95% confidence)" in out


@pytest.mark.parametrize(
    ("cases", "code"),
    [([ALWAYS, FLAKY], 0), ([ALWAYS, OPEN], 3), ([OPEN, NEVER], 1), ([FLAKY_FAILED], 1)],
)
def test_an_undecided_case_is_never_green(agent, cases, code):
    assert run(agent, cases=cases)[0] == code


def test_ci_is_told_in_its_own_words(agent):
    run(agent, f"--report=junit={agent / 'junit.xml'}")
    cases = {one.get("name"): one for one in ET.parse(agent / "junit.xml").iter("testcase")}
    error, failure = cases[OPEN].find("error"), cases[NEVER].find("failure")
    assert error.get("type") == "NOT_EVALUATED"
    assert "undecided between pass rates 0.7 and 0.9 (95% confidence)" in error.get("message")
    assert failure.get("message").startswith("0/3 repeats passed, pass rate below 0.9 (95% confidence)")
    assert cases[ALWAYS].find("system-out").text.startswith("12/12 repeats passed, pass rate above 0.7")
    assert [len(cases[name]) for name in (ALWAYS, FLAKY)] == [1, 1]


def test_a_spreadsheet_has_the_decision(agent):
    run(agent, f"--report=csv={agent / 'report.csv'}")
    rows = list(csv.DictReader((agent / "report.csv").read_text().splitlines()))
    assert {row["eval_id"]: row["decision"] for row in rows} == {
        ALWAYS: "passes",
        NEVER: "does not pass",
        FLAKY: "passes",
        OPEN: "undecided",
        FLAKY_FAILED: "does not pass",
    }


def test_the_log_has_the_decision(agent):
    _, report = run(agent)
    log = RunStore(agent).latest()
    assert RunFile(log).header.settings.confidence.max_runs == 20
    kept = open_run(log)
    for told in report["cases"]:
        case = CaseId("lights.evalset.json", told["eval_id"])
        assert case_result_json(kept.case(case))["decision"] == told["decision"]
        assert kept.case(case).status.value == told["status"]
        assert kept.summary.cases[case].passes == (told["decision"]["answer"] == "passes")


def test_what_is_not_decided_is_run_again(agent):
    run(agent, cases=[ALWAYS, FLAKY, OPEN])
    code, report = run(agent, "--failed")
    # A case whose repeats decide that it passes is not.
    assert (code, set(decisions(report))) == (1, {NEVER, OPEN, FLAKY_FAILED})


def test_undecided_after_a_pass_is_a_regression(agent):
    run(agent, cases=[OPEN])
    run(agent, cases=[ALWAYS])
    log = RunStore(agent).latest()
    assert run(agent, "--baseline", log, "--fail-on-regression", cases=[ALWAYS])[0] == 0
    change(log, f"UPDATE cases SET eval_id = '{OPEN}'")
    assert run(agent, "--baseline", log, "--fail-on-regression", cases=[OPEN])[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-runs", "9"], "--max-runs needs --confidence P"),
        (["--confidence", "0.95", "--runs", "3"], "--runs: --confidence says how often"),
        (["--confidence", "0.95", "--max-runs", "11"], "no case passes in fewer than 12 runs"),
        (["--confidence", "0.99", "--pass-if", "0.95", "--max-runs", "12"], "fewer than 20 runs"),
        (["--confidence", "1"], "is not between 0.5 and 1"),
        (["--confidence", "95"], "is not between 0.5 and 1"),
        (["--confidence", "nan"], "is not between 0.5 and 1"),
        (["--confidence", "0.9", "--watch"], "--confidence cannot be used together with --watch"),
    ],
)
def test_what_makes_no_sense_is_refused(agent, capsys, words, said):
    assert call("run", agent, *words) == 2
    assert said in capsys.readouterr().err


def test_an_estimate_is_the_most_that_it_can_take(agent, capsys):
    run(agent, cases=[ALWAYS])
    capsys.readouterr()
    assert call("run", agent, f"lights:{ALWAYS}", *CONFIDENT, "--estimate") == 0
    assert "cases   1, at most 20 runs" in capsys.readouterr().out


# Runs that were interrupted


@pytest.mark.parametrize("results", [1, 16])
def test_an_interrupted_run_comes_to_the_same_decisions(agent, results):
    _, whole = run(agent)
    log = interrupt(RunStore(agent).latest(), results)
    code, resumed = run(agent, "--resume", log, resumed=True)
    assert code == 1
    assert decisions(resumed) == decisions(whole)
    assert runs_of(resumed) == runs_of(whole)
    assert (
        RunFile(RunStore(agent).latest()).header.settings.confidence
        == RunFile(log).header.settings.confidence
    )


def test_an_undecided_case_is_nothing_to_resume(agent, capsys):
    run(agent, cases=[OPEN])
    assert call("run", agent, "--resume", "last") == 2
    assert "Nothing to resume: run is complete" in capsys.readouterr().err
    assert call("run", agent, "--resume", "last", "--confidence", "0.9") == 2
    assert "leave out --confidence" in capsys.readouterr().err


# Runs that are put together


def test_shards_come_to_the_decisions_of_the_whole(agent, tmp_path):
    _, whole = run(agent)
    logs = []
    for number in (1, 2):
        run(agent, "--shard", f"{number}/2")
        logs.append(RunStore(agent).latest())
    merged = tmp_path / "merged.sqlite"
    assert call("merge", *logs, "-o", merged) == 1
    summaries = open_run(merged).summary.cases
    assert {
        case.eval_id: (one.status.value, one.decision.answer) for case, one in summaries.items()
    } == decisions(whole)


@pytest.mark.parametrize("left", [4, 17], ids=["fewer", "more"])
def test_sequences_of_two_runs_are_not_mixed(agent, tmp_path, capsys, monkeypatch, left):
    """The runs of a case are those of one log: the last that was brought to its end."""
    run(agent, cases=[ALWAYS, NEVER])
    first = RunStore(agent).latest()
    with monkeypatch.context() as patch:
        run_without_processes(
            patch, lambda case, repeat: act(case.model_copy(update={"eval_id": OPEN}), repeat)
        )
        run(agent, cases=[ALWAYS, NEVER])
    second = interrupt(RunStore(agent).latest(), left)
    merged = tmp_path / "merged.sqlite"
    assert call("merge", first, second, "-o", merged) == 1
    found = open_run(merged)
    case = found.case(CaseId("lights.evalset.json", ALWAYS))
    assert (case.status, len(case.repeats), case.decision.answer) == (Status.PASSED, 12, "passes")
    run(agent, "--max-runs", "30", cases=[ALWAYS, NEVER])
    assert call("merge", first, RunStore(agent).latest(), "-o", tmp_path / "other.sqlite") == 2
    assert "max-runs 20 → 30" in capsys.readouterr().err
