"""Paths in the JSON data of an eval set, in the spelling of the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from evaltui.core.model.json_values import camel, field_of, list_at, spelling_in, text_or_empty, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import eval_ids_of

# The fields whose two spellings differ, and which therefore tell how a case is spelt. A user's own keys do
# not. The models would tell too, but importing them takes half a second, and the tree must not wait for it.
_FIELDS = (
    "app_details",
    "app_name",
    "conversation_plan",
    "conversation_scenario",
    "creation_timestamp",
    "eval_id",
    "file_data",
    "final_response",
    "final_session_state",
    "function_call",
    "function_response",
    "inline_data",
    "intermediate_data",
    "intermediate_responses",
    "invocation_events",
    "invocation_id",
    "mime_type",
    "model_version",
    "rubric_content",
    "rubric_id",
    "session_id",
    "session_input",
    "starting_prompt",
    "text_property",
    "tool_responses",
    "tool_uses",
    "usage_metadata",
    "user_content",
    "user_id",
    "user_persona",
)
_CAMEL = frozenset(map(camel, _FIELDS))


def field_path(data: Any, owner: JsonPath, name: str) -> JsonPath:
    """The path of a field of the object at `owner`, in the spelling there or of its surroundings."""
    holder = value_at(data, owner)
    if isinstance(holder, dict) and (spelling := spelling_in(name, holder)) in holder:
        return (*owner, spelling)
    return (*owner, name_in_style(data, owner, name))


def field_value(data: Any, owner: JsonPath, name: str) -> Any:
    """The value of a field in either spelling, None where it is absent."""
    return field_of(value_at(data, owner), name)


def name_in_style(data: Any, path: JsonPath, name: str) -> str:
    """The name of a field in the spelling of the objects around `path`; snake_case where they do not tell.

    The set level is ignored, because ADK accepts only snake_case there.
    """
    levels = [data := value_at(data, (step,)) for step in path]
    for level in reversed(levels):
        if isinstance(level, list):
            # An object that is new, or has no such field yet, is spelt as the others of its list.
            level = next((item for item in level if isinstance(item, dict) and _shows_style(item)), None)
        if isinstance(level, dict) and _shows_style(level):
            return camel(name) if _CAMEL & level.keys() else name
    return name


def _shows_style(level: Mapping[str, Any]) -> bool:
    snake, camels = level.keys() & set(_FIELDS), level.keys() & _CAMEL
    return bool(snake) != bool(camels)


def in_style(data: Any, path: JsonPath, value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with its field names in the spelling of the objects around `path`."""
    return {name_in_style(data, path, name): item for name, item in value.items()}


def cases_path(data: Any) -> JsonPath:
    return (spelling_in("eval_cases", data) if isinstance(data, dict) else "eval_cases",)


def set_id(data: Any) -> str:
    return text_or_empty(field_of(data, "eval_set_id"))


def eval_ids(data: Any) -> list[str]:
    """The ids of all cases in order; "" for a case without one."""
    return [eval_id or "" for eval_id in eval_ids_of(list_at(data, cases_path(data)))]


def free_id(stem: str, number: int, used: Collection[str]) -> str:
    """The first id that is not used of `stem_3`, `stem_4` and so on, from a number on."""
    while f"{stem}_{number}" in used:
        number += 1
    return f"{stem}_{number}"
