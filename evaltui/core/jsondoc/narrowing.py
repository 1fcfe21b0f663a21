"""What really differs between an old value and the new one, so that the rest of its text can stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaltui.core.jsondoc.edits import Insert, Put, Remove, alike
from evaltui.core.model.problems import JsonPath


def narrowed(path: JsonPath, old: Any, new: Any) -> Iterator[Put | Insert | Remove]:
    """The edits, to be done one after the other, that make the new value of the old one at a path."""
    if alike(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and _in_order(old, new):
        yield from _members(path, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _elements(path, old, new)
    else:
        yield Put(path, new)


def _in_order(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether some members stay, in the order that they have, and new ones come after them."""
    stay = [key for key in old if key in new]
    return bool(stay) and stay == list(new)[: len(stay)]


def _members(path: JsonPath, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Put | Insert | Remove]:
    yield from (Remove((*path, key)) for key in old if key not in new)
    for key, value in new.items():
        if key in old:
            yield from narrowed((*path, key), old[key], value)
        else:
            yield Put((*path, key), value)


def _elements(path: JsonPath, old: list[Any], new: list[Any]) -> Iterator[Put | Insert | Remove]:
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if not alike(old[index], new[index])), shorter)
    rest = range(1, shorter - head + 1)
    tail = next((index - 1 for index in rest if not alike(old[-index], new[-index])), shorter - head)
    if len(old) != len(new) and not head and not tail:
        yield Put(path, new)
        return
    between = shorter - tail
    for index in range(head, between):
        yield from narrowed((*path, index), old[index], new[index])
    yield from (Remove((*path, index)) for index in reversed(range(between, len(old) - tail)))
    yield from (Insert(path, index, new[index]) for index in range(between, len(new) - tail))
