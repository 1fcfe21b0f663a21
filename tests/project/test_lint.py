from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltui.core.model.problems import Severity
from evaltui.project.lint import format_problem, lint

TURN = {"user_content": {"role": "user", "parts": [{"text": "hello"}]}}


def write_set(path: Path, set_id: str, **turns: int) -> None:
    cases = [{"eval_id": eval_id, "conversation": [TURN] * count} for eval_id, count in turns.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"eval_set_id": set_id, "eval_cases": cases}, indent=1), encoding="utf-8")


@pytest.fixture
def agent(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "agent.py").touch()
    return folder


def test_sets_and_configs_of_an_agent_are_linted(agent):
    write_set(agent / "one.evalset.json", "one", a=1)
    write_set(agent / "eval" / "two.test.json", "two", a=0)
    write_set(agent / "data" / "hidden.test.json", "hidden", a=0)
    (agent / "eval" / "test_config.json").write_text('{"criteria": {\n"m": []}}')
    elsewhere, *others = [format_problem(problem) for problem in lint([agent])]
    assert elsewhere.startswith(f"{agent}/data/hidden.test.json: warning: not run: ")
    assert others == [
        f"{agent}/eval/two.test.json:6: warning: eval_cases[0].conversation: empty; nothing to run",
        f"{agent}/eval/test_config.json:2: error: criteria.m: must be a number or an object, is a list",
    ]


def test_a_folder_that_is_no_agent_is_searched_to_the_bottom(tmp_path):
    write_set(tmp_path / "a" / "b" / "deep.evalset.json", "deep", a=0)
    write_set(tmp_path / ".venv" / "x.evalset.json", "x", a=0)
    (problem,) = lint([tmp_path])
    assert problem.file.endswith("deep.evalset.json")


def test_each_file_is_linted_once_and_its_problems_go_by_line(agent):
    path = agent / "one.evalset.json"
    path.write_text('{"eval_set_id": 5,\n"eval_cases": [\n{"eval_id": "a", "conversation": []},\n{}]}')
    lines = [str(problem) for problem in lint([path, agent, path])]
    assert lines == [
        "line 1: eval_set_id: must be a string, is the number 5",
        "line 3: eval_cases[0].conversation: empty; nothing to run",
        "line 4: eval_cases[1].eval_id: missing",
    ]


def test_marks_on_turns_that_do_not_exist_are_warnings(agent):
    write_set(agent / "lights.evalset.json", "lights", off=2, on=1)
    marks = [
        ("lights", "off", 1),
        ("lights", "off", 2),
        ("lights", "of", 0),
        ("light", "off", 0),
        ("lights", "on", 1),
    ]
    turns = [{"set": a, "case": b, "turn": c, "mode": "skip"} for a, b, c in marks]
    config = agent / "test_config.json"
    config.write_text(json.dumps({"criteria": {"safety_v1": 1}, "evaltui": {"turns": turns}}, indent=1))
    problems = lint([config])
    assert {problem.severity for problem in problems} == {Severity.WARNING}
    assert [problem.sentence for problem in problems] == [
        "evaltui.turns[1].turn: no turn 2: off has 2 turns, counted from 0",
        "evaltui.turns[2].case: no case 'of' in lights. Did you mean off?",
        "evaltui.turns[3].set: no eval set 'light' beside this config. Did you mean lights?",
        "evaltui.turns[4].turn: no turn 1: on has 1 turn, counted from 0",
    ]
    lines = config.read_text().splitlines()
    assert [lines[problem.line - 1].strip(" ,") for problem in problems] == [
        '"turn": 2',
        '"case": "of"',
        '"set": "light"',
        '"turn": 1',
    ]


def test_a_config_is_known_by_its_content_too(tmp_path):
    config = tmp_path / "strict.json"
    config.write_text('{"criteria": {"m": "x"}}')
    assert [str(problem) for problem in lint([config])] == [
        'line 1: criteria.m: must be a number or an object, is the string "x"'
    ]


@pytest.mark.parametrize(
    "text", ["{}", '{"evaltui": {}}', '{"customMetrics": {}}', '{"user_simulator_config": {"model": "m"}}']
)
def test_a_config_without_criteria_is_no_eval_set(tmp_path, text):
    config = tmp_path / "eval_config.json"
    config.write_text(text)
    assert all("eval_cases" not in str(problem) for problem in lint([config]))
    assert not [problem for problem in lint([config]) if problem.severity is Severity.ERROR]


def test_sets_that_share_an_id_are_named(agent):
    twin = agent / "twin.evalset.json"
    for file in (agent / "lights.evalset.json", twin):
        write_set(file, "lights", on=1)
    (problem,) = lint([agent])
    assert problem.severity is Severity.WARNING
    assert problem.file == str(twin)
    first = agent / "lights.evalset.json"
    assert (
        str(problem) == f"eval_set_id: 'lights' is also the id of {first}; an agent's set ids must be unique"
    )


@pytest.mark.parametrize(
    ("first", "second", "warns"),
    [
        ("one/a", "two/a", False),
        ("one/a", "one/eval/b", True),
        ("one/a", "tests/b", True),
        ("tests/a", "two/eval/b", True),
        ("one/a", "other/tests/b", False),
        ("tests/a", "other/tests/b", False),
    ],
)
def test_ids_are_compared_among_the_sets_of_an_agent(first, second, warns, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.py").touch()
    for name in ("", "other"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "pyproject.toml").touch()
    for path in (first, second):
        write_set(tmp_path / f"{path}.evalset.json", "smoke", a=1)
    assert any("smoke" in problem.message for problem in lint([tmp_path])) == warns


def test_nothing_to_lint_is_an_error(tmp_path):
    assert [format_problem(problem) for problem in lint([tmp_path, tmp_path / "x.test.json"])] == [
        f"{tmp_path}: error: has no eval sets",
        f"{tmp_path}/x.test.json: error: no such file",
    ]
