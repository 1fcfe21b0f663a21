"""Expected tool calls, in the order in which they are to be made, whichever shape a turn has.

In a turn of events a new call becomes a part beside its neighbour, in the same event: that is how a model
makes several calls at once, and it keeps the order that is scored without a guess at what happened between.
Without a neighbour it becomes an event of its own, by the author of the events around. Events that lose
their last part are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaltui.core.editing.intermediate import (
    PartAt,
    add_to_list,
    end_of_events,
    events_path,
    field_parts,
    holds_only,
    list_path,
    new_event,
    part_path,
    parts_path,
    shape,
    without_parts,
)
from evaltui.core.editing.json_paths import dicts, in_style, list_at, place, value_at
from evaltui.core.jsondoc.edits import Duplicate, Edit, EditError, Insert, Move, Put, PutText, Remove, Rename
from evaltui.core.model.problems import JsonPath


@dataclass(frozen=True)
class ExpectedCall:
    """`args` is None where there are none, which is another call than one with `{}`; `path` is the call's."""

    name: str
    args: dict[str, Any] | None
    id: str
    path: JsonPath


@dataclass(frozen=True)
class ExpectedResponse:
    """What a tool is to answer. `id` is that of its call, "" where it goes by name alone."""

    name: str
    response: dict[str, Any] | None
    id: str
    path: JsonPath


def expected_calls(data: Any, case: int, turn: int) -> list[ExpectedCall]:
    calls = []
    for path in _paths(data, case, turn, "tool_uses", "function_call"):
        args = value_at(data, (*path, "args"))
        name, call_id = (_text(value_at(data, (*path, key))) for key in ("name", "id"))
        calls.append(ExpectedCall(name, args if isinstance(args, dict) else None, call_id, path))
    return calls


def expected_responses(data: Any, case: int, turn: int) -> list[ExpectedResponse]:
    responses = []
    for path in _paths(data, case, turn, "tool_responses", "function_response"):
        value = value_at(data, (*path, "response"))
        name, call_id = (_text(value_at(data, (*path, key))) for key in ("name", "id"))
        responses.append(ExpectedResponse(name, value if isinstance(value, dict) else None, call_id, path))
    return responses


def add_call(data: Any, case: int, turn: int, name: str, args: Mapping[str, Any] | None = None) -> list[Edit]:
    return insert_call(data, case, turn, len(expected_calls(data, case, turn)), name, args)


def insert_call(
    data: Any, case: int, turn: int, index: int, name: str, args: Mapping[str, Any] | None = None
) -> list[Edit]:
    """A call before the one at `index`; without arguments it gets `{}`, as a model's calls have it."""
    call = {"name": name, "args": dict(args or {})}
    calls = expected_calls(data, case, turn)
    index = max(0, min(index, len(calls)))
    if shape(data, case, turn) != "events":
        at = calls[index].path[-1] if index < len(calls) else len(_list(data, case, turn, "tool_uses"))
        return add_to_list(data, case, turn, "tool_uses", int(at), call)
    part = in_style(data, events_path(data, case, turn), {"function_call": call})
    if not calls:
        at = end_of_events(data, case, turn)
        return [new_event(data, case, turn, at, part, "model")]
    places = field_parts(data, case, turn, "function_call")
    event, number = places[index - 1] if index else places[0]
    return [Insert(parts_path(data, case, turn, event), number + bool(index), part)]


def duplicate_call(data: Any, case: int, turn: int, call: int) -> list[Edit]:
    """The same call once more, right after it. Its id is not copied: a response belongs to one call."""
    path = _call(data, case, turn, call).path
    if shape(data, case, turn) != "events":
        copy = (*path[:-1], int(path[-1]) + 1)
        return [Duplicate(path[:-1], int(path[-1])), *_drop_id(data, path, copy)]
    part, copy = path[:-1], (*path[:-2], int(path[-2]) + 1)
    others = [key for key in value_at(data, part) if key != path[-1]]
    edits: list[Edit] = [Duplicate(part[:-1], int(part[-1]))]
    edits += [Remove((*copy, key)) for key in others]
    return edits + _drop_id(data, path, (*copy, path[-1]))


def move_call(data: Any, case: int, turn: int, call: int, to: int) -> list[Edit]:
    """Another place in the order; `to` is the index among the calls afterwards.

    A call that has an event to itself moves as that event, with the event of its response behind it; any
    other becomes a part beside the call whose place it takes.
    """
    calls = expected_calls(data, case, turn)
    start = _call(data, case, turn, call).path
    to = max(0, min(to, len(calls) - 1))
    if to == call:
        return []
    if shape(data, case, turn) != "events":
        return [Move(start[:-1], int(start[-1]), int(calls[to].path[-1]))]
    places = field_parts(data, case, turn, "function_call")
    (event, number), (other, beside) = places[call], places[to]
    if event == other:
        return [Move(parts_path(data, case, turn, event), number, beside)]
    if _is_alone(data, case, turn, event) and _is_at_edge(places, to, after=to > call):
        return _move_event(data, case, turn, calls[call], event, other)
    part = value_at(data, part_path(data, case, turn, places[call]))
    taken = without_parts(data, case, turn, [places[call]])
    if to > call:
        return [Insert(parts_path(data, case, turn, other), beside + 1, part), *taken]
    return [*taken, Insert(parts_path(data, case, turn, other), beside, part)]


def delete_call(data: Any, case: int, turn: int, call: int) -> list[Edit]:
    """The call, and the responses that would be left without one."""
    path = _call(data, case, turn, call).path
    answers = answers_to(data, case, turn, call)
    if shape(data, case, turn) == "events":
        calls = field_parts(data, case, turn, "function_call")
        responses = field_parts(data, case, turn, "function_response")
        return without_parts(data, case, turn, [calls[call], *(responses[index] for index in answers)])
    responses_gone = [expected_responses(data, case, turn)[index].path for index in reversed(answers)]
    return [Remove(path), *map(Remove, responses_gone)]


def rename_call(data: Any, case: int, turn: int, call: int, name: str) -> list[Edit]:
    """Another tool; the responses that belong to this call alone are its responses from then on."""
    one = _call(data, case, turn, call)
    if one.name == name:
        return []
    responses = expected_responses(data, case, turn)
    own = [
        responses[index] for index in answers_to(data, case, turn, call) if responses[index].name == one.name
    ]
    return [Put((*one.path, "name"), name), *(Put((*answer.path, "name"), name) for answer in own)]


def args_path(data: Any, case: int, turn: int, call: int) -> JsonPath:
    """Where the arguments of a call are, or would be."""
    return (*_call(data, case, turn, call).path, "args")


def put_arg(data: Any, case: int, turn: int, call: int, path: JsonPath, value: Any) -> list[Edit]:
    """Set the argument at a path, or a value inside one; the members on the way to it must exist."""
    args = args_path(data, case, turn, call)
    if isinstance(value_at(data, args), dict):
        return [Put((*args, *path), value)]
    if len(path) != 1:
        raise EditError("the call has no arguments yet")
    return [Put(args, {str(path[0]): value})]


def remove_arg(data: Any, case: int, turn: int, call: int, path: JsonPath) -> list[Edit]:
    return [Remove((*args_path(data, case, turn, call), *path))]


def rename_arg(data: Any, case: int, turn: int, call: int, path: JsonPath, name: str) -> list[Edit]:
    """The argument keeps its value and its place."""
    if path[-1] == name:
        return []
    return [Rename((*args_path(data, case, turn, call), *path), name)]


def replace_args(data: Any, case: int, turn: int, call: int, args: Mapping[str, Any] | str) -> list[Edit]:
    """All arguments at once; as JSON text they are taken over as they are written."""
    path = args_path(data, case, turn, call)
    return [PutText(path, args)] if isinstance(args, str) else [Put(path, dict(args))]


# Responses


def add_response(data: Any, case: int, turn: int, call: int, response: Mapping[str, Any]) -> list[Edit]:
    """What the tool answers to a call: after the other responses, in a turn of events right after the call.

    It has the call's id. A call without one gets one where another call has the same name, as the two could
    not be told apart.
    """
    calls = expected_calls(data, case, turn)
    one = _call(data, case, turn, call)
    given_id, edits = one.id, list[Edit]()
    if not given_id and sum(other.name == one.name for other in calls) > 1:
        given_id = _free_id(calls)
        edits.append(Put((*one.path, "id"), given_id))
    value = ({"id": given_id} if given_id else {}) | {"name": one.name, "response": dict(response)}
    if shape(data, case, turn) != "events":
        at = len(_list(data, case, turn, "tool_responses"))
        return edits + add_to_list(data, case, turn, "tool_responses", at, value)
    part = in_style(data, events_path(data, case, turn), {"function_response": value})
    event, _ = field_parts(data, case, turn, "function_call")[call]
    if holds_only(data, case, turn, event + 1, "function_response"):
        path = parts_path(data, case, turn, event + 1)
        return [*edits, Insert(path, len(list_at(data, path)), part)]
    author = _text(value_at(data, (*events_path(data, case, turn), event, "author")))
    return [*edits, new_event(data, case, turn, event + 1, part, "user", author)]


def set_response(
    data: Any, case: int, turn: int, index: int, response: Mapping[str, Any] | str
) -> list[Edit]:
    """All that a tool answers; as JSON text it is taken over as it is written."""
    path = (*_response(data, case, turn, index).path, "response")
    return [PutText(path, response)] if isinstance(response, str) else [Put(path, dict(response))]


def rename_response(data: Any, case: int, turn: int, index: int, name: str) -> list[Edit]:
    one = _response(data, case, turn, index)
    return [Put((*one.path, "name"), name)] if one.name != name else []


def delete_response(data: Any, case: int, turn: int, index: int) -> list[Edit]:
    path = _response(data, case, turn, index).path
    if shape(data, case, turn) != "events":
        return [Remove(path)]
    at = field_parts(data, case, turn, "function_response")[index]
    return without_parts(data, case, turn, [at])


def _paths(data: Any, case: int, turn: int, of_lists: str, of_events: str) -> list[JsonPath]:
    if shape(data, case, turn) == "events":
        found = field_parts(data, case, turn, of_events)
        parts = [part_path(data, case, turn, at) for at in found]
        return [place(data, part, of_events) for part in parts]
    path = list_path(data, case, turn, of_lists)
    return [(*path, index) for index, _ in dicts(list_at(data, path))]


def _list(data: Any, case: int, turn: int, name: str) -> list[Any]:
    return list_at(data, list_path(data, case, turn, name))


def _call(data: Any, case: int, turn: int, call: int) -> ExpectedCall:
    calls = expected_calls(data, case, turn)
    if not 0 <= call < len(calls):
        raise EditError(f"turn {turn + 1} expects no call {call + 1}")
    return calls[call]


def _response(data: Any, case: int, turn: int, index: int) -> ExpectedResponse:
    responses = expected_responses(data, case, turn)
    if not 0 <= index < len(responses):
        raise EditError(f"turn {turn + 1} has no tool response {index + 1}")
    return responses[index]


def answers_to(data: Any, case: int, turn: int, call: int) -> list[int]:
    """The responses that no other call of the turn could have: by id, where they have none by name."""
    calls = expected_calls(data, case, turn)
    own = calls[call]
    others = [other for number, other in enumerate(calls) if number != call]
    ids, names = {other.id for other in others}, {other.name for other in others}
    return [
        index
        for index, response in enumerate(expected_responses(data, case, turn))
        if (response.id and response.id == own.id and response.id not in ids)
        or (not response.id and response.name == own.name and response.name not in names)
    ]


def _free_id(calls: list[ExpectedCall]) -> str:
    taken = {call.id for call in calls}
    number = 1
    while f"call_{number}" in taken:
        number += 1
    return f"call_{number}"


def _drop_id(data: Any, original: JsonPath, copy: JsonPath) -> list[Edit]:
    return [Remove((*copy, "id"))] if "id" in value_at(data, original) else []


def _is_alone(data: Any, case: int, turn: int, event: int) -> bool:
    return len(list_at(data, parts_path(data, case, turn, event))) == 1


def _is_at_edge(places: list[PartAt], call: int, *, after: bool) -> bool:
    """Whether no other call of its event comes after a call, or before it."""
    next_to = call + 1 if after else call - 1
    return not 0 <= next_to < len(places) or places[next_to][0] != places[call][0]


def _move_event(data: Any, case: int, turn: int, call: ExpectedCall, event: int, other: int) -> list[Edit]:
    path = events_path(data, case, turn)
    with_response = _answers_only(data, case, turn, event + 1, call)
    if other < event:
        back: list[Edit] = [Move(path, event, other)]
        return [*back, Move(path, event + 1, other + 1)] if with_response else back
    end = other
    while holds_only(data, case, turn, end + 1, "function_response"):
        end += 1
    return [Move(path, event, end)] * (1 + with_response)


def _answers_only(data: Any, case: int, turn: int, event: int, call: ExpectedCall) -> bool:
    if not holds_only(data, case, turn, event, "function_response"):
        return False
    path = parts_path(data, case, turn, event)
    found = [
        value_at(data, place(data, (*path, number), "function_response"))
        for number in range(len(list_at(data, path)))
    ]
    return all(
        one.get("id") == call.id if one.get("id") and call.id else one.get("name") == call.name
        for one in found
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
