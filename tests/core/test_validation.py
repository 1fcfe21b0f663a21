from __future__ import annotations

import json
from typing import Any

import pytest
from eval_data import make_case, make_turn
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.problems import Severity
from evaltui.core.model.validation import case_warnings, validate_case, validate_eval_set

USER = {"role": "user", "parts": [{"text": "hello"}]}


def case(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"eval_id": "a", "conversation": list(turns), **more}


def found(*cases: Any, **more: Any) -> list[str]:
    """Every problem of a set with these cases, as `severity path: message`, the path within the set."""
    _, problems = validate_eval_set({"eval_set_id": "s", "eval_cases": list(cases), **more})
    return [f"{problem.severity} {problem}" for problem in problems]


def of_turn(**turn: Any) -> list[str]:
    """Every problem of one turn, the path within the turn."""
    prefix = "eval_cases[0].conversation[0]."
    return [line.replace(prefix, "") for line in found(case({"user_content": USER, **turn}))]


def test_a_sound_set_has_no_problems():
    turn = {
        "user_content": USER,
        "final_response": {"role": "model", "parts": [{"text": "hi"}]},
        "intermediate_data": {
            "tool_uses": [{"name": "f", "args": {"x": 1}, "id": "1"}],
            "tool_responses": [{"name": "f", "response": {"y": 2}, "id": "1"}],
            "intermediate_responses": [["helper", [{"text": "wait"}]]],
        },
    }
    eval_set, problems = validate_eval_set(
        {"eval_set_id": "s", "name": "S", "eval_cases": [case(turn, _tags=["mine"])], "$own": 1}
    )
    assert problems == []
    assert eval_set is not None
    assert eval_set.name == "S"
    assert eval_set.eval_cases[0].conversation[0].intermediate_data.tool_uses[0].args == {"x": 1}
    assert eval_set.eval_cases[0].model_extra == {"_tags": ["mine"]}


def test_bytes_are_read_as_base64():
    blob = {"inline_data": {"data": "aGVsbG8=", "mime_type": "text/plain"}}
    read, problems = validate_case(case({"user_content": {"role": "user", "parts": [blob]}}))
    assert problems == []
    assert read.conversation[0].user_content.parts[0].inline_data.data == b"hello"


def test_a_missing_key_is_named_in_the_spelling_around_it():
    assert found(case({"invocation_id": "x"})) == [
        "error eval_cases[0].conversation[0].user_content: missing"
    ]
    camel = {"evalId": "a", "conversation": [{"invocationId": "x"}, {}], "sessionInput": {"appName": "a"}}
    assert found(camel) == [
        "error eval_cases[0].conversation[0].userContent: missing",
        "error eval_cases[0].conversation[1].userContent: missing",
        "error eval_cases[0].sessionInput.userId: missing",
    ]
    assert found({}) == ["error eval_cases[0].eval_id: missing"]


@pytest.mark.parametrize(
    ("turn", "problem"),
    [
        ({"user_contents": USER}, "user_contents: unknown key. Did you mean user_content?"),
        ({"qqq": 1}, "qqq: unknown key"),
        ({"userContent": USER}, "user_content: given twice, also as userContent; remove one"),
        (
            {"final_response": {"parts": [{"tex": "x"}]}},
            "final_response.parts[0].tex: unknown key. Did you mean text?",
        ),
        (
            {"intermediate_data": {"tool_uses": [{"nmae": "f"}]}},
            "intermediate_data.tool_uses[0].nmae: unknown key. Did you mean name?",
        ),
        (
            {"intermediateData": {"toolUses": [{"name": "f", "args": []}]}},
            "intermediateData.toolUses[0].args: must be an object, is a list",
        ),
        (
            {"intermediate_data": {"invocation_events": [{"author": 5}]}},
            "intermediate_data.invocation_events[0].author: must be a string, is the number 5",
        ),
        (
            {"intermediate_data": {"invocation_events": [], "tool_uses": []}},
            "intermediate_data.tool_uses: cannot stand beside invocation events; a turn has one or the other",
        ),
        ({"intermediate_data": {"lists": []}}, "intermediate_data.lists: unknown key"),
        ({"intermediate_data": 5}, "intermediate_data: must be an object, is the number 5"),
        (
            {"intermediate_data": {"intermediate_responses": [["author"]]}},
            "intermediate_data.intermediate_responses[0]: has too few entries: needs 2",
        ),
        (
            {"intermediate_data": {"intermediate_responses": [["author", [], 3]]}},
            "intermediate_data.intermediate_responses[0]: has too many entries: 3 instead of 2",
        ),
        (
            {"final_response": "it's off"},
            'final_response: must be an object, is the string "it\'s off"; '
            'write {"parts": [{"text": "it\'s off"}]}',
        ),
        (
            {"user_content": {"parts": [{"inline_data": {"data": "***"}}]}},
            "user_content.parts[0].inline_data.data: must be base64 data, which this text is not",
        ),
        ({"duration": "long"}, 'duration: must be a number, is the string "long"'),
        ({"rubrics": {}}, "rubrics: must be a list, is an object"),
        (
            {"app_details": {"agent_details": {"my agent": {}}}},
            "app_details.agent_details['my agent'].name: missing",
        ),
        (
            {"invocation_id": "\ud83d"},
            "invocation_id: has half of a surrogate pair (such as \\ud83d), which is not a character",
        ),
    ],
)
def test_what_adk_refuses_in_a_turn(turn, problem):
    assert of_turn(**turn) == [f"error {problem}"]


def test_a_typo_of_a_tolerated_key_is_an_error_beside_the_one_it_causes():
    assert found({"eval_id": "a", "conversatoin": [{"user_content": USER}]}) == [
        "error eval_cases[0]: needs exactly one of conversation and conversation_scenario, has neither",
        "error eval_cases[0].conversatoin: unknown key. Did you mean conversation?",
    ]


def test_typos_are_found_at_every_level_that_adk_tolerates():
    event = {"author": "x", "contents": None}
    assert found(
        case(
            {"user_content": USER, "intermediate_data": {"invocation_events": [event]}},
            session_input={"app_name": "a", "user_id": "u", "sate": {}},
            rubric=[],
        ),
        nmae="x",
    ) == [
        "warning nmae: unknown key. Did you mean name?",
        "error eval_cases[0].rubric: unknown key. Did you mean rubrics?",
        "error eval_cases[0].session_input.sate: unknown key. Did you mean state?",
        "error eval_cases[0].conversation[0].intermediate_data.invocation_events[0].contents: "
        "unknown key. Did you mean content?",
    ]


def test_keys_of_events_that_nothing_reads_are_named_unless_google_adk_has_them():
    events = [
        {"author": "x", "NOTE": None},
        {"author": "x", "turnComplete": True, "cache_metadata": {}, "data": 1},
        {"author": "x", "usage_metadatas": {}},
    ]
    place = "warning eval_cases[0].conversation[0].intermediate_data.invocation_events"
    assert found(case({"user_content": USER, "intermediate_data": {"invocation_events": events}})) == [
        f"{place}[0].NOTE: unknown key, ignored",
        f"{place}[1].data: unknown key, ignored",
        f"{place}[2].usage_metadatas: unknown key. Did you mean usage_metadata?",
    ]


@pytest.mark.parametrize("key", ["session_id", "conversation_id", "session_info", "rubric_ids", "sessionId"])
def test_a_key_that_only_begins_like_one_is_another_name(key):
    (problem,) = found(case({"user_content": USER}, **{key: "x"}))
    assert problem.startswith(f"warning eval_cases[0].{key}: unknown key")


def test_an_unknown_key_is_named_once_with_its_number_and_a_comment_is_none():
    cases = [case({"user_content": USER}, owner="me", _why="", evalIds=[]) for _ in range(3)]
    for number, one in enumerate(cases):
        one["eval_id"] = str(number)
    assert found(*cases) == [
        "warning eval_cases[0].owner: unknown key, ignored; also in 2 other places",
        "warning eval_cases[0].evalIds: unknown key, ignored; also in 2 other places",
    ]


@pytest.mark.parametrize("scenario", [{"starting_prompt": "x", "conversation_plan": "y"}, None])
def test_a_case_is_either_a_conversation_or_a_scenario(scenario):
    both = found(case({"user_content": USER}, conversation_scenario=scenario))
    assert bool(both) == bool(scenario)
    assert found({"eval_id": "a", "conversation": None, "conversation_scenario": scenario}) == (
        []
        if scenario
        else ["error eval_cases[0]: needs exactly one of conversation and conversation_scenario, has neither"]
    )


def test_an_unknown_persona_and_an_incomplete_one():
    plan = {"starting_prompt": "x", "conversation_plan": "y"}
    assert found({"eval_id": "a", "conversation_scenario": {**plan, "user_persona": "BORED"}}) == [
        "error eval_cases[0].conversation_scenario.user_persona: "
        "unknown persona 'BORED'; the built-in ones are EXPERT, NOVICE, EVALUATOR"
    ]
    persona = {"id": "x", "description": "d"}
    assert found({"eval_id": "a", "conversation_scenario": {**plan, "user_persona": persona}}) == [
        "error eval_cases[0].conversation_scenario.user_persona.behaviors: missing"
    ]
    assert found({"eval_id": "a", "conversation_scenario": {**plan, "user_persona": 5}}) == [
        "error eval_cases[0].conversation_scenario.user_persona: "
        "must be a string or an object, is the number 5"
    ]


@pytest.mark.parametrize("data", [None, 5, "x", [], [case()]])
def test_a_set_must_be_an_object(data):
    eval_set, problems = validate_eval_set(data)
    assert eval_set is None
    assert "must be an object with eval_set_id and eval_cases" in str(problems[0])


def test_set_fields():
    _, problems = validate_eval_set({"eval_set_id": 5, "eval_cases": {}})
    assert [str(problem) for problem in problems] == [
        "eval_set_id: must be a string, is the number 5",
        "eval_cases: must be a list, is an object",
    ]
    _, problems = validate_eval_set({})
    assert [str(problem) for problem in problems] == ["eval_set_id: missing", "eval_cases: missing"]


def test_camel_case_at_the_set_level_is_read_with_a_warning():
    eval_set, problems = validate_eval_set({"evalSetId": "s", "evalCases": [case({"user_content": USER})]})
    assert eval_set.eval_set_id == "s"
    assert eval_set.eval_cases[0].eval_id == "a"
    assert [f"{problem.severity} {problem}" for problem in problems] == [
        "warning evalSetId: ADK reads only eval_set_id here",
        "warning evalCases: ADK reads only eval_cases here",
    ]


def test_two_spellings_at_the_set_level_are_refused():
    eval_set, problems = validate_eval_set({"evalSetId": "other", "eval_set_id": "s", "eval_cases": []})
    assert eval_set is None
    assert "error evalSetId: given twice, also as eval_set_id; remove one" in [
        f"{problem.severity} {problem}" for problem in problems
    ]


def test_two_spellings_in_a_case_are_refused():
    _, problems = validate_case(make_case("snake", {"userContent": USER}, evalId="camel"))
    assert [f"{one.severity} {one}" for one in problems] == [
        "error eval_id: given twice, also as evalId; remove one"
    ]


def test_duplicate_ids_name_both_cases_even_where_one_is_broken():
    turn = {"user_content": USER}
    broken = {"evalId": "a"}
    assert found(case(turn), case(turn, eval_id="b"), broken, 5, case(turn, eval_id="b")) == [
        "error eval_cases[2].evalId: duplicate id 'a'; eval_cases[0] has it too",
        "error eval_cases[4].eval_id: duplicate id 'b'; eval_cases[1] has it too",
        "error eval_cases[2]: needs exactly one of conversation and conversation_scenario, has neither",
        "error eval_cases[3]: must be an object, is the number 5",
    ]


def test_what_is_empty_is_a_warning():
    eval_set, problems = validate_eval_set({"eval_set_id": "s", "eval_cases": []})
    assert eval_set is not None
    assert [f"{problem.severity} {problem}" for problem in problems] == [
        "warning eval_cases: empty; nothing to run"
    ]
    assert found(case()) == ["warning eval_cases[0].conversation: empty; nothing to run"]


@pytest.mark.parametrize(
    ("response", "orphan"),
    [
        ({"name": "f", "id": "1"}, None),
        ({"name": "f"}, None),
        ({"name": "f", "id": "2"}, "has id '2', here or in an earlier turn"),
        ({"name": "g", "id": "1"}, None),
        ({"name": "g"}, "is 'g', here or in an earlier turn"),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_tool_response_needs_an_expected_call(response, orphan, recorded):
    call = {"name": "f", "id": "1", "args": {}}
    if recorded:
        data = {
            "invocationEvents": [
                {"author": "x", "content": {"parts": [{"functionCall": call}]}},
                {"author": "x", "content": {"parts": [{"text": "t"}, {"functionResponse": response}]}},
            ]
        }
        path = "intermediateData.invocationEvents[1].content.parts[1].functionResponse"
        lines = of_turn(intermediateData=data)
    else:
        path = "intermediate_data.tool_responses[0]"
        lines = of_turn(intermediate_data={"tool_uses": [call], "tool_responses": [response]})
    expected = f"warning {path}: orphan tool response: no expected call {orphan}"
    assert lines == ([expected] if orphan else [])


CALL = {"name": "pay", "id": "1", "args": {}}
AS_LIST = {"intermediate_data": {"tool_uses": [CALL]}}
AS_EVENT = {
    "intermediate_data": {
        "invocation_events": [{"author": "x", "content": {"parts": [{"function_call": CALL}]}}]
    }
}
AS_LAST_EVENT = {"final_response": {"parts": [{"function_call": CALL}]}}


@pytest.mark.parametrize("response", [{"name": "pay", "id": "1"}, {"name": "pay"}])
@pytest.mark.parametrize("call", [AS_LIST, AS_EVENT, AS_LAST_EVENT])
def test_a_response_can_be_that_of_an_earlier_turn_but_not_of_a_later_one(call, response):
    user = make_turn("go")
    with_call = user | call
    with_response = user | {"intermediate_data": {"tool_responses": [response]}}
    assert found(case(with_call, with_response)) == []
    assert len(found(case(with_response, with_call))) == 1


@pytest.mark.parametrize("role", ["user", "model", None, "function", "assistant"])
def test_unknown_roles(role):
    content = {"role": role, "parts": []}
    unknown = role in ("function", "assistant")
    assert bool(found(case({"user_content": content}))) == unknown
    assert bool(of_turn(final_response=content)) == unknown
    of_event = of_turn(intermediate_data={"invocation_events": [{"author": "x", "content": content}]})
    assert bool(of_event) == (role == "assistant")
    if role == "assistant":
        assert of_turn(final_response=content) == [
            "warning final_response.role: unknown role 'assistant'; ADK knows user, model"
        ]


@pytest.mark.parametrize("name", ["inline_data", "inlineData", "file_data", "fileData"])
def test_an_attachment_of_an_expected_response_is_named_as_not_compared(name):
    image = {name: {"mime_type": "image/png", "data": "iVBORw=="}}
    parts = [{"text": "See the chart."}, image if "nline" in name else {name: {"file_uri": "gs://b/c.png"}}]

    (problem,) = of_turn(final_response={"parts": parts})
    assert problem.endswith(
        f"final_response.parts[1].{name}: not compared: built-in metrics read the texts of a response"
    )
    assert of_turn(user_content={"parts": parts}) == []


def test_case_warnings_stand_alone():
    read = EvalCase.model_validate({"evalId": "a", "conversation": [{"userContent": {"role": "robot"}}]})
    assert [str(problem) for problem in case_warnings(read)] == [
        "conversation[0].user_content.role: unknown role 'robot'; ADK knows user, model"
    ]
    assert case_warnings(EvalCase.model_validate(case({"user_content": USER}))) == []


def test_too_many_levels_are_a_problem_of_the_case():
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    (line,) = found(case({"user_content": USER}, _mine=deep))
    assert line.startswith("error eval_cases[0]: cannot be read as JSON: recursion limit exceeded")


def test_whatever_a_validator_raises_is_a_problem_of_the_case(monkeypatch):
    def explode(*_: Any) -> None:
        raise KeyError("inside a validator")

    monkeypatch.setattr(EvalCase, "model_validate_json", explode)
    assert found(case()) == ["error eval_cases[0]: cannot be read: KeyError: 'inside a validator'"]


def config_problems(data: Any) -> list[str]:
    return [f"{problem.severity} {problem}" for problem in validate_config(data)[1]]


def test_a_sound_config():
    config, problems = validate_config(
        {
            "criteria": {
                "response_match_score": 0.5,
                "tool_trajectory_avg_score": {"threshold": 1, "matchType": "EXACT"},
            },
            "evaltui": {"criteria": {"trajectory_recall": 0.9}},
            "$comment": "mine",
        }
    )
    assert problems == []
    assert [metric.metric_name for metric in config.metrics()] == [
        "response_match_score",
        "tool_trajectory_avg_score",
        "trajectory_recall",
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([], "error must be an object, is a list"),
        (
            {"criteria": {"m": "high"}},
            'error criteria.m: must be a number or an object, is the string "high"',
        ),
        ({"criteria": {"m": {"treshold": 1}}}, "error criteria.m.threshold: missing"),
        (
            {"criteria": {"m": 1}, "custom_metrics": {"m": {}}},
            "error custom_metrics.m.code_config: missing",
        ),
        (
            {"criteria": {"m": 1}, "evaltui": {"rulez": []}},
            "error evaltui.rulez: not known to this version of evaltui. Did you mean rules?",
        ),
        (
            {"criteria": {"m": 1}, "evaltui": {"repeats": {"run": 1}}},
            "error evaltui.repeats.run: not known to this version of evaltui. Did you mean runs?",
        ),
        (
            {"criteria": {"m": 1}, "evaltui": {"repeats": {"pass_if": "often"}}},
            "error evaltui.repeats.pass_if: must be 'all' or 'majority' or a number, is the string \"often\"",
        ),
        (
            {
                "criteria": {"m": 1},
                "evaltui": {"turns": [{"set": "a", "case": "b", "turn": -1, "mode": "skip"}]},
            },
            "error evaltui.turns[0].turn: must be at least 0, is the number -1",
        ),
        (
            {
                "criteria": {"m": 1},
                "evaltui": {"meant_so": [{"set": "a", "case": "b", "kind": "k", "digest": "XYZ"}]},
            },
            "error evaltui.meant_so[0].digest: must be a text that matches ^[0-9a-f]{12}$, "
            'is the string "XYZ"',
        ),
        (
            {"Criteria": {"safety_v1": 1}, "evaltui": {"criteria": {"seconds": 1}}},
            "error Criteria: unknown key. Did you mean criteria?",
        ),
        (
            {"criteria": {"safety_v1": 1}, "user_simulator_configs": {}},
            "error user_simulator_configs: unknown key. Did you mean user_simulator_config?",
        ),
        (
            {"criteria": {"safety_v1": 1}, "evaltiu": {}},
            "error evaltiu: unknown key. Did you mean evaltui?",
        ),
        ({"criteria": {}}, "warning names no metric, so only final session states are scored"),
    ],
)
def test_what_is_wrong_with_a_config(data, problem):
    assert config_problems(data) == [problem]
    assert (validate_config(data)[0] is None) == problem.startswith("error")


def test_a_config_of_checks_of_answers_scores_something():
    assert config_problems({"criteria": {}, "evaltui": {"answers": [{"contains": ["19"]}]}}) == []


def test_an_optional_metric_is_one_that_is_asked_for():
    data = {"criteria": {"safety_v1": 1}, "evaltui": {"optional": ["safety_v1", "saftey_v1", "x"]}}
    assert config_problems(data) == [
        "warning evaltui.optional[1]: 'saftey_v1' is not a criterion. Did you mean safety_v1?",
        "warning evaltui.optional[2]: 'x' is not a criterion",
    ]


_NAMES = st.sampled_from(
    [
        "eval_id",
        "evalId",
        "conversation",
        "conversation_scenario",
        "user_content",
        "userContent",
        "parts",
        "text",
        "role",
        "intermediate_data",
        "tool_uses",
        "invocation_events",
        "intermediate_responses",
        "author",
        "content",
        "function_call",
        "name",
        "args",
        "session_input",
        "app_name",
        "state",
        "criteria",
        "evaltui",
        "turns",
        "threshold",
        "eval_set_id",
        "eval_cases",
        "evalCases",
        "lists",
        "events",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_nothing_that_is_json_makes_validation_raise(data):
    eval_sets = [data, {"eval_set_id": "s", "eval_cases": [data, make_case("x", data)]}]
    for eval_set in eval_sets:
        model, problems = validate_eval_set(eval_set)
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        assert (model is None) == bool(errors)
        for problem in problems:
            assert _exists(eval_set, problem.path) or problem.message == "missing"
            assert _exists(eval_set, problem.path[:-1])
    config, problems = validate_config({"criteria": data, "evaltui": data})
    assert (config is None) == any(problem.severity is Severity.ERROR for problem in problems)
    assert json.dumps([str(problem) for problem in problems])


def _exists(data: Any, path: tuple[str | int, ...]) -> bool:
    for step in path:
        if isinstance(step, str) and not (isinstance(data, dict) and step in data):
            return False
        if isinstance(step, int) and not (isinstance(data, list) and step < len(data)):
            return False
        data = data[step]
    return True
