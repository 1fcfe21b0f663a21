"""A file of each format of eval sets and configs with every key that its reader knows."""

from typing import Any

from evaltui.core.metrics.registry import METRICS, is_own
from tests.eval_data import Json

USER, ANSWER = {"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "hi"}]}
CALL = {"id": "c", "name": "find", "args": {"query": "x"}}
RESPONSE = {"id": "c", "name": "find", "response": {"ok": 1}, "scheduling": "SILENT", "parts": []}
STATE = {"app_name": "a", "user_id": "u", "state": {"k": 1}}
REFERENCE = {"set": "orders", "case": "one", "turn": 0}


def rubric(name: str) -> Json:
    content = {"text_property": "kind"}
    return {
        "rubric_id": name,
        "rubric_content": content,
        "description": "d",
        "type": "FINAL_RESPONSE_QUALITY",
    }


def flags(*names: str) -> Json:
    return dict.fromkeys(names, False)


BEHAVIOR = {"name": "n", "description": "d", "behavior_instructions": ["x"], "violation_rubrics": ["y"]}
TURN: Json = {
    "invocation_id": "i",
    "creation_timestamp": 1.0,
    **dict.fromkeys(("duration", "model_duration", "tool_duration"), 1.0),
    "user_content": USER,
    "final_response": ANSWER,
    "rubrics": [rubric("t")],
    "app_details": {
        "agent_details": {"root": {"name": "root", "instructions": "i", "tool_declarations": []}}
    },
    "intermediate_data": {
        "tool_uses": [{**CALL, "partial_args": [], "will_continue": False}],
        "tool_responses": [{**RESPONSE, "will_continue": False}],
        "intermediate_responses": [["root", [{"text": "wait"}]]],
    },
}
TOKENS = ("cached_content", "candidates", "prompt", "thoughts", "tool_use_prompt", "total")
DETAILS = ("cache", "candidates", "prompt", "tool_use_prompt")
EVENT: Json = {
    "author": "root",
    "content": {"role": "model", "parts": [{"function_call": CALL}]},
    "model_version": "m",
    "grounding_metadata": {"web_search_queries": ["q"]},
    "usage_metadata": {
        **{f"{name}_token_count": 1 for name in TOKENS},
        **{f"{name}_tokens_details": [] for name in DETAILS},
        "traffic_type": "ON_DEMAND",
    },
}
SCENARIO = {"starting_prompt": "hi", "conversation_plan": "say hi"}
SET: Json = {
    "eval_set_id": "orders",
    "name": "Orders",
    "description": "d",
    "creation_timestamp": 1.0,
    "eval_cases": [
        {
            "eval_id": "one",
            "creation_timestamp": 1.0,
            "session_input": {**STATE, "session_id": "s"},
            "final_session_state": {"k": 1},
            "rubrics": [rubric("c")],
            "conversation": [
                TURN,
                {"user_content": USER, "intermediate_data": {"invocation_events": [EVENT]}},
            ],
        },
        {
            "eval_id": "two",
            "conversation_scenario": {
                **SCENARIO,
                "user_persona": {"id": "p", "description": "d", "behaviors": [BEHAVIOR]},
            },
        },
    ],
}
OLD_SET: list[Json] = [
    {
        "name": "one",
        "data": [
            {
                "query": "hi",
                "expected_tool_use": [
                    {"tool_name": "find", "tool_input": {"query": "x"}, "mock_tool_output": "m"}
                ],
                "expected_intermediate_agent_responses": [{"author": "root", "text": "wait"}],
                "reference": "hi",
            }
        ],
        "initial_session": STATE,
    }
]


def message(author: str, content: Json, **more: str) -> Json:
    return {"author": author, "content": content, "turn_id": "t", "creation_timestamp": "c", **more}


def event(author: str, content: Json) -> Json:
    members = {"state_delta": {}, "event_time": "t", "active_tools": []}
    return {"author": author, "content": content, **members}


DATASET: Json = {
    "eval_cases": [
        {
            "eval_case_id": "one",
            "conversation_history": [message("user", USER), message("root", ANSWER)],
            "prompt": USER,
            "reference": {"response": ANSWER},
            "reference_trajectory": [
                {"role": "model", "parts": [{"function_call": {"name": "find", "args": {"query": "x"}}}]},
                {"tool_name": "find", "tool_input": {"query": "y"}},
            ],
            "session_inputs": STATE,
            "rubric_groups": {
                "g": {
                    "group_id": "g",
                    "display_name": "G",
                    "rubrics": [
                        {
                            "rubric_id": "r",
                            "content": {"property": {"description": "kind"}},
                            "type": "FINAL_RESPONSE_QUALITY",
                            "importance": "HIGH",
                        }
                    ],
                }
            },
            "evaltui": {
                "unspecified": "checked",
                "case": {"final_session_state": {"k": 1}},
                "set": {"description": "d"},
            },
        },
        {
            "eval_case_id": "two",
            "agent_data": {
                "agents": {"root": {}},
                "turns": [
                    {"turn_index": 0, "turn_id": "t", "events": [event("user", USER), event("root", ANSWER)]}
                ],
            },
        },
        {"eval_case_id": "three", "user_scenario": {**SCENARIO, "test_case_title": "t"}},
    ]
}
INTERVAL = {"min_value": 0, "open_at_min": False, "max_value": 1, "open_at_max": False}
JUDGE = {"judge_model": "agent:judge", "num_samples": 1, "parallelism_limit": 1}


def criterion(name: str) -> Json:
    """A criterion with each option of its metric."""
    info = METRICS[name]
    values = {
        option.path[0]: [rubric("q")] if option.kind == "rubrics" else option.default or "find"
        for option in info.options
        if option.kind != "flag"
    }
    values |= flags(*(str(option.path[0]) for option in info.options if option.kind == "flag"))
    judge = {"judge_model_options": JUDGE} if info.judged else {}
    low, high = info.interval or (0, 5)
    return {"threshold": (low + high) / 2, **values, **judge}


OF_ADK = [name for name in METRICS if not is_own(name) and METRICS[name].gates]
OF_EVALTUI = [name for name in METRICS if is_own(name) and METRICS[name].gates]
CONFIG: Json = {
    "criteria": {
        **{name: criterion(name) for name in OF_ADK},
        "adks": {"threshold": 0.5, **flags("lower_is_better", "include_intermediate_responses_in_final")},
    },
    "custom_metrics": {
        "adks": {
            "code_config": {"name": "agent.adks"},
            "description": "d",
            "metric_info": {
                "metric_name": "adks",
                "description": "d",
                "requires_threshold": True,
                "metric_value_info": {"interval": INTERVAL},
            },
        }
    },
    "user_simulator_config": {
        "type": "llm_backed",
        "model": "agent:judge",
        "model_configuration": {"temperature": 0.5},
        "max_allowed_invocations": 3,
        "custom_instructions": "{{ stop_signal }} {{ conversation_plan }} {{ conversation_history }}",
        "include_function_calls": False,
    },
    "evaltui": {
        "criteria": {
            **{name: criterion(name) for name in OF_EVALTUI},
            "mine": {
                "threshold": 0.5,
                "function": "agent.brief",
                "interval": INTERVAL,
                **flags("lower_is_better", "include_intermediate_responses_in_final"),
            },
        },
        "optional": ["mine"],
        "rules": [
            {"tool": "find", "arg": "*", "match": "subset", "set": "orders", "case": "one"},
            {"tool": "find", "arg": "query", "match": {"approx": {"abs": 1, "rel": 0.1}}, "set": "orders"},
            {"tool": "find", "arg": "query", "match": {"any_of": ["x"]}},
            {"tool": "find", "arg": "query", "match": {"regex": "x"}, "set": "orders", "case": "one"},
        ],
        "answers": [
            {"contains": ["hi"], "not_contains": ["ho"], "regex": "hi", "agent": "root", **REFERENCE},
            {"json_schema": {"type": "string"}, "numbers": "equal"},
        ],
        "turns": [{**REFERENCE, "mode": "skip"}],
        "tags": [{"set": "orders", "case": "one", "tags": ["slow"]}],
        "meant_so": [{**REFERENCE, "kind": "k", "digest": "0123456789ab"}],
        "imports": [{"source": "a.csv", "set": "orders", "map": {"user": "q"}, "cases": {"one": "x"}}],
        "repeats": {"runs": 1, "pass_if": "all"},
        "thoughts": "ignore",
        "outputs": "ignore",
        "tools": {"find": "live"},
        "prices": {"m": {"input_mtok": 1, "output_mtok": 1, "cached_input_mtok": 1}},
    },
}
NOT_RUN = (
    *("execution", "custom_function_file", "remote_custom_function", "result_parsing_function"),
    *("parse_and_reduce_fn", "judge_model_step_configs", "metric_resource_name"),
)
EVAL_CONFIG: Json = {
    "metrics_to_run": ["mine", "filed", "judged", "tool_use_quality_v1"],
    "custom_metrics": [
        {"name": "mine", "execution": "local", "custom_function": "def evaluate(instance):\n    return 1\n"},
        {"name": "filed", "custom_function_file": "fn.py"},
        {
            "name": "judged",
            "prompt_template": "rate {response}",
            "judge_model": "agent:judge",
            "judge_model_sampling_count": 1,
            "judge_model_generation_config": {"temperature": 0.5},
            "judge_model_system_instruction": "s",
            "return_raw_output": False,
            "aggregate_summary_fn": "f",
        },
        {"name": "tool_use_quality_v1", "metric_spec_parameters": {"rubric_group_key": "g"}},
    ],
    "evaltui": {
        "criteria": {"mine": {"threshold": 1}},
        "optional": ["judged"],
        "answers": [{"contains": ["hi"]}],
    },
}


def chat(*messages: Json) -> Json:
    return {"id": "a", "messages": [*messages]}


FOUND = '{"ok": 1}'
ROWS: dict[str, Json] = {
    "columns": {
        "id": "a",
        "user": "hi",
        "expected": "hi",
        "calls": [{"name": "find", "args": {"query": "x"}}, {"function": {"name": "see", "arguments": "{}"}}],
        "state": {"k": 1},
        "tag": ["x"],
    },
    "OpenAI": chat(
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "wait",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"query": "x"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": FOUND},
        {"role": "assistant", "content": "hi"},
    ),
    "Anthropic": chat(
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "wait"},
                {"type": "tool_use", "id": "c", "name": "find", "input": {"query": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": FOUND}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    ),
    "LangChain": chat(
        {"type": "human", "data": {"content": "hi"}},
        {
            "type": "ai",
            "data": {"content": "wait", "tool_calls": [{"name": "find", "args": {"query": "x"}, "id": "c"}]},
        },
        {"type": "tool", "data": {"content": FOUND, "tool_call_id": "c"}},
        {"type": "ai", "data": {"content": "hi"}},
    ),
    "genai": chat(
        USER,
        {"role": "model", "parts": [{"text": "wait"}, {"functionCall": CALL}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"ok": 1}}}]},
        ANSWER,
    ),
}


def asserts(kind: str, value: Any = None, **more: Any) -> Json:
    return {"type": kind, **({} if value is None else {"value": value}), **more}


SUITE: Json = {
    "prompts": ["{{q}}"],
    "defaultTest": {"vars": {"z": "1"}, "assert": [asserts("contains", "h")]},
    "scenarios": [{"config": [{"vars": {"q": "s"}}], "tests": [{"vars": {"w": "1"}}]}],
    "tests": [
        {
            "vars": {"q": "hi"},
            "metadata": {"conversationId": "c"},
            "threshold": 1,
            "assert": [
                asserts("icontains-any", ["hi", "ho"], weight=1),
                asserts("regex", "h"),
                asserts("similar", "hi", threshold=0.8),
                asserts("is-json", {"type": "string"}),
                asserts("llm-rubric", "kind"),
                asserts("cost", threshold=0.1),
                asserts("trajectory:tool-used", {"name": "see", "min": 1}),
                asserts(
                    "trajectory:tool-args-match",
                    {"name": "find", "args": {"query": "x"}, "mode": "exact", "ignore": ["at"]},
                ),
                asserts("trajectory:tool-sequence", {"steps": ["find"], "mode": "exact"}),
                asserts("trajectory:goal-success", {"goal": "it is found"}),
                {"type": "assert-set", "assert": [asserts("contains", "hi")]},
            ],
        },
        {"vars": {"q": ["a", "b"]}, "assert": [asserts("not-contains", "x")], "options": {"prefix": "p"}},
    ],
}
SETTINGS: Json = {
    "parallel": 2,
    "workers": 1,
    "timeout": 60.5,
    "record": "off",
    "tools": "live",
    "results-dir": "out",
    "keep-runs": 3,
    "budget": "5USD",
    "scheduler": "off",
    "variants": {"flash": {"model": "m", "env": {"K": "v"}}},
    "limits": {"m": {"rpm": 600, "tpm": 1.5, "concurrent": 8}},
    "prices": {"m": {"input_mtok": 1, "output_mtok": 1, "cached_input_mtok": 1}},
}
