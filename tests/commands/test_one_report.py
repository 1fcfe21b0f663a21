"""The reports of a command that ran are those that `evaltui report` writes of the stored run."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from command_line import call
from fake_runs import run_without_processes
from gemini_server import says
from numbered_cases import act, logs_of, write_set

from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.runs.store import RunStore
from tests.numbered_cases import without_times
from tests.stored_runs import change

pytest_plugins = ["pytester"]
# The session inside names no scope for the loops of its fixtures.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestDeprecationWarning")
FORMATS = ("json", "junit", "csv", "markdown", "html", "console")
CONFIG = {
    "criteria": {"response_match_score": 1.0, "tool_trajectory_avg_score": 1.0},
    "evaltui": {"tags": [{"set": "first", "case": "case_1", "tags": ["smoke"]}]},
}
GREETER = "from evaltui import Agent\nroot_agent = Agent('parrot', 'gemini-test')\n"
TONED = """
    import os

    def root_agent(message, session):
        return message + os.environ.get("TONE", "")
"""
PROJECT = """
[tool.evaltui]
timeout = 60
parallel = 3
[tool.evaltui.limits]
"gemini-*" = {rpm = 60}
"""
SHOP = Path(__file__).parents[1] / "golden" / "agents" / "shop"


def reports(folder: Path, *words: object) -> dict[str, bytes]:
    """The reports that a command writes, by their format."""
    targets = [word for name in FORMATS for word in ("--report", f"{name}={folder / f'out.{name}'}")]
    call(*words, *targets)
    return {name: (folder / f"out.{name}").read_bytes() for name in FORMATS}


@pytest.fixture
def agent(write_agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Of a project with settings, in the current folder."""
    run_without_processes(monkeypatch, act)
    folder: Path = write_agent("root_agent = lambda message: message")
    (folder / "test_config.json").write_text(json.dumps(CONFIG))
    write_set(folder, "first", range(8))
    (folder / "pyproject.toml").write_text(PROJECT)
    monkeypatch.chdir(folder.parent)
    return Path(folder.name)


def assert_same(agent: Path, folder: Path, *words: object, compared: tuple[object, ...] = ()) -> None:
    ran = reports(folder, *words, *compared)
    stored = reports(folder, "report", agent, "last", *compared)
    for name in FORMATS:
        assert stored[name].decode() == ran[name].decode(), name


@pytest.mark.parametrize("words", [(), ("--runs", 3, "--pass-if", "majority"), ("first:case_1,case_3",)])
def test_of_a_run(agent, tmp_path, words):
    assert_same(agent, tmp_path, "run", agent, *words)
    assert "settings  timeout 60" in (tmp_path / "out.console").read_text()


def test_of_a_set_with_default_criteria_below_a_config_that_is_not_used(agent, tmp_path):
    (agent / "evals").mkdir()
    write_set(agent / "evals", "second", [0, 3])
    assert_same(agent, tmp_path, "run", agent)
    configs = [one["config"] for one in json.loads((tmp_path / "out.json").read_text())["sets"]]
    assert [(bool(one["defaulted"]), "not_used" in one) for one in configs] == [(True, True), (False, False)]


def test_of_a_run_with_a_baseline(agent, tmp_path):
    (base,) = logs_of(agent, [])
    write_set(agent, "first", [0, 1, 3, 13, 23])
    assert_same(agent, tmp_path, "run", agent, compared=("--baseline", base))


def test_of_a_run_that_is_interrupted_and_resumed(agent, tmp_path, monkeypatch):
    def act_until(case: EvalCase, repeat: int) -> list[Invocation]:
        if case.eval_id == "case_4":
            raise asyncio.CancelledError
        return act(case, repeat)

    run_without_processes(monkeypatch, act_until)
    assert_same(agent, tmp_path, "run", agent)
    assert b"interrupted: 4 of 8 cases finished" in (tmp_path / "out.console").read_bytes()
    run_without_processes(monkeypatch, act)
    assert_same(agent, tmp_path, "run", agent, "--resume", "last")
    assert b": 4 results kept" in (tmp_path / "out.console").read_bytes()


def test_of_shards_that_are_merged(agent, tmp_path):
    shards = logs_of(agent, ["--shard", "1/3"], ["--shard", "2/3"])
    merged = tmp_path / "merged.sqlite"
    into = reports(tmp_path, "merge", *shards, "-o", merged)
    assert reports(tmp_path, "report", merged) == into
    assert b"shard missing: 3/3" in into["console"]
    assert b"4 at once" not in into["console"]


def test_of_merged_runs_that_have_notes(agent, tmp_path):
    write_set(agent, "empty", [])
    logs = logs_of(agent, ["--shard", "1/2"], ["--shard", "2/2"])
    (agent / "rates.csv").write_text("EUR,1.1")
    logs += logs_of(agent, ["--shard", "2/2"])
    merged = tmp_path / "merged.sqlite"
    into = reports(tmp_path, "merge", *logs, "-o", merged)
    assert reports(tmp_path, "report", merged) == into
    of_set, *notes = json.loads(into["json"])["notes"]
    assert of_set.endswith("empty.evalset.json:1: eval_cases: empty; nothing to run")
    assert notes == [
        "1/2 of the limits for this shard: gemini-*:rpm=30",
        "6 results in several logs: the run started last counts",
        "not the same in every run: rates.csv",
    ]


def test_of_merged_runs_with_a_metric_that_cannot_be_computed_in_one_set(agent, tmp_path):
    (agent / "evals").mkdir()
    write_set(agent / "evals", "second", [0, 3])
    config = agent / "evals" / "test_config.json"
    config.write_text('{"criteria": {"safety_v1": 0.8, "response_match_score": 1.0}}')
    whole = reports(tmp_path, "run", agent)
    logs = logs_of(agent, ["second"], ["first:case_1,case_2"], ["first"])
    into = reports(tmp_path, "merge", *logs, "-o", tmp_path / "merged.sqlite")
    assert reports(tmp_path, "report", tmp_path / "merged.sqlite") == into
    preflight = json.loads(into["json"])["preflight"]
    assert preflight == json.loads(whole["json"])["preflight"]
    assert [one["cases"] for one in preflight if one["metric"] == "safety_v1"] == [2]


def test_of_an_empty_shard(agent, tmp_path):
    write_set(agent, "first", [1])
    assert_same(agent, tmp_path, "run", agent, "--shard", "1/2")
    assert_same(agent, tmp_path, "run", agent, "--shard", "2/2")


def test_of_a_run_that_its_budget_stops(write_agent, tmp_path, gemini):
    agent = write_agent(GREETER)
    write_set(agent, "first", range(4))
    gemini.respond = lambda request: says("right")
    assert_same(agent, tmp_path, "run", agent, "--parallel", 1, "--budget", "20tok")
    assert b"budget of 20 tokens reached" in (tmp_path / "out.console").read_bytes()


def test_of_a_variant(write_agent, tmp_path):
    agent = write_agent(TONED)
    write_set(agent, "first", range(2))
    assert_same(agent, tmp_path, "run", agent, "--variant", "loud:env.TONE=!")
    assert b"variant loud: env.TONE not set" in (tmp_path / "out.console").read_bytes()


def test_of_traces_that_were_scored(tmp_path, monkeypatch):
    shutil.copytree(SHOP, tmp_path / "shop")
    monkeypatch.chdir(tmp_path)
    words = ("shop/visit.json", "--sets", "shop/goods.evalset.json", "--home", "shop")
    assert_same(Path("shop"), tmp_path, "score", *words)


def test_of_a_run_of_pytest(write_agent, pytester, tmp_path, monkeypatch):
    """It has what the report of `evaltui run` has."""
    agent = write_agent(TONED)
    write_set(agent, "first", range(2))
    pytester.runpytest("--evaltui", str(agent))
    (log,) = RunStore(agent).files()
    reports(tmp_path, "report", log)
    tested = json.loads((tmp_path / "out.json").read_text())
    reports(tmp_path, "run", agent)
    ran = json.loads((tmp_path / "out.json").read_text())
    assert without_times(tested) | {"log": 0, "started": 0} == without_times(ran) | {"log": 0, "started": 0}


def test_of_a_stored_run_without_what_only_reports_need(agent, tmp_path):
    """As one of google-adk's that was imported, or one from Python: less is known of it."""
    (log,) = logs_of(agent, [])
    change(
        log, "DELETE FROM eval_cases", "DELETE FROM notes", "UPDATE sets SET defaulted = NULL, file = NULL"
    )
    assert b"config  as in the run log" in reports(tmp_path, "report", log)["console"]
