"""Eval sets are known by what they hold, and other files are named."""

import json
import sqlite3

import pytest

from evaltui.project.eval_sets import read_eval_set, set_kind
from evaltui.project.lint import lint
from evaltui.project.workspace import is_set_for_pytest, open_workspace, set_files
from tests.eval_data import make_case
from tests.project.layouts import AGENT, eval_set, write

DATASET = json.dumps({"eval_cases": [{"eval_case_id": "a", "prompt": {"parts": [{"text": "hi"}]}}]})
CAMEL = '{"evalCases": [], "evalSetId": "camel"}'
LARGE = json.dumps({"eval_cases": [make_case(str(n)) for n in range(4000)], "eval_set_id": "x"})


def test_a_set_is_found_by_what_it_holds_where_sets_are_kept(tmp_path):
    write(tmp_path / "pyproject.toml")
    agent = write(tmp_path / "mine" / "agent.py", AGENT).parent
    sets = [
        write(agent / "own.json", eval_set("own")),
        write(agent / "Evals" / "below.json", CAMEL),
        write(tmp_path / "EvalSets" / "beside.json", LARGE),
        write(tmp_path / "Tests" / "eval" / "deep" / "dataset.json", DATASET),
    ]
    write(agent / "eval" / "other" / "agent.py", AGENT)
    for number, text in enumerate(
        ['{"eval_set_id": "x", "eval_case_results": []}', "{}", '["eval_cases"]', '{"a": {"eval_cases": []}}']
    ):
        write(agent / f"other{number}.json", text)
    write(agent / "eval" / "jest.test.json", '{"snapshot": 1}')
    for folder in ("eval/env", "eval/node_modules", "eval/.evaltui", "eval/artifacts/traces", "eval/other"):
        write(agent / folder / "x.json", eval_set("x"))
    write(agent / "eval" / "env" / "pyvenv.cfg")
    write(agent / "eval_agent" / "agent.py", AGENT)
    write(agent / "eval_agent" / "x.evalset.json", eval_set("x"))
    workspace = open_workspace(agent)
    assert {one.path for one in workspace.sets} == set(sets)
    assert not workspace.skipped
    assert set(set_files(agent)) == set(sets)
    assert all(is_set_for_pytest(path, tmp_path) for path in sets)
    assert not is_set_for_pytest(write(tmp_path / "data" / "x.json", eval_set("x")), tmp_path)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (eval_set("x"), "eval set"),
        (CAMEL, "eval set"),
        (LARGE, "eval set"),
        ('{"eval_set_id": "x", "eval_cases": [', "eval set"),
        (DATASET, "dataset"),
        ('{"evalCases": [{"agentData": {}}]}', "dataset"),
        ('{"eval_cases": [{"eval_id": "a"}]}', None),
        ('{"eval_set_id": "x", "a": {"eval_cases": []}}', None),
        ('{"eval_set_id": "x", "a": "\\"eval_cases\\": []"}', None),
        ("[]", None),
        ("", None),
    ],
)
def test_the_beginning_of_a_file_says_what_it_is(tmp_path, text, kind):
    assert set_kind(write(tmp_path / "x.json", text)) == kind


SESSION = {"id": "s", "appName": "desk", "userId": "u", "events": [{"author": "user"}]}
RESULT = {"eval_set_id": "x", "eval_case_results": []}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("eval_config.json", {"metrics_to_run": ["m"]}, "a config of agents-cli"),
        ("eval_config.yaml", "metrics_to_run: [m]", "a config of agents-cli"),
        ("promptfooconfig.yaml", "providers: [x]\ntests: []\nprompts: []", "a promptfoo config"),
        ("x.json", SESSION, "an ADK session"),
        ("x.json", RESULT, "a result file of ADK"),
        ("x.json", json.dumps(json.dumps(RESULT)), "a result file of ADK"),
        ("x.json", {"resourceSpans": []}, "a recorded trace"),
        ("x.json", [{"traceId": "1", "spanId": "2"}], "a recorded trace"),
        ("x.json", {"scenarios": [{"starting_prompt": "Hi"}]}, "an ADK scenario file"),
        ("x.evalset.json", {"eval_set_id": "x", "test_cases": []}, "a file of `test_cases`"),
    ],
)
def test_what_is_no_eval_set_is_named_in_one_sentence(tmp_path, name, content, sentence):
    path = write(tmp_path / name, content if isinstance(content, str) else json.dumps(content))
    (problem,) = read_eval_set(path).problems
    assert problem.message.startswith(f"not an eval set, but {sentence}")
    if "config of agents-cli" not in sentence:
        assert [one.message for one in lint([path])] == [problem.message]


def test_a_database_of_sessions_is_named(tmp_path):
    path = tmp_path / "session.db"
    with sqlite3.connect(path) as database:
        database.executescript("CREATE TABLE sessions (id); CREATE TABLE events (id);")
    (problem,) = read_eval_set(path).problems
    assert problem.message.startswith("not an eval set, but a session database of ADK")
