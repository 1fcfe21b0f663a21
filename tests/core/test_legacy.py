from __future__ import annotations

import json

import pytest

from evaltui.core.model.eval_set import EvalSet, full_text, intermediate_texts, tool_calls
from evaltui.core.model.old_formats import from_old_eval_set, from_old_test, kind_of, session_input
from evaltui.core.model.problems import Severity

TURN = {
    "query": "Turn off the lamp",
    "expected_tool_use": [
        {"tool_name": "set_device", "tool_input": {"id": "lamp", "on": False}, "mock_tool_output": "ok"}
    ],
    "expected_intermediate_agent_responses": [{"author": "helper", "text": "one moment"}],
    "reference": "It is off.",
}


def sentences(problems):
    return [f"{problem.severity}: {problem}" for problem in problems]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({}, "eval set"),
        ({"query": "x"}, "eval set"),
        ([TURN], "old test"),
        ([{"qery": "x", "reference": "y"}], "old test"),
        ([{"name": "a", "data": []}], "old eval set"),
        ([{"name": "a", "initial_session": {}}], "old eval set"),
        ([3, {"name": "a", "data": 5}], "old eval set"),
        ([], None),
        ([[TURN]], None),
        ([{"name": "a"}], None),
        ("text", None),
        (None, None),
    ],
)
def test_the_outline_alone_decides_the_format(data, kind):
    assert kind_of(data) == kind


def test_an_old_test_becomes_one_case():
    data, problems = from_old_test([TURN, {"query": "And now?"}], "lamps")
    assert problems == []
    eval_set = EvalSet.model_validate_json(json.dumps(data))
    assert eval_set.eval_set_id == eval_set.name == "lamps"
    (case,) = eval_set.eval_cases
    assert case.eval_id == "lamps"
    assert case.session_input is None
    first, second = case.conversation
    assert (first.user_content.role, first.final_response.role) == ("user", "model")
    assert full_text(first.user_content) == "Turn off the lamp"
    assert full_text(first.final_response) == "It is off."
    (call,) = tool_calls(first.intermediate_data)
    assert (call.name, call.args, call.id) == ("set_device", {"id": "lamp", "on": False}, None)
    assert intermediate_texts(first.intermediate_data) == [("helper", "one moment")]
    assert full_text(second.final_response) == ""
    assert tool_calls(second.intermediate_data) == []


def test_an_old_test_takes_an_initial_session():
    session, problems = session_input({"id": "s", "app_name": "home", "state": {"mode": "night"}})
    assert [str(problem) for problem in problems] == ["id: unknown key, ignored"]
    data, _ = from_old_test([TURN], "lamps", session)
    case = EvalSet.model_validate_json(json.dumps(data)).eval_cases[0]
    assert case.session_input.app_name == "home"
    assert case.session_input.user_id == ""
    assert case.session_input.state == {"mode": "night"}


def test_an_old_eval_set_becomes_a_case_per_session():
    data, problems = from_old_eval_set(
        [
            {"name": "one", "data": [TURN, TURN], "initial_session": {"app_name": "a", "user_id": "u"}},
            {"name": "two", "data": [TURN], "initial_session": {}},
        ],
        "home",
    )
    assert problems == []
    eval_set = EvalSet.model_validate_json(json.dumps(data))
    assert [(case.eval_id, len(case.conversation)) for case in eval_set.eval_cases] == [
        ("one", 2),
        ("two", 1),
    ]
    assert eval_set.eval_cases[0].session_input.user_id == "u"
    assert eval_set.eval_cases[1].session_input is None


def test_everything_wrong_with_an_old_test_is_reported_at_its_own_path():
    data, problems = from_old_test(
        [
            {"reference": 5, "expected_tool_use": [{"tool_name": "f"}, "g", {"tool_input": []}]},
            7,
            {"query": "q", "expected_tool_uses": [], "expected_intermediate_agent_responses": {"a": 1}},
        ],
        "x",
    )
    assert data is None
    assert sentences(problems) == [
        "error: [0].query: missing",
        "error: [0].reference: must be a string, is the number 5",
        "error: [0].expected_tool_use[0].tool_input: missing",
        'error: [0].expected_tool_use[1]: must be an object, is the string "g"',
        "error: [0].expected_tool_use[2].tool_name: missing",
        "error: [0].expected_tool_use[2].tool_input: must be an object, is a list",
        "error: [1]: must be an object, is the number 7",
        "error: [2].expected_tool_uses: unknown key. Did you mean expected_tool_use?",
        "error: [2].expected_intermediate_agent_responses: must be a list, is an object",
    ]


def test_everything_wrong_with_an_old_eval_set_is_reported_at_its_own_path():
    data, problems = from_old_eval_set(
        [
            {"name": "one", "data": [{"query": None}]},
            {"name": "one", "data": 3, "initial_session": {"state": [], "app_name": 1}},
            {"data": [TURN], "initial_session": "x"},
        ],
        "x",
    )
    assert data is None
    assert sentences(problems) == [
        "error: [0].data[0].query: must be a string, is null",
        "error: [1].data: must be a list, is the number 3",
        "error: [1].initial_session.app_name: must be a string, is the number 1",
        "error: [1].initial_session.state: must be an object, is a list",
        "error: [2].name: missing",
        'error: [2].initial_session: must be an object with app_name, user_id and state, is the string "x"',
        "error: [1].name: duplicate name 'one'; [0] has it too",
    ]


def test_a_session_without_turns_is_a_warning():
    data, problems = from_old_eval_set([{"name": "one", "data": []}], "x")
    assert data is not None
    assert [problem.severity for problem in problems] == [Severity.WARNING]


def test_null_is_taken_where_adk_takes_it():
    turn = {"query": "q", "reference": None, "expected_tool_use": [{"tool_name": "f", "tool_input": None}]}
    data, problems = from_old_test([turn], "x")
    assert problems == []
    case = EvalSet.model_validate_json(json.dumps(data)).eval_cases[0]
    assert full_text(case.conversation[0].final_response) == ""
    assert tool_calls(case.conversation[0].intermediate_data)[0].args is None
