"""Rubrics of cases and turns that no metric of their config judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaltui.core.metrics.registry import RUBRIC_TYPES
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.json_values import dicts, list_at, spelt
from evaltui.core.model.problems import Finding, JsonPath, LintRule, Problem, problems_of
from evaltui.text.values import did_you_mean

# Source: google-adk 2.13 names it as an example, and has no metric for it.
_WITHOUT_METRIC = "INSTRUCTION_ADHERENCE"


UNKNOWN_RUBRIC_TYPE = LintRule("unknown-rubric-type", "A rubric has an unknown type", blocks=True)
UNJUDGED_RUBRIC = LintRule("unjudged-rubric", "No criterion judges a rubric", blocks=False)


def rubric_problems(case: Mapping[str, Any], config: EvalConfig) -> list[Problem]:
    """The problems of a case's rubrics, as JSON data, under a config; paths relative to the case."""
    return problems_of("case with rubrics", case, config)


@UNKNOWN_RUBRIC_TYPE.checks("case with rubrics")
def _unknown_types(case: Mapping[str, Any], config: EvalConfig) -> Iterator[Finding]:
    for path, kind in _unjudged(case, config):
        if _is_unknown(kind):
            hint = did_you_mean(kind.strip().upper(), RUBRIC_TYPES.values())
            types = ", ".join(RUBRIC_TYPES.values())
            yield (*path, "type"), f"unknown rubric type {kind!r}{hint or f'; types: {types}'}"


@UNJUDGED_RUBRIC.checks("case with rubrics")
def _not_judged(case: Mapping[str, Any], config: EvalConfig) -> Iterator[Finding]:
    for path, kind in _unjudged(case, config):
        if not _is_unknown(kind):
            of_type = f"of type {kind}" if kind else "without a type"
            yield path, f"not judged: no criterion of the config is for rubrics {of_type}"


def _is_unknown(kind: str) -> bool:
    return bool(kind) and kind not in (*RUBRIC_TYPES.values(), _WITHOUT_METRIC)


def _unjudged(case: Mapping[str, Any], config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    """The paths and types of rubrics that no metric judges; a function of the user's may read any rubric."""
    metrics = config.metrics()
    if any(metric.custom_function_path is not None for metric in metrics):
        return
    judged = {
        RUBRIC_TYPES[name] for name in (metric.metric_name for metric in metrics) if name in RUBRIC_TYPES
    }
    for path, rubric in _rubrics(case):
        kind = rubric.get("type") or ""
        if not (kind in judged or (not kind and judged)):
            yield path, kind


def _rubrics(case: Mapping[str, Any]) -> Iterator[tuple[JsonPath, Mapping[str, Any]]]:
    conversation = spelt("conversation", case)
    owners: list[tuple[JsonPath, Any]] = [((), case)]
    owners += [((conversation, number), turn) for number, turn in dicts(list_at(case, (conversation,)))]
    for path, owner in owners:
        for index, rubric in dicts(list_at(owner, ("rubrics",))):
            yield (*path, "rubrics", index), rubric
