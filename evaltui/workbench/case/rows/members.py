"""The members of JSON values as rows, level by level: `.from`, `.days`, `[0]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from evaltui.core.model.problems import JsonPath
from evaltui.core.model.tool_values import first_value, member_schema, properties_of
from evaltui.documents.editing.set import EditBuilder, SetEditor
from evaltui.documents.values import duplicate, insert, move, put, remove, rename
from evaltui.workbench.case.fields import (
    Field,
    FieldError,
    Operation,
    Row,
    RowId,
    required_text,
    value_field,
)
from evaltui.workbench.case.rows.nesting import first_leaf, key_completions, nest_operation


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
                _member(holder, (*path, key), number, f".{key}", item, member_schema(holder.schema, key)),
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
        field=value_field(f"change {name}", value, lambda typed: _build(put, path, typed), schema),
        delete=Operation(f"delete {name}", _build(remove, path)),
        path=path,
        value_path=path,
        level=holder.level + 1,
        schema=schema,
    )


def _item(holder: Row, path: JsonPath, number: int, value: Any, count: int) -> Row:
    """An element of an array."""
    schema = member_schema(holder.schema, number)

    def insert_at(index: int) -> Operation:
        first = first_value(schema)
        new = first_leaf(_id(holder, index), first)
        return Operation("add item", _build(insert, path, index, first), new, "value")

    def move_by(step: int) -> Operation:
        to = max(0, min(number + step, count - 1))
        direction = "up" if step < 0 else "down"
        edit = _build(move, path, number, to) if to != number else None
        return Operation(f"move [{number}] {direction}", edit, _id(holder, to))

    return replace(
        _member(holder, (*path, number), number, f"[{number}]", value, schema),
        adds=(insert_at(number + 1),),
        insert=insert_at(number),
        duplicate=Operation(
            f"duplicate [{number}]", _build(duplicate, path, number), _id(holder, number + 1)
        ),
        move=move_by,
    )


def _add(holder: Row) -> Operation | None:
    """Adding a member at the end of an object or array."""
    path, value = holder.value_path, holder.value
    if path is None:
        return None
    new = _id(holder, len(value))
    if isinstance(value, list):
        first = first_value(member_schema(holder.schema, len(value)))
        return Operation("add item", _build(insert, path, len(value), first), first_leaf(new, first), "value")
    unused = [name for name in properties_of(holder.schema) if name not in value]
    if len(unused) == 1:
        first = first_value(member_schema(holder.schema, unused[0]))
        return Operation(
            "add member", _build(put, (*path, unused[0]), first), first_leaf(new, first), "value"
        )
    key, number = "key", 1
    while key in value:
        number += 1
        key = f"key_{number}"
    return Operation("add member", _build(put, (*path, key), ""), new, "name")


def _key_field(holder: Row, path: JsonPath, number: int, key: str) -> Field:
    def change(text: str) -> EditBuilder:
        if text != key and text in holder.value:
            raise FieldError(f"{text} already exists")
        wanted = required_text("Key")(text)
        first = first_value(member_schema(holder.schema, wanted))

        def build(eval_set: SetEditor) -> None:
            rename(eval_set.data, (*path, key), wanted)
            if wanted != key and holder.value[key] == "":
                # A member that is empty begins with what its new name asks for.
                put(eval_set.data, (*path, wanted), first)

        return build

    own = _id(holder, number)
    then = Operation("Go to value", None, first_leaf(own, holder.value[key]), "value")
    known = properties_of(holder.schema)
    if holder.role == "argument" and key not in known:
        then = nest_operation(holder.value, path, key, holder.schema, (*holder.id, "in")) or then
    return Field(f"rename .{key}", key, "line", change, key_completions(known, holder.value), then=then)


def _id(holder: Row, number: int) -> RowId:
    return (*holder.id, "in", number)


def _build(change: Callable[..., object], *place: Any) -> EditBuilder:
    return lambda eval_set: change(eval_set.data, *place)
