"""Pydantic models from JSON data, with errors as sentences at their places."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from evaltui.core.model.content import Content, GenaiType
from evaltui.core.model.eval_set import InvocationEvents
from evaltui.core.model.json_values import values_in
from evaltui.core.model.problems import NOT_JSON, JsonPath, Problem, duplicate_key_text
from evaltui.text.values import did_you_mean, value_in_words

Model = TypeVar("Model", bound=BaseModel)


def validate_model(model: type[Model], data: Any) -> tuple[Model | None, list[Problem]]:
    """The model, or None and every error, with paths in the spelling of the data. Never raises."""
    try:
        # From JSON text, because only then are bytes read as base64.
        return model.model_validate_json(json.dumps(data)), []
    except ValidationError as error:
        return None, _errors(model, data, error)
    except Exception as error:
        # Validators of genai or ADK-like models may raise anything; a broken file must not stop the program.
        return None, [Problem.error((), f"cannot be read: {type(error).__name__}: {error}")]


@dataclass(frozen=True)
class _FoundError:
    """An error of pydantic at a path of the data, or of a missing key."""

    path: JsonPath
    details: ErrorDetails
    value: Any

    @property
    def type(self) -> str:
        return self.details["type"]

    @property
    def context(self) -> dict[str, Any]:
        return self.details.get("ctx", {})


def _errors(model: type[BaseModel], data: Any, error: ValidationError) -> list[Problem]:
    by_path: dict[JsonPath, list[_FoundError]] = {}
    for details in error.errors(include_url=False, include_input=False):
        if details["type"] == "json_invalid":
            return [_unreadable_text(data, str(details.get("ctx", {}).get("error", details["msg"])))]
        entry = _locate(data, details)
        by_path.setdefault(entry.path, []).append(entry)
    # Of a union, pydantic reports every member: the ones that fit less than another say nothing.
    inner = {path[:length] for path in by_path for length in range(len(path))}
    return [
        Problem.error(path, _sentence(model, data, group))
        for path, group in by_path.items()
        if not (path in inner and all(_expected(entry) for entry in group))
    ]


def _locate(data: Any, details: ErrorDetails) -> _FoundError:
    """The error with pydantic's location reduced to the data, without tags of union members."""
    path: JsonPath = ()
    value = data
    location = details["loc"]
    for before, step in zip(("", *location), location, strict=False):
        is_tag = before in ("intermediate_data", "intermediateData") and step in ("lists", "events")
        if not is_tag and _has(value, step):
            value = value[step]
            path = (*path, step)
    if details["type"] == "missing" and isinstance(location[-1], str):
        path = (*path, _spell_like_siblings(data, path, location[-1]))
    return _FoundError(path, details, value)


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


_EXPECTED_KINDS = {
    "string": "a string",
    "dict": "an object",
    "model": "an object",
    "list": "a list",
    "tuple": "a list",
    "float": "a number",
    "finite": "a finite number",
    "int": "an integer",
    "bool": "true or false",
}
_LIMITS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "a text that matches {pattern}",
}


def _expected(entry: _FoundError) -> str | None:
    """The expected value in words; None for other kinds of error."""
    if entry.type in _LIMITS:
        return _LIMITS[entry.type].format(**entry.context)
    return _EXPECTED_KINDS.get(entry.type.split("_")[0])


def _sentence(model: type[BaseModel], data: Any, group: Sequence[_FoundError]) -> str:
    expected = list(dict.fromkeys(text for entry in group if (text := _expected(entry))))
    if expected:
        value = group[0].value
        sentence = f"must be {' or '.join(expected)}, is {value_in_words(value)}"
        if isinstance(value, str) and Content in _models_at(model, group[0].path):
            text = json.dumps(value, ensure_ascii=False)
            sentence += f'; write {{"parts": [{{"text": {text}}}]}}'
        return sentence
    entry = group[0]
    match entry.type:
        case "missing" if entry.path and isinstance(entry.details["loc"][-1], int):
            return f"has too few entries: needs {entry.details['loc'][-1] + 1}"
        case "missing":
            return "missing"
        case "extra_forbidden":
            return _unknown_key(model, data, entry.path)
        case "value_error":
            return str(entry.context["error"])
        case "too_long":
            most, length = entry.context["max_length"], entry.context["actual_length"]
            return f"has too many entries: {length} instead of {most}"
        case "bytes_invalid_encoding":
            return "must be base64 data, which this text is not"
        case _:
            message = entry.details["msg"]
            return message[:1].lower() + message[1:]


def _unknown_key(model: type[BaseModel], data: Any, path: JsonPath) -> str:
    *parent, key = path
    siblings = data
    for step in parent:
        siblings = siblings[step]
    models = _models_at(model, tuple(parent))
    fields = [names for candidate in models for names in spellings(candidate)]
    for names in fields:
        present = [spelling for spelling in names if spelling in siblings and spelling != key]
        if key in names and present:
            return duplicate_key_text(present[0])
    if InvocationEvents in models and any(key in names for names in fields):
        return "cannot stand beside invocation events; a turn has one or the other"
    return "unknown key" + did_you_mean(str(key), [spelling for names in fields for spelling in names])


def _unreadable_text(data: Any, reason: str) -> Problem:
    """The problem of JSON that Python reads but ADK refuses: a lone surrogate, or too many levels."""
    for path, value in values_in(data):
        texts = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
        if any(re.search("[\ud800-\udfff]", text) for text in texts):
            half = "has half of a surrogate pair (such as \\ud83d), which is not a character"
            return NOT_JSON.at(path, half)
    return NOT_JSON.at((), f"cannot be read as JSON: {reason}")


@cache
def spellings(model: type[BaseModel]) -> list[tuple[str, ...]]:
    return [
        (name, field.alias) if field.alias and field.alias != name else (name,)
        for name, field in model.model_fields.items()
    ]


def _spell_like_siblings(data: Any, parent: JsonPath, alias: str) -> str:
    """The name of a missing key in the spelling of the keys around it, else in snake_case."""
    snake = re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", alias)
    around = [data]
    for step in parent:
        around.append(around[-1][step])
    for level in reversed(around):
        keys = level.keys() if isinstance(level, dict) else ()
        if any("_" in key for key in keys):
            return snake
        if any(re.fullmatch("[a-z]+([A-Z][a-z]+)+", key) for key in keys):
            return alias
    return snake


def _models_at(annotation: Any, path: JsonPath) -> list[type[BaseModel]]:
    """The models that annotations allow at a path."""
    candidates = [annotation]
    for step in path:
        candidates = [inner for candidate in candidates for inner in _member_annotations(candidate, step)]
    return [model for candidate in candidates for model in _alternatives(candidate) if _is_model(model)]


def objects_in(
    annotation: Any, data: Any
) -> Iterator[tuple[JsonPath, dict[str, Any], list[type[BaseModel]]]]:
    """The objects in JSON data that are read as models, inner ones first, each with its path and models."""
    yield from _objects_in([annotation], data, ())


def _objects_in(
    annotations: Sequence[Any], data: Any, path: JsonPath
) -> Iterator[tuple[JsonPath, dict[str, Any], list[type[BaseModel]]]]:
    steps = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in steps:
        if inner := [
            candidate for annotation in annotations for candidate in _member_annotations(annotation, step)
        ]:
            yield from _objects_in(inner, value, (*path, step))
    if isinstance(data, dict):
        models = [
            candidate
            for annotation in annotations
            for candidate in _alternatives(annotation)
            if _is_model(candidate)
        ]
        if models:
            yield path, data, models


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        kind, *notes = get_args(annotation)
        imported = [note.imported() for note in notes if isinstance(note, GenaiType)]
        yield from imported or _alternatives(kind)
    elif origin is Union or origin is types.UnionType:
        for member in get_args(annotation):
            yield from _alternatives(member)
    else:
        yield annotation


def _member_annotations(annotation: Any, step: str | int) -> Iterator[Any]:
    for alternative in _alternatives(annotation):
        origin, arguments = get_origin(alternative), get_args(alternative)
        if _is_model(alternative):
            fields: dict[str, FieldInfo] = alternative.model_fields
            yield from (field.annotation for name, field in fields.items() if step in (name, field.alias))
        elif origin is tuple and isinstance(step, int) and step < len(arguments):
            yield arguments[step]
        elif origin in (list, dict) and arguments:
            yield arguments[-1]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
