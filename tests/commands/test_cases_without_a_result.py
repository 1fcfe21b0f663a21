"""Selected cases without a result are rows of every report, comparison and exit code."""

from __future__ import annotations

import asyncio
import csv
import html
import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import call, every_report
from eval_data import write_test_config
from fake_runs import run_without_processes, says
from numbered_cases import act, logs_of, write_set

from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore


@pytest.fixture
def agent(write_agent, monkeypatch: pytest.MonkeyPatch) -> Path:
    run_without_processes(monkeypatch, act)
    folder: Path = write_agent("root_agent = lambda message: message")
    write_test_config(folder, response_match_score=1.0)
    write_set(folder, "first", [0, 1, 2])
    return folder


def ends_in(number: int):
    """What the agent does in a run that is interrupted in this case."""

    def act_until(case: EvalCase, repeat: int) -> list[Invocation]:
        if case.eval_id == f"case_{number}":
            raise asyncio.CancelledError
        return act(case, repeat)

    return act_until


def assert_none_is_green(texts: dict[str, str], without: list[str], cases: int = 3) -> None:
    """Every report has the cases of `without` as not evaluated, and the others as passed."""
    data = json.loads(texts["json"])
    passed = cases - len(without)
    totals = data["totals"]
    assert data["status"] == "NOT_EVALUATED"
    assert (totals["cases"], totals["passed"], totals["not_evaluated"]) == (cases, passed, len(without))
    rows = {one["eval_id"]: one.get("reason") for one in data["cases"] if one["status"] == "NOT_EVALUATED"}
    assert rows == dict.fromkeys(without, "did not run")
    assert f'tests="{cases}" failures="0" errors="{len(without)}"' in texts["junit"]
    assert texts["junit"].count('<error message="did not run" type="NOT_EVALUATED"') == len(without)
    table = [row for row in csv.DictReader(texts["csv"].splitlines()) if row["reason"] == "did not run"]
    assert [row["eval_id"] for row in table] == without
    assert {(row["eval_status"], row["case_status"]) for row in table} == {("NOT_EVALUATED", "NOT_EVALUATED")}
    assert f"{len(without)} of {cases} cases did not pass" in texts["markdown"]
    assert f"<title>{passed}/{cases} cases passed" in texts["html"]
    assert f"({cases} cases, 1 run each" in texts["console"]
    assert f"{len(without)} not evaluated" in texts["console"]
    assert texts["markdown"].count("<code>did not run</code>") == len(without)
    assert re.findall(r"(case_\d) .* did not run", texts["console"]) == without


def test_an_interrupted_run_is_green_nowhere(agent, monkeypatch, tmp_path, capsys):
    (complete,) = logs_of(agent, [])
    run_without_processes(monkeypatch, ends_in(1))
    code, texts = every_report(tmp_path, "run", agent)
    assert code == 130
    assert_none_is_green(texts, ["case_1", "case_2"])
    code, texts = every_report(tmp_path, "report", agent, "last")
    assert_none_is_green(texts, ["case_1", "case_2"])
    capsys.readouterr()
    assert call("compare", agent, complete, "last") == 0
    assert "candidate: 2 cases without a result: case_1, case_2" in capsys.readouterr().out
    assert call("compare", agent, complete, "last", "--fail-on-regression") == 3
    assert call("compare", agent, "last", complete, "--fail-on-regression") == 0
    capsys.readouterr()
    assert call("runs", agent) == 0
    assert "1 passed, 2 not finished" in capsys.readouterr().out
    run_without_processes(monkeypatch, act)
    code, texts = every_report(tmp_path, "run", agent, "--resume", "last")
    assert (code, json.loads(texts["json"])["totals"]["passed"]) == (0, 3)


def test_a_case_whose_repeats_ran_in_part_says_how_they_ended(agent, monkeypatch, tmp_path):
    def act_twice(case: EvalCase, repeat: int) -> list[Invocation]:
        if repeat == 2:
            raise asyncio.CancelledError
        return act(case, repeat)

    write_set(agent, "first", [5])
    run_without_processes(monkeypatch, act_twice)
    code, texts = every_report(tmp_path, "run", agent, "--runs", 3)
    assert code == 130
    for kind in (texts, every_report(tmp_path, "report", agent, "last")[1]):
        for name, text in kind.items():
            assert "not all repeats ran: 1 passed, 1 failed" in html.unescape(text), name
            assert "did not run" not in text, name


def test_the_header_of_an_interrupted_run_has_the_runs_of_its_config(agent, monkeypatch, capsys):
    write_test_config(agent, criteria={"response_match_score": 1.0}, evaltui={"repeats": {"runs": 3}})
    run_without_processes(monkeypatch, ends_in(0))
    assert call("run", agent) == 130
    assert "(3 cases, 3 runs each" in capsys.readouterr().out


def test_a_failed_case_decides_an_interrupted_comparison(agent, monkeypatch, tmp_path, capsys):
    write_set(agent, "first", [0, 3, 2])
    run_without_processes(monkeypatch)
    (complete,) = logs_of(agent, [])
    run_without_processes(monkeypatch, ends_in(2))
    call("run", agent)
    assert call("compare", agent, complete, "last", "--fail-on-regression") == 1


def test_a_case_that_failed_is_named_where_the_base_has_no_result_of_it(agent, monkeypatch, tmp_path, capsys):
    write_set(agent, "first", range(40))
    run_without_processes(monkeypatch, ends_in(1))
    call("run", agent)
    base = RunStore(agent).latest().stem
    run_without_processes(monkeypatch, says("wrong"))
    assert call("run", agent, "first:case_0") == 1
    run_without_processes(monkeypatch, act)
    for command in (("run", agent, "first"), ("report", agent, "last")):
        _, texts = every_report(tmp_path, *command, "--baseline", base)
        comparison = json.loads(texts["json"])["comparison"]
        # Cases 3, 13, 23, 33 fail, 7, 17, 27, 37 raise.
        assert comparison["regressions"] == 8
        assert (comparison["totals"]["new"], comparison["totals"]["not_run"]) == (8, 31)
        for name in ("console", "markdown", "html"):
            lines = html.unescape(re.sub("<.*?>", "", texts[name])).replace("\xa0", " ").splitlines()
            rows = [line.split() for line in lines if re.match(r"\s+new +case", line)]
            assert [row[1] for row in rows] == [f"case_{number}" for number in (3, 7, 13, 17, 23, 27, 33, 37)]
            assert {row[2] for row in rows} <= {"✗", "!"}, rows
    assert call("compare", agent, base, "last", "--fail-on-regression") == 1


def test_a_missing_shard_is_in_every_report_of_the_merged_log(agent, tmp_path, capsys):
    write_set(agent, "first", [*range(3), 4, 6, 8])
    shards = {number: log for number in (1, 2, 3) for log in logs_of(agent, ["--shard", f"{number}/3"])}
    ids = {
        number: [case.eval_id for case, _ in RunFile(log).header.selected()] for number, log in shards.items()
    }
    missing = max(ids, key=lambda number: len(ids[number]))
    assert ids[missing]
    merged = tmp_path / "merged.sqlite"
    others = [log for number, log in shards.items() if number != missing]
    code, texts = every_report(tmp_path, "merge", *others, "-o", merged)
    assert code == 3
    assert_none_is_green(texts, ids[missing], 6)
    again = tmp_path / "again.sqlite"
    assert call("merge", merged, "-o", again) == 3
    for log in (merged, again):
        _, texts = every_report(tmp_path, "report", log)
        assert_none_is_green(texts, ids[missing], 6)
        assert f"shard missing: {missing}/3" in json.loads(texts["json"])["notes"]
        assert f"note  shard missing: {missing}/3" in texts["console"]
    assert call("compare", agent, merged, again, "--fail-on-regression") == 3
    assert call("merge", again, shards[missing], "-o", merged) == 0


@pytest.mark.parametrize("words", [["first:case_3"], []], ids=["the new case", "the whole set"])
def test_a_case_that_came_later_is_merged(agent, words, tmp_path, capsys):
    (before,) = logs_of(agent, [])
    write_set(agent, "first", [3, 0, 1, 2])
    (after,) = logs_of(agent, words)
    merged = tmp_path / "merged.sqlite"
    assert call("merge", before, after, "-o", merged) == 1
    (one,) = RunFile(merged).header.sets
    assert sorted(one.eval_ids) == [f"case_{number}" for number in range(4)]
    assert one.whole is (words == [])


CHANGES = {
    "deleted": Path.unlink,
    "renamed": lambda file: file.rename(file.with_name("second.evalset.json")),
    "replaced": lambda file: write_set(file.parent, "first", [9]),
    "broken": lambda file: file.write_bytes(b"\xff{"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_set_that_changed_during_the_run_is_reported(agent, change, monkeypatch, tmp_path, capsys):
    write_set(agent, "first", [0, 3])
    file = agent / "first.evalset.json"

    def act_and_change(case: EvalCase, repeat: int) -> list[Invocation]:
        if case.eval_id == "case_3":
            CHANGES[change](file)
        return act(case, repeat)

    run_without_processes(monkeypatch, act_and_change)
    code, at_once = every_report(tmp_path, "run", agent)
    assert code == 1
    assert 'tests="2" failures="1" errors="0"' in at_once["junit"]
    (log,) = RunStore(agent).files()
    code, later = every_report(tmp_path, "report", agent, "last")
    assert code == 0
    assert json.loads(later["json"])["totals"] == json.loads(at_once["json"])["totals"]
    assert call("compare", agent, log, "last") == 0
    capsys.readouterr()
    assert call("run", agent, "--resume", "last") == 2
    assert "Traceback" not in capsys.readouterr().err


LOSSES = {
    "deleted": shutil.rmtree,
    "without its runs": lambda folder: shutil.rmtree(folder / ".evaltui"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_folder_that_is_lost_during_the_run_is_reported(agent, loss, monkeypatch, tmp_path, capsys):
    write_set(agent, "first", [3, 0])

    def act_and_lose(case: EvalCase, repeat: int) -> list[Invocation]:
        if case.eval_id == "case_0":
            LOSSES[loss](agent)
        return act(case, repeat)

    run_without_processes(monkeypatch, act_and_lose)
    code, texts = every_report(tmp_path, "run", agent, "--parallel", "1")
    assert code == 1
    assert 'tests="2" failures="1" errors="0"' in texts["junit"]
    assert "moved or deleted during the run" in texts["markdown"]
    assert "Traceback" not in capsys.readouterr().err


RATED = """
    from pathlib import Path

    def some(actual, expected, criterion):
        count = Path(__file__).with_name("count")
        count.write_text(count.read_text() + "." if count.exists() else ".")
        return None if len(count.read_text()) == 2 else 1.0
"""


@pytest.mark.parametrize(("pass_if", "code"), [("all", 3), ("majority", 0)])
def test_a_repeat_without_a_verdict_is_not_a_passed_one(write_agent, tmp_path, pass_if, code):
    folder = write_agent("root_agent = lambda message, session: message", metrics=RATED)
    write_set(folder, "first", [0])
    function = {"function": "my_agent.metrics.some", "threshold": 0.5}
    write_test_config(folder, criteria={}, evaltui={"criteria": {"mine": function}})
    status = "PASSED" if code == 0 else "NOT_EVALUATED"
    word = "met" if code == 0 else "undecided"
    words = f"policy {pass_if} {word}, 1 not evaluated"
    for command in (
        ("run", folder, "--runs", 3, "--parallel", 1, "--pass-if", pass_if),
        ("report", folder, "last"),
    ):
        result, texts = every_report(tmp_path, *command)
        assert result == (code if command[0] == "run" else 0)
        (case,) = json.loads(texts["json"])["cases"]
        assert (case["status"], case["rate"]["passed"], case["rate"]["of"]) == (status, 2, 2)
        assert case["metrics"][0]["status"] == status
        (row, *_) = csv.DictReader(texts["csv"].splitlines())
        assert (row["case_status"], row["case_pass_rate"]) == (status, "1.0")
        # The Markdown report lists cases that did not pass.
        for name in ("junit", "html", "console", *(["markdown"] if code else [])):
            assert words in html.unescape(texts[name]), name
        assert "2/3" in texts["console"]
        assert "pass rate  0%" not in texts["console"]
    (summary,) = (case.summary for case in RunFile(RunStore(folder).latest()).cases)
    assert summary.passes is (code == 0)
