"""The members of JSON values as rows, level by level: `.from`, `.days`, `[0]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from evaltui.core.editing.set import EditBuilder
from evaltui.core.jsondoc.edits import Duplicate, Edit, Insert, Move, Put, Remove, Rename
from evaltui.core.model.problems import JsonPath
from evaltui.workbench.fields import (
    Field,
    FieldError,
    Operation,
    Row,
    RowId,
    first_value,
    required_text,
    value_field,
)


def with_members(rows: Iterable[Row], toggled: frozenset[RowId] | None) -> Iterator[Row]:
    """The rows, those of objects and arrays followed by their members where they are toggled.

    An empty object or array has nothing to fold; the first thing that is added to it is a member.
    """
    for row in rows:
        if toggled is None or row.value_path is None or not isinstance(row.value, dict | list):
            yield row
            continue
        is_open = row.id in toggled
        add = _add(row) if is_open or not row.value else None
        adds = (add, *row.adds) if add is not None else row.adds
        yield replace(row, fold=("open" if is_open else "closed") if row.value else None, adds=adds)
        if is_open:
            yield from with_members(_members(row, row.value_path, add), toggled)


def _members(holder: Row, path: JsonPath, add: Operation | None) -> Iterator[Row]:
    value = holder.value
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield _item(holder, path, number, item, len(value))
    else:
        for number, (key, item) in enumerate(value.items()):
            yield replace(
                _member(holder, (*path, key), number, f".{key}", item, _schema_of(holder.schema, key)),
                rename=_key_field(holder, path, number, key),
                adds=(add,) if add else (),
            )


def _member(holder: Row, path: JsonPath, number: int, name: str, value: Any, schema: Any) -> Row:
    return Row(
        _id(holder, number),
        holder.role,
        name=name,
        value=value,
        is_json=True,
        quiet=holder.quiet,
        turn=holder.turn,
        field=value_field(f"change {name}", value, lambda typed: _edit(Put(path, typed)), schema),
        delete=Operation(f"delete {name}", _edit(Remove(path))),
        path=path,
        value_path=path,
        level=holder.level + 1,
        schema=schema,
    )


def _item(holder: Row, path: JsonPath, number: int, value: Any, count: int) -> Row:
    """An element of an array."""
    schema = _schema_of(holder.schema, number)

    def insert(index: int) -> Operation:
        edit = _edit(Insert(path, index, first_value(schema)))
        return Operation("add item", edit, _id(holder, index), "value")

    def move(step: int) -> Operation:
        to = max(0, min(number + step, count - 1))
        direction = "up" if step < 0 else "down"
        edit = _edit(Move(path, number, to)) if to != number else None
        return Operation(f"move [{number}] {direction}", edit, _id(holder, to))

    return replace(
        _member(holder, (*path, number), number, f"[{number}]", value, schema),
        adds=(insert(number + 1),),
        insert=insert(number),
        duplicate=Operation(f"duplicate [{number}]", _edit(Duplicate(path, number)), _id(holder, number + 1)),
        move=move,
    )


def _add(holder: Row) -> Operation | None:
    """Adding a member at the end of an object or array."""
    path, value = holder.value_path, holder.value
    if path is None:
        return None
    new = _id(holder, len(value))
    if isinstance(value, list):
        first = first_value(_schema_of(holder.schema, len(value)))
        return Operation("add item", _edit(Insert(path, len(value), first)), new, "value")
    key, number = "key", 1
    while key in value:
        number += 1
        key = f"key_{number}"
    return Operation("add member", _edit(Put((*path, key), "")), new, "name")


def _key_field(holder: Row, path: JsonPath, number: int, key: str) -> Field:
    def rename(text: str) -> EditBuilder:
        if text != key and text in holder.value:
            raise FieldError(f"{text} already exists")
        wanted = required_text("Key")(text)
        return _edits([Rename((*path, key), wanted)] if wanted != key else [])

    then = Operation("Go to value", None, _id(holder, number), "value")
    return Field(f"rename .{key}", key, "line", rename, then=then)


def _id(holder: Row, number: int) -> RowId:
    return (*holder.id, "in", number)


def _edit(edit: Edit) -> EditBuilder:
    return _edits([edit])


def _edits(edits: list[Edit]) -> Callable[[Any], list[Edit]]:
    return lambda _: edits


def _schema_of(schema: Any, step: str | int) -> Any:
    """The schema of a member of what a schema describes; None where it says nothing of it."""
    if not isinstance(schema, Mapping):
        return None
    if isinstance(step, int):
        return schema.get("items")
    properties = schema.get("properties")
    return properties.get(step) if isinstance(properties, Mapping) else None
