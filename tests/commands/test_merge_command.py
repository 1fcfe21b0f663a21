"""`evaltui merge`: logs of one plan become one run; what does not belong together is refused by name."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from command_line import call
from fake_runs import run_without_processes
from fake_runs import says as answers
from numbered_cases import act, assert_same_run, logs_of, write_set

from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.limits import Amount
from evaltui.runs.history import open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore
from tests.eval_data import write_test_config
from tests.stored_runs import change, interrupt


@pytest.fixture
def agent(write_agent, monkeypatch: pytest.MonkeyPatch) -> Path:
    run_without_processes(monkeypatch, act)
    folder: Path = write_agent("root_agent = lambda message: message")
    write_test_config(folder, response_match_score=1.0)
    write_set(folder, "first", range(6))
    write_set(folder, "second", [8, 7, 6])
    return folder


def test_a_stored_run_is_like_any_other(agent, capsys, monkeypatch):
    parts = logs_of(agent, ["first"], ["second"])
    (whole,) = logs_of(agent, [])
    capsys.readouterr()
    assert call("merge", agent, parts[1].stem, parts[0].stem) == 1
    out = capsys.readouterr().out
    merged = RunStore(agent).latest()
    assert re.search(rf"^7 passed, 1 failed, 1 error in .* · 2 runs · log {merged}$", out, re.MULTILINE)
    assert_same_run(merged, whole)
    assert RunFile(merged).header.number == RunFile(whole).header.number + 1
    # In the folder of the agent it need not be named.
    monkeypatch.chdir(agent)
    assert call("merge", "last", *parts) == 1
    assert call("runs", ".") == 0
    # An error in both runs is no regression, and no pass.
    assert call("compare", "last", whole.stem, "--fail-on-regression") == 3
    # --resume finds the error in it that is left to do.
    assert call("run", agent, "--resume", merged.stem, "--report", "json=/dev/null") == 1


def test_reports_are_those_of_the_merged_run(agent, tmp_path, capsys):
    parts = logs_of(agent, ["first"], ["second"], ["second:case_8"])
    capsys.readouterr()
    junit = f"junit={tmp_path / 'junit.xml'}"
    assert call("merge", *parts, "-o", tmp_path / "all.sqlite", "--report", "json=-", "--report", junit) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["totals"] | {"cases": 9, "passed": 7} == json.loads(out)["totals"]
    assert json.loads(out)["log"] == str(tmp_path / "all.sqlite")
    assert "1 result in several logs" in err
    assert 'tests="9"' in (tmp_path / "junit.xml").read_text()
    assert call("merge", *parts, "-o", tmp_path / "all.sqlite", "--report", "json=/nowhere/x") == 2


def _write_prompt(agent: Path) -> None:
    (agent / "agent.py").write_text("root_agent = lambda message: 'other'")


def _write_config(agent: Path) -> None:
    write_test_config(agent, response_match_score=0.5)


def _change_case(agent: Path) -> None:
    file = agent / "first.evalset.json"
    file.write_text(file.read_text().replace("case 0", "case zero"))


def _nothing(agent: Path) -> None:
    pass


OTHER_PLANS = {
    "agent": (_write_prompt, [], "agent.py changed"),
    "config": (_write_config, [], "first.evalset.json: config: criteria.response_match_score 1.0 → 0.5"),
    "case": (_change_case, [], "case_0 of first.evalset.json changed"),
    "runs": (_nothing, ["--runs", "2"], "runs not given → 2"),
    "policy": (_nothing, ["--pass-if", "0.5"], "pass-if not given → 0.5"),
    "verdicts": (_nothing, ["--adk-verdicts"], "ADK's verdicts not given → true"),
    "record": (_nothing, ["--record", "auto"], 'record not given → "auto"'),
    "tools": (_nothing, ["--tools", "stub"], 'tools not given → "stub"'),
}


@pytest.mark.parametrize("kind", OTHER_PLANS)
def test_another_plan_is_refused(agent, tmp_path, capsys, kind):
    change, words, says = OTHER_PLANS[kind]
    (before,) = logs_of(agent, ["first:case_0"])
    change(agent)
    (after,) = logs_of(agent, ["first:case_0,case_1", *words])
    capsys.readouterr()
    target = tmp_path / "merged.sqlite"
    target.write_text("mine")
    assert call("merge", after, before, "-o", target) == 2
    refusal = f"evaltui merge: {after.name} is not of the same plan as {before.name}: "
    assert capsys.readouterr().err.startswith(refusal + says)
    assert target.read_text() == "mine"
    assert [path.name for path in tmp_path.glob(".evaltui*")] == []


def test_another_agent_with_the_same_files_is_refused(agent, tmp_path, capsys):
    other = agent.with_name("other")
    shutil.copytree(agent, other)
    logs = [*logs_of(agent, ["first"]), *logs_of(other, ["first"])]
    capsys.readouterr()
    assert call("merge", *logs, "-o", tmp_path / "all.sqlite") == 2
    assert f"agent {agent.name} → other" in capsys.readouterr().err
    # What is not here any more may have been elsewhere.
    shutil.move(other, tmp_path / "moved")
    logs[1] = tmp_path / "moved" / logs[1].relative_to(other)
    assert call("merge", *logs, "-o", tmp_path / "all.sqlite") == 1


def _cut_off_before_case_1(case: EvalCase, repeat: int) -> list[Invocation]:
    if case.eval_id == "case_1":
        raise asyncio.CancelledError
    return act(case, repeat)


@pytest.mark.parametrize(
    ("words", "cut_off", "says"),
    [
        (["second"], True, "case_1 of second.evalset.json changed"),
        (["second:case_0"], False, "case_1 of second.evalset.json was changed or deleted"),
    ],
)
@pytest.mark.parametrize("command", ["merge", "report"])
def test_a_case_passes_under_no_expectation_that_was_replaced(
    agent, tmp_path, capsys, monkeypatch, words, cut_off, says, command
):
    write_set(agent, "second", [0, 1])
    (before,) = logs_of(agent, ["second"])
    file = agent / "second.evalset.json"
    first, last = file.read_text().split("case 1")
    file.write_text(f"{first}case 1{last.replace('right', 'left')}")
    if cut_off:
        run_without_processes(monkeypatch, _cut_off_before_case_1)
    (after,) = logs_of(agent, words)
    capsys.readouterr()
    into = ("-o", tmp_path / "merged.sqlite") if command == "merge" else (agent,)
    assert call(command, *into, before, after) == 2
    refusal = f"evaltui {command}: {after.name} is not of the same plan as {before.name}: "
    assert capsys.readouterr().err == f"{refusal}{says}\nevaltui {command}: see `evaltui help ci`\n"


def test_a_case_that_was_deleted_is_named_as_changed_or_deleted(agent, tmp_path, capsys):
    (before,) = logs_of(agent, ["first:case_0"])
    write_set(agent, "first", [1, 2])
    (after,) = logs_of(agent, ["first"])
    capsys.readouterr()
    assert call("merge", before, after, "-o", tmp_path / "merged.sqlite") == 2
    assert "case_0 of first.evalset.json was changed or deleted" in capsys.readouterr().err


@pytest.mark.parametrize("secret", ["", "case 0"])
def test_a_set_whose_file_was_laid_out_anew_is_of_the_same_plan(agent, tmp_path, secret):
    (agent / ".env").write_text(f"SHOP_API_KEY={secret}\n")
    (before,) = logs_of(agent, ["first:case_0"])
    file = agent / "first.evalset.json"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=3, sort_keys=True))
    (after,) = logs_of(agent, ["first:case_1"])
    assert call("merge", before, after, "-o", tmp_path / "merged.sqlite") == 0


def test_a_set_in_another_spelling_is_of_the_same_plan(agent, tmp_path, capsys):
    (before,) = logs_of(agent, ["first"])
    file = agent / "first.evalset.json"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=4).replace("eval_id", "evalId"))
    (after,) = logs_of(agent, ["first"])
    assert call("merge", before, after, "-o", tmp_path / "merged.sqlite") == 1
    assert "not the same in every run: first.evalset.json" in capsys.readouterr().out


def test_a_config_in_other_words_is_of_the_same_plan(agent, tmp_path, capsys):
    logs_of(agent, ["first:case_0"])
    config = {
        "criteria": {"response_match_score": {"threshold": "1", "lowerIsBetter": False}},
        "evaltui": None,
    }
    (agent / "test_config.json").write_text(json.dumps(config))
    logs_of(agent, ["first:case_1"])
    assert call("merge", *RunStore(agent).files(), "-o", tmp_path / "merged.sqlite") == 0


def test_sets_that_the_first_run_has_not_are_compared_too(agent, tmp_path, capsys):
    logs_of(agent, ["first:case_0"], ["second:case_8"])
    _write_config(agent)
    logs_of(agent, ["second:case_8"])
    logs = RunStore(agent).files()
    capsys.readouterr()
    assert call("merge", *logs, "-o", tmp_path / "merged.sqlite") == 2
    assert "second.evalset.json: config: criteria.response_match_score 1.0 → 0.5" in capsys.readouterr().err


def test_a_merged_run_that_regressed_is_no_baseline(agent, monkeypatch):
    parts = (["first:case_0"], ["first:case_1"])
    merging = ("merge", agent, "--baseline", "last", "--fail-on-regression")
    assert call("merge", agent, *logs_of(agent, *parts)) == 0
    first = RunStore(agent).latest()
    run_without_processes(monkeypatch, answers("wrong"))
    for _ in range(2):
        assert call(*merging, *logs_of(agent, *parts)) == 1
        assert RunFile(RunStore(agent).latest()).header.baseline == first.stem
    # Its parts may have been compared before they were merged.
    compared = logs_of(agent, *([*words, "--baseline", first.stem] for words in parts))
    call("merge", agent, *compared)
    assert RunFile(RunStore(agent).latest()).header.baseline == first.stem


def test_shards_with_the_names_of_earlier_ones_have_these_as_baseline(agent, tmp_path, monkeypatch):
    """Else an older run is, or none."""
    merging, codes, runs = ("merge", agent, "--baseline", "last", "--fail-on-regression"), [], []
    logs_of(agent, ["first:case_0,case_1"])
    for act_now in (answers("right"), answers("right"), answers("wrong")):
        run_without_processes(monkeypatch, act_now)
        shards = [
            log.rename(tmp_path / f"shard-{number}.sqlite")
            for number, log in enumerate(logs_of(agent, ["first:case_0"], ["first:case_1"]))
        ]
        codes.append(call(*merging, *shards))
        runs.append(RunFile(RunStore(agent).latest()))
    assert codes == [0, 0, 1]
    assert [run.header.baseline for run in runs[1:]] == [run.id for run in runs[:-1]]
    # Also where they were merged before.
    assert call("merge", *shards, "-o", tmp_path / "all.sqlite") == 1
    runs[-1].path.unlink()
    assert call(*merging, tmp_path / "all.sqlite") == 1
    assert RunFile(RunStore(agent).latest()).header.baseline == runs[1].id


def _record(agent: Path) -> None:
    (agent / "recordings").mkdir()
    (agent / "recordings" / "first.jsonl").write_text(
        '{"kind": "tool", "case": "case_0", "repeat": 0, "turn": 0, "tool": "find", "args": {}, '
        '"result": 1}\n'
    )


def test_shards_of_other_data_are_named(agent, tmp_path, capsys):
    same = agent / "same.csv"
    same.write_text("1\n" * 600_000)
    (first,) = logs_of(agent, ["first", "--shard", "1/2", "--record", "auto"])
    # A checkout on another machine.
    os.utime(same, (0, 0))
    eval_set = agent / "first.evalset.json"
    eval_set.write_text(eval_set.read_text() + "\n")
    (agent / "rates.csv").write_text("EUR,1.1")
    (agent.parent / ".env").write_text("PIN=1234")
    _record(agent)
    (second,) = logs_of(agent, ["first", "--shard", "2/2", "--record", "auto"])
    capsys.readouterr()
    report = tmp_path / "report.json"
    call("merge", first, second, "-o", tmp_path / "merged.sqlite", "--report", f"json={report}")
    names = "../.env, first.evalset.json, rates.csv, recordings of first.evalset.json"
    assert f"not the same in every run: {names}" in json.loads(report.read_text())["notes"]
    text = second.read_text(errors="replace")
    assert "1234" not in text
    # A plain hash of a short text is guessed in no time.
    plain = hashlib.sha256(hashlib.sha256(b"PIN=1234").hexdigest().encode()).hexdigest()
    assert plain[:12] not in text


def test_shards_of_other_prompts_are_refused(agent, tmp_path, capsys):
    (first,) = logs_of(agent, ["first", "--shard", "1/2"])
    (agent / "prompt.md").write_text("Be rude.")
    (second,) = logs_of(agent, ["first", "--shard", "2/2"])
    capsys.readouterr()
    assert call("merge", first, second, "-o", tmp_path / "merged.sqlite") == 2
    assert "prompt.md changed" in capsys.readouterr().err


def test_shards_that_replayed_other_recordings_are_refused(agent, tmp_path, capsys):
    (first,) = logs_of(agent, ["first", "--shard", "1/2", "--record", "replay"])
    _record(agent)
    (second,) = logs_of(agent, ["first", "--shard", "2/2", "--record", "replay"])
    capsys.readouterr()
    assert call("merge", first, second, "-o", tmp_path / "merged.sqlite") == 2
    assert "recordings of first.evalset.json changed" in capsys.readouterr().err


def test_shards_of_another_python_are_named(agent, tmp_path, capsys):
    first, second = logs_of(agent, ["first", "--shard", "1/2"], ["first", "--shard", "2/2"])
    for log, version in ((first, "3.11.7"), (second, "3.12.1")):
        agent_data = {"name": "a", "framework": "adk", "version": "2.1", "python": version}
        change(log, f"UPDATE run SET agent = '{json.dumps(agent_data)}'")
    capsys.readouterr()
    call("merge", first, second, "-o", tmp_path / "merged.sqlite")
    assert "not the same in every run: Python 3.11.7 and 3.12.1" in capsys.readouterr().out


def test_what_is_no_finished_log_is_refused(agent, tmp_path, capsys):
    (log,) = logs_of(agent, ["first"])
    other = tmp_path / "other.sqlite"
    other.write_text('{"kind": "nothing"}\n')
    going_on = begin_run(RunStore(agent), RunHeader())
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(log.read_bytes())
    change(damaged, "UPDATE repeats SET result = '{' WHERE rowid = 1")
    adk = next(agent.glob(".adk/eval_history/*"))
    missing = tmp_path / "missing.sqlite"
    for path, says in {
        other: "is not a run of evaltui",
        going_on.path: "run in progress",
        damaged: "is damaged",
        adk: "is an ADK result file",
        missing: "has no run",
    }.items():
        assert call("merge", log, path, "-o", tmp_path / "merged.sqlite") == 2
        assert says in capsys.readouterr().err
    going_on.close()
    before = RunStore(agent).files()
    assert call("merge", agent, log, damaged) == 2
    assert RunStore(agent).files() == before


def test_of_duplicates_the_run_started_last_counts(agent, tmp_path, capsys, monkeypatch):
    (first,) = logs_of(agent, ["first:case_0"])
    fake = run_without_processes(monkeypatch, act)

    def breaks(case: EvalCase, repeat: int) -> list[Invocation]:
        raise RuntimeError("503")

    fake.act = breaks
    (second,) = logs_of(agent, ["first:case_0,case_1"])
    for order in ((first, second), (second, first)):
        capsys.readouterr()
        assert call("merge", *order, "-o", tmp_path / "merged.sqlite") == 3
        out = capsys.readouterr().out
        assert "1 result in several logs: the run started last counts; not counted: case_0 PASSED in " in out
        assert RunFile(first).id in out
        assert "2 errors" in out


def test_a_resumed_run_is_later_than_its_first_part_whatever_the_clocks_say(agent, tmp_path, monkeypatch):
    def breaks(case: EvalCase, repeat: int) -> list[Invocation]:
        raise RuntimeError("no boiler")

    fake = run_without_processes(monkeypatch, breaks)
    (first,) = logs_of(agent, ["first:case_0,case_1"])
    fake.act = act
    (second,) = logs_of(agent, ["first:case_0,case_1"])
    change(second, f"UPDATE run SET header = json_set(header, '$.resumed', '{RunFile(first).id}')")
    assert RunFile(second).header.resumed == RunFile(first).id
    # The first part is of a machine whose clock is ahead.
    change(first, "UPDATE run SET started = replace(started, '2026', '2036')")
    assert RunFile(first).header.started > RunFile(second).header.started
    for order in ((first, second), (second, first)):
        assert call("merge", *order, "-o", tmp_path / "merged.sqlite") == 0


def test_a_reused_result_of_a_resumed_run_is_as_old_as_it_was(agent, tmp_path, monkeypatch):
    (first,) = logs_of(agent, ["first:case_0,case_1"])
    interrupt(first, 1)
    run_without_processes(monkeypatch, answers("wrong"))
    (second,) = logs_of(agent, ["first:case_0,case_1"])
    run_without_processes(monkeypatch, act)
    (third,) = logs_of(agent, ["--resume", first.stem])
    for count, logs in enumerate([[third], [third, second], [first, third, second]]):
        merged = tmp_path / f"{count}.sqlite"
        assert call("merge", *logs, "-o", merged) == (1 if count else 0)
        statuses = {case.eval_id: str(found.status) for case, found in open_run(merged).summary.cases.items()}
        assert statuses == {"case_0": "FAILED" if count else "PASSED", "case_1": "PASSED"}


def test_a_merged_run_is_as_late_as_the_latest_of_its_parts(agent, tmp_path, monkeypatch):
    first, second = logs_of(agent, ["first:case_0"], ["first:case_0"])
    run_without_processes(monkeypatch, answers("wrong"))
    (third,) = logs_of(agent, ["first:case_0"])
    merged = tmp_path / "merged.sqlite"
    assert call("merge", first, third, "-o", merged) == 1
    for order in ((merged, second), (second, merged)):
        assert call("merge", *order, "-o", tmp_path / "again.sqlite") == 1
    assert RunFile(tmp_path / "again.sqlite").header.started == RunFile(first).header.started


def test_what_calls_without_a_result_cost_is_counted_once(agent, tmp_path):
    first, second = logs_of(agent, ["first:case_0"], ["first:case_1"])
    change(first, "INSERT INTO spending VALUES (0.5, 100)")
    merged = tmp_path / "merged.sqlite"
    assert call("merge", first, second, "-o", merged) == 0
    # As where a glob has the merged run, too.
    assert call("merge", first, second, merged, "-o", merged) == 0
    assert RunFile(merged).spent_without_result == Amount(0.5, 100)


def test_a_file_with_the_name_of_a_merged_part_is_another_run(agent, tmp_path, monkeypatch):
    """As where each night's shards have the same names, and one is run again."""

    def stored_as(name: str, *words: str) -> Path:
        (log,) = logs_of(agent, words)
        return log.rename(tmp_path / f"{name}.sqlite")

    merged = tmp_path / "all.sqlite"
    parts = stored_as("shard-0", "first:case_0"), stored_as("shard-1", "first:case_1")
    assert call("merge", *parts, "-o", merged) == 0
    for again in (stored_as("shard-2", "first:case_2"), stored_as("shard-4", "first:case_4")):
        assert call("merge", merged, again, "-o", merged) == 0
    run_without_processes(monkeypatch, answers("wrong"))
    later = stored_as("shard-0", "first:case_0")
    for order in ((merged, later), (later, merged)):
        assert call("merge", *order, "-o", tmp_path / "again.sqlite") == 1


def test_an_interrupted_part_is_named_and_can_be_finished(agent, tmp_path, capsys):
    (whole,) = logs_of(agent, ["--runs", "2"])
    first, second = logs_of(agent, ["first", "--runs", "2"], ["second", "--runs", "2"])
    # Killed in the second run of the first case.
    interrupt(second, 1)
    capsys.readouterr()
    assert call("merge", agent, first, second) == 1
    out = capsys.readouterr().out
    assert "note  3 cases without a result: case_8, case_7, case_6" in out
    merged = RunStore(agent).latest()
    assert open_run(merged).status is None
    assert {case.eval_id for case in open_run(merged).summary.unfinished} == {"case_6", "case_7", "case_8"}
    assert call("run", agent, "--resume", merged.stem, "--report", "json=/dev/null") == 1
    assert_same_run(RunStore(agent).latest(), whole)


def test_a_file_and_the_store_have_the_same_log(agent, tmp_path):
    parts = logs_of(agent, ["first"], ["second"])
    assert call("merge", agent, *parts, "-o", tmp_path / "merged.sqlite") == 1
    assert (tmp_path / "merged.sqlite").read_bytes() == RunStore(agent).latest().read_bytes()


def test_a_link_stays_a_link_and_an_input_may_be_the_output(agent, tmp_path):
    parts = logs_of(agent, ["first"], ["second"])
    link = tmp_path / "merged.sqlite"
    link.symlink_to(parts[0])
    assert call("merge", *parts, "-o", link) == 1
    assert link.is_symlink()
    assert len(RunFile(parts[0]).header.sets) == 2


def test_older_runs_go_as_after_a_run(agent):
    parts = logs_of(agent, ["first"], ["second"], ["first"])
    assert call("merge", agent, *parts[1:], "--keep-runs", "2") == 1
    kept = RunStore(agent).files()
    assert parts[0] not in kept
    assert kept[:-1] == parts[1:]
