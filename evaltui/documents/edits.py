"""Edits of a JSON document, and comparison of JSON data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaltui.core.model.problems import JsonPath, format_path
from evaltui.text.values import value_in_words


class EditError(ValueError):
    """An edit that cannot be done: `message` is why, without the path at which it was to be done."""

    def __init__(self, message: str, path: JsonPath = ()) -> None:
        super().__init__(f"{format_path(path)}: {message}" if path else message)
        self.message = message
        self.path = path


class Splice(NamedTuple):
    """The replacement of the text from `start` to before `end` by `new`."""

    start: int
    end: int
    new: str


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text after some splices. Raises ValueError where two of them overlap."""
    position, parts = 0, list[str]()
    for splice in sorted(splices, key=lambda splice: splice[:2]):
        if splice.start < position:
            raise ValueError("splices overlap")
        parts += (text[position : splice.start], splice.new)
        position = splice.end
    return "".join((*parts, text[position:]))


def missing(path: JsonPath) -> EditError:
    return EditError("Nothing at this path", path)


@dataclass(frozen=True)
class Put:
    """Replace the value at a path; a member that is missing is added at the end of its object."""

    path: JsonPath
    value: Any


@dataclass(frozen=True)
class PutText:
    """Puts a value as JSON text, which is inserted verbatim without the white space around it."""

    path: JsonPath
    text: str


@dataclass(frozen=True)
class Insert:
    """Inserts an element into the array at a path before an index; the length of the array means its end."""

    path: JsonPath
    index: int
    value: Any


@dataclass(frozen=True)
class Remove:
    """Remove a member or an element, with its separator and its line."""

    path: JsonPath


@dataclass(frozen=True)
class Move:
    """Moves an element of the array at a path; `to` is its index afterwards."""

    path: JsonPath
    index: int
    to: int


@dataclass(frozen=True)
class Duplicate:
    """Copy an element of the array at a path, to right after itself."""

    path: JsonPath
    index: int


@dataclass(frozen=True)
class Rename:
    """Change the key of the member at a path; its value and its place stay."""

    path: JsonPath
    key: str


Edit = Put | PutText | Insert | Remove | Move | Duplicate | Rename


def at_path(data: Any, path: JsonPath) -> Any:
    """The value at a path of JSON data. Raises EditError for a missing path."""
    for depth, step in enumerate(path):
        if not has_step(data, step):
            raise missing(path[: depth + 1])
        data = data[step]
    return data


def has_step(data: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(data, dict) and step in data
    return isinstance(data, list) and 0 <= step < len(data)


def check_new_key(holder: Any, path: JsonPath, key: str) -> None:
    """Raises EditError where a path is no member of an object, or the object already has the key."""
    if not isinstance(holder, dict):
        raise EditError("only a member of an object has a key, this is an element", path)
    if key != path[-1] and key in holder:
        raise EditError(f"there already is a member {key!r} beside it", path)


def check_index(array: Any, path: JsonPath, index: int, *, at_end: bool = False) -> None:
    """Raises EditError for a value other than an array, and for an index outside of it."""
    if not isinstance(array, list):
        why = f"must be a list for this edit, is {value_in_words(array)}"
    elif not 0 <= index < len(array) + at_end:
        why = f"no index {index} in a list of {len(array)}"
    else:
        return
    raise EditError(why if path else f"the document: {why}", path)


def json_value(value: Any, path: JsonPath) -> Any:
    """A copy of a value that JSON can hold. Raises EditError for any other."""
    copies = [value]
    waiting: list[tuple[Any, Any, JsonPath]] = [(copies, 0, path)]
    while waiting:
        holder, step, path = waiting.pop()
        match holder[step]:
            case dict() as members:
                for key in members:
                    if not isinstance(key, str):
                        raise EditError(f"keys must be strings, found {key!r}", path)
                holder[step] = inner = dict(members)
                waiting += [(inner, key, (*path, key)) for key in inner]
            case list() as items:
                holder[step] = elements = list(items)
                waiting += [(elements, index, (*path, index)) for index in range(len(elements))]
            case float() as number if not math.isfinite(number):
                raise EditError(f"JSON has no number {number}", path)
            case None | str() | int() | float():
                pass
            case other:
                raise EditError(f"{type(other).__name__} is not a JSON value", path)
    return copies[0]


def alike(value: Any, other: Any) -> bool:
    """Whether two JSON values are the same as JSON text: `same`, with members in the same order."""
    return _are_equal(value, other, list)


def same(value: Any, other: Any) -> bool:
    """Whether two JSON values are of the same types and equal; the order of members does not count."""
    return _are_equal(value, other, dict.keys)


def _are_equal(value: Any, other: Any, keys: Callable[[dict[str, Any]], Any]) -> bool:
    # Of two long lists only what comes before the first difference is looked at.
    pairs = [iter([(value, other)])]
    while pairs:
        value, other = next(pairs[-1], (pairs, None))
        if value is pairs:
            pairs.pop()
        elif isinstance(value, dict) and isinstance(other, dict):
            if keys(value) != keys(other):
                return False
            pairs.append(zip(value.values(), map(other.get, value), strict=True))
        elif isinstance(value, list) and isinstance(other, list):
            if len(value) != len(other):
                return False
            pairs.append(zip(value, other, strict=True))
        # -0.0 and 0.0 are equal and yet two numbers; not-a-number is never equal.
        elif type(value) is not type(other) or (
            repr(value) != repr(other) if isinstance(value, float) else value != other
        ):
            return False
    return True
