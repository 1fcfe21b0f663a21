"""The fields of a model's config, which variants change. Runs only in the child process."""

from __future__ import annotations

from typing import Any, get_args

from google.genai import types
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake

from ..text.figures import short_list
from ..text.values import did_you_mean, show_value
from .variants import VariantError

_MAX_NAMED = 8
_OTHER_SETTINGS = {
    "system_instruction": "instruction=FILE changes the instruction",
    "tools": "tools are those of the agent",
}


def with_field(config: types.GenerateContentConfig | None, name: str, value: Any) -> Any:
    """The config with a field such as `temperature` or `thinking_config.thinking_budget` set, from JSON.

    Raises VariantError for an unknown field, and a value that it does not accept.
    """
    if why := _OTHER_SETTINGS.get(to_snake(name.partition(".")[0])):
        raise VariantError(f"config.{name}: {why}")
    return _with(config or types.GenerateContentConfig(), name.split("."), value, name)


def field_of(config: types.GenerateContentConfig | None, name: str) -> Any:
    """The value of a field as JSON; None where it is not set."""
    value: Any = config
    for part in name.split("."):
        value = getattr(value, to_snake(part), None)
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def _with(config: BaseModel, path: list[str], value: Any, name: str) -> Any:
    first, *inner = map(to_snake, path)
    fields = type(config).model_fields
    if first not in fields:
        hint = did_you_mean(first, fields) or f". Known: {short_list(sorted(fields), _MAX_NAMED)}"
        raise VariantError(f"config.{name}: a {type(config).__name__} has no {first}{hint}")
    if inner:
        before = getattr(config, first)
        kinds = [kind for kind in _kinds(fields[first].annotation) if issubclass(kind, BaseModel)]
        if before is None and not kinds:
            raise VariantError(f"config.{name}: {first} has no fields")
        return config.model_copy(update={first: _with(before or kinds[0](), inner, value, name)})
    try:
        validated = type(config).model_validate({first: value})
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise VariantError(f"config.{name} is {show_value(value)}: {why}") from error
    return config.model_copy(update={first: getattr(validated, first)})


def _kinds(annotation: Any) -> list[type]:
    return [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
