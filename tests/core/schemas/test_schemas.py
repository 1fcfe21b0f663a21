"""What evaltui accepts fits its schemas, and what it refuses for its shape does not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from eval_data import make_case
from json_places import places, value_at
from jsonschema import Draft7Validator

from evaltui.commands.schema import config_schema, eval_set_schema, proposal
from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.json_values import camel
from evaltui.core.model.problems import Problem, Severity
from evaltui.core.model.tool_schema import DeclaredTool
from evaltui.core.model.validation import validate_eval_set

Json = dict[str, Any]
ROOT = Path(__file__).parents[3]

TOOLS = [
    DeclaredTool(
        "find",
        "Finds orders.",
        {
            "type": "OBJECT",
            "properties": {
                "state": {"$ref": "#/$defs/State"},
                "of": {"type": "object", "properties": {"id": {"type": "integer"}}},
            },
            "required": ["state"],
            "additionalProperties": False,
            "$defs": {"State": {"type": "STRING", "enum": ["late", "sent"]}},
        },
    ),
    DeclaredTool("send", parameters=None),
]
SETS = Draft7Validator(eval_set_schema(TOOLS))
CONFIGS = Draft7Validator(config_schema(TOOLS))

TEXT = {"role": "user", "parts": [{"text": "hello"}]}
SET: Json = {
    "eval_set_id": "s",
    "name": "S",
    "creation_timestamp": 1.5,
    "eval_cases": [
        make_case(
            "a",
            {
                "invocation_id": "i",
                "user_content": TEXT,
                "final_response": {
                    "role": "model",
                    "parts": [
                        {"text": "x", "thought": True},
                        {"inline_data": {"data": "aGk=", "mime_type": "a/b"}},
                    ],
                },
                "intermediate_data": {
                    "tool_uses": [{"name": "find", "args": {"state": "late", "of": {"id": 1}}, "id": "1"}],
                    "tool_responses": [
                        {"name": "find", "response": {"x": 1}, "id": "1", "scheduling": "SILENT"}
                    ],
                    "intermediate_responses": [["helper", [{"text": "wait"}]]],
                },
                "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "t"}}],
                "duration": 2,
            },
            {
                "user_content": TEXT,
                "intermediate_data": {
                    "invocation_events": [
                        {"author": "x", "content": {"parts": [{"function_call": {"name": "send"}}]}}
                    ]
                },
                "app_details": {"agent_details": {"x": {"name": "x", "tool_declarations": [1]}}},
            },
            session_input={"app_name": "a", "user_id": "u", "state": {"k": None}},
            final_session_state={"k": 1},
        ),
        {
            "eval_id": "b",
            "conversation_scenario": {
                "starting_prompt": "p",
                "conversation_plan": "q",
                "user_persona": "NOVICE",
            },
        },
    ],
}
CONFIG: Json = {
    "$schema": "x",
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1, "match_type": "IN_ORDER", "lower_is_better": False},
        "response_match_score": 0.8,
        "mine": 0.5,
    },
    "custom_metrics": {
        "mine": {
            "code_config": {"name": "a.b"},
            "metric_info": {
                "metric_name": "mine",
                "metric_value_info": {"interval": {"min_value": 0, "max_value": 1}},
            },
        }
    },
    "user_simulator_config": {
        "type": "llm_backed",
        "model": "m",
        "max_allowed_invocations": 3,
        "include_function_calls": True,
    },
    "evaltui": {
        "criteria": {
            "trajectory_recall": 0.9,
            "trajectory_single_tool_use": {"threshold": 1, "tool": "find"},
            "own": {"threshold": 0, "function": "a.b", "interval": {"min_value": 0, "max_value": 1}},
        },
        "optional": ["own"],
        "rules": [
            {"tool": "find", "arg": "q", "match": "ignore"},
            {"tool": "send", "arg": "*", "match": {"approx": {"abs": 1}}, "set": "s"},
        ],
        "turns": [{"set": "s", "case": "a", "turn": 0, "mode": "skip"}],
        "repeats": {"runs": 3, "pass_if": 0.5},
        "thoughts": "score",
        "tools": {"find": "stub"},
    },
}

_LISTED = (
    "needs exactly one of",  # conversation, conversation_scenario; regex, approx, any_of
    "given twice",
    "duplicate id",
    "cannot stand beside invocation events",
    "unknown persona",
    "base64",
    "its threshold, ",
    "must be a finite number",
    "at most 1, is the string",  # bounds of numbers in quotes
    "is not the path of",
    "must begin with the name",
    "must be the name of a tool",
    "needs abs, rel or both",
    "any_of needs",
    "not a regular expression",
    "must contain {{",
    "surrogate",
    "must be an integer, is the number",  # 1e300
    "unknown metric",
    "belongs under evaltui.criteria",
    "takes no threshold",
    "needs the name of the tool",
    "match_type must be",
    "ignore_args must be",
    "judge_model_options: ",
    "its rubrics cannot be read",
)
"""Of what no schema speaks: what must be once, unique, or right in itself."""


_VALUES = (
    None,
    True,
    False,
    0,
    1,
    7,
    -1,
    0.5,
    1e300,
    "",
    "x",
    "1",
    " 2.5",
    "true",
    "off",
    "NOVICE",
    "ignore",
    [],
    {},
    [1],
    ["a", []],
    {"parts": []},
    {"x": 1},
    {"tool_uses": []},
    {"name": "find", "args": {"state": 5}},
)
_KEYS = (
    "x",
    "text",
    "threshold",
    "evalCases",
    "eval_cases",
    "$schema",
    "args",
    "name",
    "rules",
    "conversation",
)


def changed(data: Json, seed: int) -> Any:
    """The data after a few changes of values and keys anywhere in it."""
    data, draw = copy.deepcopy(data), Random(seed)
    for _ in range(draw.randint(1, 3)):
        *above, last = draw.choice(list(places(data)) or [("x",)])
        parent = value_at(data, above)
        kind, value = draw.choice(("value", "gone", "respelt", "added")), copy.deepcopy(draw.choice(_VALUES))
        if kind == "added" and isinstance(parent, dict):
            parent[draw.choice((*_KEYS, camel(str(last))))] = value
        elif kind == "respelt" and isinstance(last, str):
            parent[camel(last)] = parent.pop(last)
        elif kind == "gone":
            del parent[last]
        else:
            parent[last] = value
    return data


def check(data: Any, accepted: bool, problems: list[Problem], schema: Draft7Validator) -> None:
    errors = [one.message for one in problems if one.severity is Severity.ERROR]
    found = [f"{list(one.path)}: {one.message}"[:300] for one in schema.iter_errors(data)]
    given_twice = any("counts" in one.message for one in problems)
    if accepted and not given_twice:
        assert found == [], json.dumps(data)
    elif not accepted and not found:
        assert all(any(part in one for part in _LISTED) for one in errors), (errors, json.dumps(data))


EXAMPLES = pytest.mark.parametrize(
    "seeds", [range(500), pytest.param(range(500, 20_000), marks=pytest.mark.thorough)], ids=["few", "many"]
)


@pytest.mark.filterwarnings("ignore:.* is not a valid")
@EXAMPLES
def test_sets(seeds):
    for data in (changed(SET, seed) for seed in seeds):
        eval_set, problems = validate_eval_set(data)
        check(data, eval_set is not None, problems, SETS)


@pytest.mark.filterwarnings("ignore:.* is not a valid")
@EXAMPLES
def test_configs(seeds):
    for data in (changed(CONFIG, seed) for seed in seeds):
        config, problems = validate_config(data)
        check(data, config is not None, problems, CONFIGS)


def test_the_examples_are_accepted():
    (problem,) = validate_eval_set(SET)[1]
    assert problem.message.startswith("not compared: ")
    assert validate_config(CONFIG)[1] == []
    for schema in (SETS, CONFIGS):
        Draft7Validator.check_schema(schema.schema)


# What a sample has written when it was run is in hidden folders.
FILES_OF_SAMPLES = sorted((ROOT / "sample_agents").glob("*/*.json"))


@pytest.mark.parametrize("path", FILES_OF_SAMPLES, ids=lambda path: path.name)
def test_the_files_of_samples_fit(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    is_config = path.name == "test_config.json"
    assert list((CONFIGS if is_config else SETS).iter_errors(data)) == []


def test_sets_of_old_formats_fit():
    assert SETS.is_valid([{"query": "x", "expected_tool_use": [], "reference": "y"}])


@pytest.mark.parametrize("value", [None, True, 5, "x", [], {}, {"a": [1, {"b": "c"}]}, {"state": 5}])
@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "string", "minLength": 3},
        {"enum": []},
        {"const": 5, "description": "Five"},
        {
            "oneOf": [
                {"type": "object", "required": ["x"], "properties": {"a": {"type": "null"}}},
                {"type": "null"},
            ]
        },
        {"type": "array", "items": {"type": "INTEGER", "minimum": 3}, "minItems": 4},
        {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
        {
            "type": "object",
            "properties": {"a": {"items": {"properties": {"b": {"enum": [1]}}}}},
            "additionalProperties": False,
        },
        TOOLS[0].parameters,
    ],
)
def test_a_proposal_refuses_nothing(schema, value):
    proposed = proposal(schema)
    Draft7Validator.check_schema(proposed)
    assert Draft7Validator(proposed).is_valid(value)


def test_tools_are_proposed_by_name_and_their_arguments_with_it():
    call = SETS.schema["definitions"]["FunctionCall"]
    assert [one.get("const") for one in call["properties"]["name"]["anyOf"]] == ["find", "send", None, None]
    [of_find] = call["allOf"]
    assert of_find["if"]["properties"]["name"] == {"const": "find"}
    properties = of_find["then"]["properties"]["args"]["properties"]
    assert properties["state"]["anyOf"] == [{"enum": ["late", "sent"]}, {}]
    assert properties["of"]["properties"]["id"]["anyOf"] == [{"type": "integer"}, {}]


def test_every_metric_that_takes_a_threshold_is_proposed_with_its_options():
    block = CONFIGS.schema["definitions"]["EvaltuiBlock"]["properties"]
    proposed = CONFIGS.schema["properties"]["criteria"]["properties"] | block["criteria"]["properties"]
    assert proposed.keys() == {name for name, info in METRICS.items() if info.gates}
    for name, schema in proposed.items():
        for option in METRICS[name].options:
            found = schema
            for step in option.path:
                found = found["properties"][step]
            assert found["description"] == option.meaning
    assert (
        block["criteria"]["properties"]["trajectory_single_tool_use"]["properties"]["tool"]["anyOf"][0][
            "const"
        ]
        == "find"
    )


def test_what_is_documented_below_a_field_is_its_description():
    case = SETS.schema["definitions"]["EvalCase"]["properties"]
    assert case["eval_id"]["description"] == case["evalId"]["description"] == "Unique in its set."
    fields = [*SETS.schema["definitions"]["Invocation"]["properties"].values(), *case.values()]
    assert all("description" in one for one in fields)
