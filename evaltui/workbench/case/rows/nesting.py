"""Names that are paths: `schedule.days[0]` typed as a name puts the value into a nested object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evaltui.core.model.arg_rule import parse_arg_path
from evaltui.core.model.problems import JsonPath, format_path
from evaltui.core.model.tool_schema import first_value, member_schema
from evaltui.documents.edits import EditError, at_path
from evaltui.documents.values import insert, put, remove, rename
from evaltui.text.figures import counted
from evaltui.workbench.case.fields import Completion, Operation, RowId


def first_leaf(row: RowId, value: Any) -> RowId:
    """The row of the first nested value that is no object and no array, or is empty."""
    while isinstance(value, dict | list) and value:
        row = (*row, "in", 0)
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return row


def key_completions(properties: Mapping[str, Any], used_names: Iterable[str]) -> tuple[Completion, ...]:
    """The names in a schema that are not used yet, each with its type and description."""
    used = set(used_names)
    return tuple(
        Completion(name, _described(schema)) for name, schema in properties.items() if name not in used
    )


def _described(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    kind = str(schema.get("type") or "").lower()
    return "  ".join(text for text in (kind, str(schema.get("description") or "")) if text)


def nest_operation(
    holder: Mapping[str, Any], at: JsonPath, name: str, schema: Any, rows: RowId
) -> Operation | None:
    """An operation that nests a member whose name is a path; None where the name is no path.

    `at` is the path of the object in the set's data, `schema` its schema, and its members have the rows
    `(*rows, 0)`, `(*rows, 1)` and so on.
    """
    path = path_in_name(name)
    if path is None:
        return None
    return Operation(
        f"nest {name}",
        lambda eval_set: _nest(eval_set.data, at, name, path, schema),
        _row_of(holder, name, path, rows),
        "value",
        if_changed=True,
    )


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


def _nest(data: Any, at: JsonPath, name: str, path: JsonPath, schema: Any) -> None:
    """Moves a member to a path, with the objects and arrays on the way. Raises EditError."""
    value, holder = at_path(data, (*at, name)), at_path(data, at)
    for step in path:
        schema = member_schema(schema, step)
    if value == "":
        value = first_value(schema)
    if path[0] not in holder or path[0] == name:
        top = str(path[0])
        rename(data, (*at, name), top)
        put(data, (*at, top), _around(path[1:], value))
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
        made = _around(path[number + 1 :], value)
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


def _around(path: JsonPath, value: Any) -> Any:
    """The value inside new objects and arrays for a path. Raises EditError for an index that is not 0."""
    for step in reversed(path):
        if isinstance(step, int) and step:
            raise EditError(f"The list is empty; its first item is [0], not [{step}]")
        value = [value] if isinstance(step, int) else {step: value}
    return value


def _row_of(holder: Mapping[str, Any], name: str, path: JsonPath, rows: RowId) -> RowId:
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
