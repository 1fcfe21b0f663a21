"""What is refused is what google-adk refuses."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from eval_data import make_case
from hypothesis import given
from hypothesis import strategies as st
from json_places import places, value_at

pytest.importorskip("google.adk.evaluation.eval_set")

from google.adk.evaluation.eval_set import EvalSet as AdkEvalSet

from evaltui.core.model.problems import format_path
from evaltui.core.model.validation import validate_eval_set

pytestmark = pytest.mark.adk

USER = {
    "role": "user",
    "parts": [{"text": "hi"}, {"inline_data": {"data": "aGk=", "mime_type": "text/plain"}}],
}
CALL = {"id": "1", "name": "f", "args": {"x": [1, None, {"y": 2.5}]}}
SET = {
    "eval_set_id": "s",
    "name": "S",
    "creation_timestamp": 1.5,
    "eval_cases": [
        make_case(
            "a",
            {
                "invocation_id": "i",
                "user_content": USER,
                "final_response": {"role": "model", "parts": [{"text": "answer"}]},
                "intermediate_data": {
                    "tool_uses": [CALL],
                    "tool_responses": [{"id": "1", "name": "f", "response": {}}],
                    "intermediate_responses": [["helper", [{"text": "wait"}]]],
                },
                "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "polite"}}],
                "app_details": {"agent_details": {"root": {"name": "root", "tool_declarations": [{}]}}},
            },
            {
                "userContent": USER,
                "intermediateData": {
                    "invocationEvents": [
                        {"author": "root", "content": {"parts": [{"functionCall": CALL}]}, "mine": 1}
                    ]
                },
            },
            session_input={"app_name": "app", "user_id": "u", "state": {"k": 1}},
            final_session_state={"k": 2},
        ),
        {
            "eval_id": "b",
            "conversation_scenario": {
                "starting_prompt": "go",
                "conversation_plan": "plan",
                "user_persona": "NOVICE",
            },
        },
    ],
}


_VALUES = st.sampled_from(
    [
        None,
        5,
        -1.5,
        "",
        "text",
        "12",
        True,
        [],
        {},
        [None],
        [[]],
        [{}],
        {"a": 1},
        {"parts": []},
        {"text": "x"},
    ]
)
_KEYS = st.sampled_from(
    [
        "userContent",
        "user_content",
        "conversation",
        "conversation_scenario",
        "invocation_events",
        "text",
        "mine",
    ]
)


def _refused_by_adk(data: Any) -> bool:
    try:
        AdkEvalSet.model_validate_json(json.dumps(data))
    except Exception:
        # Besides pydantic's errors: an unknown persona raises one of ADK's own.
        return True
    return False


@given(st.data())
def test_a_changed_set_is_refused_where_adk_refuses_it(draw):
    data = copy.deepcopy(SET)
    for _ in range(draw.draw(st.integers(1, 2))):
        spots = list(places(data))
        *above, step = spots[draw.draw(st.integers(0, len(spots) - 1))]
        parent = value_at(data, above)
        change = draw.draw(st.sampled_from(["remove", "replace", "rename", "add"]))
        if change == "replace":
            parent[step] = copy.deepcopy(draw.draw(_VALUES))
        elif change == "remove":
            del parent[step]
        elif isinstance(parent, dict):
            value = parent.pop(step) if change == "rename" else copy.deepcopy(draw.draw(_VALUES))
            parent[draw.draw(_KEYS)] = value
    eval_set, problems = validate_eval_set(data)
    refused = [problem for problem in problems if not problem.message.startswith("duplicate id")]
    said = [f"{problem.severity} {format_path(problem.path)}: {problem.message}" for problem in refused]
    assert (eval_set is None) == _refused_by_adk(data), said
