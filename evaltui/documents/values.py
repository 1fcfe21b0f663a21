"""JSON values that are changed in place, and the edits that apply their changes to the text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evaltui.core.matching.pairing import common_ends
from evaltui.core.model.json_values import list_at, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.renaming import key_place
from evaltui.core.model.stored_cases import CaseList, StoredCase
from evaltui.documents.edits import (
    Duplicate,
    Edit,
    Insert,
    Move,
    Put,
    PutText,
    Remove,
    Rename,
    alike,
    at_path,
    check_index,
    check_new_key,
    json_value,
)


class ObjectCopy(dict[str, Any]):
    """A copy of an object, to be changed."""

    __slots__ = ("origin",)
    origin: Any
    """The object, or the stored case with it."""


class ListCopy(list[Any]):
    """A copy of a list, to be changed."""

    __slots__ = ("origin",)
    origin: list[Any]


class CasesCopy(ListCopy):
    """A copy of the cases of a set; each is copied when it is asked for."""

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        if isinstance(item, StoredCase):
            case, item = item, copy_of(item.value)
            if isinstance(item, ObjectCopy):
                item.origin = case
                self[index] = item
        return item

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))


def copy_of(value: Any) -> Any:
    """A copy to be changed, in which each object and list refers to its original.

    A copy of a copy refers to the same originals.
    """
    copy = _shallow(value)
    waiting = [copy]
    while waiting:
        holder = waiting.pop()
        if not isinstance(holder, ObjectCopy | ListCopy) or isinstance(holder, CasesCopy):
            continue
        steps: Any = holder.keys() if isinstance(holder, dict) else range(len(holder))
        for step in list(steps):
            holder[step] = inner = _shallow(holder[step])
            waiting.append(inner)
    return copy


def _shallow(value: Any) -> Any:
    """Other types of objects and lists stay as they are."""
    copy: ObjectCopy | ListCopy
    if type(value) is CaseList:
        copy = CasesCopy(value.stored)
    elif type(value) in (dict, ObjectCopy):
        copy = ObjectCopy(value)
    elif type(value) in (list, ListCopy):
        copy = ListCopy(value)
    else:
        return value
    copy.origin = getattr(value, "origin", value)
    return copy


# Changes of a copy, by the path of a value in it. Each raises EditError where that has nothing there.


def put(copy: Any, path: JsonPath, value: Any) -> None:
    """Replaces a value; a missing member is added at the end of its object."""
    holder = at_path(_checked(copy), path[:-1])
    if not isinstance(holder, dict) or not isinstance(path[-1], str):
        at_path(copy, path)
    holder[path[-1]] = json_value(value, path)


def put_member(copy: Any, path: JsonPath, key: str | int, value: Any) -> None:
    """Sets a member of the object at a path; missing objects are created."""
    if path and not isinstance(value_at(copy, path), dict):
        put_member(copy, path[:-1], path[-1], {key: value})
    else:
        put(copy, (*path, key), value)


def insert(copy: Any, path: JsonPath, index: int, value: Any) -> None:
    """Inserts an element before an index of a list, which is created if it is missing."""
    items = value_at(_checked(copy), path)
    if not isinstance(items, list):
        put_member(copy, path[:-1], path[-1], [value])
        return
    check_index(items, path, index, at_end=True)
    items.insert(index, json_value(value, (*path, index)))


def append(copy: Any, path: JsonPath, value: Any) -> None:
    """Inserts an element at the end of a list."""
    insert(copy, path, len(list_at(copy, path)), value)


def remove(copy: Any, path: JsonPath) -> None:
    at_path(_checked(copy), path)
    del at_path(copy, path[:-1])[path[-1]]


def discard(copy: Any, path: JsonPath) -> None:
    """Removes a member if it exists."""
    holder = value_at(_checked(copy), path[:-1])
    if isinstance(holder, dict):
        holder.pop(path[-1], None)


def move(copy: Any, path: JsonPath, index: int, to: int) -> None:
    """Moves an element of a list; `to` is its index afterwards."""
    items = at_path(_checked(copy), path)
    check_index(items, path, index)
    check_index(items, path, to)
    items.insert(to, items.pop(index))


def duplicate(copy: Any, path: JsonPath, index: int) -> Any:
    """Copies an element of a list behind itself, with its spelling, and returns the copy."""
    items = at_path(_checked(copy), path)
    check_index(items, path, index)
    twin = copy_of(items[index])
    items.insert(index + 1, twin)
    return twin


def rename(copy: Any, path: JsonPath, key: str) -> None:
    """Changes the key of a member; its value and its place stay."""
    at_path(_checked(copy), path)
    holder = at_path(copy, path[:-1])
    check_new_key(holder, path, key)
    key_place(holder, str(path[-1]))(key)


@contextmanager
def all_or_nothing(copy: Any, path: JsonPath) -> Iterator[None]:
    """Restores a value when a change of it raises."""
    holder = at_path(copy, path[:-1])
    before = at_path(copy, path)
    holder[path[-1]] = copy_of(before)
    try:
        yield
    except Exception:
        holder[path[-1]] = before
        raise


def _checked(copy: Any) -> Any:
    if type(copy) in (dict, list):
        raise TypeError("the value of a document is not to be changed; change a copy of it")
    return copy


# The edits that they come to


def edits_of(copy: Any) -> list[Edit]:
    """The edits that apply the changes of a copy to its original; empty for a value that is no copy."""
    is_copy = isinstance(copy, ObjectCopy | ListCopy)
    return list(edits_between(copy.origin, copy)) if is_copy else []


def edits_between(before: Any, after: Any, path: JsonPath = ()) -> Iterator[Edit]:
    """The edits that turn one value into another, both at a path.

    Equal parts need no edit; an element that a copy moved or duplicated keeps its text.
    """
    waiting = deque([(before, after, path)])
    while waiting:
        before, after, path = waiting.popleft()
        value = before.value if isinstance(before, StoredCase) else before
        if isinstance(value, dict) and isinstance(after, dict):
            edits, inner = _members(value, after, path)
        elif isinstance(value, list) and isinstance(after, list):
            edits, inner = _elements(value, after, path)
        elif isinstance(after, StoredCase):
            edits, inner = [PutText(path, after.text)], []
        else:
            edits, inner = [] if alike(value, after) else [Put(path, after)], []
        yield from edits
        waiting += [item for item in inner if item[0] is not item[1]]


# The edits of an object or a list, and what its items were and are, each with its path.
_Work = tuple[list[Edit], list[tuple[Any, Any, JsonPath]]]


def _members(before: dict[str, Any], after: dict[str, Any], path: JsonPath) -> _Work:
    renamed = _renamed(before, after)
    names = {key: renamed.get(key, key) for key in before}
    stay = [key for key in names.values() if key in after]
    if stay != list(after)[: len(stay)] or (after and not stay):
        return [Put(path, after)], []
    edits: list[Edit] = [Remove((*path, key)) for key, name in names.items() if name not in after]
    edits += [Rename((*path, key), name) for key, name in renamed.items()]
    edits += [Put((*path, key), after[key]) for key in list(after)[len(stay) :]]
    return edits, [(before[key], after[name], (*path, name)) for key, name in names.items() if name in after]


def _renamed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """New keys by the old keys in the same places; the last key counts only with an equal value."""
    if len(before) != len(after):
        return {}
    last = next(reversed(before), None)
    return {
        key: name
        for key, name in zip(before, after, strict=True)
        if key not in after and name not in before and (key != last or _is_same(after[name], before[key]))
    }


def _is_same(after: Any, before: Any) -> bool:
    return _origin(after) is before or alike(after, before)


def _elements(before: list[Any], after: list[Any], path: JsonPath) -> _Work:
    old, new = _items(before), _items(after)
    sources = _sources(old, new)
    stay = [source for source in sources if source is not None]
    if new and not stay:
        return [Put(path, after)], []
    gone = set(range(len(old))).difference(stay)
    edits: list[Edit] = [Remove((*path, index)) for index in sorted(gone, reverse=True)]
    edits += _moves(stay, path)
    inner: list[tuple[Any, Any, JsonPath]] = []
    for index, (item, source) in enumerate(zip(new, sources, strict=True)):
        above = sources[index - 1] if index else None
        if source is not None:
            inner.append((old[source], item, (*path, index)))
        elif above is not None and _is_same(item, old[above]):
            edits.append(Duplicate(path, index - 1))
            inner.append((old[above], item, (*path, index)))
        else:
            edits.append(Insert(path, index, item))
    return edits, inner


def _items(items: list[Any]) -> Sequence[Any]:
    """The elements of a list; of a list of cases, as they are stored."""
    return items.stored if isinstance(items, CaseList) else list(list.__iter__(items))


def _origin(item: Any) -> Any:
    """The element that an element is a copy of; None for a new element."""
    return item if isinstance(item, StoredCase) else getattr(item, "origin", None)


def _sources(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """The index of the old element that each new one is or replaces; None for an added element."""
    places: dict[int, list[int]] = {}
    for index in reversed(range(len(old))):
        places.setdefault(id(old[index]), []).append(index)
    sources: list[int | None] = []
    for item in new:
        indexes = places.get(id(origin), ()) if (origin := _origin(item)) is not None else ()
        sources.append(indexes.pop() if indexes else None)
    has_copies = any(source is not None for source in sources)
    for source, index in _same(old, new, *_unmatched(old, sources)):
        sources[index] = source
    free, rest = _unmatched(old, sources)
    if len(old) == len(new):
        pairs = [(index, index) for index in {*free}.intersection(rest)]
    else:
        pairs = list(zip(free, rest, strict=False)) if not has_copies and len(rest) < len(new) else []
    for source, index in pairs:
        sources[index] = source
    return sources


def _unmatched(old: Sequence[Any], sources: Sequence[int | None]) -> tuple[list[int], list[int]]:
    """The indexes of the old and of the new elements that have no partner."""
    matched = set(sources)
    free = [index for index in range(len(old)) if index not in matched]
    return free, [index for index, source in enumerate(sources) if source is None]


def _same(
    old: Sequence[Any], new: Sequence[Any], free: Sequence[int], rest: Sequence[int]
) -> list[tuple[int, int]]:
    """The index pairs of equal elements: at both ends, and scalars between them."""
    head, tail = common_ends([old[index] for index in free], [new[index] for index in rest], alike)
    pairs = list(zip(free[:head], rest[:head], strict=True))
    pairs += zip(free[len(free) - tail :], rest[len(rest) - tail :], strict=True)
    between = list(free[head : len(free) - tail])
    for index in rest[head : len(rest) - tail]:
        is_scalar = not isinstance(new[index], dict | list | StoredCase)
        source = next(
            (candidate for candidate in between if is_scalar and alike(old[candidate], new[index])), None
        )
        if source is not None:
            between.remove(source)
            pairs.append((source, index))
    return pairs


def _moves(order: Sequence[int], path: JsonPath) -> Iterator[Move]:
    """The moves that bring sorted numbers into an order."""
    now = sorted(order)
    for index, source in enumerate(order):
        if now[index] == source:
            continue
        goes_down = now[index + 1] == source
        start, to = (index, order.index(now[index])) if goes_down else (now.index(source), index)
        now.insert(to, now.pop(start))
        yield Move(path, start, to)
