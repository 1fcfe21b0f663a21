"""Turns as models without validating what cannot be wrong: that costs more than all else done with them.

Texts, calls, responses and numbers of tokens are looked at here; whatever else there is, pydantic validates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from google.genai import types
from pydantic import BaseModel

from ..model.eval_set import Invocation, InvocationEvent, InvocationEvents
from ..model.events import Json

_Model = TypeVar("_Model", bound=BaseModel)
_Kinds = Mapping[str, type]

_CONTENT: _Kinds = {"role": str}
_TEXT: _Kinds = {"text": str, "thought": bool}
_CALL: _Kinds = {"id": str, "name": str, "args": dict}
_RESPONSE: _Kinds = {"id": str, "name": str, "response": dict}
_USAGE: _Kinds = {
    "cached_content_token_count": int,
    "candidates_token_count": int,
    "prompt_token_count": int,
    "thoughts_token_count": int,
    "tool_use_prompt_token_count": int,
    "total_token_count": int,
}
# Values within values; deeper ones are left to pydantic, which has a limit of its own.
_DEEPEST = 50
_set = object.__setattr__

# Filled with what is given and required, which is many times faster than `model_construct`.
_BLANK_PART = types.Part.model_construct()
_BLANK_CALL = types.FunctionCall.model_construct()
_BLANK_RESPONSE = types.FunctionResponse.model_construct()
_BLANK_CONTENT = types.Content.model_construct()
_BLANK_USAGE = types.GenerateContentResponseUsageMetadata.model_construct()
_BLANK_GROUNDING = types.GroundingMetadata.model_construct()
_BLANK_EVENT = InvocationEvent.model_construct(author="")
_BLANK_EVENTS = InvocationEvents.model_construct()
_BLANK_INVOCATION = Invocation.model_construct(user_content=_BLANK_CONTENT)


def invocation_model(data: Json) -> Invocation:
    """What `Invocation.model_validate_json` makes of a turn whose `intermediate_data` are events or None.

    Raises pydantic's ValidationError, and TypeError for what is no JSON.
    """
    try:
        return _invocation(**data)
    except (AttributeError, TypeError, ValueError):
        # Not of the usual shape.
        return Invocation.model_validate_json(json.dumps(data))


def _invocation(
    invocation_id: Any, user_content: Any, final_response: Any, intermediate_data: Json | None, **seconds: Any
) -> Invocation:
    happened: InvocationEvents | None = None
    if intermediate_data is not None:
        events = [_event(**event) for event in intermediate_data["invocation_events"]]
        happened = _filled(_BLANK_EVENTS, {"invocation_events": events})
    return _filled(
        _BLANK_INVOCATION,
        {
            "invocation_id": _checked(invocation_id, str),
            "user_content": _content(user_content),
            "final_response": None if final_response is None else _content(final_response),
            "intermediate_data": happened,
            **{name: _checked(value, float) for name, value in seconds.items()},
        },
    )


def _event(
    author: Any, content: Any, grounding_metadata: Any, usage_metadata: Any, model_version: Any
) -> InvocationEvent:
    grounding, usage = grounding_metadata, usage_metadata
    return _filled(
        _BLANK_EVENT,
        {
            "author": _checked(author, str),
            "content": None if content is None else _content(content),
            "grounding_metadata": None if grounding is None else _model(_BLANK_GROUNDING, grounding, {}),
            "usage_metadata": None if usage is None else _model(_BLANK_USAGE, usage, _USAGE),
            "model_version": None if model_version is None else _checked(model_version, str),
        },
    )


def _content(data: Json) -> types.Content:
    parts = data.get("parts")
    if type(parts) is not list:
        return _model(_BLANK_CONTENT, data, _CONTENT)
    role = {name: _checked(value, _CONTENT.get(name)) for name, value in data.items() if name != "parts"}
    return _filled(_BLANK_CONTENT, {**role, "parts": [_part(part) for part in parts]})


def _part(data: Json) -> types.Part:
    if len(data) == 1:
        if (call := data.get("function_call")) is not None:
            return _filled(_BLANK_PART, {"function_call": _model(_BLANK_CALL, call, _CALL)})
        if (response := data.get("function_response")) is not None:
            made = _model(_BLANK_RESPONSE, response, _RESPONSE)
            return _filled(_BLANK_PART, {"function_response": made})
    return _model(_BLANK_PART, data, _TEXT)


def _model(blank: _Model, data: Json, kinds: _Kinds) -> _Model:
    if kinds and all(_is_plain(value, kinds.get(name)) for name, value in data.items()):
        return _filled(blank, data)
    return type(blank).model_validate_json(json.dumps(data))


def _filled(blank: _Model, given: Json) -> _Model:
    """As `blank.model_copy(update=given)`."""
    made = blank.__class__.__new__(blank.__class__)
    _set(made, "__dict__", {**vars(blank), **given})
    _set(made, "__pydantic_fields_set__", set(given))
    _set(made, "__pydantic_extra__", None)
    private = blank.__pydantic_private__
    _set(made, "__pydantic_private__", None if private is None else dict(private))
    return made


def _checked(value: Any, kind: type | None) -> Any:
    """Raises ValueError for what pydantic is to look at."""
    if not _is_plain(value, kind):
        raise ValueError
    return value


def _is_plain(value: Any, kind: type | None, depth: int = 0) -> bool:
    """Whether a value is of this very type, and JSON all through."""
    found = type(value)
    if found is not kind or depth > _DEEPEST:
        return False
    if kind is str:
        return value.isascii() or _is_unicode(value)
    if kind is dict:
        return all(_is_plain(key, str) and _is_plain(one, type(one), depth + 1) for key, one in value.items())
    if kind is list:
        return all(_is_plain(one, type(one), depth + 1) for one in value)
    return kind in (int, float, bool, type(None))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
