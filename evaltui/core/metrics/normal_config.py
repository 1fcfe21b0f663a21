"""Normal form of configs: equal for two configs with the same scoring."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_snake

from evaltui.core.metrics.registry import info_of, is_own
from evaltui.core.metrics.spent import cost_usd
from evaltui.core.model.arg_rule import ANY_INDEX, ArgRule, arg_path_text, parse_arg_path
from evaltui.core.model.config import BaseCriterion, EvalConfig, EvaltuiBlock, SimulatorConfig
from evaltui.core.model.criteria import MatchTypeByName
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import ABSENT, value_at, without_places

_MATCH_TYPE: TypeAdapter[Any] = TypeAdapter(MatchTypeByName)


def normal_config(config: Json) -> Json:
    """The normal form of a config in a run log; the config itself if it is invalid."""
    try:
        return normal_form(EvalConfig.model_validate(config))
    except ValidationError:
        return config


def score_alike(config: EvalConfig, other: EvalConfig) -> bool:
    """Whether two configs give every case the same verdict."""
    return config is other or config == other or normal_form(config) == normal_form(other)


def normal_form(config: EvalConfig) -> Json:
    """The settings for scoring, as JSON: without defaults, tags, and settings of metrics that are not in
    use."""
    block = config.evaltui
    custom = config.custom_metrics or {}
    criteria: Json = {}
    own: Json = {}
    for name, criterion in {**config.criteria, **block.criteria}.items():
        is_ours = name in block.criteria or (is_own(name) and name not in custom)
        (own if is_ours else criteria)[name] = _criterion(name, criterion, is_custom=name in custom)
    names = criteria.keys() | own.keys() | block.metrics_to_run.keys()
    functions = {
        name: {
            "code_config": function.code_config.model_dump(),
            "interval": function.metric_info
            and _dump(function.metric_info.metric_value_info).get("interval"),
        }
        for name, function in custom.items()
        if name in names
    }
    simulator = config.user_simulator_config or SimulatorConfig()
    return _without_empty(
        {
            "criteria": criteria,
            "custom_metrics": functions,
            "user_simulator_config": _simulator(simulator),
            "evaltui": {**_block(block, names), "criteria": own},
        }
    )


def _dump(model: Any) -> Json:
    data: Json = model.model_dump(mode="json", exclude_defaults=True)
    return data


def _criterion(name: str, criterion: float | BaseCriterion, *, is_custom: bool) -> Json:
    if not isinstance(criterion, BaseCriterion):
        return {"threshold": criterion}
    data = _dump(criterion)
    if is_custom or "function" in data:
        # A function may read any key, in any spelling.
        return data
    data = dict(_to_snake_case(data))
    if tool := data.pop("tool_name", None):
        data.setdefault("tool", tool)
    for option in info_of(name).options:
        value = value_at(data, option.path, ABSENT)
        if option.name == "match_type" and value is not ABSENT:
            data["match_type"] = value = _match_type(value)
        if value == option.default:
            data = without_places(data, {option.path})
    return data


def _match_type(value: Any) -> Any:
    try:
        return _MATCH_TYPE.dump_python(_MATCH_TYPE.validate_python(value), mode="json")
    except ValidationError:
        return value


def _simulator(config: SimulatorConfig) -> Json:
    data: Json = _to_snake_case(_dump(config))
    if data.get("model_configuration") == SimulatorConfig().model_configuration:
        del data["model_configuration"]
    return data


def _block(block: EvaltuiBlock, names: Iterable[str]) -> Json:
    data = _dump(block)
    for name in ("tags", "criteria", "prices"):
        data.pop(name, None)
    if cost_usd.__name__ in names:
        data["prices"] = {model: _dump(price) for model, price in block.prices.items()}
    marks = {(mark.set, mark.case, mark.turn): _dump(mark) for mark in block.turns}
    return data | {
        "optional": sorted({*block.optional} & {*names}),
        # Without reasons, which are words of the version that gave them, and places in files.
        "metrics_to_run": {
            name: definition.meaning or True for name, definition in block.metrics_to_run.items()
        },
        "answers": sorted(map(_dump, block.answers), key=json.dumps),
        "turns": [marks[place] for place in sorted(marks)],
        "rules": list(_rules(block.rules)),
    }


def _rules(rules: Iterable[ArgRule]) -> Iterator[Json]:
    """Rules in a canonical order; of several rules for one place, the order matters and stays."""
    for rule in sorted(rules, key=_group):
        yield _dump(rule) | {"arg": arg_path_text(parse_arg_path(rule.arg))}


def _group(rule: ArgRule) -> tuple[str, ...]:
    steps = parse_arg_path(rule.arg)
    shape = ["[]" if step is ANY_INDEX or isinstance(step, int) else f".{step}" for step in steps]
    return rule.tool, rule.set or "", rule.case or "", *shape


def _to_snake_case(value: Any) -> Any:
    """JSON data with keys in snake_case, without null; of two spellings of a key, the one that applies."""
    if isinstance(value, list):
        return [_to_snake_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = sorted(value.items(), key=lambda item: to_snake(item[0]) == item[0])
    return {to_snake(key): _to_snake_case(item) for key, item in items if item is not None}


def _without_empty(data: Mapping[str, Any]) -> Json:
    """The data without empty objects and lists, which mean the same as absent ones."""
    items = {key: _without_empty(item) if isinstance(item, dict) else item for key, item in data.items()}
    return {key: item for key, item in items.items() if item not in ({}, [], None)}
