"""Expected tool calls and their responses in order, for both forms of a turn.

In a turn of events a new call becomes a part of its neighbour's event, as when a model makes several calls at
once. Without a neighbour it becomes an event by the author of the events around it. Events without parts are
removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaltui.core.model.json_values import indexed_objects, list_at, text_or_empty, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing.intermediate import IntermediateData, PartIndex
from evaltui.documents.editing.json_paths import field_path, free_id, in_style
from evaltui.documents.edits import EditError
from evaltui.documents.values import append, discard, duplicate, insert, move, put, remove


@dataclass(frozen=True)
class ResponseEditor:
    """An expected tool response."""

    intermediate: IntermediateData = field(compare=False, repr=False)
    number: int = field(compare=False)
    """Index among the responses of the turn."""
    name: str
    response: dict[str, Any] | None
    id: str
    """The id of its call; "" where the call is known by name only."""
    path: JsonPath

    def replace(self, response: Mapping[str, Any]) -> None:
        put(self.intermediate.data, (*self.path, "response"), response)

    def rename(self, name: str) -> None:
        put(self.intermediate.data, (*self.path, "name"), name)

    def delete(self) -> None:
        _delete(self.intermediate, [self])


@dataclass(frozen=True)
class CallEditor:
    """An expected tool call."""

    intermediate: IntermediateData = field(compare=False, repr=False)
    number: int = field(compare=False)
    """Index among the calls of the turn."""
    name: str
    arguments: dict[str, Any] | None
    """The arguments; None, no arguments, differs from `{}`."""
    id: str
    path: JsonPath

    @property
    def arguments_path(self) -> JsonPath:
        """The path of the arguments, existing or not."""
        return (*self.path, "args")

    @property
    def responses(self) -> list[ResponseEditor]:
        """The responses that no other call of the turn could have: by id, where they have none by name."""
        if not (candidates := responses_in(self.intermediate)):
            return []
        others = [other for other in calls_in(self.intermediate) if other.number != self.number]
        ids, names = {other.id for other in others}, {other.name for other in others}
        return [
            response
            for response in candidates
            if (response.id and response.id == self.id and response.id not in ids)
            or (not response.id and response.name == self.name and response.name not in names)
        ]

    def duplicate(self) -> None:
        """Inserts a copy of the call right after it. The id is not copied: a response belongs to one call."""
        data, path = self.intermediate.data, self.path
        if self.intermediate.shape == "events":
            part = duplicate(data, path[:-2], int(path[-2]))
            for key in [key for key in part if key != path[-1]]:
                del part[key]
            call = part[path[-1]]
        else:
            call = duplicate(data, path[:-1], int(path[-1]))
        call.pop("id", None)

    def move(self, to: int) -> None:
        """Moves the call; `to` is its index among the calls afterwards.

        A call alone in its event moves with the event, and with the event of its response after it; another
        call becomes a part beside the call at its new place.
        """
        intermediate, data = self.intermediate, self.intermediate.data
        calls = calls_in(intermediate)
        to = max(0, min(to, len(calls) - 1))
        if to == self.number:
            return
        if intermediate.shape != "events":
            move(data, self.path[:-1], int(self.path[-1]), int(calls[to].path[-1]))
            return
        parts = _calls(intermediate)
        (event, number), (other, beside) = parts[self.number], parts[to]
        if event == other:
            move(data, intermediate.parts_path(event), number, beside)
            return
        is_alone = len(list_at(data, intermediate.parts_path(event))) == 1
        if is_alone and _is_at_edge(parts, to, after=to > self.number):
            self._move_event(event, other)
            return
        part = value_at(data, intermediate.part_path(parts[self.number]))
        beside += to > self.number
        others = list_at(data, intermediate.parts_path(other))
        intermediate.remove_parts([parts[self.number]])
        others.insert(beside, part)

    def _move_event(self, event: int, other: int) -> None:
        data, path = self.intermediate.data, self.intermediate.events_path
        with_response = self._is_answered_by(event + 1)
        if other < event:
            move(data, path, event, other)
            if with_response:
                move(data, path, event + 1, other + 1)
            return
        end = other
        while self.intermediate.holds_responses(end + 1):
            end += 1
        for _ in range(1 + with_response):
            move(data, path, event, end)

    def _is_answered_by(self, event: int) -> bool:
        """Whether an event consists of responses to this call."""
        intermediate = self.intermediate
        if not intermediate.holds_responses(event):
            return False
        return all(
            response.id == self.id if response.id and self.id else response.name == self.name
            for response, (owner, _) in zip(responses_in(intermediate), _responses(intermediate), strict=True)
            if owner == event
        )

    def delete(self) -> None:
        """Deletes the call, and the responses that belong to it alone."""
        _delete(self.intermediate, [self, *self.responses])

    def rename(self, name: str) -> None:
        """Changes the tool of the call and of the responses that belong to it alone."""
        own = [response.path for response in self.responses if response.name == self.name]
        for path in (self.path, *own):
            put(self.intermediate.data, (*path, "name"), name)

    def put_argument(self, path: JsonPath, value: Any) -> None:
        """Sets the argument at a path, or a value inside one; the members on the way to it must exist."""
        if self.arguments is not None:
            put(self.intermediate.data, (*self.arguments_path, *path), value)
        elif len(path) != 1:
            raise EditError("The call has no arguments")
        else:
            self.replace_arguments({str(path[0]): value})

    def replace_arguments(self, arguments: Mapping[str, Any] | None) -> None:
        """Replaces all arguments; None removes them."""
        if arguments is None:
            discard(self.intermediate.data, self.arguments_path)
        else:
            put(self.intermediate.data, self.arguments_path, arguments)

    def add_response(self, response: Mapping[str, Any]) -> None:
        """Adds a tool response with the call's id: after the other responses, in a turn of events right after
        the call.

        A call without id gets one if another call has the same name.
        """
        intermediate, calls = self.intermediate, calls_in(self.intermediate)
        call_id = self.id
        if not call_id and sum(other.name == self.name for other in calls) > 1:
            call_id = free_id("call", 1, {call.id for call in calls})
            put(intermediate.data, (*self.path, "id"), call_id)
        value = ({"id": call_id} if call_id else {}) | {"name": self.name, "response": dict(response)}
        if intermediate.shape != "events":
            end = len(intermediate.list_of("tool_responses"))
            intermediate.insert_in_list("tool_responses", end, value)
            return
        part = in_style(intermediate.data, intermediate.events_path, {"function_response": value})
        event, _ = _calls(intermediate)[self.number]
        if intermediate.holds_responses(event + 1):
            append(intermediate.data, intermediate.parts_path(event + 1), part)
        else:
            intermediate.insert_event(event + 1, part, "user", intermediate.author_of(event))


def _delete(intermediate: IntermediateData, editors: Sequence[CallEditor | ResponseEditor]) -> None:
    if intermediate.shape == "events":
        intermediate.remove_parts([(int(editor.path[-5]), int(editor.path[-2])) for editor in editors])
    else:
        for editor in sorted(editors, key=lambda editor: editor.number, reverse=True):
            remove(intermediate.data, editor.path)


def calls_in(intermediate: IntermediateData) -> list[CallEditor]:
    """The expected calls, in the order in which they are to be made."""
    return [
        CallEditor(intermediate, *fields)
        for fields in _entries(intermediate, "tool_uses", "function_call", "args")
    ]


def responses_in(intermediate: IntermediateData) -> list[ResponseEditor]:
    """The expected responses of tools, in their order."""
    return [
        ResponseEditor(intermediate, *fields)
        for fields in _entries(intermediate, "tool_responses", "function_response", "response")
    ]


def _entries(
    intermediate: IntermediateData, of_lists: str, of_events: str, content: str
) -> Iterator[tuple[int, str, dict[str, Any] | None, str, JsonPath]]:
    """Number, name, content, id and path of each call or response."""
    for number, path in enumerate(_paths(intermediate, of_lists, of_events)):
        value = value_at(intermediate.data, path)
        payload = value.get(content)
        name, call_id = text_or_empty(value.get("name")), text_or_empty(value.get("id"))
        yield number, name, payload if isinstance(payload, dict) else None, call_id, path


def insert_call(
    intermediate: IntermediateData, index: int, name: str, arguments: Mapping[str, Any] | None = None
) -> None:
    """Inserts a call before the call at `index`; without arguments, these are `{}` as in calls of models."""
    call = {"name": name, "args": dict(arguments or {})}
    calls = calls_in(intermediate)
    index = max(0, min(index, len(calls)))
    if intermediate.shape != "events":
        end = len(intermediate.list_of("tool_uses"))
        at = int(calls[index].path[-1]) if index < len(calls) else end
        intermediate.insert_in_list("tool_uses", at, call)
        return
    part = in_style(intermediate.data, intermediate.events_path, {"function_call": call})
    if not calls:
        intermediate.insert_event(intermediate.end_of_events, part, "model")
        return
    parts = _calls(intermediate)
    event, number = parts[index - 1] if index else parts[0]
    insert(intermediate.data, intermediate.parts_path(event), number + bool(index), part)


def _calls(intermediate: IntermediateData) -> list[PartIndex]:
    return intermediate.parts_with("function_call")


def _responses(intermediate: IntermediateData) -> list[PartIndex]:
    return intermediate.parts_with("function_response")


def _paths(intermediate: IntermediateData, of_lists: str, of_events: str) -> list[JsonPath]:
    if intermediate.shape == "events":
        positions = intermediate.parts_with(of_events)
        return [
            field_path(intermediate.data, intermediate.part_path(position), of_events)
            for position in positions
        ]
    listed = intermediate.list_of(of_lists)
    path = intermediate.list_path(of_lists) if listed else ()
    return [(*path, index) for index, _ in indexed_objects(listed)]


def _is_at_edge(parts: Sequence[PartIndex], call: int, *, after: bool) -> bool:
    """Whether a call is the last one of its event (`after`), or the first one."""
    next_to = call + 1 if after else call - 1
    return not 0 <= next_to < len(parts) or parts[next_to][0] != parts[call][0]
