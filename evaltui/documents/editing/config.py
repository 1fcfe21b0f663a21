"""A config without its JSON: metrics with their thresholds and options, rules, and repeats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.arg_rule import ArgRule, parse_arg_path
from evaltui.core.model.config import DEFAULT_CRITERIA, PassIf
from evaltui.core.model.json_values import camel, value_at
from evaltui.core.model.model_errors import validate_model
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing.json_paths import put_field, put_member
from evaltui.documents.editing.references import BLOCK, RULES, CaseRef, References
from evaltui.documents.edits import Edit, EditError, Put, Remove, alike

Rule = Mapping[str, Any]

# Where criteria are: those of metrics that ADK has, and the others.
_ADK: JsonPath = ("criteria",)
_OURS: JsonPath = (*BLOCK, "criteria")
_REPEATS: JsonPath = (*BLOCK, "repeats")
# The metric that looks for a single tool takes its name under any of these.
_SAME_OPTION = {"tool": ("tool", "tool_name", "toolName")}


def new_config_text() -> str:
    """The text of a config that asks for what applies where there is none."""
    return json.dumps({"criteria": DEFAULT_CRITERIA}, indent=2) + "\n"


def new_config() -> Any:
    return json.loads(new_config_text())


def new_rule(
    tool: str, arg: str, match: Any, case: CaseRef | None = None, eval_set_id: str | None = None
) -> dict[str, Any]:
    """A rule as it is written in the config: for a case, for a set, or for every case."""
    rule = {"tool": tool, "arg": arg, "match": match}
    if case is not None:
        return rule | {"set": case[0], "case": case[1]}
    return rule if eval_set_id is None else rule | {"set": eval_set_id}


class ConfigEditor(References):
    """A config, and every change to it as edits of its file."""

    # Criteria

    @property
    def metrics(self) -> list[str]:
        """The metrics that are asked for, in the order in which they are scored."""
        names: dict[str, None] = {}
        for owner in (_ADK, _OURS):
            names |= dict.fromkeys(self._members(owner))
        return list(names)

    def criterion_path(self, metric: str) -> JsonPath | None:
        """Where a metric is asked for, None where it is not.

        The `evaltui` block counts where both have it, as when it is scored.
        """
        owners = (owner for owner in (_OURS, _ADK) if metric in self._members(owner))
        return next(((*owner, metric) for owner in owners), None)

    def criterion(self, metric: str) -> Any:
        """A threshold, or an object with it; None where the metric is not asked for."""
        path = self.criterion_path(metric)
        return None if path is None else value_at(self.config, path)

    def threshold(self, metric: str) -> float | None:
        """None where it is not asked for, or has none that is a number."""
        criterion = self.criterion(metric)
        value = criterion.get("threshold") if isinstance(criterion, dict) else criterion
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def add_metric(self, metric: str, criterion: Any) -> list[Edit]:
        """Ask for a metric: in `criteria`, or in the `evaltui` block where ADK has no such metric.

        `criterion` is a threshold, or an object. Raises EditError where it is asked for already, and for a
        metric that is reported without being asked for and takes no threshold.
        """
        if self.criterion_path(metric):
            raise EditError(f"{metric} is already a criterion")
        info = METRICS.get(metric)
        if info and not info.gates:
            raise EditError(f"{metric} is always reported and takes no threshold")
        if info is None or info.source == "adk":
            return [put_member(self.config, _ADK, metric, criterion)]
        return [self.put_own_criterion(metric, criterion)]

    def put_own_criterion(self, metric: str, criterion: Any) -> Edit:
        """Puts a criterion, a threshold or an object, into the `evaltui` block."""
        return self._put_in_block("criteria", metric, criterion)

    def remove_metric(self, metric: str) -> list[Edit]:
        """It is taken out wherever it is asked for; what `custom_metrics` says of it stays."""
        return [Remove((*owner, metric)) for owner in (_ADK, _OURS) if metric in self._members(owner)]

    def set_threshold(self, metric: str, threshold: float) -> list[Edit]:
        """A criterion that is a number stays one, one that is an object stays an object."""
        path = self._known_path(metric)
        if isinstance(value_at(self.config, path), dict):
            path = (*path, "threshold")
        return put_field(self.config, path, threshold)

    def set_option(self, metric: str, option: JsonPath, value: Any) -> list[Edit]:
        """Set a key of a criterion, by its path in snake_case; with None its default applies.

        A criterion that is a number becomes an object with that threshold; one that holds the key keeps its
        spelling. An object inside the criterion that loses its last key is taken out.
        """
        path = self._known_path(metric)
        criterion = value_at(self.config, path)
        steps = [str(step) for step in option]
        if not isinstance(criterion, dict):
            return (
                [] if value is None else [Put(path, {"threshold": criterion, **_nested(steps, value, str)})]
            )
        spell = camel if _is_camel(criterion) else str
        for depth, step in enumerate(steps[:-1]):
            key = _key(step, criterion, spell)
            if not isinstance(criterion.get(key), dict):
                rest = _nested(steps[depth + 1 :], value, spell)
                return [] if value is None else [Put((*path, key), rest)]
            path, criterion = (*path, key), criterion[key]
        key = _key(steps[-1], criterion, spell)
        if value is None:
            is_last = len(criterion) == 1 and len(steps) > 1
            return [Remove(path if is_last else (*path, key))] if key in criterion else []
        if key in criterion and alike(criterion[key], value):
            return []
        return [Put((*path, key), value)]

    def _known_path(self, metric: str) -> JsonPath:
        path = self.criterion_path(metric)
        if path is None:
            raise EditError(f"{metric} is not a criterion; add it first")
        return path

    # Settings of the `evaltui` block

    def set_repeats(self, *, runs: int | None = None, pass_if: PassIf | None = None) -> list[Edit]:
        """How often each case is run, and how many of its runs must pass; None leaves as it is."""
        given = {name: value for name, value in (("runs", runs), ("pass_if", pass_if)) if value is not None}
        if not given:
            return []
        if not isinstance(value_at(self.config, BLOCK), dict):
            return [Put(BLOCK, {"repeats": given})]
        repeats = value_at(self.config, _REPEATS)
        if not isinstance(repeats, dict):
            return [Put(_REPEATS, given)]
        return [
            Put((*_REPEATS, name), value)
            for name, value in given.items()
            if not alike(repeats.get(name), value)
        ]

    def set_scored(
        self, name: Literal["thoughts", "outputs"], value: Literal["ignore", "score"]
    ) -> list[Edit]:
        """Whether thoughts, or outputs, count as text of the response."""
        if value_at(self.config, (*BLOCK, name)) == value:
            return []
        return [put_member(self.config, BLOCK, name, value)]

    def remove_setting(self, name: Literal["runs", "pass_if", "thoughts", "outputs"]) -> list[Edit]:
        """Its default applies then; `repeats` goes with its last member."""
        owner = BLOCK if name in ("thoughts", "outputs") else _REPEATS
        holder = self._members(owner)
        if name not in holder:
            return []
        return [Remove(owner if len(holder) == 1 and owner == _REPEATS else (*owner, name))]

    # Rules

    def put_rule(self, rule: Rule) -> list[Edit]:
        """Add a rule at the end, or where one for the same argument and cases is, change what that one says.

        Raises EditError for what is no rule.
        """
        model, problems = validate_model(ArgRule, dict(rule))
        if model is None:
            raise EditError(f"not a rule: {problems[0]}")
        target = _target(rule)
        same = [(index, one) for index, one in self.entries("rules") if _target(one) == target]
        if not same:
            return self.append_entries("rules", [dict(rule)])
        *hidden, (kept, before) = same
        # What is the same in both stays as it is written.
        put = [
            Put((*RULES, kept, key), value)
            for key, value in rule.items()
            if key not in before or not alike(before[key], value)
        ]
        gone = [Remove((*RULES, kept, key)) for key in before if key not in rule]
        # Of several the last one counts; the others say nothing and would come to life when it is removed.
        return [*put, *gone, *(Remove((*RULES, index)) for index, _ in reversed(hidden))]

    def remove_rule(self, index: int) -> list[Edit]:
        """Take a rule out; the list goes with its last one. Raises EditError where there is none."""
        if not isinstance(value_at(self.config, (*RULES, index)), dict):
            raise EditError(f"The config has no rule {index + 1}")
        return self.remove_entries("rules", [index])

    # What these share

    def _members(self, path: JsonPath) -> Mapping[str, Any]:
        """The object at a path; empty where something else or nothing is there."""
        found = value_at(self.config, path)
        return found if isinstance(found, dict) else {}

    def _put_in_block(self, name: str, key: str, value: Any) -> Edit:
        """Put a member of an object in the `evaltui` block, both made where they are missing."""
        if not isinstance(value_at(self.config, BLOCK), dict):
            return Put(BLOCK, {name: {key: value}})
        return put_member(self.config, (*BLOCK, name), key, value)


def _key(name: str, holder: Mapping[str, Any], spell: Callable[[str], str]) -> str:
    """The key under which a criterion has an option, or would have it."""
    names = _SAME_OPTION.get(name, (name, camel(name)))
    return next((one for one in names if one in holder), spell(name))


def _nested(steps: Sequence[str], value: Any, spell: Callable[[str], str]) -> dict[str, Any]:
    """`["a", "b"]` and 1 as `{"a": {"b": 1}}`."""
    for step in reversed(steps):
        value = {spell(step): value}
    return dict(value)


def _is_camel(criterion: Mapping[str, Any]) -> bool:
    """Whether an object's keys, and those inside it, are camelCase as far as they tell."""
    keys = [*criterion, *(key for inner in criterion.values() if isinstance(inner, dict) for key in inner)]
    return any(key != key.lower() for key in keys) and not any("_" in key for key in keys)


def _target(rule: Rule) -> tuple[Any, ...]:
    """What a rule is for; two whose arguments are written differently may be for the same."""
    arg = rule.get("arg")
    try:
        path: Any = parse_arg_path(arg) if isinstance(arg, str) else arg
    except ValueError:
        path = arg
    return rule.get("tool"), path, rule.get("set"), rule.get("case")
