"""Applies the changes of a variant to an agent, in the process that runs it. Runs only in the child
process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..core.model.variants import Change, Variant
from ..core.secrets import is_secret
from ..text.figures import short_list
from ..text.values import did_you_mean, show_value
from .adapters.base import AgentLoadError
from .own_modules import load_env_file
from .protocol import Message

if TYPE_CHECKING:
    from google.genai import types
    from pydantic import BaseModel


_LONGEST = 60


class VariantError(AgentLoadError):
    """A variant cannot be applied to the agent, or changes nothing."""


@dataclass
class AppliedChanges:
    """The changes of a variant that were made, and those that were not needed."""

    variant: Variant
    done: list[Message] = field(default_factory=list)
    """The changes made, each with `what`, and `old` and `new` as text."""
    same: list[str] = field(default_factory=list)
    """Sentences on settings that already had the value of the variant."""

    def set(self, what: str, old: Any, new: Any) -> bool:
        """Records a change. Returns False where the value is the same."""
        if old == new:
            self.same.append(f"{what} is {_shown(new)} already")
            return False
        self.done.append({"what": what, "old": _shown(old), "new": _shown(new)})
        return True

    def require_some(self) -> None:
        """Raises VariantError where nothing was changed."""
        if self.variant.changes and not self.done:
            raise VariantError(f"changes nothing: {'; '.join(self.same)}")


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if callable(value):
        return f"{getattr(value, '__name__', type(value).__name__)}()"
    return show_value(value, _LONGEST) if not isinstance(value, str) else _one_line(value)


def _one_line(text: str) -> str:
    first, *others = text.strip().splitlines() or [""]
    return f"{first[:_LONGEST]}…" if others or len(first) > _LONGEST else first


_MAX_NAMED = 8
_OTHER_SETTINGS = {
    "system_instruction": "instruction=FILE changes the instruction",
    "tools": "tools are those of the agent",
}


def with_field(config: types.GenerateContentConfig | None, name: str, value: Any) -> Any:
    """The config with a field such as `temperature` or `thinking_config.thinking_budget` set, from JSON.

    Raises VariantError for an unknown field, and a value that it does not accept.
    """
    from google.genai import types
    from pydantic.alias_generators import to_snake

    if why := _OTHER_SETTINGS.get(to_snake(name.partition(".")[0])):
        raise VariantError(f"config.{name}: {why}")
    return _with(config or types.GenerateContentConfig(), name.split("."), value, name)


def field_of(config: types.GenerateContentConfig | None, name: str) -> Any:
    """The value of a field as JSON; None where it is not set."""
    from pydantic.alias_generators import to_snake

    value: Any = config
    for part in name.split("."):
        value = getattr(value, to_snake(part), None)
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def _with(config: BaseModel, path: list[str], value: Any, name: str) -> Any:
    from pydantic import BaseModel, ValidationError
    from pydantic.alias_generators import to_snake

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


def apply_environment(load: Message) -> AppliedChanges | None:
    """Sets the environment variables of the variant of a message `load`; returns None without a variant.

    Called before the agent is imported. Raises AgentLoadError.
    """
    variant = load["variant"]
    if variant is None:
        return None
    applied = AppliedChanges(Variant.from_json(variant), list(variant["done"]))
    # The variant changes variables of these files; the agent's own file wins.
    for folder in (load["agent_dir"], load["home"]):
        load_env_file(Path(folder))
    for change in applied.variant.of_kind("env"):
        name, value = change.name, str(change.value)
        before = os.environ.get(name)
        if before == value:
            applied.same.append(f"{name} has this value already")
        else:
            shown = {"old": before, "new": value}
            hidden = {side: f"<{name}>" for side, text in shown.items() if text and is_secret(name, text)}
            applied.done.append({"what": change.key, "new": value, "old": before or "not set", **hidden})
            os.environ[name] = value
    return applied


def sets_environment(load: Message) -> bool:
    """Whether the variant of a message `load` changes environment variables."""
    variant = load["variant"]
    return variant is not None and any(Change(key, None).kind == "env" for key in variant["changes"])
