"""What is wrong with the rules of a config, in sentences at the place."""

import pytest

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.model.config import EvalConfig


def problems(rule):
    found = validate_config({"criteria": {"safety_v1": 1}, "evaltui": {"rules": [rule]}})[1]
    return [f"{problem.severity} {problem}" for problem in found]


def matching(match):
    return problems({"tool": "find", "arg": "query", "match": match})


@pytest.mark.parametrize(
    "match",
    [
        "ignore",
        "type",
        "subset",
        "case_insensitive",
        {"regex": r"\d{4}"},
        {"approx": {"abs": 0}},
        {"approx": {"abs": 0.5, "rel": 0.01}},
        {"any_of": [None]},
    ],
)
def test_every_kind_of_match(match):
    assert matching(match) == []
    rule = {"tool": "find", "arg": "filter.as_of", "match": match, "set": "orders", "case": "late"}
    assert problems(rule) == []
    config = EvalConfig.model_validate({"evaltui": {"rules": [rule]}})
    dumped = config.model_dump(mode="json", exclude_defaults=True)
    assert EvalConfig.model_validate(dumped) == config


@pytest.mark.parametrize(
    ("match", "problem"),
    [
        (
            "ignored",
            "match: must be ignore, type, subset or case_insensitive, "
            'or an object with regex, approx or any_of, is the string "ignored". Did you mean ignore?',
        ),
        (
            ["ignore"],
            "match: must be ignore, type, subset or case_insensitive, "
            "or an object with regex, approx or any_of, is a list",
        ),
        ({}, "match: needs exactly one of regex, approx and any_of, has none of them"),
        (
            {"regex": "a", "any_of": [1]},
            "match: needs exactly one of regex, approx and any_of, has regex and any_of",
        ),
        ({"regexp": "a"}, "match.regexp: not known to this version of evaltui. Did you mean regex?"),
        (
            {"regex": "(a"},
            "match.regex: is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        ({"regex": 5}, "match.regex: must be a string, is the number 5"),
        ({"any_of": []}, "match: any_of needs at least one value"),
        ({"any_of": "a"}, 'match.any_of: must be a list, is the string "a"'),
        ({"approx": 0.5}, "match.approx: must be an object, is the number 0.5"),
        ({"approx": {}}, 'match.approx: needs abs, rel or both, such as {"abs": 0.5}'),
        ({"approx": {"abs": -1}}, "match.approx.abs: must be at least 0, is the number -1"),
        ({"approx": {"rel": "1%"}}, 'match.approx.rel: must be a number, is the string "1%"'),
    ],
)
def test_what_is_no_match(match, problem):
    assert matching(match) == [f"error evaltui.rules[0].{problem}"]


def test_what_is_no_rule():
    assert problems({}) == [f"error evaltui.rules[0].{key}: missing" for key in ("tool", "arg", "match")]
    assert problems(3) == ["error evaltui.rules[0]: must be an object, is the number 3"]
    assert problems({"tool": "", "arg": "a..b", "match": "ignore", "cse": "late"}) == [
        "error evaltui.rules[0].tool: must be the name of a tool, is empty",
        "error evaltui.rules[0].arg: is not the path of an argument from its character 2 on; "
        "paths are such as query, filter.as_of, items[0], items[*].id, ['a.b'], or * for all",
        "error evaltui.rules[0].cse: not known to this version of evaltui. Did you mean case?",
    ]
