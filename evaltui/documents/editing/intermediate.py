"""The intermediate data of a turn: calls, responses and texts before its answer, in one of two forms.

Written by hand, `intermediate_data` has three lists; recorded, it has events whose parts are texts, calls and
responses. A turn keeps its form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from evaltui.core.model.json_values import (
    field_of,
    indexed_objects,
    list_at,
    list_or_empty,
    spelling_in,
    text_or_empty,
    value_at,
)
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing.json_paths import field_path, field_value, in_style
from evaltui.documents.values import insert, put, remove

Shape = Literal["lists", "events"]
# Index of an event, then that of a part in it.
PartIndex = tuple[int, int]

_AUTHOR = "agent"


@dataclass(frozen=True)
class IntermediateData:
    """The intermediate data of a turn, which may be absent."""

    data: Any
    """The parsed JSON of the eval set."""
    turn: JsonPath
    """The path of the turn."""

    @cached_property
    def path(self) -> JsonPath:
        return field_path(self.data, self.turn, "intermediate_data")

    @cached_property
    def shape(self) -> Shape | None:
        """The shape; None where the turn has no intermediate data, so that it can get either."""
        value = value_at(self.data, self.path)
        if not isinstance(value, dict):
            return None
        return "events" if spelling_in("invocation_events", value) in value else "lists"

    # As lists

    def list_path(self, name: str) -> JsonPath:
        """The path of one of the lists: `tool_uses`, `tool_responses`, `intermediate_responses`."""
        return field_path(self.data, self.path, name)

    def list_of(self, name: str) -> list[Any]:
        return list_or_empty(field_value(self.data, self.path, name))

    def insert_in_list(self, name: str, index: int, value: Any) -> None:
        """Inserts into a list of a turn without events; both are made where they are missing."""
        if isinstance(value_at(self.data, self.path), dict):
            insert(self.data, self.list_path(name), index, value)
        else:
            put(self.data, self.path, in_style(self.data, self.path[:-1], {name: [value]}))

    # As events

    @cached_property
    def events_path(self) -> JsonPath:
        return self.list_path("invocation_events")

    def parts_path(self, event: int) -> JsonPath:
        return (*self.events_path, event, "content", "parts")

    def part_path(self, at: PartIndex) -> JsonPath:
        return (*self.parts_path(at[0]), at[1])

    def parts(self) -> Iterator[tuple[PartIndex, dict[str, Any]]]:
        """Every part of every event, in order."""
        for event, _ in indexed_objects(list_at(self.data, self.events_path)):
            for number, part in indexed_objects(list_at(self.data, self.parts_path(event))):
                yield (event, number), part

    def parts_with(self, field: str) -> list[PartIndex]:
        """The parts of events that hold this field as an object."""
        return [at for at, part in self.parts() if isinstance(field_of(part, field), dict)]

    def holds_responses(self, event: int) -> bool:
        """Whether an event consists of responses to calls and nothing else."""
        parts = list_at(self.data, self.parts_path(event))
        return bool(parts) and all(isinstance(field_of(part, "function_response"), dict) for part in parts)

    def author_of(self, event: int) -> str:
        return text_or_empty(value_at(self.data, (*self.events_path, event, "author")))

    def remove_parts(self, gone: Collection[PartIndex]) -> None:
        """Removes parts of events, and events without another part."""
        for at in sorted(gone, reverse=True):
            is_last = len(list_at(self.data, self.parts_path(at[0]))) == 1
            remove(self.data, (*self.events_path, at[0]) if is_last else self.part_path(at))

    def insert_event(self, index: int, part: Mapping[str, Any], role: str, author: str = "") -> None:
        """Inserts an event with one part before the event at `index`; without `author`, by the author of
        the events around it."""
        author = author or _author_near(list_at(self.data, self.events_path), index)
        event = {"author": author, "content": {"parts": [dict(part)], "role": role}}
        insert(self.data, self.events_path, index, event)

    @property
    def end_of_events(self) -> int:
        """The index after the last event with parts; the event of the answer has none."""
        last = max((event for (event, _), _ in self.parts()), default=None)
        return 0 if last is None else last + 1


@dataclass(frozen=True)
class IntermediateResponse:
    """An agent's text before the answer; thoughts are excluded."""

    intermediate: IntermediateData
    author: str
    text: str
    path: JsonPath
    """The JSON path of the part with the text."""
    entry: JsonPath
    """The JSON path of the event, or of the pair of author and parts, with the text."""

    def set_text(self, text: str) -> None:
        put(self.intermediate.data, (*self.path, "text"), text)

    def set_author(self, author: str) -> None:
        """Sets the author; in a turn of events, the author of the whole event."""
        key = "author" if self.intermediate.shape == "events" else 0
        put(self.intermediate.data, (*self.entry, key), author)

    def delete(self) -> None:
        """Deletes the text, and its event or pair if that has no other part."""
        data = self.intermediate.data
        is_last = len(list_at(data, self.path[:-1])) == 1
        remove(data, self.entry if is_last else self.path)


def intermediate_responses(intermediate: IntermediateData) -> list[IntermediateResponse]:
    data = intermediate.data
    if intermediate.shape == "events":
        events = intermediate.events_path
        return [
            IntermediateResponse(
                intermediate,
                intermediate.author_of(at[0]),
                part["text"],
                intermediate.part_path(at),
                (*events, at[0]),
            )
            for at, part in intermediate.parts()
            if _is_text(part)
        ]
    pairs = intermediate.list_path("intermediate_responses")
    return [
        IntermediateResponse(
            intermediate,
            text_or_empty(value_at(data, (*pairs, pair, 0))),
            part["text"],
            (*pairs, pair, 1, number),
            (*pairs, pair),
        )
        for pair in range(len(list_at(data, pairs)))
        for number, part in indexed_objects(list_at(data, (*pairs, pair, 1)))
        if _is_text(part)
    ]


def add_intermediate_response(intermediate: IntermediateData, author: str, text: str) -> None:
    """Adds a text after all others; in an unspecified turn, this also means that no calls are expected."""
    part = {"text": text}
    if intermediate.shape == "events":
        intermediate.insert_event(intermediate.end_of_events, part, "model", author)
        return
    name = "intermediate_responses"
    intermediate.insert_in_list(name, len(intermediate.list_of(name)), [author, [part]])


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and not part.get("thought")


def _author_near(events: list[Any], index: int) -> str:
    for event in [*reversed(events[:index]), *events[index:]]:
        author = event.get("author") if isinstance(event, dict) else None
        if isinstance(author, str) and author and author.lower() != "user":
            return author
    return _AUTHOR
