"""Rubrics of cases and turns that no metric of their config judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaltui.core.metrics.registry import RUBRIC_TYPES
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.json_values import dicts, list_at, spelt
from evaltui.core.model.problems import JsonPath, LintRule, Problem
from evaltui.text.values import did_you_mean

# Source: google-adk 2.13 names it as an example, and has no metric for it.
_WITHOUT_METRIC = "INSTRUCTION_ADHERENCE"


def rubric_problems(case: Mapping[str, Any], config: EvalConfig) -> Iterator[Problem]:
    """Errors for rubrics of an unknown type, warnings for others that nothing judges; paths relative to the
    case. A function of the user's may read any rubric.
    """
    metrics = config.metrics()
    if any(metric.custom_function_path is not None for metric in metrics):
        return
    judged = {
        RUBRIC_TYPES[name] for name in (metric.metric_name for metric in metrics) if name in RUBRIC_TYPES
    }
    for path, rubric in _rubrics(case):
        kind = rubric.get("type") or ""
        if kind in judged or (not kind and judged):
            continue
        if kind and kind not in (*RUBRIC_TYPES.values(), _WITHOUT_METRIC):
            hint = did_you_mean(kind.strip().upper(), RUBRIC_TYPES.values())
            types = ", ".join(RUBRIC_TYPES.values())
            yield Problem.error(
                (*path, "type"),
                f"unknown rubric type {kind!r}{hint or f'; types: {types}'}",
                rule=LintRule.UNKNOWN_RUBRIC_TYPE,
            )
        else:
            of_type = f"of type {kind}" if kind else "without a type"
            yield Problem.warning(
                path,
                f"not judged: no criterion of the config is for rubrics {of_type}",
                rule=LintRule.UNJUDGED_RUBRIC,
            )


def _rubrics(case: Mapping[str, Any]) -> Iterator[tuple[JsonPath, Mapping[str, Any]]]:
    conversation = spelt("conversation", case)
    owners: list[tuple[JsonPath, Any]] = [((), case)]
    owners += [((conversation, number), turn) for number, turn in dicts(list_at(case, (conversation,)))]
    for path, owner in owners:
        for index, rubric in dicts(list_at(owner, ("rubrics",))):
            yield (*path, "rubrics", index), rubric
