"""A config without its JSON: metrics, their thresholds and options, and the `evaltui` block."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from evaltui.core.editing.json_paths import put_member, value_at
from evaltui.core.jsondoc.edits import Edit, EditError, Put, Remove, alike
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.aliases import camel
from evaltui.core.model.config import DEFAULT_CRITERIA, PassIf
from evaltui.core.model.problems import JsonPath

_ADK: JsonPath = ("criteria",)
_OURS: JsonPath = ("evaltui", "criteria")
_BLOCK: JsonPath = ("evaltui",)
# The metric that looks for a single tool takes its name under any of these.
_SAME_OPTION = {"tool": ("tool", "tool_name", "toolName")}


def new_config_text() -> str:
    """The text of a config that asks for what applies where there is none."""
    return json.dumps({"criteria": DEFAULT_CRITERIA}, indent=2) + "\n"


def criterion_path(config: Any, metric: str) -> JsonPath | None:
    """Where the config asks for a metric, None where it does not.

    The `evaltui` block counts where both have it, as when it is scored.
    """
    for owner in (_OURS, _ADK):
        holder = value_at(config, owner)
        if isinstance(holder, dict) and metric in holder:
            return (*owner, metric)
    return None


def add_metric(
    config: Any, metric: str, threshold: float, options: Mapping[str, Any] | None = None
) -> list[Edit]:
    """Ask for a metric: in `criteria`, or in the `evaltui` block where ADK has no such metric.

    Raises EditError where it is asked for already, and for a metric that is reported without being asked
    for and takes no threshold.
    """
    if criterion_path(config, metric):
        raise EditError(f"{metric} is among the criteria already")
    info = METRICS.get(metric)
    if info and not info.gates:
        raise EditError(f"{metric} is measured in every run and takes no threshold")
    value: Any = {"threshold": threshold, **options} if options else threshold
    if info is None or info.source == "adk":
        return [put_member(config, _ADK, metric, value)]
    if not isinstance(value_at(config, _BLOCK), dict):
        return [Put(_BLOCK, {"criteria": {metric: value}})]
    return [put_member(config, _OURS, metric, value)]


def remove_metric(config: Any, metric: str) -> list[Edit]:
    """It is taken out wherever it is asked for; what `custom_metrics` says of it stays."""
    return [
        Remove((*owner, metric))
        for owner in (_ADK, _OURS)
        if isinstance(holder := value_at(config, owner), dict) and metric in holder
    ]


def set_threshold(config: Any, metric: str, threshold: float) -> list[Edit]:
    """A criterion that is a number stays one, one that is an object stays an object."""
    path = _asked_for(config, metric)
    if isinstance(value_at(config, path), dict):
        path = (*path, "threshold")
    return [] if alike(value_at(config, path), threshold) else [Put(path, threshold)]


def set_option(config: Any, metric: str, option: JsonPath, value: Any) -> list[Edit]:
    """Set a key of a criterion, by its path in snake_case; None takes it out, so that its default applies.

    A criterion that is a number becomes an object with that threshold; one that holds the key keeps its
    spelling. An object inside the criterion that loses its last key is taken out.
    """
    path = _asked_for(config, metric)
    criterion = value_at(config, path)
    if not isinstance(criterion, dict):
        if value is None:
            return []
        return [Put(path, {"threshold": criterion, **_nested([str(step) for step in option], value, str)})]
    spell = camel if _is_camel(criterion) else str
    steps = [str(step) for step in option]
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


def set_repeats(config: Any, *, runs: int | None = None, pass_if: PassIf | None = None) -> list[Edit]:
    """How often each case is run, and how many of its runs must pass; None leaves as it is."""
    given = {name: value for name, value in (("runs", runs), ("pass_if", pass_if)) if value is not None}
    if not isinstance(value_at(config, _BLOCK), dict):
        return [Put(_BLOCK, {"repeats": given})] if given else []
    path = (*_BLOCK, "repeats")
    repeats = value_at(config, path)
    if not isinstance(repeats, dict):
        return [Put(path, given)] if given else []
    return [Put((*path, name), value) for name, value in given.items() if not alike(repeats.get(name), value)]


def set_thoughts(config: Any, thoughts: Literal["ignore", "score"]) -> list[Edit]:
    """Whether thoughts count as text of the answer."""
    if value_at(config, (*_BLOCK, "thoughts")) == thoughts:
        return []
    return [put_member(config, _BLOCK, "thoughts", thoughts)]


def _asked_for(config: Any, metric: str) -> JsonPath:
    path = criterion_path(config, metric)
    if path is None:
        raise EditError(f"{metric} is not among the criteria; add it first")
    return path


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
