"""One field of a generation config changed, by the name that a variant gives it."""

from __future__ import annotations

from typing import Any, get_args

from google.genai import types
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake

from ....text.figures import some_of
from ....text.values import did_you_mean, show_value
from .applied_changes import VariantError

_MOST_NAMED = 8
_OF_THE_AGENT = {
    "system_instruction": "instruction=FILE changes the instruction",
    "tools": "tools are those of the agent",
}


def with_field(config: types.GenerateContentConfig | None, name: str, value: Any) -> Any:
    """The config with `temperature` or `thinking_config.thinking_budget` set, from JSON.

    Raises VariantError for a field that there is not, and a value that it does not take.
    """
    if why := _OF_THE_AGENT.get(to_snake(name.partition(".")[0])):
        raise VariantError(f"config.{name}: {why}")
    return _with(config or types.GenerateContentConfig(), name.split("."), value, name)


def field_of(config: types.GenerateContentConfig | None, name: str) -> Any:
    """The value of a field as JSON; None where it is not set."""
    found: Any = config
    for part in name.split("."):
        found = getattr(found, to_snake(part), None)
    return found.model_dump(mode="json", exclude_none=True) if isinstance(found, BaseModel) else found


def _with(config: BaseModel, path: list[str], value: Any, name: str) -> Any:
    first, *inner = map(to_snake, path)
    fields = type(config).model_fields
    if first not in fields:
        known = did_you_mean(first, fields) or f". Known: {some_of(sorted(fields), _MOST_NAMED)}"
        raise VariantError(f"config.{name}: a {type(config).__name__} has no {first}{known}")
    if inner:
        before = getattr(config, first)
        kinds = [one for one in _kinds(fields[first].annotation) if issubclass(one, BaseModel)]
        if before is None and not kinds:
            raise VariantError(f"config.{name}: {first} has no fields")
        return config.model_copy(update={first: _with(before or kinds[0](), inner, value, name)})
    try:
        made = type(config).model_validate({first: value})
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise VariantError(f"config.{name} is {show_value(value)}: {why}") from error
    return config.model_copy(update={first: getattr(made, first)})


def _kinds(annotation: Any) -> list[type]:
    return [one for one in (annotation, *get_args(annotation)) if isinstance(one, type)]
