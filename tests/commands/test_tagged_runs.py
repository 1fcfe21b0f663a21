"""`--tag` and `--not-tag`: the cases that they select, and tags in every report."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command_line import call
from fake_runs import run_without_processes
from numbered_cases import act, logs_of, write_set

from evaltui.reports.json_report import report_schema
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from tests.closed_schemas import closed


@pytest.fixture
def agent(write_agent, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of one set with the cases 1 to 6: the even ones are `even`, 3 and 6 are `third`."""
    run_without_processes(monkeypatch, act)
    folder: Path = write_agent("root_agent = lambda message: message")
    write_set(folder, "numbers", range(1, 7))
    tags = {2: ["even"], 3: ["third"], 4: ["even"], 6: ["even", "third"], 99: ["gone"]}
    write_tags(folder, [entry(number, *own) for number, own in tags.items()])
    return folder


def entry(number, *tags, of="numbers"):
    return {"set": of, "case": f"case_{number}", "tags": list(tags)}


def write_tags(folder, tags):
    config = {"criteria": {"response_match_score": 1.0}, "evaltui": {"tags": tags}}
    (folder / "test_config.json").write_text(json.dumps(config))


def selected(agent, *words):
    (log,) = logs_of(agent, words)
    return [int(case.eval_id.removeprefix("case_")) for case, _ in RunFile(log).header.selected()]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["--tag", "even"], [2, 4, 6]),
        (["--tag", "even", "--tag", "third"], [6]),
        (["--not-tag", "even"], [1, 3, 5]),
        (["--tag", "third", "--not-tag", "even"], [3]),
        (["numbers:case_2,case_3", "--tag", "even"], [2]),
        (["--not-tag", "even", "--not-tag", "third"], [1, 5]),
    ],
)
def test_cases_are_selected_by_tags(agent, words, numbers):
    assert selected(agent, *words) == numbers


def test_tags_narrow_what_failed_and_what_a_shard_has(agent):
    assert selected(agent) == [1, 2, 3, 4, 5, 6]
    assert selected(agent, "--failed", "--tag", "third") == [3]
    parts = [selected(agent, "--tag", "even", "--shard", f"{one}/2") for one in (1, 2)]
    assert sorted(parts[0] + parts[1]) == [2, 4, 6]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tag", "evn"], "--tag: no selected case has the tag 'evn'. Did you mean even?"),
        (["--not-tag", "zzz"], "--not-tag: no selected case has the tag 'zzz'. Known: even, third"),
        # What only a case has that is gone is no tag.
        (["--tag", "gone"], "--tag: no selected case has the tag 'gone'. Known: even, third"),
        (
            ["--tag", "even", "--not-tag", "even"],
            "--tag even --not-tag even: no selected case; nothing to run",
        ),
        (["numbers:case_1", "--tag", "even"], "--tag: no selected case has the tag 'even'"),
    ],
)
def test_a_tag_that_selects_nothing_is_refused(agent, words, message, capsys):
    assert call("run", agent, *words) == 2
    assert message in capsys.readouterr().err
    assert RunStore(agent).files() == []


def test_a_config_with_errors_is_why_no_case_has_a_tag(agent, capsys):
    write_tags(agent, [entry(2, "two words")])
    assert call("run", agent, "--tag", "words") == 2
    assert "evaltui.tags[0].tags[0]: must have no space" in capsys.readouterr().err
    (agent / "test_config.json").write_text("{")
    assert call("run", agent, "--tag", "even") == 2
    assert "test_config.json:1" in capsys.readouterr().err


def test_tags_of_the_config_for_all_sets_count(agent, tmp_path):
    write_set(agent, "letters", [1, 2])
    other = tmp_path / "other.json"
    tags = [entry(1, "first", of="letters"), entry(1, "first")]
    other.write_text(json.dumps({"criteria": {"response_match_score": 1.0}, "evaltui": {"tags": tags}}))
    assert selected(agent, "--config", str(other), "--tag", "first") == [1, 1]
    assert call("run", agent, "--tag", "first") == 2


def test_a_resumed_run_keeps_its_cases(agent, capsys):
    selected(agent)
    assert call("run", agent, "--resume", "last", "--tag", "even") == 2
    assert "leave out --tag" in capsys.readouterr().err


def test_every_report_has_the_tags(agent, tmp_path, capsys):
    kinds = ("json", "csv", "junit", "html", "markdown")
    reports = [f"--report={kind}={tmp_path / kind}" for kind in kinds]
    call("run", agent, "--report=console", *reports)
    assert_reports(tmp_path, capsys.readouterr().out)
    # As they were when the cases were run.
    (agent / "test_config.json").unlink()
    call("report", agent, "--report=console", *reports)
    assert_reports(tmp_path, capsys.readouterr().out)


def assert_reports(folder, console):
    assert [line.split() for line in console.splitlines() if line.startswith("tag ")] == [
        ["tag", "#even", "3", "of", "3", "passed", "100%", "(44–100%)", "━━━━━━━━━━"],
        ["tag", "#third", "1", "of", "2", "passed", "50%", "(9–91%)", "━━━━━─────"],
    ]
    document = json.loads((folder / "json").read_text())
    assert [case["tags"] for case in document["cases"]] == [
        [],
        ["even"],
        ["third"],
        ["even"],
        [],
        ["even", "third"],
    ]
    assert (document["tags"]["third"]["cases"], document["tags"]["third"]["passed"]) == (2, 1)
    assert document["tags"]["third"]["rate"] == {
        "passed": 1,
        "of": 2,
        "rate": 0.5,
        "low": pytest.approx(0.0945, abs=1e-4),
        "high": pytest.approx(0.9055, abs=1e-4),
    }
    assert [error.message for error in closed(report_schema()).iter_errors(document)] == []
    rows = list(csv.DictReader((folder / "csv").read_text().splitlines()))
    assert {(row["eval_id"], row["tags"]) for row in rows} >= {("case_6", "even third"), ("case_1", "")}
    junit = ET.parse(folder / "junit")
    found = {
        case.get("name"): [one.get("value") for one in case.iterfind("properties/property[@name='tag']")]
        for case in junit.iter("testcase")
    }
    assert (found["case_6"], found["case_1"]) == (["even", "third"], [])
    page = (folder / "html").read_text()
    assert 'data-tags="even third"' in page
    assert 'data-tag="third" aria-pressed="false">#third 2<' in page
    assert "<td>1 of 2 passed</td><td>50% (9–91%)</td>" in page
    assert "| <code>&#35;third</code> | 1 of 2 | 50% (9–91%) |" in (folder / "markdown").read_text()


def test_shards_merged_have_the_tags_of_all(agent, tmp_path):
    shards = logs_of(agent, ["--shard", "1/2"], ["--shard", "2/2"])
    report = tmp_path / "report.json"
    call("merge", *shards, "-o", tmp_path / "merged.sqlite", f"--report=json={report}")
    assert {tag: one["cases"] for tag, one in json.loads(report.read_text())["tags"].items()} == {
        "even": 3,
        "third": 2,
    }


def test_other_tags_are_no_other_expectation(agent, capsys):
    assert call("run", agent) == 1
    write_tags(agent, [entry(1, "new")])
    assert call("run", agent, "--baseline", "last", "--fail-on-regression") == 0
    assert "config" not in capsys.readouterr().out.split("unchanged")[-1]
    assert call("run", agent, "--retry-errors") == 2
    assert "changed" not in capsys.readouterr().err
