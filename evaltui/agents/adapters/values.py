"""Converts what frameworks declare, return and count to genai's JSON."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from types import GenericAlias, UnionType
from typing import Any, get_origin

from pydantic import BaseModel, PydanticUserError, TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from ...core.model.events import Json, is_output, output_content


def jsonable(items: Iterable[tuple[Any, Any]]) -> Json:
    """The items that JSON can hold, as an object."""
    plain: Json = {}
    for name, value in items:
        with suppress(PydanticSerializationError, ValueError):
            plain[str(name)] = to_jsonable_python(value)
    return plain


def usage_of(*, prompt: int, output: int, cached: int = 0, thoughts: int = 0) -> Json | None:
    """Tokens as genai's usage metadata; `output` includes `thoughts`. None where nothing was counted."""
    if not prompt and not output:
        return None
    counts = {
        "prompt_token_count": prompt,
        "candidates_token_count": output - thoughts,
        "total_token_count": prompt + output,
    }
    details = {"cached_content_token_count": cached, "thoughts_token_count": thoughts}
    return counts | {name: count for name, count in details.items() if count}


def declaration(name: str, description: str | None, schema: Json | None) -> Json:
    """The declaration of a tool in a request."""
    return {"name": name, "description": description or "", "parameters_json_schema": schema}


def divided(parts: Iterable[Json]) -> list[Json]:
    """The parts of a model's message as contents, in order: its texts and calls, and the results of calls
    that its provider has made."""
    contents: list[Json] = []
    for is_result, group in groupby(parts, key=lambda part: "function_response" in part):
        if is_result:
            contents += ({"role": "user", "parts": [part]} for part in group)
        else:
            contents.append({"role": "model", "parts": list(group)})
    return contents


# The ends of names of settings that say how a request is sent, or are credentials.
_TRANSPORT = (
    "base",
    "credentials",
    "headers",
    "key",
    "provider",
    "retries",
    "streaming",
    "timeout",
    "token",
    "url",
)


def answer_settings(settings: Mapping[str, Any]) -> Json:
    """The settings of a model that its answer depends on, as JSON; not those of how a request is sent."""
    relevant = {
        name: value for name, value in settings.items() if value is not None and not name.endswith(_TRANSPORT)
    }
    plain: Json = to_jsonable_python(relevant, fallback=text_of)
    return plain


# By the id of a model: a model that counts its calls in a field asks with other fields each time.
_first_settings: dict[int, tuple[weakref.ref[BaseModel], Json]] = {}


def own_settings(model: BaseModel, of_framework: Collection[str]) -> Json:
    """The JSON data that a model was made with, as of its first call. Other values may hold clients and keys.

    `of_framework` are the names of fields that the answer does not depend on.
    """
    made = _first_settings.get(id(model))
    if made is None or made[0]() is not model:
        names = sorted(model.model_fields_set - set(of_framework))
        fields = {name: value for name in names if _is_data(value := getattr(model, name, None))}
        settings = answer_settings(
            # Such as `model_kwargs`, which are part of the request.
            {name: answer_settings(of) if isinstance(of, dict) else of for name, of in fields.items()}
        )
        made = _first_settings[id(model)] = weakref.ref(model), settings
        weakref.finalize(model, _first_settings.pop, id(model), None)
    return made[1]


def _is_data(value: Any) -> bool:
    """Whether a value is text, a number or null, or lists and objects of these."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_data(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return value is None or isinstance(value, str | int | float)


def text_of(value: Any) -> Any:
    """The stand-in for a value that JSON cannot hold, the same in every run: of a type its schema, else a
    name."""
    if isinstance(value, type | GenericAlias | UnionType) or get_origin(value) is not None:
        with suppress(PydanticUserError, TypeError):
            return TypeAdapter(value).json_schema()
    return getattr(value, "__name__", f"<{type(value).__name__}>")


def response_of(result: Any) -> Json:
    """The `response` of a function response for a tool's result: an object as it is, another value as
    `{"result": …}`. Values that JSON cannot hold become text. `result_of` is the reverse."""
    plain = to_jsonable_python(result, bytes_mode="base64", fallback=str)
    return plain if isinstance(plain, dict) and plain.keys() != {"result"} else {"result": plain}


def result_of(response: Any) -> Any:
    """The result of a tool, from a `response` that `response_of` returned."""
    if isinstance(response, dict) and response.keys() == {"result"}:
        return response["result"]
    return response


def output_fields(value: Any, text: str = "") -> Json | None:
    """The fields of a step that responds with a value; None without a value, or where it equals the `text`
    already said."""
    output = to_jsonable_python(value, bytes_mode="base64", fallback=str)
    if output in (None, "") or is_output(text, output):
        return None
    return {"content": output_content(output), "final": True, "output": output, "answers": True}
