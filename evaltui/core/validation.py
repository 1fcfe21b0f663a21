"""What is wrong with the data of an eval set or a config, in sentences at the place where it is wrong.

Errors are what google-adk 2.13 refuses, and ids that are used twice. Warnings are what it takes without a
word although it cannot work as meant. Paths are as the data spells them (snake_case or camelCase).
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from google.genai.types import Content
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from evaltui.core.config import EvalConfig
from evaltui.core.evalset import (
    EvalCase,
    EvalSet,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    SessionInput,
    tool_calls,
)
from evaltui.core.problems import JsonPath, Problem, Severity
from evaltui.core.spelling import camel, spelt
from evaltui.core.wording import did_you_mean, in_words, likely_typos

_Model = TypeVar("_Model", bound=BaseModel)

_SPEAKER_ROLES = (None, "user", "model")
_EVENT_ROLES = (*_SPEAKER_ROLES, "function", "tool")


def validate_eval_set(data: Any) -> tuple[EvalSet | None, list[Problem]]:
    """Parsed JSON of the EvalSet schema as a model, None where there is an error; and every problem."""
    if not isinstance(data, dict):
        return None, [_error((), f"must be an object with eval_set_id and eval_cases, is {in_words(data)}")]
    cases_key = spelt("eval_cases", data)
    given = data.get(cases_key)
    raw_cases = given if isinstance(given, list) else []
    eval_set, problems = _set_without_cases(data)
    problems += _set_warnings(data)
    cases: list[EvalCase] = []
    for index, raw in enumerate(raw_cases):
        case, found = validate_case(raw)
        problems += _below((cases_key, index), found)
        if case is not None:
            cases.append(case)
    problems += _duplicate_ids(raw_cases, cases_key)
    if eval_set is None or has_error(problems):
        return None, problems
    eval_set.eval_cases = cases
    return eval_set, problems


def validate_case(data: Any) -> tuple[EvalCase | None, list[Problem]]:
    """One case of an eval set as a model, None where there is an error; paths are relative to the case."""
    typos = list(_case_typos(data))
    case, errors = _validate(EvalCase, data)
    if case is None:
        return None, errors + typos
    warnings = [replace(problem, path=_as_spelt(problem.path, data)) for problem in case_warnings(case)]
    return case, typos + warnings


def validate_config(data: Any) -> tuple[EvalConfig | None, list[Problem]]:
    """Parsed JSON of a `test_config.json` as a model, None where there is an error; and every problem."""
    config, problems = _validate(EvalConfig, data)
    problems = [_named_for_the_block(problem) for problem in problems]
    if isinstance(data, dict):
        problems += likely_typos(data, _spellings(EvalConfig), ())
    if config is not None and not config.metrics():
        problems.append(_warning((), "asks for no metric, so nothing is scored"))
    return config, problems


def case_warnings(case: EvalCase) -> list[Problem]:
    """What keeps a case from ever passing although ADK reads it; snake_case paths relative to the case."""
    if case.conversation == []:
        return [_warning(("conversation",), "empty, so there is nothing to run")]
    problems: list[Problem] = []
    for number, turn in enumerate(case.conversation or []):
        path = ("conversation", number)
        problems += _unknown_role(turn.user_content, (*path, "user_content"), _SPEAKER_ROLES)
        problems += _unknown_role(turn.final_response, (*path, "final_response"), _SPEAKER_ROLES)
        problems += _below(path, _intermediate_warnings(turn))
    return problems


def has_error(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


# The level of the set


def _set_without_cases(data: dict[str, Any]) -> tuple[EvalSet | None, list[Problem]]:
    # ADK reads only the snake_case keys here, so where both are given the other ones must not win.
    twice = {camel(name) for name in EvalSet.model_fields if name in data and camel(name) != name}
    head = {key: value for key, value in data.items() if key not in twice}
    cases_key = spelt("eval_cases", data)
    if isinstance(head.get(cases_key), list):
        head[cases_key] = []
    return _validate(EvalSet, head)


def _set_warnings(data: dict[str, Any]) -> Iterator[Problem]:
    yield from likely_typos(data, _spellings(EvalSet), ())
    for name in EvalSet.model_fields:
        other = camel(name)
        if other != name and other in data:
            also = f"{name} is given too and counts" if name in data else f"ADK itself reads only {name} here"
            yield _warning((other,), also)
    if data.get(key := spelt("eval_cases", data)) == []:
        yield _warning((key,), "empty, so there is nothing to run")


def _duplicate_ids(raw_cases: Sequence[Any], cases_key: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, raw in enumerate(raw_cases):
        if not isinstance(raw, dict):
            continue
        key = spelt("eval_id", raw)
        eval_id = raw.get(key)
        if isinstance(eval_id, str) and first.setdefault(eval_id, index) != index:
            where = f"{cases_key}[{first[eval_id]}]"
            yield _error((cases_key, index, key), f"duplicate id {eval_id!r}; {where} has it too")


# Warnings inside a case


def _case_typos(case: Any) -> Iterator[Problem]:
    """Where ADK keeps or drops unknown keys without a word, those that were probably meant to be known."""
    yield from _open_keys(EvalCase, case, ())
    yield from _open_keys(SessionInput, *_child(case, (), "session_input"))
    for turn, turn_path in _items(*_child(case, (), "conversation")):
        intermediate = _child(turn, turn_path, "intermediate_data")
        for event, event_path in _items(*_child(*intermediate, "invocation_events")):
            yield from _open_keys(InvocationEvent, event, event_path)


def _open_keys(model: type[BaseModel], data: Any, path: JsonPath) -> Iterator[Problem]:
    if not isinstance(data, dict):
        return
    yield from likely_typos(data, _spellings(model), path)
    for name in model.model_fields:
        if camel(name) != name and name in data and camel(name) in data:
            yield _warning((*path, name), f"given twice; {camel(name)} counts")


def _child(data: Any, path: JsonPath, name: str) -> tuple[Any, JsonPath]:
    if not isinstance(data, dict):
        return None, path
    key = spelt(name, data)
    return data.get(key), (*path, key)


def _items(data: Any, path: JsonPath) -> Iterator[tuple[Any, JsonPath]]:
    for index, item in enumerate(data if isinstance(data, list) else []):
        yield item, (*path, index)


def _unknown_role(
    content: Content | None, path: JsonPath, known: tuple[str | None, ...]
) -> Iterator[Problem]:
    if content is not None and content.role not in known:
        names = ", ".join(name for name in known if name)
        yield _warning((*path, "role"), f"unknown role {content.role!r}; ADK knows {names}")


def _intermediate_warnings(turn: Invocation) -> Iterator[Problem]:
    data = turn.intermediate_data
    calls = tool_calls(data)
    ids = {call.id for call in calls if call.id}
    names = {call.name for call in calls}
    for path, response in _responses(data):
        if response.id and response.id not in ids:
            yield _warning(
                path, f"orphan tool response: no expected call of this turn has id {response.id!r}"
            )
        elif not response.id and response.name not in names:
            yield _warning(path, f"orphan tool response: no expected call of this turn is {response.name!r}")
    if isinstance(data, InvocationEvents):
        for index, event in enumerate(data.invocation_events):
            where = ("intermediate_data", "invocation_events", index, "content")
            yield from _unknown_role(event.content, where, _EVENT_ROLES)


def _responses(data: IntermediateData | InvocationEvents | None) -> Iterator[tuple[JsonPath, Any]]:
    if isinstance(data, IntermediateData):
        for index, response in enumerate(data.tool_responses):
            yield ("intermediate_data", "tool_responses", index), response
    elif isinstance(data, InvocationEvents):
        for index, event in enumerate(data.invocation_events):
            for number, part in enumerate((event.content.parts or []) if event.content else []):
                if part.function_response:
                    steps = ("invocation_events", index, "content", "parts", number, "function_response")
                    yield ("intermediate_data", *steps), part.function_response


# From what pydantic says to sentences


def _validate(model: type[_Model], data: Any) -> tuple[_Model | None, list[Problem]]:
    try:
        # From JSON text, because only then are bytes read as base64.
        return model.model_validate_json(json.dumps(data)), []
    except ValidationError as error:
        return None, _errors(model, data, error)
    except Exception as error:
        # Validators of genai or ADK-like models may raise anything; a broken file must not stop the program.
        return None, [_error((), f"cannot be read: {type(error).__name__}: {error}")]


@dataclass(frozen=True)
class _Found:
    """One of pydantic's errors at a path that exists in the data, or is missing from it."""

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
    by_path: dict[JsonPath, list[_Found]] = {}
    for details in error.errors(include_url=False, include_input=False):
        if details["type"] == "json_invalid":
            return [_not_text(data, str(details.get("ctx", {}).get("error", details["msg"])))]
        found = _place(data, details)
        by_path.setdefault(found.path, []).append(found)
    # Of a union, pydantic reports every member: the ones that fit less than another say nothing.
    inner = {path[:length] for path in by_path for length in range(len(path))}
    return [
        _error(path, _sentence(model, data, group))
        for path, group in by_path.items()
        if not (path in inner and all(_expected(found) for found in group))
    ]


def _place(data: Any, details: ErrorDetails) -> _Found:
    """Leave out of pydantic's location what is not in the data: the tags of union members."""
    path: JsonPath = ()
    value = data
    location = details["loc"]
    for before, step in zip(("", *location), location, strict=False):
        is_tag = before in ("intermediate_data", "intermediateData") and step in ("lists", "events")
        if not is_tag and _has(value, step):
            value = value[step]
            path = (*path, step)
    if details["type"] == "missing" and isinstance(location[-1], str):
        path = (*path, _in_style_of(data, path, location[-1]))
    return _Found(path, details, value)


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


_EXPECTED = {
    "string": "text",
    "dict": "an object",
    "model": "an object",
    "list": "a list",
    "tuple": "a list",
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
}
_LIMITS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "{expected}",
}


def _expected(found: _Found) -> str | None:
    """What should stand where something else stands; None for other kinds of error."""
    if found.type in _LIMITS:
        return _LIMITS[found.type].format(**found.context)
    return _EXPECTED.get(found.type.split("_")[0])


def _sentence(model: type[BaseModel], data: Any, group: Sequence[_Found]) -> str:
    expected = list(dict.fromkeys(text for found in group if (text := _expected(found))))
    if expected:
        value = group[0].value
        sentence = f"must be {' or '.join(expected)}, is {in_words(value)}"
        if isinstance(value, str) and Content in _models_at(model, group[0].path):
            text = json.dumps(value, ensure_ascii=False)
            sentence += f'; write {{"parts": [{{"text": {text}}}]}}'
        return sentence
    found = group[0]
    match found.type:
        case "missing" if found.path and isinstance(found.details["loc"][-1], int):
            return f"has too few entries: needs {found.details['loc'][-1] + 1}"
        case "missing":
            return "missing"
        case "extra_forbidden":
            return _unknown_key(model, data, found.path)
        case "value_error":
            return str(found.context["error"])
        case "too_long":
            most, length = found.context["max_length"], found.context["actual_length"]
            return f"has too many entries: {length} instead of {most}"
        case "bytes_invalid_encoding":
            return "must be base64 data, which this text is not"
        case _:
            message = found.details["msg"]
            return message[:1].lower() + message[1:]


def _unknown_key(model: type[BaseModel], data: Any, path: JsonPath) -> str:
    *parent, key = path
    siblings = data
    for step in parent:
        siblings = siblings[step]
    models = _models_at(model, tuple(parent))
    fields = [spellings for one in models for spellings in _spellings(one)]
    for spellings in fields:
        present = [spelling for spelling in spellings if spelling in siblings and spelling != key]
        if key in spellings and present:
            return f"given twice, also as {present[0]}"
    if InvocationEvents in models and any(key in spellings for spellings in fields):
        return "cannot stand beside invocation events; a turn has one or the other"
    return "unknown key" + did_you_mean(
        str(key), [spelling for spellings in fields for spelling in spellings]
    )


def _not_text(data: Any, reason: str) -> Problem:
    """Python reads JSON that ADK's reader refuses: half a surrogate pair, or too many levels."""
    for path, text in _texts(data):
        if re.search("[\ud800-\udfff]", text):
            return _error(path, "has half of a surrogate pair (such as \\ud83d), which is not a character")
    return _error((), f"cannot be read as JSON: {reason}")


def _texts(data: Any) -> Iterator[tuple[JsonPath, str]]:
    waiting: list[tuple[JsonPath, Any]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            for key, item in value.items():
                yield path, key
                waiting.append(((*path, key), item))
        elif isinstance(value, list):
            waiting += [((*path, index), item) for index, item in enumerate(value)]


def _named_for_the_block(problem: Problem) -> Problem:
    if problem.path[:1] != ("evaltui",) or not problem.message.startswith("unknown key"):
        return problem
    message = problem.message.replace("unknown key", "not known to this version of evaltui", 1)
    return replace(problem, message=message)


# Spelling


@cache
def _spellings(model: type[BaseModel]) -> list[tuple[str, ...]]:
    return [
        (name, field.alias) if field.alias and field.alias != name else (name,)
        for name, field in model.model_fields.items()
    ]


def _as_spelt(path: JsonPath, data: Any) -> JsonPath:
    found: JsonPath = ()
    for step in path:
        key = spelt(step, data) if isinstance(step, str) and isinstance(data, dict) else step
        found = (*found, key)
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step]
    return found


def _in_style_of(data: Any, parent: JsonPath, alias: str) -> str:
    """The name of a missing key as the keys around it are spelt, snake_case where they do not tell."""
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
    """The models that may stand at a path, going by annotations."""
    candidates = [annotation]
    for step in path:
        candidates = [inner for one in candidates for inner in _inside(one, step)]
    return [model for one in candidates for model in _alternatives(one) if _is_model(model)]


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin is Union or origin is types.UnionType:
        for member in get_args(annotation):
            yield from _alternatives(member)
    else:
        yield annotation


def _inside(annotation: Any, step: str | int) -> Iterator[Any]:
    for one in _alternatives(annotation):
        origin, arguments = get_origin(one), get_args(one)
        if _is_model(one):
            fields: dict[str, FieldInfo] = one.model_fields
            yield from (field.annotation for name, field in fields.items() if step in (name, field.alias))
        elif origin is tuple and isinstance(step, int) and step < len(arguments):
            yield arguments[step]
        elif origin in (list, dict) and arguments:
            yield arguments[-1]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _below(path: JsonPath, problems: Iterable[Problem]) -> list[Problem]:
    return [replace(problem, path=(*path, *problem.path)) for problem in problems]


def _error(path: JsonPath, message: str) -> Problem:
    return Problem(Severity.ERROR, path, message)


def _warning(path: JsonPath, message: str) -> Problem:
    return Problem(Severity.WARNING, path, message)
