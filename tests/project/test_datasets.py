"""Google's EvaluationDataset, read as an eval set."""

import json
import re

import pytest

from evaltui.core.model.base_model import dump
from evaltui.project.configs import find_config
from evaltui.project.eval_sets import changes, load_eval_set, read_eval_set
from evaltui.project.lint import lint
from evaltui.text.values import show_value
from tests.project.layouts import write


def content(text, role="user"):
    return {"role": role, "parts": [{"text": text}]}


def event(author, text=None, **more):
    said = {} if text is None else {"content": content(text, "user" if author == "user" else "model")}
    return {"author": author, **said, **more}


def call(name, **args):
    return {"parts": [{"function_call": {"name": name, "args": args}}]}


def turns(*events):
    return {"agent_data": {"turns": [{"turn_index": 0, "events": list(events)}]}}


HI, HELLO = content("Hi"), content("Hello!", "model")
PROMPT = {"prompt": HI}
ASKED, ANSWERED = {"user_content": HI}, {"user_content": HI, "final_response": HELLO}
FIND = {"author": "desk", "content": call("find", what="lamp")}
RUN = turns(event("user", "Hi"), FIND, event("desk", "Hello!"))
RUBRIC = {"content": {"property": {"description": "Is kind."}}, "rubric_id": "kind"}


def read(tmp_path, *cases, camel=False):
    key = "evalCases" if camel else "eval_cases"
    return write(tmp_path / "basic-dataset.json", json.dumps({key: list(cases)}))


def converted(tmp_path, case):
    loaded = load_eval_set(read(tmp_path, {"eval_case_id": "a", **case}))
    assert (loaded.eval_set_id, loaded.eval_cases[0].eval_id) == ("basic-dataset", "a")
    data = dump(loaded.eval_cases[0])
    assert not loaded.eval_cases[0].checks_unspecified
    return {key: value for key, value in data.items() if key not in ("eval_id", "evaltui")}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (PROMPT, {"conversation": [ASKED]}),
        ({"prompt": "Hi"}, {"conversation": [{"user_content": {"parts": [{"text": "Hi"}]}}]}),
        ({**PROMPT, "reference": {"response": HELLO}}, {"conversation": [ANSWERED]}),
        ({**PROMPT, "responses": [{"response": HELLO}]}, {"conversation": [ASKED]}),
        (
            {**PROMPT, "reference_trajectory": [call("find", what="lamp")]},
            {
                "conversation": [
                    {
                        **ASKED,
                        "intermediate_data": {"tool_uses": [{"name": "find", "args": {"what": "lamp"}}]},
                    }
                ]
            },
        ),
        ({**PROMPT, "referenceTrajectory": []}, {"conversation": [{**ASKED, "intermediate_data": {}}]}),
        (RUN, {"conversation": [{**ANSWERED, "intermediate_data": {"invocation_events": [FIND]}}]}),
        # What an agent did with the case is not expected of it.
        (RUN | {"responses": [{"response": HELLO}]}, {"conversation": [ASKED]}),
        (RUN | PROMPT, {"conversation": [ASKED]}),
        (turns(event("desk", "Hello!")) | PROMPT, {"conversation": [ASKED]}),
        (
            turns(event("user", "Hi"), event("desk", "Hello!"), event("user", "Hi")),
            {"conversation": [ANSWERED, ASKED]},
        ),
        (
            {
                **PROMPT,
                "conversationHistory": [{"content": HI}, {"content": HELLO, "author": "desk"}],
                "reference": {"response": HELLO},
            },
            {"conversation": [ANSWERED, ANSWERED]},
        ),
        (
            turns(event("desk", state_delta={"a": 1}), event("user", "Hi", stateDelta={"b": 2})),
            {
                "conversation": [ASKED],
                "session_input": {"app_name": "", "user_id": "", "state": {"a": 1, "b": 2}},
            },
        ),
        (
            {**PROMPT, "session_inputs": {"app_name": "desk", "user_id": "u", "state": {"a": "1"}}},
            {
                "conversation": [ASKED],
                "session_input": {"app_name": "desk", "user_id": "u", "state": {"a": "1"}},
            },
        ),
        (
            {"user_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask.", "test_case_title": "t"}},
            {"conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask."}},
        ),
        (
            {
                **PROMPT,
                "rubric_groups": {"TOOL_USE_QUALITY": {"rubrics": [RUBRIC]}, "g": {"rubrics": [RUBRIC]}},
            },
            {
                "conversation": [ASKED],
                "rubrics": [
                    {
                        "rubric_id": "kind",
                        "rubric_content": {"text_property": "Is kind."},
                        "type": "TOOL_USE_QUALITY",
                    },
                    {"rubric_id": "g.kind", "rubric_content": {"text_property": "Is kind."}},
                ],
            },
        ),
    ],
)
def test_a_case_expects_what_its_dataset_states(tmp_path, case, expected):
    assert converted(tmp_path, case) == expected


def test_cases_without_an_id_are_numbered(tmp_path):
    path = read(tmp_path, PROMPT, {"evalCaseId": "case_3", **PROMPT}, PROMPT, camel=True)
    assert [case.eval_id for case in load_eval_set(path).eval_cases] == ["case_1", "case_3", "case_4"]


def test_what_cannot_be_converted_is_said_with_its_place(tmp_path):
    path = read(
        tmp_path,
        {"eval_case_id": "a", "prompt": None},
        {"eval_case_id": "b", "prompt": "Hi", "reference": 5, "reference_trajectory": [{"parts": []}]},
        turns(event("desk", "Welcome"), event("user", "Hi"), event("user", state_delta={"a": 1})),
    )
    loaded = read_eval_set(path)
    assert loaded.eval_set is None
    assert [str(problem).partition(": ")[2] for problem in loaded.problems] == [
        "eval_cases[0]: no message of the user: prompt, agent_data.turns and user_scenario are missing",
        "eval_cases[1].reference: must be an object, is the number 5",
        "eval_cases[1].reference_trajectory[0]: must be a content with a function_call",
        "eval_cases[2].agent_data.turns[0].events[0]: before the first message of the user; left out",
        "eval_cases[2].agent_data.turns[0].events[2]: "
        "state changes between turns have no place in an eval set; left out",
    ]


def reference(**members):
    return {**PROMPT, "reference": {"response": HELLO} | members}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            {**PROMPT, "reference": {"respnse": HELLO}},
            "reference.respnse: unknown key. Did you mean response?",
        ),
        (reference(why="short"), "reference.why: unknown key, ignored"),
        (
            {**PROMPT, "rubric_groups": {"g": {"rubric": [RUBRIC]}}},
            "rubric_groups.g.rubric: unknown key. Did you mean rubrics?",
        ),
        ({**PROMPT, "rubric_groups": {"g": [RUBRIC]}}, "rubric_groups.g: must be an object, is a list"),
        ({**PROMPT, "rubric_groups": {"g": {"rubrics": RUBRIC}}}, "g.rubrics: must be a list, is an object"),
        ({**PROMPT, "session_inputs": {"stat": {}}}, "session_inputs.stat: unknown key. Did you mean state?"),
        ({**PROMPT, "sessionInputs": {"state": [1]}}, "sessionInputs.state: must be an object, is a list"),
        (
            {"agent_data": {"turns": [{"event": []}, {"events": [event("user", "Hi")]}]}},
            "agent_data.turns[0].event: unknown key. Did you mean events?",
        ),
        (
            {**PROMPT, "conversation_history": [{"author": "user", "contnt": HI}]},
            "conversation_history[0].contnt: unknown key. Did you mean content?",
        ),
        (
            turns(event("user", "Hi"), event("User", "Hello?")),
            "events[1].author: 'User' is read as an agent; the user is \"user\"",
        ),
        ({**PROMPT, "rubrics": []}, "rubrics: a key of eval sets, ignored; write it under evaltui.case"),
        ({**PROMPT, "finalSessionState": {}}, "finalSessionState: a key of eval sets, ignored"),
        ({**PROMPT, "evaltui": {"cas": {}}}, "evaltui.cas: unknown key. Did you mean case?"),
        ({**PROMPT, "evaltui": {"unspecified": "cheked"}}, 'ignored: it must be "checked" or "not checked"'),
    ],
)
def test_what_nothing_reads_in_a_case_is_named(tmp_path, case, message):
    *_, problem = read_eval_set(read(tmp_path, {"eval_case_id": "a", **case})).problems
    assert message in str(problem)


def test_what_an_eval_set_has_no_place_for_is_known(tmp_path):
    first = {**PROMPT, "context": "c", "responses": [], "reference": {"response": HELLO, "note": "n"}}
    recorded = {**PROMPT, **turns(event("desk", "Hello!"))}
    path = read(tmp_path, {**first, "agent_data": {"agents": {"desk": {}}}}, recorded)
    assert [str(one).partition(": ")[2] for one in changes(path)] == [
        "eval_cases[0].responses: actual, not expected; left out: []",
        'eval_cases[0].reference.note: an eval set has no place for it; left out: "n"',
        'eval_cases[0].agent_data.agents: an eval set has no place for it; left out: {"desk": {}}',
        "eval_cases[1].agent_data: actual, not expected; left out: "
        + show_value(recorded["agent_data"], 100),
    ]
    # A column of the user's own is one in an eval set, too.
    assert load_eval_set(path).eval_cases[0].model_extra["context"] == "c"


CONFIG = """
metrics_to_run: [safety, final_response_match_v2, hallucination, mine, general_quality]
custom_metrics:
  - name: mine
    custom_function_file: mine.py
"""


def custom(definition, name="m"):
    return f"metrics_to_run: [{name}]\ncustom_metrics: [{{name: {name}, {definition}}}]"


def test_the_config_of_agents_cli_scores_datasets_as_far_as_it_means_the_same(tmp_path):
    path = read(tmp_path / "datasets", PROMPT)
    eval_set = write(tmp_path / "datasets" / "x.json", '{"eval_set_id": "x", "eval_cases": []}')
    write(tmp_path / "pyproject.toml")
    assert find_config(path).config.evaltui.optional == ["tool_trajectory_avg_score", "response_match_score"]
    yaml = write(tmp_path / "eval_config.yaml", CONFIG)
    write(tmp_path / "mine.py")
    used = find_config(path)
    assert used.path == yaml
    assert {metric.metric_name: metric.threshold for metric in used.config.metrics()} == {
        "safety_v1": 1.0,
        "final_response_match_v2": 1.0,
        "hallucinations_v1": None,
        "mine": None,
        "general_quality": None,
    }
    *_, mine, general = used.config.metrics()
    assert mine.definition.file == str(tmp_path / "mine.py")
    assert "that evaltui has no metric for. Instead, write rubrics" in general.not_evaluated
    elsewhere = read(tmp_path / "more", PROMPT)
    yaml.rename(write(tmp_path / "tests" / "eval" / "mine.py").with_name("eval_config.yaml"))
    assert find_config(elsewhere).path == tmp_path / "tests" / "eval" / "eval_config.yaml"
    # It is not for eval sets of ADK, and a config of evaltui beside the dataset replaces it.
    assert find_config(eval_set).defaulted
    own = write(tmp_path / "datasets" / "test_config.json", '{"criteria": {"response_match_score": 0.5}}')
    assert find_config(path).path == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metrics_to_run: [a", "eval_config.yaml:1: not valid YAML"),
        ("criteria: &a {a: *a}", "not valid YAML: Circular reference detected"),
        ("metrics_to_run: a", "metrics_to_run: must be a list, is the string"),
        ("metrics_to_run: [1]", "metrics_to_run[0]: must be a string, is the number 1"),
        ("metrics_to_run:", "metrics_to_run: must be a list, is null"),
        ("metric_to_run: [safety]", "1: metric_to_run: unknown key. Did you mean metrics_to_run?"),
        ("evaltui: {criteria: {rouge_1: 1}}", "metrics_to_run: missing; list the names of metrics"),
        ("criteria: {nosuch: 1}", "eval_config.yaml:1: criteria.nosuch: unknown metric"),
        ("", "must be an object, is null"),
        (CONFIG, "eval_config.yaml:5: custom_metrics[0].custom_function_file: mine.py does not exist beside"),
        (custom("rubric_group_name: g"), "agents-cli does not support it"),
        (custom("judge_model: m"), "'m' is no managed metric, so its definition needs prompt_template"),
        (custom("prompt_template: x", "safety_v1"), "'safety_v1' is a managed metric; choose another name"),
        (custom("prompt_template: ''"), "prompt_template: must be a text that is not empty"),
        (custom("custom_function: x, custom_function_file: y"), "stands beside custom_function"),
        (custom("custom_function: x, execution: far"), 'must be "local" or "remote", is \'far\''),
        (custom("prompt_template: x, judge_model_sampling_count: 33"), "must be a whole number from 1 to 32"),
        ("metrics_to_run: [safety]\nevaltui: {criteria: {safety: 1}}", "unknown metric safety"),
        (custom("custom_function: [x]"), "custom_function: must be a text that is not empty"),
        (
            custom("prompt_template: x, judge_model_generation_config: 1"),
            "judge_model_generation_config: must be an object",
        ),
        (
            custom("custom_function: x") + "\nevaltui: {criteria: {m: {treshold: 1}}}",
            "evaltui.criteria.m.threshold: missing",
        ),
        ("metrics_to_run: [safety]\nevaltui: {x: 1}", "evaltui.x: not known to this version of evaltui"),
    ],
)
def test_a_broken_config_of_agents_cli_is_never_replaced_by_defaults(tmp_path, text, message):
    write(tmp_path / "eval_config.yaml", text)
    with pytest.raises(ValueError, match=re.escape(message)):
        find_config(read(tmp_path, PROMPT))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (custom("custom_function: x, executon: remote"), "executon: unknown key. Did you mean execution?"),
        (custom("custom_function: x, note: y"), "note: unknown key, ignored"),
        (custom("custom_function: x") + "\nevaltuis: {}", "evaltuis: unknown key. Did you mean evaltui?"),
        (
            "metrics_to_run: [safety]\ncustom_metrics: [{name: safty, judge_model: j}]",
            "'safty' is not run. Did you mean safety?",
        ),
        (
            "metrics_to_run: [m]\ncustom_metrics: "
            "[{name: m, custom_function: x}, {name: m, custom_function: y}]",
            "custom_metrics[0]: a later definition of 'm' counts",
        ),
    ],
)
def test_what_nothing_reads_in_a_config_of_agents_cli_is_named(tmp_path, text, message):
    write(tmp_path / "eval_config.yaml", text)
    found = find_config(read(tmp_path, PROMPT))
    assert [message in problem.message or message in str(problem) for problem in found.problems] == [True]


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_names_of_a_metric_the_definition_counts(tmp_path, is_first):
    names = ["final_response_quality", "final_response_reference_free"][:: 1 if is_first else -1]
    definition = "custom_metrics: [{name: final_response_quality, judge_model: mine:ask}]"
    write(tmp_path / "eval_config.yaml", f"metrics_to_run: [{', '.join(names)}]\n{definition}\n")
    used = find_config(read(tmp_path, PROMPT))
    (metric,) = used.config.metrics()
    assert metric.definition.judge_model_options == {"judge_model": "mine:ask"}
    assert "computed once, by its definition" in used.problems[0].message
    other = "{name: final_response_reference_free, judge_model: other:ask}"
    write(
        tmp_path / "eval_config.yaml", f"metrics_to_run: [{', '.join(names)}]\n{definition[:-1]}, {other}]\n"
    )
    with pytest.raises(ValueError, match="remove one definition"):
        find_config(read(tmp_path, PROMPT))


JUDGED = """metrics_to_run: [m]
custom_metrics:
  - {name: m, prompt_template: "rate {response}", judge_model: "mine:ask", judge_model_sampling_count: 2}
evaltui: {criteria: {m: {threshold: 1, OPTIONS}}}
"""


@pytest.mark.parametrize(
    ("options", "judge"),
    [
        ("judge_model_options: {num_samples: 3}", {"judge_model": "mine:ask", "num_samples": 3}),
        ("judgeModelOptions: {numSamples: 3}", {"judge_model": "mine:ask", "num_samples": 3}),
        ("judge_model_options: {judge_model: 'b:ask'}", {"judge_model": "b:ask", "num_samples": 2}),
        ("judge_model_options: null", {"judge_model": "mine:ask", "num_samples": 2}),
    ],
)
def test_a_criterion_changes_single_options_of_a_defined_judge(tmp_path, options, judge):
    write(tmp_path / "eval_config.yaml", JUDGED.replace("OPTIONS", options))
    (metric,) = find_config(read(tmp_path, PROMPT)).config.metrics()
    assert metric.criterion.model_extra["judge_model_options"] == judge


def test_a_user_of_a_history_has_a_name(tmp_path):
    history = [{"author": "Ada", "content": HI}, {"author": "desk", "content": HELLO}]
    case = {"conversation_history": history, "prompt": content("And now?")}
    turns_of_case = converted(tmp_path, case)["conversation"]
    assert turns_of_case == [ANSWERED, {"user_content": content("And now?")}]


def test_rules_of_a_config_of_agents_cli_are_checked_at_their_lines(tmp_path):
    read(tmp_path / "datasets", {**PROMPT, "eval_case_id": "a"})
    write(tmp_path / "pyproject.toml")
    rules = "  rules:\n    - {tool: f, arg: x, match: ignore, case: b}\n"
    write(tmp_path / "eval_config.yaml", f"metrics_to_run: [safety]\n# ours\nevaltui:\n{rules}")
    (problem,) = lint([tmp_path])
    assert (problem.line, problem.message) == (5, "no case 'b' in the eval sets beside this config")
