"""A key that stands twice in a set or config is refused by all that would score by one of the two."""

from __future__ import annotations

import json

import pytest

from evaltui.core.model.problems import EvalSetError
from evaltui.runs.evaluation import evaluate_sync
from tests.commands.command_line import call
from tests.project.layouts import AGENT, write

pytest_plugins = "pytester"

USER = '"user_content": {"parts": [{"text": "hi"}]}'
NO, YES = (f'"final_response": {{"parts": [{{"text": "{text}"}}]}}' for text in ("no", "hello"))
CALLS = '"intermediate_data": {"tool_uses": [{"name": "f", "args": {"a": 1,\n"a": 2}}]}'


def turn(*members):
    return "{{{}}}".format(", ".join((USER, *members)))


def case(*members, eval_id="a"):
    return "{{{}}}".format(",\n".join((f'"eval_id": "{eval_id}"', *members)))


def case_set(*members):
    return "{{{}}}".format(",\n".join(('"eval_set_id": "orders"', *members)))


def conversation(*turns):
    return '"conversation": [{}]'.format(", ".join(turns))


GOOD, BAD = case(conversation(turn(YES))), case(conversation(turn(NO)), eval_id="bad")
REFERENCE = '"reference": {"response": {"parts": [{"text": "%s"}]}}'
PROMPT = '"prompt": {"parts": [{"text": "hi"}]}'
FIRST = "eval_cases[0]"
# A set that passes by one of two keys, and where that key stands.
SETS = {
    "cases": (case_set(f'"eval_cases": [{BAD}]', f'"eval_cases": [{GOOD}]'), "eval_cases", 4),
    "id of the set": (case_set('"eval_set_id": "a"', f'"eval_cases": [{GOOD}]'), "eval_set_id", 2),
    "other cases": (case_set(f'"eval_cases": [{GOOD}]', f'"evalCases": [{BAD}]'), "evalCases", 4),
    "turns": (
        case_set(f'"eval_cases": [{case(conversation(turn(NO)), conversation(turn(YES)))}]'),
        f"{FIRST}.conversation",
        4,
    ),
    "other id": (
        case_set('"eval_cases": [{}]'.format(case(conversation(turn(YES)), '"evalId": "b"'))),
        f"{FIRST}.eval_id",
        2,
    ),
    "response": (
        case_set('"eval_cases": [{}]'.format(case(conversation(turn(NO, f"\n{YES}"))))),
        f"{FIRST}.conversation[0].final_response",
        4,
    ),
    "args": (
        case_set(f'"eval_cases": [{case(conversation(turn(YES, CALLS)))}]'),
        f"{FIRST}.conversation[0].intermediate_data.tool_uses[0].args.a",
        4,
    ),
    "old format": (
        '[{"query": "hi", "expected_tool_use": [],\n"reference": "no",\n"reference": "hello"}]',
        "[0].reference",
        3,
    ),
    "dataset": (
        '{{"eval_cases": [{{{}}}]}}'.format(",\n".join((PROMPT, REFERENCE % "no", REFERENCE % "hello"))),
        f"{FIRST}.reference",
        3,
    ),
}
MATCHES = '"threshold": 1, "match_type": "EXACT", "matchType": "ANY_ORDER"'
CONFIGS = {
    "criteria": (
        '{"criteria": {"safety_v1": 1},\n"criteria": {"response_match_score": 0.1}}',
        "criteria",
        2,
    ),
    "threshold": (
        '{"criteria": {"response_match_score": {"threshold": 1,\n"threshold": 0.1}}}',
        "criteria.response_match_score.threshold",
        2,
    ),
    "other option": (
        f'{{"criteria": {{"tool_trajectory_avg_score": {{{MATCHES}}}}}}}',
        "criteria.tool_trajectory_avg_score.match_type",
        1,
    ),
}


@pytest.fixture
def agent(tmp_path):
    write(tmp_path / "desk" / "agent.py", AGENT)
    return tmp_path / "desk"


def refused(agent, file, path, line, capsys):
    for words in (
        ("run", agent),
        ("run", agent, "--adk-verdicts"),
        ("score", agent / "none.json", "--home", agent),
    ):
        assert call(*words) == 2
        if words[0] == "run":
            assert f"{file}:{line}: {path}: given " in capsys.readouterr().err
    assert call("lint", agent) == 1
    assert f"{file}:{line}: error: {path}: given " in capsys.readouterr().out
    with pytest.raises(EvalSetError, match="given "):
        evaluate_sync(agent)


@pytest.mark.parametrize("name", SETS)
def test_a_set_with_one_is_refused(agent, name, capsys, pytester):
    text, path, line = SETS[name]
    file = write(agent / "orders.test.json", text)
    refused(agent, file, path, line, capsys)
    result = pytester.runpytest_inprocess("--evaltui", agent)
    assert "passed" not in result.parseoutcomes()
    assert "given " in result.stdout.str()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_with_one_is_refused(agent, name, capsys):
    text, path, line = CONFIGS[name]
    write(agent / "orders.evalset.json", case_set(f'"eval_cases": [{GOOD}]'))
    refused(agent, write(agent / "test_config.json", text), path, line, capsys)


def test_criteria_in_both_places_are_named(agent, capsys):
    config = {"criteria": {"response_match_score": 1}, "evaltui": {"criteria": {"response_match_score": 0.1}}}
    write(agent / "orders.evalset.json", case_set(f'"eval_cases": [{GOOD}]'))
    file = write(agent / "test_config.json", json.dumps(config))
    assert call("lint", agent) == 0
    message = (
        f"{file}:1: warning: criteria.response_match_score: ignored: evaltui.criteria has it, too. Remove one"
    )
    assert message in capsys.readouterr().out
