"""The config of agents-cli (`eval_config.yaml`) as that of an eval set, and what of it is run here.

Source of its rules: google-agents-cli 1.11.0, `eval/eval_utils.py` and `references/metrics-guide.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evaltui.core.model.datasets import OWN_KEY
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import indexed_objects, list_or_empty
from evaltui.core.model.problems import (
    UNKNOWN_KEY,
    JsonPath,
    Problem,
    has_error,
    likely_typos,
    unknown_keys,
    wrong_kind,
)
from evaltui.text.values import did_you_mean

METRICS_TO_RUN, CUSTOM_METRICS = "metrics_to_run", "custom_metrics"
_BODIES = ("prompt_template", "custom_function", "custom_function_file", "remote_custom_function")
_OBJECTS = ("judge_model_generation_config", "metric_spec_parameters")
# Source of the last ones, which evaltui does not read: google-cloud-aiplatform 2.7.0, Metric.
_DEFINITION_KEYS = (
    *("name", "execution", *_BODIES, *_OBJECTS, "result_parsing_function", "rubric_group_name"),
    *("judge_model", "judge_model_sampling_count", "judge_model_system_instruction"),
    *("return_raw_output", "parse_and_reduce_fn", "aggregate_summary_fn", "metric_resource_name"),
    "judge_model_step_configs",
)
# Keys by which a judge of Google's service finds its score elsewhere than in its own answer.
_NOT_RUN = (
    "result_parsing_function",
    "parse_and_reduce_fn",
    "judge_model_step_configs",
    "metric_resource_name",
)
# Answers that Google's service asks a judge for where the config does not say how many.
_SAMPLES = 4
_MAX_SAMPLES = 32


class ManagedMetric(NamedTuple):
    """A metric of Google's evaluation service, and the metric of evaltui that stands for it."""

    name: str
    """Its name without a version."""
    metric: str
    """The metric of evaltui; "" for none."""
    likeness: str
    """How close the two are; without a metric of evaltui, what to use instead."""
    threshold: float | None = None
    """The threshold that the managed score implies; None for a score without a verdict."""
    is_computed: bool = False
    """Whether it is computed without a judge, and has no version."""


_OWN_RUBRICS = "the rubrics of the case alone; Google's writes rubrics itself where a case has none"
_OWN_PROMPT = "the same question with a prompt of evaltui's; scores from 0 to 1"
_RUBRICS = "write rubrics, and run final_response_quality"
MANAGED = (
    ManagedMetric(
        "final_response_match",
        "final_response_match_v2",
        "the same verdict, by the majority of five answers",
        1.0,
    ),
    ManagedMetric(
        "final_response_quality",
        "rubric_based_final_response_quality_v1",
        _OWN_RUBRICS,
    ),
    ManagedMetric(
        "final_response_reference_free",
        "rubric_based_final_response_quality_v1",
        "the same: it needs rubrics there, too",
    ),
    ManagedMetric("tool_use_quality", "rubric_based_tool_use_quality_v1", _OWN_RUBRICS),
    ManagedMetric(
        "hallucination",
        "hallucinations_v1",
        "each sentence of a response is checked, not each claim",
    ),
    ManagedMetric("safety", "safety_v1", "harm as a whole is rated, not five policies each", 1.0),
    ManagedMetric("multi_turn_task_success", "multi_turn_task_success_v1", _OWN_PROMPT),
    ManagedMetric("multi_turn_trajectory_quality", "multi_turn_trajectory_quality_v1", _OWN_PROMPT),
    ManagedMetric("multi_turn_tool_use_quality", "multi_turn_tool_use_quality_v1", _OWN_PROMPT),
    ManagedMetric(
        "rouge_1", "response_match_score", "the same F1 score of words, after stemming", is_computed=True
    ),
    ManagedMetric("general_quality", "", _RUBRICS),
    ManagedMetric("text_quality", "", _RUBRICS),
    ManagedMetric("instruction_following", "", _RUBRICS),
    ManagedMetric("grounding", "", "run hallucination, which checks responses against tool results"),
    ManagedMetric("multi_turn_general_quality", "", "run multi_turn_task_success"),
    ManagedMetric("multi_turn_text_quality", "", "run multi_turn_task_success"),
    ManagedMetric("gecko_text2image", "", "run it with `agents-cli eval grade`"),
    ManagedMetric("gecko_text2video", "", "run it with `agents-cli eval grade`"),
    ManagedMetric("exact_match", "", "write a custom_function that compares both", is_computed=True),
    ManagedMetric("bleu", "", "run rouge_1", is_computed=True),
    ManagedMetric("rouge", "", "run rouge_1", is_computed=True),
)
"""Every metric that a config of agents-cli may name without a definition."""
_BY_NAME = {metric.name: metric for metric in MANAGED}


def managed_metric(name: str) -> ManagedMetric | None:
    """The managed metric of a name, with or without its version; None for no such metric."""
    name = name.lower()
    if name.startswith("rouge"):
        return _BY_NAME["rouge_1" if name in ("rouge1", "rouge_1") else "rouge"]
    return _BY_NAME.get(re.sub(r"_v\d+$", "", name))


def definitions_of(data: Any) -> Iterator[tuple[str, JsonPath, Json]]:
    """The definitions of custom metrics that are run, with their names and paths; of two with one name, the
    last one counts."""
    if not isinstance(data, Mapping):
        return
    pool = {
        definition["name"]: (index, definition)
        for index, definition in indexed_objects(list_or_empty(data.get(CUSTOM_METRICS)))
        if isinstance(definition.get("name"), str)
    }
    names = list_or_empty(data.get(METRICS_TO_RUN))
    for name in dict.fromkeys(name for name in names if isinstance(name, str)):
        if name in pool:
            index, definition = pool[name]
            yield name, (CUSTOM_METRICS, index), definition


def from_eval_config(data: Any, code: Mapping[str, Json]) -> tuple[Json | None, list[Problem]]:
    """A config of agents-cli as the data of a `test_config.json`; None where there are errors.

    `code` has for each custom metric the members of a `DefinedMetric` that say where its code or its prompt
    stands.
    """
    if not isinstance(data, Mapping):
        return None, [wrong_kind((), data, dict)]
    if not data.keys() & {METRICS_TO_RUN, CUSTOM_METRICS}:
        typos = likely_typos(data, [(METRICS_TO_RUN,), (CUSTOM_METRICS,), (OWN_KEY,)])
        missing = (METRICS_TO_RUN,), "missing; list the names of metrics"
        return None, [Problem.error(*finding) for finding in [*typos] or [missing]]
    problems = list(_wrong_kinds(data))
    if problems:
        return None, problems
    problems += _ignored(data)
    definitions = {name: (path, definition) for name, path, definition in definitions_of(data)}
    block = data.get(OWN_KEY) or {}
    criteria: Json = {}
    metrics: Json = {}
    for index, name in enumerate(data.get(METRICS_TO_RUN) or ()):
        if name in definitions:
            path, definition = definitions[name]
            wrong = list(_refusals(name, definition))
            problems += [Problem.error((*path, *key), message) for key, message in wrong]
            managed = None if _has_body(definition) else managed_metric(name)
            metric = {} if wrong else _defined(definition, code.get(name, {}), managed)
        else:
            managed = managed_metric(name)
            metric = _managed(name, managed, definitions)
            if managed is None:
                why = metric["not_evaluated"]
                problems.append(Problem.warning((METRICS_TO_RUN, index), f"{name!r} is {why}"))
        own_name = managed.metric if managed and managed.metric else name
        other = metrics.setdefault(own_name, metric)
        if other != metric:
            metrics[own_name] = metric or other
            problems.append(
                _same_metric((METRICS_TO_RUN, index), name, own_name, both=bool(other and metric))
            )
        if managed is not None and managed.threshold is not None:
            criteria[own_name] = managed.threshold
    if has_error(problems):
        return None, problems
    if not metrics and not block.get("criteria"):
        problems.append(Problem.warning((), f"{METRICS_TO_RUN} names no metric, so nothing is scored"))
    own_criteria = block.get("criteria")
    if own_criteria is None or isinstance(own_criteria, dict):
        block = {**block, "criteria": {**criteria, **(own_criteria or {})}}
    return {OWN_KEY: {**block, METRICS_TO_RUN: metrics}}, problems


def _same_metric(path: JsonPath, name: str, metric: str, *, both: bool) -> Problem:
    """The problem of a second name of a metric; `both` where both names have definitions."""
    same = f"{name!r} is {metric}, as another name in the list"
    if both:
        return Problem.error(path, f"{same}: remove one definition")
    return Problem.warning(path, f"{same}: computed once, by its definition")


def _wrong_kinds(data: Mapping[str, Any]) -> Iterator[Problem]:
    for key, kind in ((METRICS_TO_RUN, list), (CUSTOM_METRICS, list), (OWN_KEY, dict)):
        value = data.get(key)
        # agents-cli takes an absent list, and refuses null.
        if key in data and not isinstance(value, kind) and not (key == OWN_KEY and value is None):
            yield wrong_kind((key,), value, kind)
        elif isinstance(value, list):
            item_kind = str if key == METRICS_TO_RUN else dict
            for index, item in enumerate(value):
                if not isinstance(item, item_kind):
                    yield wrong_kind((key, index), item, item_kind)
                elif isinstance(item, dict) and not isinstance(item.get("name"), str):
                    yield wrong_kind((key, index, "name"), item.get("name"), str)
    own = data.get(OWN_KEY)
    if isinstance(own, dict) and METRICS_TO_RUN in own:
        yield Problem.error((OWN_KEY, METRICS_TO_RUN), f"unknown key; {METRICS_TO_RUN} is a key of the file")


def _ignored(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys that nothing reads, and definitions that seem to be meant for a metric in the list."""
    definitions = {(CUSTOM_METRICS, n): entry for n, entry in indexed_objects(data.get(CUSTOM_METRICS) or [])}
    owners: list[tuple[JsonPath, Mapping[str, Any], tuple[str, ...]]] = [
        ((), data, (METRICS_TO_RUN, CUSTOM_METRICS, OWN_KEY)),
        *((path, definition, _DEFINITION_KEYS) for path, definition in definitions.items()),
    ]
    owners += [
        ((*path, "metric_spec_parameters"), parameters, ("rubric_group_key",))
        for path, definition in definitions.items()
        if isinstance(parameters := definition.get("metric_spec_parameters"), dict)
    ]
    for path, owner, keys in owners:
        for finding in unknown_keys(owner, [(key,) for key in keys], path):
            yield UNKNOWN_KEY.at(*finding)
    run = {path: name for name, path, _ in definitions_of(data)}
    undefined = set(data.get(METRICS_TO_RUN) or ()) - set(run.values())
    for path in sorted(definitions.keys() - run.keys()):
        name = str(definitions[path].get("name"))
        if name in run.values():
            yield Problem.warning(path, f"a later definition of {name!r} counts")
        elif hint := did_you_mean(name, undefined):
            yield Problem.warning(path, f"{name!r} is not run{hint}")


def _has_body(definition: Json) -> bool:
    return any(key in definition for key in _BODIES)


def _refusals(name: str, definition: Json) -> Iterator[tuple[JsonPath, str]]:
    """Reasons why agents-cli refuses a definition, with their paths in it."""
    managed = managed_metric(name)
    if "rubric_group_name" in definition:
        yield ("rubric_group_name",), "agents-cli does not support it; remove it"
    for key in _OBJECTS:
        if definition.get(key) is not None and not isinstance(definition[key], dict):
            yield (key,), "must be an object"
    for key in ("judge_model", "judge_model_system_instruction"):
        if definition.get(key) is not None and not isinstance(definition[key], str):
            yield (key,), "must be a text"
    if not _has_body(definition):
        if managed is None:
            bodies = "prompt_template, custom_function or custom_function_file"
            yield (), f"{name!r} is no managed metric, so its definition needs {bodies}"
        return
    if managed is not None and not managed.is_computed and re.search(r"_v\d+$", name.lower()):
        yield ("name",), f"{name!r} is a managed metric; choose another name, such as my_{name}"
    if "custom_function" in definition and "custom_function_file" in definition:
        yield ("custom_function_file",), "stands beside custom_function; remove one of them"
    if (execution := definition.get("execution", "local")) not in ("local", "remote"):
        yield ("execution",), f'must be "local" or "remote", is {execution!r}'
    for key in ("prompt_template", "custom_function", "custom_function_file"):
        if key in definition and not (isinstance(definition[key], str) and definition[key].strip()):
            yield (key,), "must be a text that is not empty"
    count = definition.get("judge_model_sampling_count")
    is_whole = isinstance(count, int) and not isinstance(count, bool)
    if count is not None and not (is_whole and 1 <= count <= _MAX_SAMPLES):
        yield ("judge_model_sampling_count",), f"must be a whole number from 1 to {_MAX_SAMPLES}"


def _defined(definition: Json, code: Json, managed: ManagedMetric | None) -> Json:
    """A metric with a definition."""
    if definition.get("execution") == "remote" or "remote_custom_function" in definition:
        why = "execution: remote runs it in Google's sandbox. Without the line, it runs in the agent's Python"
        return {"not_evaluated": why}
    if "custom_function" in definition:
        return {"source": definition["custom_function"], "place": "custom_function", **code}
    if "custom_function_file" in definition:
        name = definition["custom_function_file"]
        return {"file": name, "place": name, **code}
    if elsewhere := next((key for key in _NOT_RUN if definition.get(key) is not None), None):
        why = f"{elsewhere} is not run here. Have the judge return JSON with a score"
        return {"not_evaluated": why}
    judge = {"judge_model_options": _judge(definition)}
    if "prompt_template" in definition:
        return {"prompt_template": definition["prompt_template"], **judge, **code}
    if (definition.get("metric_spec_parameters") or {}).get("rubric_group_key"):
        why = "rubric_group_key chooses among the rubrics of a case; evaltui judges all. Remove the key"
        return {"not_evaluated": why}
    return _managed(str(definition["name"]), managed, {}) | (judge if managed and managed.metric else {})


def _judge(definition: Json) -> Json:
    """The options of a judge, as a criterion has them."""
    options: Json = {}
    if model := definition.get("judge_model"):
        options["judge_model"] = model
    if "judge_model_sampling_count" in definition:
        options["num_samples"] = definition["judge_model_sampling_count"]
    elif "prompt_template" in definition:
        options["num_samples"] = _SAMPLES
    config = dict(definition.get("judge_model_generation_config") or {})
    if instruction := definition.get("judge_model_system_instruction"):
        config["system_instruction"] = instruction
    return options | ({"judge_model_config": config} if config else {})


def _managed(name: str, managed: ManagedMetric | None, definitions: Mapping[str, Any]) -> Json:
    """A metric by its name alone."""
    if managed is None:
        names = [*definitions, *_BY_NAME]
        hint = did_you_mean(name, names) or ". Define it under custom_metrics"
        return {"not_evaluated": f"neither a managed metric nor one of custom_metrics{hint}"}
    if managed.metric:
        return {}
    where = "computed" if managed.is_computed else "a judge"
    return {
        "not_evaluated": f"{where} of Google's evaluation service that evaltui has no metric for. Instead, "
        f"{managed.likeness}, or list it under evaltui.optional"
    }
