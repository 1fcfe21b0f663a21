"""Where things are in the JSON data of an eval set, in the spelling in which it has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaltui.core.jsondoc.edits import Edit, EditError, Insert, Put
from evaltui.core.model.aliases import camel, spelt
from evaltui.core.model.problems import JsonPath

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


@dataclass(frozen=True)
class Changes:
    """Edits of an eval set and of the config beside it: one step for the user, undone together."""

    of_set: list[Edit] = field(default_factory=list)
    of_config: list[Edit] = field(default_factory=list)


def value_at(data: Any, path: JsonPath) -> Any:
    """The value at a path, None where there is none."""
    for step in path:
        if isinstance(data, dict) and isinstance(step, str):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data):
            data = data[step]
        else:
            return None
    return data


def list_at(data: Any, path: JsonPath) -> list[Any]:
    """The list at a path; empty where something else or nothing is there."""
    value = value_at(data, path)
    return value if isinstance(value, list) else []


def place(data: Any, owner: JsonPath, name: str) -> JsonPath:
    """The path of a field of the object at `owner`: as it is spelt there, else as its surroundings are."""
    holder = value_at(data, owner)
    if isinstance(holder, dict) and (spelling := spelt(name, holder)) in holder:
        return (*owner, spelling)
    return (*owner, name_in_style(data, owner, name))


def get(data: Any, owner: JsonPath, name: str) -> Any:
    """The value of a field in either spelling, None where it is absent."""
    return value_at(data, place(data, owner, name))


def name_in_style(data: Any, path: JsonPath, name: str) -> str:
    """A field's name as the objects from `path` outwards spell theirs; snake_case where none of them tells.

    The level of the set does not count: ADK reads snake_case alone there, whatever its cases have.
    """
    for length in range(len(path), 0, -1):
        level = value_at(data, path[:length])
        if isinstance(level, list):
            # An object that is new, or has no such field yet, is spelt as the others of its list.
            level = next((item for item in level if isinstance(item, dict) and _tells(item)), None)
        if isinstance(level, dict) and _tells(level):
            return camel(name) if _CAMEL & level.keys() else name
    return name


def _tells(level: Mapping[str, Any]) -> bool:
    snake, camels = level.keys() & set(_FIELDS), level.keys() & _CAMEL
    return bool(snake) != bool(camels)


def in_style(data: Any, path: JsonPath, value: Mapping[str, Any]) -> dict[str, Any]:
    """An object of fields, to be put at or inside `path`, with its own names spelt as those around."""
    return {name_in_style(data, path, name): item for name, item in value.items()}


def cases_path(data: Any) -> JsonPath:
    return (spelt("eval_cases", data) if isinstance(data, dict) else "eval_cases",)


def case_path(data: Any, case: int) -> JsonPath:
    """Raises EditError where there is no such case."""
    path = (*cases_path(data), case)
    if not isinstance(value_at(data, path), dict):
        raise EditError(f"this set has no case {case + 1}")
    return path


def turns_path(data: Any, case: int) -> JsonPath:
    """Raises EditError where the user of the case is simulated, so that it has no turns."""
    owner = case_path(data, case)
    path = place(data, owner, "conversation")
    if not isinstance(value_at(data, path), list) and isinstance(
        get(data, owner, "conversation_scenario"), dict
    ):
        raise EditError(
            "the user of this case is simulated, so it has no turns; make it a conversation first"
        )
    return path


def turn_path(data: Any, case: int, turn: int) -> JsonPath:
    """Raises EditError where there is no such turn."""
    path = (*turns_path(data, case), turn)
    if not isinstance(value_at(data, path), dict):
        raise EditError(f"this case has no turn {turn + 1}")
    return path


def turn_count(data: Any, case: int) -> int:
    return len(list_at(data, turns_path(data, case)))


def set_id(data: Any) -> str:
    value = get(data, (), "eval_set_id")
    return value if isinstance(value, str) else ""


def eval_id(data: Any, case: int) -> str:
    value = get(data, case_path(data, case), "eval_id")
    return value if isinstance(value, str) else ""


def eval_ids(data: Any) -> list[str]:
    """The ids of all cases in order; "" for those that have none."""
    path = cases_path(data)
    ids = (get(data, (*path, number), "eval_id") for number in range(len(list_at(data, path))))
    return [value if isinstance(value, str) else "" for value in ids]


def insert_at(data: Any, path: JsonPath, index: int, value: Any) -> Edit:
    """Insert into the list at a path, which is made where there is none."""
    if isinstance(value_at(data, path), list):
        return Insert(path, index, value)
    return Put(path, [value])


def put_member(data: Any, path: JsonPath, key: str, value: Any) -> Edit:
    """Put a member of the object at a path, which is made where there is none."""
    if isinstance(value_at(data, path), dict):
        return Put((*path, key), value)
    return Put(path, {key: value})


def dicts(items: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list with their index."""
    return ((index, item) for index, item in enumerate(items) if isinstance(item, dict))
