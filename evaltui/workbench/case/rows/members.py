"""The rows of the members of objects and arrays: arguments, keys of a state, and what is inside of them.

A name may be a path: `schedule.days[0]` typed as a name puts the value into a nested object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.model.arg_rule import parse_arg_path
from evaltui.core.model.problems import JsonPath, format_path
from evaltui.core.model.tool_schema import first_value, member_schema, properties_of
from evaltui.documents.editing.set import EditBuilder, SetEditor
from evaltui.documents.edits import EditError, at_path
from evaltui.documents.values import duplicate, insert, move, put, remove, rename
from evaltui.text.figures import counted
from evaltui.workbench.case.fields import (
    Completion,
    Field,
    FieldError,
    Operation,
    Row,
    RowId,
    required_text,
    value_field,
)


def first_leaf(row: RowId, value: Any) -> RowId:
    """The row of the first nested value that is no object and no array, or is empty."""
    while isinstance(value, dict | list) and value:
        row = (*row, "in", 0)
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return row


def _row(row: RowId, path: JsonPath, name: str, value: Any, schema: Any, owner: str | None = None) -> Row:
    """The row of a member or an element, whose value can be changed and removed."""
    of = "" if owner is None else f" of {owner}"
    return Row(
        row,
        "part",
        name=name,
        value=value,
        is_json=True,
        field=value_field(f"change {name}{of}", value, lambda typed: _build(put, path, typed), schema),
        delete=Operation(
            f"delete {name}" if owner is None else f"remove {name} from {owner}", _build(remove, path)
        ),
        path=path,
        value_path=path,
        schema=schema,
    )


def _build(change: Callable[..., object], *place: Any) -> EditBuilder:
    return lambda eval_set: change(eval_set.data, *place)


@dataclass(frozen=True)
class Members:
    """The members of an object, each with a row."""

    value: Mapping[str, Any]
    path: JsonPath
    row: RowId
    """The members have the rows `(*row, 0)`, `(*row, 1)` and so on."""
    schema: Any = None
    owner: str | None = None
    """The owner in labels, such as the name of a call; None for an object inside of another one."""
    nests: bool = False
    """Whether the name of a member may be a path."""

    def rows(self) -> Iterator[Row]:
        for number, (key, value) in enumerate(self.value.items()):
            row_id, path = (*self.row, number), (*self.path, key)
            row = _row(
                row_id,
                path,
                f".{key}" if self.owner is None else key,
                value,
                member_schema(self.schema, key),
                self.owner,
            )
            yield replace(row, rename=self._name_field(row_id, key))

    def _name_field(self, row: RowId, key: str) -> Field:
        def change(text: str) -> EditBuilder:
            if text != key and text in self.value:
                raise FieldError(f"{text} already exists")
            new_key = required_text("Argument name" if self.row[-1] == "arg" else "Key")(text)
            first = first_value(member_schema(self.schema, new_key))

            def build(eval_set: SetEditor) -> None:
                rename(eval_set.data, (*self.path, key), new_key)
                if new_key != key and self.value[key] == "":
                    # A member that is empty begins with what its new name asks for.
                    put(eval_set.data, (*self.path, new_key), first)

            return build

        then = Operation("Go to value", None, first_leaf(row, self.value[key]), "value")
        properties = properties_of(self.schema)
        if self.nests and key not in properties:
            then = self._nest_operation(key) or then
        label = f"rename .{key}" if self.owner is None else f"rename {key} of {self.owner}"
        return Field(label, key, "line", change, key_completions(properties, self.value), then=then)

    def add(self, label: str, name: str, build: Callable[[str, Any], EditBuilder] | None = None) -> Operation:
        """The operation that adds a member at the end: the only one that the schema has besides, else one
        with a free name, which is typed next. `build` makes the edit for a member where the object may be
        missing."""
        new = (*self.row, len(self.value))
        unused = [key for key in properties_of(self.schema) if key not in self.value]
        key, number = unused[0] if len(unused) == 1 else name, 1
        while key in self.value:
            number += 1
            key = f"{name}_{number}"
        first = first_value(member_schema(self.schema, key))
        edit = build(key, first) if build else _build(put, (*self.path, key), first)
        if len(unused) == 1:
            return Operation(label, edit, first_leaf(new, first), "value")
        return Operation(label, edit, new, "name")

    def _nest_operation(self, name: str) -> Operation | None:
        """An operation that nests a member whose name is a path; None where the name is no path."""
        path = path_in_name(name)
        if path is None:
            return None
        return Operation(
            f"nest {name}",
            lambda eval_set: _nest_member(eval_set.data, self.path, name, path, self.schema),
            _nested_row(self.value, name, path, self.row),
            "value",
            if_changed=True,
        )


def with_members(rows: Iterable[Row], toggled: frozenset[RowId] | None) -> Iterator[Row]:
    """The rows, where toggled objects and arrays are followed by their members.

    An empty object or array has no rows to fold; the first addition to it is a member.
    """
    for row in rows:
        if toggled is None or row.value_path is None or not isinstance(row.value, dict | list):
            yield row
            continue
        is_open = row.id in toggled
        members = (
            _Items(row, row.value_path) if isinstance(row.value, list) else _members_of(row, row.value_path)
        )
        add = members.add("add item", "") if isinstance(row.value, list) else members.add("add member", "key")
        adds = (add, *row.adds) if is_open or not row.value else row.adds
        yield replace(row, fold=("open" if is_open else "closed") if row.value else None, adds=adds)
        if is_open:
            inside = (
                replace(
                    member,
                    role=row.role,
                    quiet=row.quiet,
                    turn=row.turn,
                    level=row.level + 1,
                    adds=member.adds or (add,),
                )
                for member in members.rows()
            )
            yield from with_members(inside, toggled)


def _members_of(holder: Row, path: JsonPath) -> Members:
    return Members(holder.value, path, (*holder.id, "in"), holder.schema, nests=holder.role == "argument")


@dataclass(frozen=True)
class _Items:
    """The elements of an array, each with a row."""

    holder: Row
    path: JsonPath

    def rows(self) -> Iterator[Row]:
        for number, value in enumerate(self.holder.value):
            yield self._item(number, value)

    def add(self, label: str, _: str) -> Operation:
        """The operation that adds an element at the end."""
        return self._insert_at(len(self.holder.value))

    def _id(self, number: int) -> RowId:
        return (*self.holder.id, "in", number)

    def _insert_at(self, index: int) -> Operation:
        first = first_value(member_schema(self.holder.schema, index))
        new = first_leaf(self._id(index), first)
        return Operation("add item", _build(insert, self.path, index, first), new, "value")

    def _item(self, number: int, value: Any) -> Row:
        last = len(self.holder.value) - 1

        def move_by(step: int) -> Operation:
            to = max(0, min(number + step, last))
            direction = "up" if step < 0 else "down"
            edit = _build(move, self.path, number, to) if to != number else None
            return Operation(f"move [{number}] {direction}", edit, self._id(to))

        schema = member_schema(self.holder.schema, number)
        return replace(
            _row(self._id(number), (*self.path, number), f"[{number}]", value, schema),
            adds=(self._insert_at(number + 1),),
            insert=self._insert_at(number),
            duplicate=Operation(
                f"duplicate [{number}]", _build(duplicate, self.path, number), self._id(number + 1)
            ),
            move=move_by,
        )


# Names


def key_completions(properties: Mapping[str, Any], used_names: Iterable[str]) -> tuple[Completion, ...]:
    """The names in a schema that are not used yet, each with its type and description."""
    used = set(used_names)
    return tuple(
        Completion(name, _description(schema)) for name, schema in properties.items() if name not in used
    )


def _description(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    kind = str(schema.get("type") or "").lower()
    return "  ".join(text for text in (kind, str(schema.get("description") or "")) if text)


def path_in_name(name: str) -> JsonPath | None:
    """Parses `a.b[0]` to a path, `['a.b']` to a path with one name; None for a plain name."""

    if not {".", "["} & set(name):
        return None
    try:
        steps = parse_arg_path(name)
    except ValueError:
        return None
    path = tuple(step for step in steps if isinstance(step, str | int))
    return path if len(path) == len(steps) and path else None


def _nest_member(data: Any, at: JsonPath, name: str, path: JsonPath, schema: Any) -> None:
    """Moves a member to a path, with the objects and arrays on the way. Raises EditError."""
    value, holder = at_path(data, (*at, name)), at_path(data, at)
    for step in path:
        schema = member_schema(schema, step)
    if value == "":
        value = first_value(schema)
    if path[0] not in holder or path[0] == name:
        top = str(path[0])
        rename(data, (*at, name), top)
        put(data, (*at, top), _wrap_in_path(path[1:], value))
        return
    inner: Any = holder
    for number, step in enumerate(path):
        is_known = step in inner if isinstance(inner, dict) else isinstance(step, int) and step < len(inner)
        if is_known:
            inner = inner[step]
            if number + 1 < len(path):
                container = list if isinstance(path[number + 1], int) else dict
                if not isinstance(inner, container):
                    kind = "a list" if container is list else "an object"
                    raise EditError(f"{format_path(path[: number + 1])} is not {kind}")
            continue
        made = _wrap_in_path(path[number + 1 :], value)
        place = (*at, *path[:number])
        if not isinstance(step, int):
            put(data, (*place, step), made)
        elif step > len(inner):
            items = counted(len(inner), "item")
            raise EditError(f"{format_path(path[:number])} has {items}; the next one is [{len(inner)}]")
        else:
            insert(data, place, step, made)
        remove(data, (*at, name))
        return
    raise EditError(f"{name} already exists")


def _wrap_in_path(path: JsonPath, value: Any) -> Any:
    """The value inside new objects and arrays for a path. Raises EditError for an index that is not 0."""
    for step in reversed(path):
        if isinstance(step, int) and step:
            raise EditError(f"The list is empty; its first item is [0], not [{step}]")
        value = [value] if isinstance(step, int) else {step: value}
    return value


def _nested_row(holder: Mapping[str, Any], name: str, path: JsonPath, rows: RowId) -> RowId:
    """The row of the value once it is nested."""
    names = [key for key in holder if key != name] if path[0] in holder else [*holder]
    row: RowId = (*rows, names.index(str(path[0]) if path[0] in holder else name))
    inner: Any = holder.get(str(path[0]))
    for step in path[1:]:
        if isinstance(step, int):
            row = (*row, "in", step)
            inner = inner[step] if isinstance(inner, list) and step < len(inner) else None
        else:
            keys = [*inner] if isinstance(inner, dict) else []
            row = (*row, "in", keys.index(step) if step in keys else len(keys))
            inner = inner.get(step) if isinstance(inner, dict) else None
    return row
