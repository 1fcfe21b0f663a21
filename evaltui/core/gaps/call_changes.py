"""Changes of the tool calls of a turn that an eval set should notice: a call missing, an argument changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from evaltui.core.gaps.cells import Cell, Tools, cells_of_argument, cells_of_call
from evaltui.core.model.content import FunctionCall
from evaltui.core.model.json_values import ABSENT, equal, value_at
from evaltui.core.model.problems import JsonPath, format_path
from evaltui.core.model.renaming import TRANSFER
from evaltui.core.model.tool_schema import member_schema
from evaltui.text.values import show_value

DROPPED = "call dropped"
REPEATED = "call repeated"
SWAPPED = "calls swapped"
OTHER_TOOL = "another tool"
CHANGED = "argument changed"
ARGUMENT_DROPPED = "argument dropped"
ADDED = "argument added"
OTHER_TYPE = "argument of another type"

Calls = Sequence[FunctionCall]


@dataclass(frozen=True, slots=True)
class CallChange:
    """The calls of a turn after a change."""

    kind: str
    before: str
    """The changed part, short; "" for nothing."""
    after: str
    calls: Calls
    cells: Sequence[Cell]
    """The cells of coverage that the change is about."""


def call_changes(
    calls: Calls,
    tools: Tools,
    *,
    targets: frozenset[int],
    is_same: Callable[[FunctionCall, FunctionCall], bool],
) -> Iterator[CallChange]:
    """The changes of those calls of a turn that are `targets`, by their places from 0.

    A change after which a call `is_same` as before is none, nor is the declared default of an absent
    argument.
    """

    def is_equal(call: FunctionCall, other: FunctionCall) -> bool:
        if is_same(call, other):
            return True
        first, second = (_without_defaults(either, tools) for either in (call, other))
        return (first.name, first.args) == (second.name, second.args) or is_same(first, second)

    for place in sorted(targets):
        call = calls[place]
        before, rest = [*calls[:place]], [*calls[place + 1 :]]
        shown, cells = in_short(call), cells_of_call(call, tools)
        yield CallChange(DROPPED, shown, "", [*before, *rest], cells)
        yield CallChange(REPEATED, shown, f"{shown} twice", [*calls[: place + 1], *calls[place:]], cells)
        if other := _other_tool(call.name or "", tools):
            renamed = call.model_copy(update={"name": other})
            yield CallChange(OTHER_TOOL, call.name or "", other, [*before, renamed, *rest], cells[:1])
        for kind, path, args in _argument_changes(call, tools):
            changed = call.model_copy(update={"args": args})
            if not is_equal(call, changed):
                shown, after = (_argument(call.name, path, some) for some in (call.args or {}, args))
                yield CallChange(
                    kind,
                    shown,
                    after,
                    [*before, changed, *rest],
                    cells_of_argument(call, str(path[0]), tools),
                )
    for first, second in pairwise(range(len(calls))):
        if {first, second} <= targets and not is_equal(calls[first], calls[second]):
            swapped = [*calls[:first], calls[second], calls[first], *calls[second + 1 :]]
            left, right = (in_short(calls[place]) for place in (first, second))
            yield CallChange(SWAPPED, f"{left}, {right}", f"{right}, {left}", swapped, ())


def in_short(call: FunctionCall) -> str:
    """`set_light {"location": "Bedroom"}`"""
    return f"{call.name} {show_value(call.args)}" if call.args else call.name or ""


def _argument(tool: str | None, path: JsonPath, args: dict[str, Any]) -> str:
    value = value_at(args, path, ABSENT)
    return "" if value is ABSENT else f"{tool} {format_path(path)} {show_value(value)}"


def _other_tool(name: str, tools: Tools) -> str:
    """The tool after this one; "" where there is no other."""
    names = sorted({*tools, name} - {TRANSFER} if name != TRANSFER else {*tools, name})
    other = names[(names.index(name) + 1) % len(names)]
    return "" if other == name else other


def _argument_changes(call: FunctionCall, tools: Tools) -> Iterator[tuple[str, JsonPath, dict[str, Any]]]:
    """The kind and the place of each change of an argument, and all arguments after it."""
    args = call.args or {}
    tool = tools.get(call.name or "")
    properties: Mapping[str, Any] = tool.properties if tool else {}
    for name, value in args.items():
        for path, leaf in leaves(value, (name,)):
            schema = properties.get(name)
            for step in path[1:]:
                schema = member_schema(schema, step)
            yield CHANGED, path, with_leaf(args, path, other_value(leaf, schema))
        if (other := _other_type(value)) is not ABSENT:
            yield OTHER_TYPE, (name,), {**args, name: other}
        yield ARGUMENT_DROPPED, (name,), {key: item for key, item in args.items() if key != name}
    added = next((name for name in properties if name not in args), "extra")
    schema = properties.get(added)
    default = _default(schema)
    yield ADDED, (added,), {**args, added: other_value(None if default is ABSENT else default, schema)}


def _without_defaults(call: FunctionCall, tools: Tools) -> FunctionCall:
    """The call without arguments that have the value that its tool declares for absent ones."""
    tool = tools.get(call.name or "")
    if tool is None:
        return call
    args = {
        name: value
        for name, value in (call.args or {}).items()
        if not equal(_default(tool.properties.get(name)), value)
    }
    return call.model_copy(update={"args": args})


def _default(schema: Any) -> Any:
    """The declared value of an absent argument; ABSENT for none."""
    return schema.get("default", ABSENT) if isinstance(schema, Mapping) else ABSENT


def leaves(value: Any, path: JsonPath) -> Iterator[tuple[JsonPath, Any]]:
    """The values inside a value that have none inside, by their paths."""
    items: Iterator[tuple[Any, Any]] | None = None
    if isinstance(value, dict) and value:
        items = iter(value.items())
    elif isinstance(value, list) and value:
        items = iter(enumerate(value))
    if items is None:
        yield path, value
        return
    for step, item in items:
        yield from leaves(item, (*path, step))


def with_leaf(value: Any, path: JsonPath, leaf: Any) -> Any:
    """A copy of a value with another one at a path."""
    if not path:
        return leaf
    step, rest = path[0], path[1:]
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[step] = with_leaf(value[step], rest, leaf)
    return copy


def other_value(value: Any, schema: Any = None) -> Any:
    """A value of the same type that is not equal, one of the schema's choices where it has some."""
    choices = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(choices, list) and (others := [choice for choice in choices if choice != value]):
        return others[0]
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1 if value + 1 != value else value / 2
        case str():
            return f"{value} other" if value else "other"
        case [] | {}:
            return ["other"] if isinstance(value, list) else {"other": True}
        case dict() | list():
            path, leaf = next(leaves(value, ()))
            return with_leaf(value, path, other_value(leaf))
    return "other"


def _other_type(value: Any) -> Any:
    """The value as another JSON type, as a model would confuse them; ABSENT for null."""
    match value:
        case None:
            return ABSENT
        case str():
            return int(value) if value.isdecimal() and value.isascii() and len(value) < 20 else [value]
    return json.dumps(value, ensure_ascii=False)
