"""`evaltui run` with several variants: one matrix, from the command line to the stored runs and back."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from closed_schemas import closed
from command_line import call
from variant_agents import write_cases
from waiting import wait_until

from evaltui.reports.json_report import matrix_schema
from evaltui.runs.run_file import RunFile
from tests.stored_runs import count, interrupt

FUNCTION = """
    import asyncio
    import os
    from pathlib import Path

    async def root_agent(message, session):
        tone = os.environ.get("TONE", "plain")
        while tone == "slow" and message != "c0" and not Path("go").exists():
            await asyncio.sleep(0.01)
        return f"{message} {(Path(__file__).parent / 'word.txt').read_text()} {tone}"
"""
GATE = ("--baseline", "last", "--fail-on-regression")
VARIANTS = ("--variant", "base", "--variant", "warm:env.TONE=warm warm warm")


@pytest.fixture
def agent(write_agent, tmp_path, monkeypatch):
    folder = write_agent(FUNCTION)
    (folder / "word.txt").write_text("good")
    write_cases(folder, "{} good plain", ["c0", "c1"])
    monkeypatch.chdir(tmp_path)
    return folder


def logs_of(agent):
    return sorted((agent / ".evaltui" / "runs").glob("*.sqlite"))


def report_of(capsys):
    document = json.loads(capsys.readouterr().out)
    closed(matrix_schema()).validate(document)
    return document


def test_a_matrix_is_run_stored_reported_and_compared(agent, capsys):
    assert call("run", agent, *VARIANTS, "--report", "json") == 1
    document = report_of(capsys)
    base, warm = document["variants"]
    assert (base["totals"]["pass_rate"], warm["totals"]["pass_rate"]) == (1.0, 0.0)
    assert warm["applied"] == [{"what": "env.TONE", "old": "not set", "new": "warm warm warm"}]
    assert (warm["against_base"]["better"], warm["against_base"]["worse"]) == (0, 2)
    headers = [RunFile(path).header for path in logs_of(agent)]
    assert [header.variant.name for header in headers] == ["base", "warm"]
    assert {header.matrix for header in headers} == {document["matrix"]}
    assert all([one.name for one in header.variants] == ["base", "warm"] for header in headers)

    assert call("runs", agent) == 0
    assert f"variant warm of matrix {document['matrix']}" in capsys.readouterr().out
    assert call("report", agent, document["matrix"], "--report", "json") == 0
    assert report_of(capsys)["cases"] == document["cases"]
    assert call("report", agent, document["matrix"][:17], "--report", "json") == 0
    capsys.readouterr()
    assert call("report", agent, "last", "--report", "json") == 0
    everything = f"`evaltui report {agent} {document['matrix']}` has all"
    assert f"only variant warm of a matrix: {everything}" in json.loads(capsys.readouterr().out)["notes"]

    # Each variant is compared with itself, and `last` is what it was before the first of them ran.
    (agent / "word.txt").write_text("worse and worse")
    assert call("run", agent, *VARIANTS, *GATE, "--report", "json") == 1
    assert [one["regressions"] for one in report_of(capsys)["variants"]] == [2, 0]
    # A plain run is compared with the agent as it was.
    assert call("run", agent, "greetings:c0", "--baseline", document["matrix"], "--fail-on-regression") == 1
    capsys.readouterr()
    assert call("run", agent, "--variant", "cold:env.TONE=cold", "--baseline", document["matrix"]) == 2
    assert f"--baseline: matrix {document['matrix']} has no variant cold" in capsys.readouterr().err


def test_two_sets_of_one_id_are_in_each_report(agent, tmp_path, capsys):
    """A page once had the cases of the last of them only."""
    for name, answer in (("a", "{} good warm warm warm"), ("b", "{} good plain")):
        (agent / "evals" / name).mkdir(parents=True)
        write_cases(agent / "evals" / name, answer, ["c0"])
    (agent / "greetings.evalset.json").unlink()
    reports = [("--report", f"{name}={tmp_path / name}") for name in ("html", "markdown", "console")]
    assert call("run", agent, *VARIANTS, *(word for words in reports for word in words)) == 1
    for _, report in reports:
        text = re.sub(r"&#(\d+);", lambda code: chr(int(code[1])), Path(report.partition("=")[2]).read_text())
        for name in "ab":
            assert f"greetings (evals/{name}/greetings.evalset.json)" in text
            assert f"evals/{name}/greetings.evalset.json:c0" in text
        assert "1 better" in text
        assert "1 worse" in text


@pytest.mark.parametrize(
    ("error", "eval_ids", "code", "regressions", "words"),
    [
        ("raise OSError", ["c0"], 3, 0, "0 regressions, 1 case without a verdict against run 1"),
        ("pass", ["new"], 3, None, "nothing compared against run 1"),
    ],
    ids=["no verdict", "no case in both"],
)
def test_a_matrix_says_where_no_regression_could_be_found(
    agent, tmp_path, capsys, error, eval_ids, code, regressions, words
):
    source = (agent / "agent.py").read_text()
    (agent / "agent.py").write_text(source.replace("    while", f"    {error}\n    while"))
    write_cases(agent, "{} good plain", ["c0"])
    call("run", agent)
    write_cases(agent, "{} good plain", eval_ids)
    gate = ("--variant", "base", "--variant", "same:env.OTHER=1", "--baseline", "1", "--fail-on-regression")
    files = {name: tmp_path / name for name in ("json", "html", "markdown", "console")}
    reports = [word for name, file in files.items() for word in ("--report", f"{name}={file}")]
    assert call("run", agent, *gate, *reports) == code
    variants = json.loads(files.pop("json").read_text())["variants"]
    assert [variant["regressions"] for variant in variants] == [regressions] * 2
    assert [words in file.read_text() for file in files.values()] == [True] * 3
    same = "All cases came out the same" in files["markdown"].read_text()
    assert same is (regressions is None)


def test_a_variant_whose_gate_has_no_effect_leaves_the_others_their_report(agent, tmp_path, capsys):
    """It passes the first time only."""
    odd = "tone = 'plain' if tone == 'odd' and not Path('ran').exists() else tone; Path('ran').touch()"
    source = (agent / "agent.py").read_text()
    (agent / "agent.py").write_text(source.replace("    return", f"    {odd}\n    return"))
    words = ("greetings:c0", "--variant", "odd:env.TONE=odd", "--variant", "base", "--runs", "2")
    assert call("run", agent, *words, "--pass-if", "0.5") == 0
    capsys.readouterr()
    (agent / "word.txt").write_text("worse")
    assert call("run", agent, *words, "--pass-if", "0.5", *GATE, "--report", "json") == 2
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [(one["name"], one["regressions"]) for one in document["variants"]] == [("base", 1)]
    assert not document["complete"]
    refusal = "--fail-on-regression has no effect: "
    assert f"evaltui run: variant odd: {refusal}" in err
    assert any(note.startswith(f"not run: odd: {refusal}") for note in document["notes"])


def test_an_edit_between_the_variants_is_told(agent, capsys):
    """Else a variant is worse because of what it does not change."""
    edit = ".with_name('word.txt').write_text('bad')"
    source = (agent / "agent.py").read_text()
    (agent / "agent.py").write_text(source.replace("    while", f"    Path(__file__){edit}\n    while"))
    assert call("run", agent, *VARIANTS, "--report", "json") == 1
    document = report_of(capsys)
    assert document["notes"] == ["word.txt changed between the variants"]
    # Each is as the agent was when it began.
    (agent / "word.txt").write_text("good")
    assert call("report", agent, document["matrix"], "--report", "json") == 0
    assert report_of(capsys)["notes"] == document["notes"]


def test_what_is_left_of_a_matrix_is_run(agent, capsys):
    assert call("run", agent, *VARIANTS, "--report", "json") == 1
    before = report_of(capsys)
    assert call("run", agent, "--resume", "last") == 2
    assert "Nothing to resume: all of its runs are complete" in capsys.readouterr().err
    base, warm = logs_of(agent)
    # As a run that was interrupted in its first variant leaves it.
    warm.unlink()
    interrupt(base, 1)
    assert call("report", agent, before["matrix"], "--report", "json", "--report", "csv=open.csv") == 0
    base_cells = [("base", "PASSED", 1), ("base", "NOT_EVALUATED", 0)]
    cases = report_of(capsys)["cases"]
    assert [
        (cell["variant"], cell["status"], cell["runs"]) for row in cases for cell in row["results"]
    ] == base_cells
    lines = csv.DictReader(Path("open.csv").read_text().splitlines())
    cells = [(line["variant"], line["status"], int(line["runs"])) for line in lines]
    not_run = ("warm", "NOT_EVALUATED", 0)
    assert cells == [base_cells[0], not_run, base_cells[1], not_run]
    assert call("run", agent, "--resume", before["matrix"], "--report", "json") == 1
    after = report_of(capsys)
    statuses = [
        [[one["status"] for one in row["results"]] for row in found["cases"]] for found in (before, after)
    ]
    assert statuses[0] == statuses[1] == [["PASSED", "FAILED"]] * 2
    assert after["matrix"] == before["matrix"]
    resumed, new = logs_of(agent)[1:]
    assert (RunFile(resumed).ending is not None, RunFile(new).ending is not None) == (True, True)
    assert RunFile(resumed).header.resumed
    assert not RunFile(new).header.resumed


@pytest.mark.thorough
def test_the_failing_cases_of_a_matrix_are_run_as_a_matrix(agent, capsys):
    write_cases(agent, "{} good warm warm warm", ["c0", "c1"])
    text = (agent / "greetings.evalset.json").read_text()
    (agent / "greetings.evalset.json").write_text(text.replace("c1 good warm warm warm", "c1 good plain"))
    assert call("run", agent, "greetings:c1", *VARIANTS) == 1
    assert call("run", agent, "--failed", *VARIANTS, "--report", "json") == 1
    capsys.readouterr()
    for file in map(RunFile, logs_of(agent)[2:]):
        assert [case.eval_id for case, _ in file.header.selected()] == ["c0", "c1"]


@pytest.mark.thorough
def test_shards_of_variants_are_merged_by_variant(agent, capsys, tmp_path):
    for number in (1, 2):
        assert call("run", agent, *VARIANTS, "--shard", f"{number}/2") in (0, 1)
    logs = logs_of(agent)
    assert call("merge", *logs, "-o", tmp_path / "all.sqlite") == 2
    assert "Merge those of each variant" in capsys.readouterr().err
    parts = []
    for place, name in enumerate(("base", "warm")):
        parts.append(tmp_path / f"{name}.sqlite")
        assert call("merge", *logs[place::2], "-o", parts[-1]) == place
    capsys.readouterr()
    assert call("report", *parts, "--report", "json") == 0
    assert [one["totals"]["pass_rate"] for one in report_of(capsys)["variants"]] == [1.0, 0.0]


@pytest.mark.thorough
def test_a_matrix_is_kept_as_a_whole(agent, capsys):
    (agent.parent / "pyproject.toml").write_text("[tool.evaltui]\nkeep-runs = 1\n")
    assert call("run", agent, *VARIANTS) == 1
    first = logs_of(agent)
    assert len(first) == 2
    # The last run of each variant stays, and goes with its matrix.
    assert call("run", agent) == 0
    assert logs_of(agent)[:2] == first
    assert call("run", agent, *VARIANTS) == 1
    assert len(logs_of(agent)) == 2
    assert not {*first} & {*logs_of(agent)}


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_matrix_ends_with_130_and_goes_on(agent, number, tmp_path, capsys):
    def git(*words):
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        done = subprocess.run(["git", *who, *words], cwd=agent, check=True, capture_output=True, text=True)
        return done.stdout

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    (agent / "word.txt").write_text("better")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = ("--variant", "base", "--variant", "old:git=HEAD,env.TONE=slow", "--variant", "new:env.TONE=new")
    process = subprocess.Popen(
        [sys.executable, "-m", "evaltui", "run", str(agent), *words, "--report", "json=matrix.json"],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(logs_of(agent)) == 2 and count(logs_of(agent)[1], "repeats"))
    assert list(temporary.glob("evaltui-*"))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert not list(temporary.glob("evaltui-*"))
    assert len(git("worktree", "list").splitlines()) == 1
    document = json.loads((tmp_path / "matrix.json").read_text())
    assert "interrupted: not run: new" in document["notes"]
    assert [RunFile(path).ending is not None for path in logs_of(agent)] == [True, False]
    (tmp_path / "go").touch()
    assert call("run", agent, "--resume", "last", "--report", "json") in (0, 1)
    document = report_of(capsys)
    assert [one["name"] for one in document["variants"]] == ["base", "old", "new"]
    assert all(one["status"] for row in document["cases"] for one in row["results"])
