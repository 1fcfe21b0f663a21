"""Session state as plain JSON: copies of it, and what changed between two of them."""

from __future__ import annotations

from typing import Any

from evaltui.core.model.events import Json
from evaltui.core.model.problems import JsonPath, format_path


def plain_copy(value: Any, path: JsonPath) -> Any:
    """A deep copy of JSON data; tuples become lists. NaN and infinities stay: the protocol knows them.

    Raises TypeError for what JSON cannot hold, and says where it is: `path` is the place of `value`.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [plain_copy(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {_text_key(key, path): plain_copy(item, (*path, key)) for key, item in value.items()}
    raise TypeError(f"{format_path(path)} is a {type(value).__name__}, which JSON cannot hold")


def _text_key(key: object, path: JsonPath) -> str:
    if isinstance(key, str):
        return key
    raise TypeError(f"{format_path(path)} has the key {key!r}, but keys of JSON objects are text")


def copy_state(state: Json) -> Json:
    """Raises TypeError that names the key whose value JSON cannot hold."""
    copied: Json = plain_copy(state, ("state",))
    return copied


def state_delta(before: Json, after: Json) -> Json:
    """The top-level keys that were set, with their new values; a key that was removed is null."""
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    return changed | dict.fromkeys(removed_keys(before, after))


def removed_keys(before: Json, after: Json) -> tuple[str, ...]:
    return tuple(key for key in before if key not in after)
