"""What `run` and the workbench say of the config that scores a set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltui.project.agent_address import AgentAddress
from evaltui.tui.app import WorkbenchApp, open_workbench
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.rows import MetricRow
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.project.layouts import AGENT, criteria, eval_set, starter_pack, uv_package, write


def test_criteria_above_the_sets_decide_and_every_report_names_them(tmp_path, monkeypatch, capsys):
    starter_pack(tmp_path)
    config = write(tmp_path / "tests" / "eval" / "eval_config.json", criteria(response_match_score=0.5))
    reports = [f"--report={kind}={tmp_path / kind}" for kind in ("json", "junit")]
    assert call("run", tmp_path / "app", "--workers", "1", "--report=console", *reports) == 0
    assert f"config  {config}" in capsys.readouterr().out
    (of_set,) = json.loads((tmp_path / "json").read_text())["sets"]
    assert of_set["config"]["path"] == str(config)
    assert of_set["config"]["defaulted"] == []
    assert str(config) in (tmp_path / "junit").read_text()


def test_each_set_is_scored_by_its_own_config_in_one_run(tmp_path):
    agent = write(tmp_path / "shop" / "agent.py", AGENT).parent
    for name, metric in (("a", "response_match_score"), ("b", "tool_trajectory_avg_score")):
        write(agent / name / f"{name}.evalset.json", eval_set(name))
        write(agent / name / "test_config.json", criteria(**{metric: 0.5}))
    sets = [agent / name / f"{name}.evalset.json" for name in "ab"]
    report = tmp_path / "report.json"
    assert call("run", agent, *sets, f"--report=json={report}") == 0
    cases = json.loads(report.read_text())["cases"]
    # What is only measured has no threshold.
    asked_for = {
        case["eval_set_id"]: [one["name"] for one in case["metrics"] if one["threshold"] is not None]
        for case in cases
    }
    assert asked_for == {"a": ["response_match_score"], "b": ["tool_trajectory_avg_score"]}


OWN, DEFAULTS = ["response_match_score"], ["tool_trajectory_avg_score", "response_match_score"]


@pytest.mark.parametrize(
    ("selectors", "metrics"),
    [
        (["a.evalset.json"], {"a": OWN}),
        (["a.evalset.json", "a.evalset.json"], {"a": OWN}),
        (["a.evalset.json", "b.evalset.json"], {"a": DEFAULTS, "b": DEFAULTS}),
        (["a"], {"a": DEFAULTS}),
        ([], {"a": OWN, "b": OWN, "c": DEFAULTS}),
    ],
)
def test_with_adks_verdicts_the_configs_are_those_that_adk_reads(selectors, metrics, tmp_path, capsys):
    agent = write(tmp_path / "shop" / "agent.py", AGENT).parent
    paths = {}
    for name, config in (("a", "test_config.json"), ("b", "test_config.json"), ("c", "eval_config.json")):
        folder = agent / "tests" / name
        paths[f"{name}.evalset.json"] = write(folder / f"{name}.evalset.json", eval_set(name))
        write(folder / config, criteria(response_match_score=0.5))
    report = tmp_path / "report.json"
    words = [paths.get(selector, selector) for selector in selectors]
    assert call("run", agent, *words, "--adk-verdicts", f"--report=json={report}") == 0
    sets = {one["eval_set_id"]: one["config"] for one in json.loads(report.read_text())["sets"]}
    assert {name: [*one["effective"]["criteria"]] for name, one in sets.items()} == metrics
    assert [name for name, one in sets.items() if "not_used" in one] == [
        name for name, criteria in metrics.items() if criteria == DEFAULTS
    ]
    assert capsys.readouterr().err.count("with --adk-verdicts not read") == [*metrics.values()].count(
        DEFAULTS
    )


def test_what_is_passed_over_is_named_on_stderr_and_in_the_reports(tmp_path, capsys):
    agent = uv_package(tmp_path)
    above = write(tmp_path / "tests" / "test_config.json", criteria(response_match_score=0.1))
    report = tmp_path / "report.json"
    assert call("run", agent, "--workers", "1", f"--report=json={report}") == 0
    err = capsys.readouterr().err
    assert f"{above}: scores the sets beside it only, so orders.evalset.json is" in err
    assert f"--config {above}" in err
    (of_set,) = json.loads(report.read_text())["sets"]
    assert of_set["config"]["not_used"] == str(above)


def test_nothing_is_run_where_it_is_not_clear(tmp_path, capsys):
    agent = uv_package(tmp_path)
    for name in ("a_config.json", "b_config.json"):
        write(tmp_path / "tests" / name, criteria(response_match_score=1))
    assert call("run", agent) == 2
    assert "a_config.json and b_config.json." in capsys.readouterr().err


@pytest.fixture
def opened(monkeypatch) -> list[Workbench]:
    workbenches: list[Workbench] = []
    monkeypatch.setattr(WorkbenchApp, "run", lambda self: workbenches.append(self.workbench))
    return workbenches


def test_the_workbench_remembers_a_config_for_all_sets(tmp_path, monkeypatch, opened, capsys):
    agent = uv_package(tmp_path)
    write(tmp_path / "strict.json", criteria(m=1))
    monkeypatch.chdir(tmp_path)
    open_workbench(AgentAddress(agent), config="strict.json")
    monkeypatch.chdir(agent)
    open_workbench(AgentAddress(agent))
    assert opened[0].sets.config == Path("strict.json")
    assert opened[1].sets.config.resolve() == tmp_path / "strict.json"
    assert opened[0].messages.notice is None
    assert "strict.json, as last time" in opened[1].messages.notice.text
    open_workbench(AgentAddress(agent), config="own")
    open_workbench(AgentAddress(agent))
    assert [one.sets.config for one in opened[2:]] == [None, None]
    assert open_workbench(AgentAddress(agent), config="gone.json") == 2
    assert "--config gone.json: no such file" in capsys.readouterr().err


async def test_the_workbench_scores_by_it_and_edits_it(tmp_path):
    agent = uv_package(tmp_path)
    config = write(tmp_path / "strict.json", criteria(response_match_score=1))
    workbench = Workbench(agent, config=config)
    await workbench.open()
    path = workbench.sets.listed[0].path
    assert workbench.sets.open(path).config.path == config
    assert workbench.sets.config_path(path) == config
    assert workbench.sets.scored_by([config]) == {path}
    await workbench.close()


async def test_what_is_changed_on_screen_goes_to_the_config_above_the_sets(tmp_path):
    agent = starter_pack(tmp_path)
    config = tmp_path / "tests" / "eval" / "eval_config.json"
    workbench = Workbench(agent)
    await workbench.open()
    (entry,) = workbench.sets.listed
    assert workbench.sets.scored_by([config]) == {entry.path}
    shown = Criteria(workbench.editing, entry.path)
    assert (shown.path, shown.sets) == (config, [entry])
    (row,) = (row for row in shown.sections()[0].rows if isinstance(row, MetricRow))
    assert (row.name, row.threshold) == ("response_match_score", 0.5)
    assert shown.set_threshold(row, 0.75)
    assert workbench.editing.unsaved() == [config]
    assert workbench.sets.open(entry.path).config.config.criteria["response_match_score"] == 0.75
    assert await workbench.editing.save_all()
    assert json.loads(config.read_text())["criteria"] == {"response_match_score": 0.75}
    assert [file.name for file in entry.path.parent.iterdir()] == ["basic.evalset.json"]
    await workbench.close()


async def test_where_it_is_not_clear_the_criteria_say_so(tmp_path):
    agent = uv_package(tmp_path)
    for name in ("a_config.json", "b_config.json"):
        write(tmp_path / "tests" / name, criteria(response_match_score=1))
    workbench = Workbench(agent)
    await workbench.open()
    (entry,) = workbench.sets.listed
    assert "a_config.json and b_config.json." in Criteria(workbench.editing, entry.path).unreadable()
    assert "a_config.json" in str(workbench.sets.open(entry.path).errors[0])
    await workbench.close()
