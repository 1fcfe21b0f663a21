"""The two shapes in which a turn says what happens before its answer, walked in the same way.

Written by hand, `intermediate_data` has three lists; recorded, it has events whose parts are texts, calls and
responses. A turn keeps the shape it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from evaltui.core.editing.json_paths import dicts, in_style, insert_at, list_at, place, turn_path, value_at
from evaltui.core.jsondoc.edits import Edit, Insert, Put, Remove
from evaltui.core.model.aliases import spelt
from evaltui.core.model.problems import JsonPath

Shape = Literal["lists", "events"]
PartAt = tuple[int, int]

_AUTHOR = "agent"


def intermediate_path(data: Any, case: int, turn: int) -> JsonPath:
    return place(data, turn_path(data, case, turn), "intermediate_data")


def shape(data: Any, case: int, turn: int) -> Shape | None:
    """None where the turn says nothing, so that it can become either."""
    value = value_at(data, intermediate_path(data, case, turn))
    if not isinstance(value, dict):
        return None
    return "events" if spelt("invocation_events", value) in value else "lists"


def list_path(data: Any, case: int, turn: int, name: str) -> JsonPath:
    """The path of one of the lists that `intermediate_data` holds."""
    return place(data, intermediate_path(data, case, turn), name)


def events_path(data: Any, case: int, turn: int) -> JsonPath:
    return list_path(data, case, turn, "invocation_events")


def add_to_list(data: Any, case: int, turn: int, name: str, index: int, value: Any) -> list[Edit]:
    """Insert into a list of a turn without events; `intermediate_data` and the list are made if need be."""
    owner = intermediate_path(data, case, turn)
    if not isinstance(value_at(data, owner), dict):
        return [Put(owner, in_style(data, owner[:-1], {name: [value]}))]
    return [insert_at(data, place(data, owner, name), index, value)]


def parts_path(data: Any, case: int, turn: int, event: int) -> JsonPath:
    return (*events_path(data, case, turn), event, "content", "parts")


def parts(data: Any, case: int, turn: int) -> Iterator[tuple[PartAt, dict[str, Any]]]:
    """Every part of every event in order, with the indices of both."""
    for event, _ in dicts(list_at(data, events_path(data, case, turn))):
        for number, part in dicts(list_at(data, parts_path(data, case, turn, event))):
            yield (event, number), part


def part_path(data: Any, case: int, turn: int, at: PartAt) -> JsonPath:
    return (*parts_path(data, case, turn, at[0]), at[1])


def field_parts(data: Any, case: int, turn: int, name: str) -> list[PartAt]:
    """The parts of events that hold this field as an object."""
    return [at for at, part in parts(data, case, turn) if isinstance(part.get(spelt(name, part)), dict)]


def holds_only(data: Any, case: int, turn: int, event: int, name: str) -> bool:
    """Whether an event consists of parts with this field and nothing else."""
    own = list_at(data, parts_path(data, case, turn, event))
    return bool(own) and all(
        isinstance(part, dict) and isinstance(part.get(spelt(name, part)), dict) for part in own
    )


def without_parts(data: Any, case: int, turn: int, gone: Collection[PartAt]) -> list[Edit]:
    """Remove parts of events, and the events that are left without any."""
    edits: list[Edit] = []
    for event in sorted({event for event, _ in gone}, reverse=True):
        path = parts_path(data, case, turn, event)
        own = sorted((part for owner, part in gone if owner == event), reverse=True)
        if len(own) == len(list_at(data, path)):
            edits.append(Remove((*events_path(data, case, turn), event)))
        else:
            edits += [Remove((*path, part)) for part in own]
    return edits


def new_event(
    data: Any, case: int, turn: int, index: int, part: Mapping[str, Any], role: str, author: str = ""
) -> Edit:
    """An event with one part at this place, said by `author`, else by the author of the events around."""
    path = events_path(data, case, turn)
    content = {"parts": [dict(part)], "role": role}
    event = {"author": author or _author_near(list_at(data, path), index), "content": content}
    if not isinstance(value_at(data, path), list):
        return Put(path, [event])
    return Insert(path, index, event)


def end_of_events(data: Any, case: int, turn: int) -> int:
    """The place after the last event with parts: that of the answer is recorded without content."""
    last = max((event for (event, _), _ in parts(data, case, turn)), default=None)
    return 0 if last is None else last + 1


def _author_near(events: list[Any], index: int) -> str:
    for event in [*reversed(events[:index]), *events[index:]]:
        author = event.get("author") if isinstance(event, dict) else None
        if isinstance(author, str) and author and author.lower() != "user":
            return author
    return _AUTHOR
