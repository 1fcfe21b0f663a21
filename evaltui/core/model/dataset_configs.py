"""The `eval_config.yaml` of agents-cli as an eval config.

It names metrics and no thresholds. A metric whose score is either 0 or 1 needs none; all others, and custom
metrics, are not evaluated, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from evaltui.core.model.problems import Problem
from evaltui.text.values import in_words

Json = dict[str, Any]


class _Metric(NamedTuple):
    """A metric of evaltui for a metric of Google's; `threshold` is None where its score implies none."""

    name: str
    threshold: float | None = None


# By the name without its version. Source: google-agents-cli 1.11.0, `references/metrics-guide.md`.
_METRICS = {
    "final_response_match": _Metric("final_response_match_v2", 1.0),
    "safety": _Metric("safety_v1", 1.0),
    "hallucination": _Metric("hallucinations_v1"),
    "multi_turn_task_success": _Metric("multi_turn_task_success_v1"),
    "multi_turn_trajectory_quality": _Metric("multi_turn_trajectory_quality_v1"),
    "multi_turn_tool_use_quality": _Metric("multi_turn_tool_use_quality_v1"),
    "final_response_quality": _Metric("rubric_based_final_response_quality_v1"),
    "final_response_reference_free": _Metric("rubric_based_final_response_quality_v1"),
    "tool_use_quality": _Metric("rubric_based_tool_use_quality_v1"),
    "rouge_1": _Metric("response_match_score"),
}
_FUNCTIONS = ("custom_function", "custom_function_file", "remote_custom_function")
_INSTEAD = "For a verdict, name {} in a test_config.json beside the dataset"
_OTHER = _INSTEAD.format("metrics of `evaltui metrics`")


def from_eval_config(data: Any) -> tuple[Json | None, list[Problem]]:
    """A config of agents-cli as the data of a `test_config.json`; None where there are errors."""
    if not isinstance(data, Mapping):
        return None, [Problem.error((), f"must be an object, is {in_words(data)}")]
    names, custom = data.get("metrics_to_run") or [], data.get("custom_metrics") or []
    problems = [
        Problem.error((key,), f"must be a list, is {in_words(value)}")
        for key, value in (("metrics_to_run", names), ("custom_metrics", custom))
        if not isinstance(value, list)
    ]
    if problems:
        return None, problems
    definitions = {
        definition["name"]: definition
        for definition in custom
        if isinstance(definition, Mapping) and "name" in definition
    }
    criteria: Json = {}
    not_evaluated: dict[str, str] = {}
    for index, name in enumerate(names):
        if not isinstance(name, str):
            where = ("metrics_to_run", index)
            problems.append(Problem.error(where, f"must be a string, is {in_words(name)}"))
            continue
        metric = _METRICS.get(re.sub(r"_v\d+$", "", name.lower()))
        if name in definitions:
            not_evaluated[name] = _of_definition(definitions[name])
        elif metric is None:
            not_evaluated[name] = f"a metric of Google's evaluation service, not of evaltui. {_OTHER}"
        elif metric.threshold is None:
            instead = _INSTEAD.format(f"{metric.name} and a threshold")
            not_evaluated[name] = f"agents-cli gives it no threshold. {instead}"
        else:
            criteria[metric.name] = metric.threshold
    if problems:
        return None, problems
    if not names:
        problems.append(Problem.warning((), "metrics_to_run names no metric, so nothing is scored"))
    return {"criteria": criteria, "evaltui": {"not_evaluated": not_evaluated}}, problems


def _of_definition(definition: Mapping[str, Any]) -> str:
    key = next((name for name in (*_FUNCTIONS, "prompt_template") if name in definition), None)
    if key is None:
        return f"parameters of a metric of Google's evaluation service. {_OTHER}"
    what = "a function" if key in _FUNCTIONS else "a judge"
    return f"{what} of agents-cli ({key}), which evaltui does not run. {_OTHER}"
