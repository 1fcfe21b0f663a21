"""The two formats before the EvalSet schema, as EvalSet data.

An *old test* is a list of turns of one session; an *old eval set* is a list of such sessions. They become
JSON data of the EvalSet schema, not models, so that many cases can be listed quickly. The conversion is that
of google-adk 2.13, except that invocation ids are empty and creation times are omitted, so that reading a
file twice gives the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from evaltui.core.model.datasets import is_dataset
from evaltui.core.model.events import Json, text_content
from evaltui.core.model.file_kinds import file_kind
from evaltui.core.model.json_values import indexed_objects, list_or_empty
from evaltui.core.model.problems import (
    DUPLICATE_ID,
    INVALID_VALUE,
    NOTHING_TO_RUN,
    UNKNOWN_KEY,
    JsonPath,
    Problem,
    has_error,
    likely_typos,
    objects_in,
    unknown_keys,
    wrong_kind,
)
from evaltui.text.values import show_value, value_in_words

Format = Literal["eval set", "dataset", "old test", "old eval set"]

FORMATS: Mapping[Format, str] = {
    "eval set": "an eval set",
    "dataset": "an EvaluationDataset",
    "old test": "of an old format",
    "old eval set": "of an old format",
}
"""Words for a format, to follow "is"."""

_CALLS_KEY, _RESPONSES_KEY = "expected_tool_use", "expected_intermediate_agent_responses"
_TURN_KEYS = ("query", _CALLS_KEY, _RESPONSES_KEY, "reference")
_TOOL_KEYS, _TEXT_KEYS = ("tool_name", "tool_input"), ("author", "text")
_MAX_VALUE_LENGTH = 100
_SESSION_KEYS = ("name", "data", "initial_session")


def kind_of(data: Any) -> Format | None:
    """The intended format of a document, valid or not; None for none of them.

    Only the outline decides, so that a mistake in a file is not reported as a problem of another format.
    """
    if isinstance(data, dict):
        if is_dataset(data):
            return "dataset"
        return "eval set" if file_kind(data) is None else None
    if not isinstance(data, list):
        return None
    keys = {key for item in data if isinstance(item, dict) for key in item}
    if keys & {"data", "initial_session"}:
        return "old eval set"
    return "old test" if keys & set(_TURN_KEYS) else None


def from_old_test(
    data: list[Any], name: str, session: Json | None = None
) -> tuple[Json | None, list[Problem]]:
    """A list of turns as an eval set with one case; None for errors.

    `name` becomes the id of the set and of the case, where ADK uses a random id and the file's path.
    `session` is the result of `session_input`.
    """
    turns, problems = _convert_each(data, (), _turn)
    if has_error(problems):
        return None, problems
    return _eval_set(name, [_case(name, turns, session)]), problems


def from_old_eval_set(data: list[Any], name: str) -> tuple[Json | None, list[Problem]]:
    """A list of named sessions as an eval set with the id `name`; None for errors."""
    cases, problems = _convert_each(data, (), _old_case)
    problems += _repeated_names(data)
    if has_error(problems):
        return None, problems
    return _eval_set(name, cases), problems


def _eval_set(name: str, cases: list[Json]) -> Json:
    return {"eval_set_id": name, "name": name, "eval_cases": cases}


def _case(eval_id: str, turns: list[Json], session: Json | None) -> Json:
    case: Json = {"eval_id": eval_id, "conversation": turns}
    return case | {"session_input": session} if session else case


def _old_case(item: Json, path: JsonPath) -> tuple[Json, list[Problem]]:
    problems = _unknown_keys(item, _SESSION_KEYS, path)
    name = _get(item, "name", str, path, problems, required=True)
    data = _get(item, "data", list, path, problems, required=True)
    turns, turn_problems = _convert_each(data or [], (*path, "data"), _turn)
    if data == []:
        problems.append(NOTHING_TO_RUN.at((*path, "data"), "empty; nothing to run"))
    session, session_problems = session_input(item.get("initial_session"), (*path, "initial_session"))
    return _case(name, turns, session), problems + turn_problems + session_problems


def _repeated_names(data: list[Any]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, item in enumerate(data):
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and first.setdefault(name, index) != index:
            yield DUPLICATE_ID.at((index, "name"), f"duplicate name {name!r}; [{first[name]}] has it too")


def session_input(data: Any, path: JsonPath = ()) -> tuple[Json | None, list[Problem]]:
    """An initial session as a case's session input; None for an empty one."""
    if data is None or data == {}:
        return None, []
    if not isinstance(data, dict):
        return None, [
            Problem.error(
                path, f"must be an object with app_name, user_id and state, is {value_in_words(data)}"
            )
        ]
    problems = _unknown_keys(data, ("app_name", "user_id", "state"), path)
    session = {
        "app_name": _get(data, "app_name", str, path, problems) or "",
        "user_id": _get(data, "user_id", str, path, problems) or "",
        "state": _get(data, "state", dict, path, problems) or {},
    }
    return session, problems


def _unknown_keys(item: Json, keys: Sequence[str], path: JsonPath) -> list[Problem]:
    """Unknown keys are ignored with a warning, but a likely misspelling is an error, because the agent would
    start in another state, or an expectation would not count."""
    fields = [(key,) for key in keys]
    typos = [*likely_typos(item, fields, path)]
    findings = unknown_keys(item, fields, path)
    return [(INVALID_VALUE if finding in typos else UNKNOWN_KEY).at(*finding) for finding in findings]


def _turn(item: Json, path: JsonPath) -> tuple[Json, list[Problem]]:
    problems = _unknown_keys(item, _TURN_KEYS, path)
    query = _get(item, "query", str, path, problems, required=True)
    reference = _get(item, "reference", str, path, problems, nullable=True)
    converted = {}
    for key, convert in ((_CALLS_KEY, _tool_use), (_RESPONSES_KEY, _intermediate_response)):
        entries = _get(item, key, list, path, problems) or []
        converted[key], entry_problems = _convert_each(entries, (*path, key), convert)
        problems += entry_problems
    turn = {
        "user_content": text_content("user", query),
        "final_response": text_content("model", reference or ""),
        "intermediate_data": {
            "tool_uses": converted[_CALLS_KEY],
            "intermediate_responses": converted[_RESPONSES_KEY],
        },
    }
    return turn, problems


def _tool_use(item: Json, path: JsonPath) -> tuple[Json, list[Problem]]:
    problems = _unknown_keys(item, (*_TOOL_KEYS, "mock_tool_output"), path)
    name = _get(item, "tool_name", str, path, problems, required=True, nullable=True)
    args = _get(item, "tool_input", dict, path, problems, required=True, nullable=True)
    return {"name": name, "args": args}, problems


def _intermediate_response(item: Json, path: JsonPath) -> tuple[list[Any], list[Problem]]:
    problems = _unknown_keys(item, _TEXT_KEYS, path)
    author = _get(item, "author", str, path, problems, required=True)
    text = _get(item, "text", str, path, problems, required=True)
    return [author, [{"text": text}]], problems


def with_authors(data: Any) -> Any:
    """The data with the author `agent` for each intermediate response without one.

    google-adk refuses such texts, but files have them.
    """
    for turn, _ in _turns(data):
        responses = turn.get(_RESPONSES_KEY)
        if isinstance(responses, list):
            turn[_RESPONSES_KEY] = [
                {"author": "agent", "text": response} if isinstance(response, str) else response
                for response in responses
            ]
    return data


def texts_without_author(data: Any) -> Iterator[Problem]:
    """Warnings about the changes of `with_authors`."""
    for turn, path in _turns(data):
        for index, response in enumerate(list_or_empty(turn.get(_RESPONSES_KEY))):
            if isinstance(response, str):
                yield Problem.warning((*path, _RESPONSES_KEY, index), "no author is given; agent is taken")


def left_out_warnings(data: Any) -> Iterator[Problem]:
    """Warnings about keys of an old format, with their values, that an eval set does not have."""
    objects: list[tuple[Json, JsonPath, tuple[str, ...]]] = []
    if kind_of(data) == "old eval set":
        objects += [(session, (index,), _SESSION_KEYS) for index, session in indexed_objects(data)]
    for turn, path in _turns(data):
        objects.append((turn, path, _TURN_KEYS))
        for key, fields in ((_CALLS_KEY, _TOOL_KEYS), (_RESPONSES_KEY, _TEXT_KEYS)):
            entries = indexed_objects(list_or_empty(turn.get(key)))
            objects += [(entry, (*path, key, index), fields) for index, entry in entries]
    for item, path, allowed in objects:
        for key in (key for key in item if key not in allowed):
            message = f"an eval set has no place for it; left out: {show_value(item[key], _MAX_VALUE_LENGTH)}"
            yield Problem.warning((*path, key), message)


def _turns(data: Any) -> Iterator[tuple[Json, JsonPath]]:
    """The turns of an old format that are objects, with their places."""
    kind = kind_of(data)
    if kind == "old test":
        yield from ((turn, (index,)) for index, turn in indexed_objects(data))
    elif kind == "old eval set":
        for index, session in indexed_objects(data):
            for number, turn in indexed_objects(list_or_empty(session.get("data"))):
                yield turn, (index, "data", number)


def _convert_each(
    items: list[Any], path: JsonPath, convert: Callable[[Json, JsonPath], tuple[Any, list[Problem]]]
) -> tuple[list[Any], list[Problem]]:
    converted: list[Any] = []
    problems: list[Problem] = []
    for item, where in objects_in(items, path, problems):
        result, item_problems = convert(item, where)
        converted.append(result)
        problems += item_problems
    return converted, problems


def _get(
    item: Mapping[str, Any],
    key: str,
    kind: type[str] | type[list[Any]] | type[dict[str, Any]],
    path: JsonPath,
    problems: list[Problem],
    *,
    required: bool = False,
    nullable: bool = False,
) -> Any:
    value = item.get(key)
    if key not in item:
        if required:
            problems.append(Problem.error((*path, key), "missing"))
    elif not isinstance(value, kind) and not (nullable and value is None):
        problems.append(wrong_kind((*path, key), value, kind))
        return None
    return value
