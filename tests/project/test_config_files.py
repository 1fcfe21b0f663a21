"""Which file is the config of a set: beside it, above it, or none; and never the defaults in silence."""

from __future__ import annotations

import os

import pytest

from evaltui.core.model.config import DEFAULT_CRITERIA
from evaltui.core.model.problems import EvalSetError, Severity
from evaltui.project.agent_files import AgentFiles
from evaltui.project.configs import config_file, find_config
from evaltui.project.lint import lint
from evaltui.project.workspace import open_workspace, set_files
from tests.project.layouts import adk_sample, criteria, eval_set, starter_pack, uv_package, write


def only_set(folder):
    (entry,) = open_workspace(folder).sets
    return entry.path


def test_criteria_above_the_sets_are_used(tmp_path):
    agent = starter_pack(tmp_path)
    found = find_config(only_set(agent))
    assert found.path == tmp_path / "tests" / "eval" / "eval_config.json"
    assert not found.defaulted
    assert [metric.metric_name for metric in found.config.metrics()] == ["response_match_score"]
    assert found.path in set(set_files(agent))


def test_the_usual_name_beside_a_set_goes_before_all_others(tmp_path):
    path = only_set(adk_sample(tmp_path))
    write(path.parent / "eval_config.json", criteria(safety_v1=1))
    assert find_config(path).path == path.parent / "test_config.json"


@pytest.mark.parametrize(
    "name", ["eval_config.json", "my_config.json", "EvaluationConfig.json", "criteria.json"]
)
@pytest.mark.parametrize("folder", ["tests/eval", "tests", "."])
def test_whatever_it_is_called_and_however_far_above(name, folder, tmp_path):
    path = only_set(uv_package(tmp_path))
    config = write(tmp_path / folder / name, criteria(safety_v1=1))
    assert find_config(path).path == config


def test_what_is_no_config_is_not_used(tmp_path):
    path = only_set(uv_package(tmp_path / "project"))
    write(path.parent / "eval_config.json", '{"model": "x"}')
    write(path.parent / "tsconfig.json", "[]")
    write(path.parent / "results.json", criteria(safety_v1=1))
    write(path.parent / "config_cases.json", '{"criteria": {}, "eval_cases": []}')
    write(tmp_path / "eval_config.json", criteria(safety_v1=1))
    found = find_config(path)
    assert (found.path, found.defaulted, found.problems) == (None, True, ())
    assert found.config.criteria == DEFAULT_CRITERIA


def test_the_nearest_folder_decides_and_several_in_it_are_refused(tmp_path):
    path = only_set(uv_package(tmp_path))
    write(tmp_path / "eval_config.json", criteria(safety_v1=1))
    strict = write(tmp_path / "tests" / "strict_config.json", criteria(safety_v1=1))
    assert find_config(path).path == strict
    write(tmp_path / "tests" / "loose_config.json", criteria(safety_v1=0))
    with pytest.raises(
        EvalSetError, match=r"loose_config\.json and strict_config\.json\. Choose one with --config"
    ):
        find_config(path)
    assert find_config(path, strict).path == strict
    assert [one.severity for one in lint([path])] == [Severity.ERROR]
    own = write(path.parent / "test_config.json", criteria(safety_v1=0.5))
    assert find_config(path).path == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"criteria": {"safety_v1": 1},}', ":1: not valid JSON: a comma before the closing bracket"),
        ('{\n"criteria": {"m": "x"}}', ':2: criteria.m: must be a number or an object, is the string "x"'),
        ('{"criteria": 1}', ":1: criteria: must be an object, is the number 1"),
    ],
    ids=["a comma", "a threshold", "the criteria"],
)
@pytest.mark.parametrize("place", ["beside it", "above it", "given"])
def test_one_with_a_mistake_is_never_replaced_by_the_defaults(text, message, place, tmp_path):
    path = only_set(uv_package(tmp_path))
    beside = path.parent / "test_config.json"
    if place == "given":
        write(beside, "broken")
    config = write(beside if place == "beside it" else tmp_path / "tests" / "my_config.json", text)
    with pytest.raises(EvalSetError) as caught:
        find_config(path, config if place == "given" else None)
    assert str(caught.value).startswith(f"{config}{message}")


def test_an_explicit_file_applies_to_every_set_and_must_exist(tmp_path):
    path = only_set(uv_package(tmp_path))
    write(path.parent / "test_config.json", "[]")
    with pytest.raises(EvalSetError, match=r"test_config\.json:1: must be an object, is a list"):
        find_config(path)
    strict = write(tmp_path / "strict.json", criteria(safety_v1=1))
    found = find_config(path, strict)
    assert (found.path, found.defaulted, found.config.criteria) == (strict, False, {"safety_v1": 1})
    with pytest.raises(EvalSetError, match=r"nowhere\.json: no such file"):
        find_config(path, tmp_path / "nowhere.json")
    with pytest.raises(EvalSetError, match="cannot be read: a folder has this name"):
        find_config(path, tmp_path)


def test_what_is_ignored_in_it_is_named_at_its_line(tmp_path):
    path = only_set(uv_package(tmp_path))
    own = path.parent / "test_config.json"
    own.write_bytes(b'\xef\xbb\xbf{"criteria": {"safety_v1": 0.5},\r\n"criterai": 1}')
    (problem,) = find_config(path).problems
    assert (str(problem), problem.file) == ("line 2: criterai: unknown key, ignored", str(own))
    own.write_text('{"evaltui": {"criteria": {"safety_v1": 1}},\n"criterai": 1}')
    with pytest.raises(EvalSetError, match=":2: criterai: unknown key"):
        find_config(path)


def test_it_is_found_and_lost_as_it_comes_and_goes(tmp_path):
    path = only_set(uv_package(tmp_path))
    config = tmp_path / "tests" / "eval_config.json"
    for text, expected in [
        (criteria(safety_v1=1), config),
        ('{"other": 1}', None),
        (criteria(hallucinations_v1=1), config),
    ]:
        write(config, text)
        assert find_config(path).path == expected
    config.unlink()
    assert config_file(path) == path.parent / "test_config.json"


def test_it_is_found_in_a_folder_whose_time_is_set_back(tmp_path):
    """As rsync and tar do."""
    path = only_set(uv_package(tmp_path))
    config = path.parent / "eval_config.json"
    os.utime(path.parent, (1, 1))
    assert config_file(path) == path.parent / "test_config.json"
    write(config, criteria(safety_v1=1))
    os.utime(path.parent, (1, 1))
    assert config_file(path) == config


def test_a_test_config_above_is_named_but_not_used(tmp_path):
    path = only_set(uv_package(tmp_path))
    above = write(tmp_path / "tests" / "test_config.json", criteria(safety_v1=1))
    found = find_config(path)
    assert (found.path, found.passed_over) == (None, above)
    (problem,) = lint([path])
    assert problem.severity is Severity.WARNING
    assert f"--config {above}" in problem.message


def test_lint_reads_the_config_above_and_the_sets_that_it_scores(tmp_path):
    agent = starter_pack(tmp_path)
    config = tmp_path / "tests" / "eval" / "eval_config.json"
    assert lint([agent]) == []
    check = '{"set": "basic", "case": "%s", "contains": ["hello"]}'
    text = '{"criteria": {"response_match_score": 1}, "evaltui": {"answers": [%s]}}'
    write(config, text % (check % "greets"))
    assert lint([agent]) == lint([tmp_path / "tests"]) == []
    write(config, text % (check % "gone"))
    assert [problem.file for problem in lint([agent])] == [str(config)]
    # One that is no set for want of criteria is not read as a set.
    write(config, "{}")
    assert not [problem for problem in lint([config]) if "eval_cases" in str(problem)]


def test_a_config_in_the_agents_folder_is_no_code_of_it(tmp_path):
    agent = uv_package(tmp_path)
    write(agent / "eval_config.json", criteria(safety_v1=1))
    write(agent / "prompts_config.json", "{}")
    assert "eval_config.json" not in AgentFiles(agent).contents()
    assert "prompts_config.json" in AgentFiles(agent).contents()


def test_without_a_project_it_is_looked_for_above_folders_of_tests_only(tmp_path):
    path = write(tmp_path / "shop" / "eval" / "evalsets" / "a.evalset.json", eval_set("a"))
    config = write(tmp_path / "shop" / "eval_config.json", criteria(safety_v1=1))
    write(tmp_path / "other_config.json", criteria(safety_v1=1))
    assert find_config(path).path == config
    config.unlink()
    assert find_config(path).path is None
