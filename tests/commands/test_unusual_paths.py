"""Names that are no UTF-8, arguments that are longer than any path, a current folder that is gone."""

import csv
import json
import os
from xml.etree import ElementTree

import pytest

from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn

NAME = os.fsdecode(b"caf\xe9")
REPORTS = ("console", "json", "junit", "csv", "markdown", "html")
LONG = "x" * 100_000


def case(eval_id, response):
    return make_case(eval_id, make_turn("Hi", response))


@pytest.fixture
def desk(write_agent, monkeypatch):
    folder = write_agent("def root_agent(message, session): return 'Hello.'", name="desk")
    monkeypatch.chdir(folder.parent)
    return folder


def write_set(path):
    cases = [case("right", "Hello."), case("wrong", "Goodbye.")]
    path.write_text(json.dumps({"eval_set_id": "greetings", "eval_cases": cases}))


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX alone")
def test_every_report_spells_out_a_name_that_is_no_utf8(desk):
    agent = desk.parent / NAME
    desk.rename(agent)
    write_set(agent / f"{NAME}.evalset.json")
    options = [f"--report={name}={name}.out" for name in REPORTS]
    assert call("run", agent, "--shard", "1/1", *options) == 1
    texts = {name: (agent.parent / f"{name}.out").read_text("utf-8") for name in REPORTS}
    assert "caf\\udce9.evalset.json" in texts["html"]
    assert {row["case_status"] for row in csv.DictReader(texts["csv"].splitlines())} == {"PASSED", "FAILED"}
    assert json.loads(texts["json"])["cases"]
    assert ElementTree.fromstring(texts["junit"]).get("failures") == "1"
    assert call("report", agent, "--report", "html=again.out") == 0
    assert call("export", agent, "--run", "last", "-o", "trace.json") == 0


@pytest.mark.parametrize(
    "words",
    [
        [LONG],
        ["run", LONG],
        ["run", "desk", LONG],
        ["run", "desk", "x" * 300],
        ["run", "desk", f"greetings:{LONG}"],
        ["run", "desk", "--resume", LONG],
        ["run", "desk", "--python", LONG],
        ["run", "-m", LONG],
        ["score", LONG],
        ["score", "desk", "--sets", LONG],
        ["lint", LONG],
        ["runs", LONG],
        ["report", LONG],
        ["metrics", LONG],
        ["import", "desk", "--into", LONG],
        ["record", "desk", LONG, "--case", "c", "--turns", "desk/agent.py"],
        ["new", LONG],
        ["run", "x/" * 50_000],
    ],
    ids=lambda words: " ".join(word[:12] for word in words),
)
def test_an_argument_longer_than_a_path_is_refused(words, desk, capsys):
    write_set(desk / "greetings.evalset.json")
    assert call(*words) == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), "Traceback" in said) == (1, False)


def test_many_cases_of_a_set_may_be_named(desk, capsys):
    write_set(desk / "greetings.evalset.json")
    assert call("run", "desk", f"greetings:{','.join(['right'] * 2_000)}") == 0


@pytest.mark.parametrize(
    "words",
    [
        ["run", "."],
        ["lint", "."],
        ["score", "x"],
        ["new", "x"],
        ["metrics"],
        ["runs", "."],
        ["compare", "1", "2"],
        [],
    ],
    ids=" ".join,
)
def test_a_current_folder_that_was_removed_is_said(words, tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert call(*words) == 2
    assert capsys.readouterr().err == "evaltui: the current folder was removed. Change to another folder\n"
    assert call("help", "cost") == 0
