"""Parsed JSON: access by path and in both spellings of keys, comparison, and values as keys."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from ...text.values import value_in_words
from .problems import JsonPath

# What stands where a value is missing; None is a value.
ABSENT: Any = object()


def value_at(data: Any, path: JsonPath, default: Any = None) -> Any:
    """The value at a path; `default` without one."""
    try:
        for step in path:
            # A text has items as well, and a list counts from its end below 0.
            has_items = isinstance(data, dict) or (type(step) is int and step >= 0 and isinstance(data, list))
            if not has_items:
                return default
            data = data[step]
    except (KeyError, IndexError):
        return default
    return data


def list_at(data: Any, path: JsonPath) -> list[Any]:
    """The list at a path; empty for another value and for none."""
    return list_or_empty(value_at(data, path))


def values_in(data: Any, path: JsonPath = ()) -> Iterator[tuple[JsonPath, Any]]:
    """Every value in parsed JSON with its path, outer ones first; as deep as any reader parses it."""
    waiting = [(path, data)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        if isinstance(value, dict | list):
            members = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((*path, key), member) for key, member in members][::-1]


def side_by_side(
    expected: Any, actual: Any, path: JsonPath = (), *, lists: bool = True
) -> Iterator[tuple[JsonPath, Any, Any]]:
    """Every place of two values, equal or not, in the order of the expected value, then additional places of
    the other.

    Objects on both sides, and with `lists` also lists, are compared item by item unless both are empty; any
    other pair of values is one place. ABSENT stands for a missing value.
    """
    if isinstance(expected, dict) and isinstance(actual, dict) and (expected or actual):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from side_by_side(
                expected.get(key, ABSENT), actual.get(key, ABSENT), (*path, key), lists=lists
            )
    elif lists and isinstance(expected, list) and isinstance(actual, list) and (expected or actual):
        for index in range(max(len(expected), len(actual))):
            yield from side_by_side(_item(expected, index), _item(actual, index), (*path, index))
    else:
        yield path, expected, actual


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else ABSENT


def equal(value: Any, other: Any) -> bool:
    """Equality of decoded JSON as in google-adk: `1 == 1.0 == True`. ABSENT equals nothing."""
    return value is not ABSENT and other is not ABSENT and bool(value == other)


def hashable_value(value: Any) -> Hashable:
    """A hashable form of decoded JSON: equal where the values are equal by `==`."""
    if isinstance(value, dict):
        return frozenset((key, hashable_value(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(hashable_value(item) for item in value)
    hashable: Hashable = value
    return hashable


def without_places(value: Any, places: Collection[JsonPath]) -> Any:
    """The value without the values at these places; missing places are ignored."""
    if not places or () in places:
        return ABSENT if () in places else value
    inside: dict[str | int, list[JsonPath]] = {}
    for place in places:
        inside.setdefault(place[0], []).append(place[1:])
    if isinstance(value, dict):
        items = {key: without_places(item, inside.get(key, ())) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not ABSENT}
    if isinstance(value, list):
        return [
            item
            for index, entry in enumerate(value)
            if (item := without_places(entry, inside.get(index, ()))) is not ABSENT
        ]
    return value


@cache
def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def spelling_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """The names of fields, each in both spellings."""
    return [(name, camel(name)) for name in names]


def both_spellings(names: Iterable[str]) -> dict[str, str]:
    """The names of fields by each of their spellings."""
    return {spelling: pair[0] for pair in spelling_pairs(names) for spelling in pair}


def spelling_in(name: str, data: Mapping[str, Any]) -> str:
    """The key of a field in the data; its snake_case name where it is absent or present in both spellings."""
    return camel(name) if name not in data and camel(name) in data else name


def field_of(data: Any, name: str) -> Any:
    """The value of a field in either spelling; None without one."""
    return data.get(spelling_in(name, data)) if isinstance(data, Mapping) else None


def spelled_path(path: JsonPath, data: Any) -> JsonPath:
    """A path of snake_case keys in the spelling of the data."""
    spelt_path: JsonPath = ()
    for step in path:
        key = spelling_in(step, data) if isinstance(step, str) and isinstance(data, dict) else step
        spelt_path = (*spelt_path, key)
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step]
    return spelt_path


def indexed_objects(items: list[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list with their indices."""
    return ((index, item) for index, item in enumerate(items) if isinstance(item, dict))


def member(data: Mapping[str, Any], name: str, kind: Any, absent: Any = ...) -> Any:
    """The member of an object; `absent` where it is missing. Raises ValueError for another type."""
    value = data.get(name, absent)
    if value is ...:
        raise ValueError(f"{name} is missing")
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {value_in_words(value)}")
    return value


def is_number(value: Any) -> bool:
    """Whether a value is a finite number and no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def only_item(value: Any) -> Any:
    """The item of a list with one item, such as `["yes"]`; other values unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def text_or_empty(value: Any) -> str:
    """The value if it is a text; "" for any other."""
    return value if isinstance(value, str) else ""


def list_or_empty(value: Any) -> list[Any]:
    """The value if it is a list; an empty one for any other."""
    return value if isinstance(value, list) else []


def object_or_empty(value: Any) -> dict[str, Any]:
    """The value if it is an object; an empty one for any other."""
    return value if isinstance(value, dict) else {}
