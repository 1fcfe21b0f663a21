"""A config without its JSON: metrics with their thresholds and options, rules, and repeats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.answer_rule import AnswerRule
from evaltui.core.model.arg_rule import ArgRule, parse_arg_path
from evaltui.core.model.config import DEFAULT_CRITERIA, PassIf
from evaltui.core.model.json_values import camel, list_at, object_or_empty, value_at
from evaltui.core.model.model_errors import validate_model
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing.json_paths import field_path, field_value, free_id
from evaltui.documents.editing.references import BLOCK, RULES, References
from evaltui.documents.edits import EditError
from evaltui.documents.values import put, put_member, remove

Rule = Mapping[str, Any]

# Where criteria are: those of metrics that ADK has, and the others.
_ADK: JsonPath = ("criteria",)
_OURS: JsonPath = (*BLOCK, "criteria")
# Metrics of a config of agents-cli, which may have no threshold.
_DEFINED: JsonPath = (*BLOCK, "metrics_to_run")
_REPEATS: JsonPath = (*BLOCK, "repeats")
_RUBRICS: JsonPath = ("rubrics",)
# The metric that looks for a single tool takes its name under any of these.
_SAME_OPTION = {"tool": ("tool", "tool_name", "toolName")}


def new_config_text() -> str:
    """The text of a config with the same content as ADK's defaults."""
    return json.dumps({"criteria": DEFAULT_CRITERIA}, indent=2) + "\n"


def new_config() -> Any:
    return json.loads(new_config_text())


class ConfigEditor(References):
    """A config, and every change to it."""

    # Criteria

    @property
    def metrics(self) -> list[str]:
        """The configured metrics, in the order in which they are scored."""
        names: dict[str, None] = {}
        for owner in (_DEFINED, _ADK, _OURS):
            names |= dict.fromkeys(self._members(owner))
        return list(names)

    def criterion_path(self, metric: str) -> JsonPath | None:
        """The path of a metric's criterion; None without one. The `evaltui` block counts where both have
        it, as in scoring."""
        owners = (owner for owner in (_OURS, _ADK) if metric in self._members(owner))
        return next(((*owner, metric) for owner in owners), None)

    def criterion(self, metric: str) -> Any:
        """The criterion of a metric, a threshold or an object with it; None for a metric without one."""
        path = self.criterion_path(metric)
        return None if path is None else value_at(self.config, path)

    def definition(self, metric: str) -> Mapping[str, Any] | None:
        """The definition of a metric of agents-cli; None for every other metric."""
        definition = self._members(_DEFINED).get(metric)
        return definition if isinstance(definition, dict) else None

    def threshold(self, metric: str) -> float | None:
        """The threshold of a metric; None where it is not configured, or its threshold is no number."""
        criterion = self.criterion(metric)
        value = criterion.get("threshold") if isinstance(criterion, dict) else criterion
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def add_metric(self, metric: str, criterion: Any) -> None:
        """Adds a metric: to `criteria`, or to the `evaltui` block if ADK does not have it.

        `criterion` is a threshold or an object. Raises EditError for a metric that is in use, and for an
        informational metric without a threshold.
        """
        if self.criterion_path(metric):
            raise EditError(f"{metric} is already a criterion")
        info = METRICS.get(metric)
        if info and not info.gates:
            raise EditError(f"{metric} is always reported and takes no threshold")
        if info is None or info.source == "adk":
            put_member(self.config, _ADK, metric, criterion)
        else:
            self.put_own_criterion(metric, criterion)

    def put_own_criterion(self, metric: str, criterion: Any) -> None:
        """Puts a criterion, a threshold or an object, into the `evaltui` block."""
        put_member(self.config, _OURS, metric, criterion)

    def remove_metric(self, metric: str) -> None:
        """Removes a metric from every place that configures it; its entry in `custom_metrics` stays."""
        for owner in (_DEFINED, _ADK, _OURS):
            if metric in self._members(owner):
                remove(self.config, (*owner, metric))

    def set_threshold(self, metric: str, threshold: float) -> None:
        """Sets a threshold; a criterion that is a number stays a number, an object stays an object."""
        if self.definition(metric) is not None and self.criterion_path(metric) is None:
            self.put_own_criterion(metric, threshold)
            return
        path = self._known_path(metric)
        is_object = isinstance(value_at(self.config, path), dict)
        put(self.config, (*path, "threshold") if is_object else path, threshold)

    def set_option(self, metric: str, option: JsonPath, value: Any) -> None:
        """Sets a key of a criterion, by its path in snake_case; with None its default applies.

        A criterion that is a number becomes an object with that threshold; one that holds the key keeps its
        spelling. An object inside the criterion that loses its last key is taken out.
        """
        path = self._known_path(metric)
        criterion = value_at(self.config, path)
        steps = [str(step) for step in option]
        if not isinstance(criterion, dict):
            if value is not None:
                put(self.config, path, {"threshold": criterion, **_nested(steps, value, str)})
            return
        spell = camel if _is_camel(criterion) else str
        for depth, step in enumerate(steps[:-1]):
            key = _key(step, criterion, spell)
            if not isinstance(criterion.get(key), dict):
                if value is not None:
                    put(self.config, (*path, key), _nested(steps[depth + 1 :], value, spell))
                return
            path, criterion = (*path, key), criterion[key]
        key = _key(steps[-1], criterion, spell)
        if value is not None:
            put(self.config, (*path, key), value)
        elif key in criterion:
            is_last = len(criterion) == 1 and len(steps) > 1
            remove(self.config, path if is_last else (*path, key))

    # Rubrics of a criterion

    def rubrics(self, metric: str) -> list[Any]:
        criterion = self.criterion(metric)
        return list(list_at(criterion, field_path(criterion, (), "rubrics")))

    def insert_rubric(self, metric: str, index: int, text: str) -> None:
        """Adds a rubric with an id that is free, at an index."""
        rubrics = self.rubrics(metric)
        ids = {field_value(rubric, (), "rubric_id") for rubric in rubrics}
        rubrics.insert(
            index, {"rubric_id": free_id("rubric", 1, ids), "rubric_content": {"text_property": text.strip()}}
        )
        self.set_option(metric, _RUBRICS, rubrics)

    def set_rubric_text(self, metric: str, index: int, text: str) -> None:
        rubrics = self.rubrics(metric)
        rubrics[index] = _with_text(rubrics[index], text)
        self.set_option(metric, _RUBRICS, rubrics)

    def remove_rubric(self, metric: str, index: int) -> None:
        """Removes a rubric, and the list if it is empty then."""
        rubrics = self.rubrics(metric)
        del rubrics[index]
        self.set_option(metric, _RUBRICS, rubrics or None)

    def _known_path(self, metric: str) -> JsonPath:
        path = self.criterion_path(metric)
        if path is None:
            raise EditError(f"{metric} is not a criterion; add it first")
        return path

    # Settings of the `evaltui` block

    def set_repeats(self, *, runs: int | None = None, pass_if: PassIf | None = None) -> None:
        """Sets the number of runs of each case and the pass policy; None leaves a value unchanged."""
        for name, value in (("runs", runs), ("pass_if", pass_if)):
            if value is not None:
                put_member(self.config, _REPEATS, name, value)

    def set_scored(self, name: Literal["thoughts", "outputs"], value: Literal["ignore", "score"]) -> None:
        """Whether thoughts, or outputs, count as text of the response."""
        put_member(self.config, BLOCK, name, value)

    def remove_setting(self, name: Literal["runs", "pass_if", "thoughts", "outputs"]) -> None:
        """Removes a setting, so that its default applies; `repeats` is removed with its last member."""
        owner = BLOCK if name in ("thoughts", "outputs") else _REPEATS
        holder = self._members(owner)
        if name in holder:
            remove(self.config, owner if len(holder) == 1 and owner == _REPEATS else (*owner, name))

    # Rules

    def put_rule(self, rule: Rule) -> None:
        """Adds a rule at the end, or replaces the rule for the same argument and cases. Raises EditError
        for an invalid rule."""
        model, problems = validate_model(ArgRule, dict(rule))
        if model is None:
            raise EditError(f"not a rule: {problems[0]}")
        target = _target(rule)
        same = [(index, entry) for index, entry in self.entries("rules") if _target(entry) == target]
        if not same:
            self.append_entries("rules", [rule])
            return
        # Of several the last one counts; the others say nothing and would come to life when it is removed.
        *hidden, (_, last) = same
        for key in [key for key in last if key not in rule]:
            del last[key]
        last.update(rule)
        self.remove_entries("rules", [index for index, _ in hidden])

    def put_answer_rule(self, rule: Rule) -> None:
        """Adds a check of answers at the end; one that is there already stays as it is.

        Raises EditError for what is no check.
        """
        model, problems = validate_model(AnswerRule, dict(rule))
        if model is None:
            raise EditError(f"not a check: {problems[0]}")
        if all(entry != rule for _, entry in self.entries("answers")):
            self.append_entries("answers", [rule])

    def remove_rule(self, index: int) -> None:
        """Removes a rule, and the list if it is empty then. Raises EditError for a missing rule."""
        if not isinstance(value_at(self.config, (*RULES, index)), dict):
            raise EditError(f"The config has no rule {index + 1}")
        self.remove_entries("rules", [index])

    # What these share

    def _members(self, path: JsonPath) -> Mapping[str, Any]:
        """The object at a path; empty where something else or nothing is there."""
        return object_or_empty(value_at(self.config, path))


def _with_text(rubric: Any, text: str) -> Any:
    if not isinstance(rubric, dict):
        return rubric
    content_key = field_path(rubric, (), "rubric_content")[-1]
    content = object_or_empty(rubric.get(content_key))
    text_key = field_path(rubric, (content_key,), "text_property")[-1]
    return {**rubric, content_key: {**content, text_key: text}}


def _key(name: str, holder: Mapping[str, Any], spell: Callable[[str], str]) -> str:
    """The key under which a criterion has an option, or would have it."""
    names = _SAME_OPTION.get(name, (name, camel(name)))
    return next((key for key in names if key in holder), spell(name))


def _nested(steps: Sequence[str], value: Any, spell: Callable[[str], str]) -> dict[str, Any]:
    """A value inside new objects: `{"a": {"b": 1}}` for `["a", "b"]` and 1."""
    for step in reversed(steps):
        value = {spell(step): value}
    return dict(value)


def _is_camel(criterion: Mapping[str, Any]) -> bool:
    """Whether the keys of an object, nested ones included, are camelCase as far as they differ from
    snake_case."""
    keys = [*criterion, *(key for inner in criterion.values() if isinstance(inner, dict) for key in inner)]
    return any(key != key.lower() for key in keys) and not any("_" in key for key in keys)


def _target(rule: Rule) -> tuple[Any, ...]:
    """The scope of a rule as a comparable key; different spellings of an argument path give the same key."""
    arg = rule.get("arg")
    try:
        path: Any = parse_arg_path(arg) if isinstance(arg, str) else arg
    except ValueError:
        path = arg
    return rule.get("tool"), path, rule.get("set"), rule.get("case")
