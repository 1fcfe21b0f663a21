"""What agents are expected to say before their answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaltui.core.editing.intermediate import (
    add_to_list,
    end_of_events,
    events_path,
    list_path,
    new_event,
    part_path,
    parts,
    shape,
    without_parts,
)
from evaltui.core.editing.json_paths import dicts, list_at, value_at
from evaltui.core.jsondoc.edits import Edit, EditError, Put, Remove
from evaltui.core.model.problems import JsonPath


@dataclass(frozen=True)
class Said:
    """One text that is no thought: `path` is that of its part, `entry` that of the event or pair it is in."""

    author: str
    text: str
    path: JsonPath
    entry: JsonPath


def said_before(data: Any, case: int, turn: int) -> list[Said]:
    if shape(data, case, turn) == "events":
        events = events_path(data, case, turn)
        return [
            Said(_text(value_at(data, (*events, at[0], "author"))), part["text"], path, (*events, at[0]))
            for at, part in parts(data, case, turn)
            if _is_said(part) and (path := part_path(data, case, turn, at))
        ]
    pairs = list_path(data, case, turn, "intermediate_responses")
    return [
        Said(
            _text(value_at(data, (*pairs, pair, 0))), part["text"], (*pairs, pair, 1, number), (*pairs, pair)
        )
        for pair in range(len(list_at(data, pairs)))
        for number, part in dicts(list_at(data, (*pairs, pair, 1)))
        if _is_said(part)
    ]


def add_said(data: Any, case: int, turn: int, author: str, text: str) -> list[Edit]:
    """After all the others. A turn that left its calls unspecified says by it that there are none."""
    part = {"text": text}
    if shape(data, case, turn) == "events":
        return [new_event(data, case, turn, end_of_events(data, case, turn), part, "model", author)]
    at = len(list_at(data, list_path(data, case, turn, "intermediate_responses")))
    return add_to_list(data, case, turn, "intermediate_responses", at, [author, [part]])


def set_said_text(data: Any, case: int, turn: int, index: int, text: str) -> list[Edit]:
    one = _said(data, case, turn, index)
    return [Put((*one.path, "text"), text)] if one.text != text else []


def set_said_author(data: Any, case: int, turn: int, index: int, author: str) -> list[Edit]:
    """In a turn of events, everything in the same event is by this author then."""
    one = _said(data, case, turn, index)
    key = "author" if shape(data, case, turn) == "events" else 0
    return [Put((*one.entry, key), author)] if one.author != author else []


def delete_said(data: Any, case: int, turn: int, index: int) -> list[Edit]:
    """An event or pair that has nothing else in it goes, too."""
    one = _said(data, case, turn, index)
    if shape(data, case, turn) == "events":
        event, number = one.entry[-1], one.path[-1]
        return without_parts(data, case, turn, [(int(event), int(number))])
    is_last = len(list_at(data, one.path[:-1])) == 1
    return [Remove(one.entry if is_last else one.path)]


def _said(data: Any, case: int, turn: int, index: int) -> Said:
    found = said_before(data, case, turn)
    if not 0 <= index < len(found):
        raise EditError(f"nothing is said at place {index + 1} before the answer of turn {turn + 1}")
    return found[index]


def _is_said(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and not part.get("thought")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
