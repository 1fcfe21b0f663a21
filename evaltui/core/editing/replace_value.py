"""A value that becomes another one: the edits of what really differs, at a path or as a whole.

Values are equal as they are where they are scored, by `==`: what is equal keeps its spelling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaltui.core.editing.json_paths import value_at
from evaltui.core.jsondoc.edits import Edit, Insert, Put, Remove
from evaltui.core.model.problems import JsonPath


def replace_value(path: JsonPath, old: Any, new: Any) -> Iterator[Edit]:
    """Make the new value of the old one, which is at `path`; members keep their order."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from (Remove((*path, key)) for key in old if key not in new)
        for key, value in new.items():
            yield from (
                replace_value((*path, key), old[key], value) if key in old else [Put((*path, key), value)]
            )
    elif isinstance(old, list) and isinstance(new, list):
        shared = min(len(old), len(new))
        for index in range(shared):
            yield from replace_value((*path, index), old[index], new[index])
        yield from (Remove((*path, index)) for index in reversed(range(shared, len(old))))
        yield from (Insert(path, index, new[index]) for index in range(shared, len(new)))
    elif old != new:
        yield Put(path, new)


def replace_value_at(path: JsonPath, old: Any, new: Any, inside: JsonPath) -> list[Edit]:
    """Make one place inside the old value, which is at `path`, what it is in the new one; one of them has it.

    Where the lists there have different lengths, an element that is new brings those before it that are new,
    and one that is gone takes those behind it along: no list comes out that neither side has in this place.
    """
    *way, last = inside
    holder, model = value_at(old, tuple(way)), value_at(new, tuple(way))
    place = (*path, *way)
    if isinstance(last, int):
        if last >= len(model):
            return [Remove((*place, index)) for index in reversed(range(last, len(holder)))]
        if last >= len(holder):
            return [Insert(place, index, model[index]) for index in range(len(holder), last + 1)]
    elif last not in model:
        return [Remove((*place, last))]
    elif last not in holder:
        return [Put((*place, last), model[last])]
    return list(replace_value((*place, last), holder[last], model[last]))
