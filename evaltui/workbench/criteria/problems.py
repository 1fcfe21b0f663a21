"""Errors of a config as it is edited: those of the file, and of each criterion."""

from __future__ import annotations

from typing import Any

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.metrics.requirements import Facts, unmet_by_metric
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.json_values import value_at
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.documents.editing.config import ConfigEditor

# What the machine lacks is no error of the config.
_FACTS = Facts(GeminiAccess(), has_module=lambda module: True)


def config_problems(data: Any) -> list[Problem]:
    """Every problem of a config's data, those of the whole first."""
    model, problems = validate_config(data)
    editor = ConfigEditor(data)
    named = {problem.path[: len(path)] for problem in problems for path in _paths(editor)}
    for path in _paths(editor):
        if path not in named and (why := _of_criterion(editor, path, model)):
            problems.append(Problem.error(path, why))
    return problems


def _paths(editor: ConfigEditor) -> list[JsonPath]:
    return [path for name in editor.metrics if (path := editor.criterion_path(name)) is not None]


def _of_criterion(editor: ConfigEditor, path: JsonPath, model: EvalConfig | None) -> str:
    """Why a metric cannot be computed by its criterion, and what to do; "" where it can."""
    name = str(path[-1])
    if model is None:
        # Another part of the config has errors.
        alone = {**{key: value for key, value in editor.config.items() if key.startswith("custom")}}
        criterion = {name: value_at(editor.config, path)}
        alone |= {"evaltui": {"criteria": criterion}} if path[0] == "evaltui" else {"criteria": criterion}
        model, problems = validate_config(alone)
        if model is None:
            return next((one.message for one in problems if one.path[: len(path)] == path), "")
    metric = next((one for one in model.metrics() if one.metric_name == name), None)
    found = metric and unmet_by_metric(metric, model, _FACTS, recorded=True)
    return ". ".join(part.rstrip(".") for part in (found.why, found.fix) if part) if found else ""
