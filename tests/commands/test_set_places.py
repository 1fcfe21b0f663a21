"""Eval sets are looked for in the agent's folder and in its project; names that hide a set are named."""

from __future__ import annotations

import pytest

from evaltui.core.model.problems import Severity
from evaltui.project.lint import lint
from evaltui.project.workspace import open_workspace
from tests.commands.command_line import call
from tests.project.layouts import AGENT, eval_set, write

pytest_plugins = "pytester"


@pytest.fixture
def agent(tmp_path):
    """An agent without a project, with a passing set of its own and a failing one in a folder beside it."""
    write(tmp_path / "parent" / "desk" / "agent.py", AGENT)
    write(tmp_path / "parent" / "desk" / "good.evalset.json", eval_set("good"))
    write(tmp_path / "parent" / "evals" / "bad.evalset.json", eval_set("bad", "other words"))
    return tmp_path / "parent" / "desk"


def labels(agent):
    return sorted(one.eval_set_id for one in open_workspace(agent).sets)


def test_without_a_project_only_the_folder_of_the_agent_is_searched(agent, capsys):
    assert call("run", agent) == 0
    assert "bad" not in capsys.readouterr().out
    assert labels(agent) == ["good"]
    assert lint([agent]) == []


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_in_a_project_its_folders_of_sets_are_searched_too(agent, mark, capsys):
    (agent.parent / mark).touch()
    assert call("run", agent) == 1
    assert "bad" in capsys.readouterr().out
    assert labels(agent) == ["bad", "good"]


def test_an_agent_that_is_the_root_of_its_project_has_only_its_own(agent):
    (agent / "pyproject.toml").touch()
    assert labels(agent) == ["good"]


def test_where_nothing_is_found_the_places_are_named(agent, capsys):
    (agent / "good.evalset.json").unlink()
    assert call("run", agent) == 2
    assert "it is in no project (pyproject.toml, .git), whose eval*/ and tests/" in capsys.readouterr().err
    (agent.parent / "pyproject.toml").touch()
    (agent.parent / "evals" / "bad.evalset.json").unlink()
    assert call("run", agent) == 2
    assert "and above, up to the root of its project" in capsys.readouterr().err


def test_pytest_takes_no_agent_from_beside_a_set_outside_of_a_project(agent, pytester):
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent.parent)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no agent at or above *evals*--evaltui-agent DIR*"])
    (agent.parent / "pyproject.toml").touch()
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent.parent)
    result.stdout.fnmatch_lines(["*2 tests collected*"])


@pytest.mark.parametrize("name", ["build", "dist", "build/deep", "node_modules", "left_out"])
def test_pytest_enters_the_folders_of_sets_that_a_run_enters(agent, name, pytester):
    """Unless its user names them to be left out: pytest itself never enters `build` and `dist`."""
    write(agent / "pytest.ini", "[pytest]\nnorecursedirs = build dist node_modules left_out")
    file = write(agent / "evals" / name / "bad.evalset.json", eval_set("bad", "other words"))
    write(agent / "build" / "lib" / "desk" / "copy.evalset.json", eval_set("copy", "other words"))
    assert (file in [one.path for one in open_workspace(agent).sets]) == (name != "node_modules")
    result = pytester.runpytest_inprocess("--evaltui", agent)
    result.assert_outcomes(passed=1, failed=int(name not in ("node_modules", "left_out")))
    words = ("--ignore", agent / "evals" / name.partition("/")[0])
    pytester.runpytest_inprocess("--evaltui", agent, *words).assert_outcomes(passed=1)


@pytest.mark.parametrize("name", ["bad.EVALSET.JSON", "bad.evalset.JSON", "bad.test.JSON", "bad.Json"])
def test_a_name_may_have_any_case_of_letters(agent, name, pytester, capsys):
    write(agent / name, eval_set("bad", "other words"))
    assert call("run", agent) == 1
    assert "bad" in capsys.readouterr().out
    assert labels(agent) == ["bad", "good"]
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent)
    result.stdout.fnmatch_lines(["*2 tests collected*"])


def test_a_config_may_have_any_case_of_letters(agent, capsys):
    write(agent / "criteria.JSON", '{"criteria": {"unknown_metric": 1}}')
    assert call("run", agent) == 2
    assert "unknown_metric" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bad.evalset.jsonl", "bad.evalset.yaml", "Bad.EvalSet.yml", "bad.evalset"])
def test_a_set_that_is_no_json_keeps_the_others_from_passing_for_all(agent, name, pytester, capsys):
    file = write(agent / name, eval_set("bad", "other words"))
    hint = f"{file} is called an eval set and not read: write it as JSON to NAME.evalset.json, or rename it"
    for words in ((), (agent,)):
        assert call("run", agent, *words) == 2
        assert hint in capsys.readouterr().err
    assert call("run", agent, "good") == 0
    for folder in (agent, agent.parent):
        [problem] = lint([folder])
        assert (problem.severity, problem.file) == (Severity.ERROR, str(file))
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{hint}*"])
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent / "good.evalset.json")
    result.stdout.fnmatch_lines(["*1 test collected*"])


@pytest.mark.parametrize("name", ["bad.evalset.json.bak", "bad.test.json.orig", "bad.evalset.json~"])
def test_a_backup_of_a_set_is_named_and_not_run(agent, name, pytester, capsys):
    file = write(agent / name, eval_set("bad", "other words"))
    reason = "called an eval set and not read: its name does not end in .json"
    for words in ((), (agent,)):
        assert call("run", agent, *words) == 0
        assert f"evaltui: {file}: {reason}" in capsys.readouterr().err
    for folder in (agent, agent.parent):
        assert [problem.located("warning") for problem in lint([folder])] == [f"{file}: warning: {reason}"]
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent)
    result.stdout.fnmatch_lines([f"evaltui: {file}: {reason}", "*1 test collected*"])


@pytest.mark.parametrize("name", ["recordings/good.jsonl", "traces.jsonl", "config.json.bak", "prices.json5"])
def test_other_data_is_named_by_nothing(agent, name, pytester, capsys):
    (agent / name).parent.mkdir(exist_ok=True)
    write(agent / name, '{"a": 1}')
    assert call("run", agent) == 0
    assert call("lint", agent) == 0
    assert name not in capsys.readouterr().err
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent)
    result.stdout.no_fnmatch_line(f"*{name}*")


@pytest.mark.parametrize(
    "name",
    [
        *("test_config.yaml", "Test_Config.yml", "test_config.json.bak", "test_config.jsonc"),
        *("eval_config.yaml", "test_config.jsn", "eval-config.yaml"),
    ],
)
def test_what_is_called_a_config_and_not_read_is_named(agent, name, capsys):
    file = write(agent / name, '{"metrics_to_run": ["safety"]}')
    write(agent / "test_config.py")
    reason = "not read for good.evalset.json: its config is called test_config.json and is JSON"
    assert call("run", agent) == 0
    assert f"evaltui run: {file}: {reason}\n" in capsys.readouterr().err
    assert [problem.located("warning") for problem in lint([agent])] == [f"{file}: warning: {reason}"]
    write(agent / "test_config.json", '{"criteria": {"response_match_score": 1}}')
    assert call("run", agent) == 0
    assert "not read" not in capsys.readouterr().err


def test_a_submodule_of_sets_beside_the_agent_is_searched_and_another_project_is_not(agent):
    (agent.parent / "pyproject.toml").touch()
    write(agent.parent / "evals" / ".git", "gitdir: ../.git/modules/evals")
    write(agent.parent / "eval_tool" / "other.evalset.json", eval_set("other"))
    (agent.parent / "eval_tool" / ".git").mkdir()
    write(agent.parent / "eval_fork" / "fork.evalset.json", eval_set("fork"))
    write(agent.parent / "eval_fork" / "pyproject.toml")
    write(agent.parent / "eval_fork" / ".git", "gitdir: ../.git/modules/eval_fork")
    assert labels(agent) == ["bad", "good"]


def test_a_set_in_another_folder_of_the_agent_is_named(agent, capsys):
    file = write(agent / "data" / "deep" / "bad.evalset.json", eval_set("bad", "other words"))
    write(agent / "data" / "notes.json", "{}")
    write(agent / "bot" / "agent.py", AGENT)
    write(agent / "bot" / "own.evalset.json", eval_set("own", "other words"))
    reason = f"not run: it is neither in {agent} nor in eval*/ or test*/ there; name it to run it"
    assert call("run", agent) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "not run" in line] == [
        f"evaltui: {file}: {reason}"
    ]
    assert [problem.located("warning") for problem in lint([agent])] == [f"{file}: warning: {reason}"]
    assert call("run", agent, "good") == 0
    assert "not run" not in capsys.readouterr().err
