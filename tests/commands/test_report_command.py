"""`evaltui report`: reports of stored runs say what those of the run itself said."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import time
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from fake_runs import run_without_processes

from evaltui.commands import job
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.reports import console
from evaltui.runs import execution
from evaltui.runs.run_file import RunFile
from evaltui.runs.selection import select
from evaltui.runs.store import RunStore
from tests.eval_data import make_case, make_turn, write_eval_set, write_test_config
from tests.stored_runs import interrupt


def act(case: EvalCase, repeat: int) -> list[Invocation]:
    """The case `wrong` answers otherwise, `raises` raises, `flaky` fails every second time."""
    if case.eval_id == "raises":
        raise RuntimeError("no boiler <b>")
    text = "wrong" if case.eval_id == "wrong" or (case.eval_id == "flaky" and repeat % 2) else "right"
    said = {"final_response": {"role": "model", "parts": [{"text": text}]}}
    turns = (turn.model_dump(include={"user_content"}) for turn in case.conversation or [])
    return [Invocation.model_validate({**turn, **said}) for turn in turns]


@pytest.fixture
def agent(write_agent, monkeypatch: pytest.MonkeyPatch) -> Path:
    run_without_processes(monkeypatch, act)
    folder: Path = write_agent("root_agent = lambda message: message")
    write_test_config(folder, response_match_score=1.0)
    for name, ids in {"day": ["right", "wrong"], "night": ["raises", "flaky"]}.items():
        write_eval_set(folder, name, *(make_case(one, make_turn("Is it warm?", "right")) for one in ids))
    return folder


def written(agent: Path, *words: object) -> dict[str, Any]:
    """The JSON report."""
    path = agent / "out.json"
    call("report", agent, *words, "--report", f"json={path}")
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def test_every_kind_of_report_at_once(agent, capsys):
    call("run", agent, "--report", "json=-")
    capsys.readouterr()
    kinds = {
        "json": "{",
        "junit": "<?xml",
        "csv": "eval_set_id,",
        "markdown": "<!--",
        "html": "<!doctype html>",
    }
    targets = [word for kind in kinds for word in ("--report", f"{kind}={agent / kind}")]
    assert call("report", agent, "last", *targets) == 0
    for kind, start in kinds.items():
        assert (agent / kind).read_text().startswith(start)
    assert capsys.readouterr() == ("", "")
    # A run that is stored has its traces.
    page = (agent / "html").read_text()
    assert '<details class="trace">' in page
    assert "no boiler &lt;b&gt;" in page
    assert f"evaltui run {agent} day:wrong" in page


def test_several_runs_are_one_in_which_the_later_result_counts(agent, capsys, monkeypatch):
    call("run", agent, "day")
    run_without_processes(monkeypatch)
    call("run", agent, "day:wrong")
    call("run", agent, "night")
    logs = RunStore(agent).files()
    report = written(agent, *logs)
    assert report["totals"]["passed"] == report["totals"]["cases"] == 4
    assert report["notes"] == [
        f"runs put together: {', '.join(log.stem for log in logs)}",
        f"1 result in several logs: the run started last counts; not counted: wrong FAILED in {logs[0].stem}",
    ]
    assert report["log"] is None


def test_a_run_in_progress_is_not_called_interrupted(agent):
    call("run", agent, "day")
    (log,) = RunStore(agent).files()
    interrupt(log, 1)
    # As a run holds its file.
    with closing(sqlite3.connect(log, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert written(agent, log)["notes"] == ["still running: 1 of 2 cases finished"]
    assert written(agent, log)["notes"] == ["interrupted: 1 of 2 cases finished"]


def test_a_case_that_finishes_while_a_report_is_made_is_in_no_part_of_it(agent, monkeypatch):
    """Else its row says failed, and the totals that it did not run."""
    call("run", agent, "day")
    (log,) = RunStore(agent).files()
    whole, numbers = log.read_bytes(), RunFile.numbers
    interrupt(log, 1)

    def finish(file: RunFile) -> Any:
        log.write_bytes(whole)
        return numbers.fget(file)

    monkeypatch.setattr(RunFile, "numbers", property(finish))
    data = written(agent, log)
    assert [case["status"] for case in data["cases"]] == ["PASSED", "NOT_EVALUATED"]
    assert (data["totals"]["failed"], data["totals"]["not_evaluated"]) == (0, 1)


def test_a_page_marks_the_regressions_of_a_result_file_of_adk(agent, monkeypatch, capsys):
    run_without_processes(monkeypatch)
    assert call("run", agent, "day") == 0
    run_without_processes(monkeypatch, act)
    call("run", agent, "day")
    result = max((agent / ".adk" / "eval_history").glob("*.json"), key=os.path.getmtime)
    page = agent / "out.html"
    assert call("report", agent, result, "--baseline", "1", "--report", f"html={page}") == 0
    assert page.read_text().count('data-change="broken" data-regression') == 1


def test_a_result_file_of_adk_is_reported_without_a_trace(agent, capsys):
    call("run", agent, "day")
    (result,) = (agent / ".adk" / "eval_history").glob("*.json")
    page = agent / "out.html"
    assert call("report", agent, result, "--report", f"html={page}") == 0
    assert "No trace stored" in page.read_text()
    assert "wrong" in page.read_text()


def test_without_jinja_it_says_the_one_command_before_anything_runs(agent, capsys, monkeypatch):
    monkeypatch.setattr("evaltui.commands.output.find_spec", lambda name: None)
    for command in ("run", "report"):
        assert call(command, agent, "--report", "html=x.html") == 2
        error = capsys.readouterr().err
        assert "--report html: Jinja2 is not installed. Run " in error
        assert "install" in error
        assert "'evaltui[report]'" in error
    assert RunStore(agent).files() == []


def test_a_report_is_written_into_an_open_pipe(agent, capsys):
    """As in `--report json=>(jq .status)`: the shell names a pipe that has no path."""
    reader, writer = os.pipe()
    with os.fdopen(reader, encoding="utf-8") as output:
        call("run", agent, "--report", f"csv=/dev/fd/{writer}")
        os.close(writer)
        assert output.readline().startswith("eval_set_id,eval_id,")
    assert "cannot be written" not in capsys.readouterr().err


def test_a_report_that_cannot_be_written_is_no_success(agent, capsys):
    call("run", agent, "day")
    (agent / "folder").mkdir()
    assert call("report", agent, "--report", f"html={agent / 'folder'}") == 3
    assert "evaltui report: --report html:" in capsys.readouterr().err


def test_cases_of_the_sets_are_not_held_while_reports_are_written(agent, monkeypatch):
    plans, held = [], []

    def selected(request, sets):
        run = select(request, sets)
        plans.append(weakref.ref(run.plan.sets[0]))
        return run

    monkeypatch.setattr(execution, "select", selected)

    def write(*_):
        # The thread that has written the results for google-adk lets go of them a moment later.
        for _ in range(100):
            held.clear()
            gc.collect()
            held[:] = [plan() for plan in plans]
            if held == [None]:
                break
            time.sleep(0.02)
        return True

    monkeypatch.setattr(job, "write_reports", write)
    call("run", agent)
    assert held == [None]


def test_a_large_run_lists_cases_that_did_not_pass(agent, monkeypatch, capsys):
    monkeypatch.setattr(console, "_MAX_LISTED", 1)
    call("run", agent)
    out = capsys.readouterr().out
    assert "✗ wrong" in out
    assert "✓ right" not in out
    assert "1 passed case not listed" in out
