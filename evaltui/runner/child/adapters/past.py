"""What a session that begins at the end of a past has to know: the state, the messages, the ids in use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from evaltui.core.model.events import Json, Step, is_made_id
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


def state_after(state: Json, past: Sequence[Step]) -> Json:
    """A copy of `state`, changed as the steps of `past` changed it."""
    changed = copy_state(state)
    for step in past:
        changed |= copy_state(step.state or {})
        for key in step.removed:
            changed.pop(key, None)
    return changed


def step_numbers(past: Sequence[Step]) -> Iterator[int]:
    """Numbers for ids `step-N` that no step of `past` has."""
    return _numbers_after("step-", (step.id for step in past))


def call_numbers(past: Sequence[Step]) -> Iterator[int]:
    """Numbers for ids `call-N` that no call of `past` has."""
    return _numbers_after("call-", (call_of(part).get("id") or "" for step in past for part in step.parts))


def _numbers_after(prefix: str, ids: Iterable[str]) -> Iterator[int]:
    matches = (re.fullmatch(prefix + r"(\d{1,9})", one) for one in ids)
    return count(1 + max((int(match[1]) for match in matches if match), default=0))


def call_of(part: Json) -> Json:
    """The call or the result that a part is; `{}` where it is neither."""
    call: Json = part.get("function_call") or part.get("function_response") or {}
    return call


def content_of(step: Step) -> Json | None:
    """The content of a step, with the role of whose it is where it has none."""
    if not step.content:
        return None
    users = step.author == "user" or any("function_response" in part for part in step.parts)
    return {"role": "user" if users else "model"} | step.content


def contents_of(past: Sequence[Step]) -> list[Json]:
    """What was said, called and returned, in order."""
    return [content for step in past if (content := content_of(step))]


def contents_for_model(past: Sequence[Step]) -> list[Json]:
    """The contents of `past` as a model takes them.

    It refuses calls without results and results without calls, and an expected turn may well have such. Ids
    that its calls were given afterwards are not known to it.
    """
    answered = _call_ids(past, "function_call") & _call_ids(past, "function_response")
    contents: list[Json] = []
    for step in past:
        parts = [
            _without_made_id(part)
            for part in step.parts
            if not _is_call(part) or (step.turn, call_of(part).get("id")) in answered
        ]
        content = content_of(step)
        if content and (parts or not step.parts):
            contents.append(content | {"parts": parts})
    return contents


def _call_ids(past: Sequence[Step], kind: str) -> set[tuple[int | None, str | None]]:
    return {(step.turn, part[kind].get("id")) for step in past for part in step.parts if kind in part}


def _is_call(part: Json) -> bool:
    return "function_call" in part or "function_response" in part


def _without_made_id(part: Json) -> Json:
    call = call_of(part)
    if not is_made_id(call.get("id") or ""):
        return part
    kind = "function_call" if "function_call" in part else "function_response"
    return part | {kind: {name: value for name, value in call.items() if name != "id"}}
