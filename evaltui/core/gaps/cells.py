"""Cells of coverage: tools, their arguments and values, agents, transfers, tool errors and state keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from evaltui.core.model.content import FunctionCall
from evaltui.core.model.renaming import TRANSFER
from evaltui.core.model.tool_schema import DeclaredTool, first_value
from evaltui.text.values import show_value

CellKind = Literal["tool", "argument", "value", "agent", "transfer", "tool error", "state key"]
CELL_KINDS: tuple[CellKind, ...] = get_args(CellKind)
Tools = Mapping[str, DeclaredTool]
"""The tools of an agent by name: those that it declares, and others that it called."""


class Cell(NamedTuple):
    """An item that cases should cover."""

    kind: CellKind
    name: str
    """`set_light`; of an argument `set_light.room`, or `set_light.room absent`; of a value
    `set_light.on true`."""


def tool_cells(tool: DeclaredTool) -> Iterator[Cell]:
    """The cells of a declared tool: itself, its arguments, their choices, its errors."""
    yield Cell("tool", tool.name)
    for name, schema in tool.properties.items():
        yield Cell("argument", f"{tool.name}.{name}")
        if name not in tool.required:
            yield Cell("argument", f"{tool.name}.{name} absent")
        yield from (_value_cell(tool.name, name, choice) for choice in _choices(schema))
    yield Cell("tool error", tool.name)


def cells_of_call(call: FunctionCall, tools: Tools) -> list[Cell]:
    """The cells that a call reaches: its tool first."""
    name, args = call.name or "", call.args or {}
    if name == TRANSFER:
        return [Cell("transfer", str(args["agent_name"]))] if "agent_name" in args else []
    cells = [Cell("tool", name)]
    for arg in args:
        cells += cells_of_argument(call, arg, tools)
    declared = tools.get(name)
    for arg in declared.properties if declared else ():
        if arg not in args and declared and arg not in declared.required:
            cells.append(Cell("argument", f"{name}.{arg} absent"))
    return cells


def call_reaching(cell: Cell, tools: Tools) -> FunctionCall | None:
    """A call that reaches a cell, with the first values that its tool allows; None where no call does."""
    if cell.kind == "transfer":
        return FunctionCall(name=TRANSFER, args={"agent_name": cell.name})
    calls = (FunctionCall(name=name, args=args) for name, tool in tools.items() for args in _arguments(tool))
    return next((call for call in calls if cell in cells_of_call(call, tools)), None)


def _arguments(tool: DeclaredTool) -> Iterator[dict[str, Any]]:
    """Arguments that a tool allows: the needed ones, then with each other argument and each choice."""
    needed = {name: first_value(tool.properties.get(name)) for name in tool.required}
    yield needed
    for name, schema in tool.properties.items():
        yield {**needed, name: first_value(schema)}
        yield from ({**needed, name: choice} for choice in _choices(schema))


def cells_of_argument(call: FunctionCall, arg: str, tools: Tools) -> list[Cell]:
    """The cells of an argument of a call: the argument, and its value where it has choices."""
    name, args = call.name or "", call.args or {}
    if name == TRANSFER:
        return [Cell("transfer", str(args["agent_name"]))] if arg == "agent_name" and arg in args else []
    if arg not in args:
        return [Cell("argument", f"{name}.{arg} absent")]
    declared = tools.get(name)
    schema = declared.properties.get(arg) if declared else None
    is_choice = any(type(args[arg]) is type(choice) and args[arg] == choice for choice in _choices(schema))
    cells = [Cell("argument", f"{name}.{arg}")]
    return [*cells, _value_cell(name, arg, args[arg])] if is_choice else cells


def _value_cell(tool: str, arg: str, value: Any) -> Cell:
    return Cell("value", f"{tool}.{arg} {show_value(value)}")


def _choices(schema: Any) -> Iterable[Any]:
    """The values of an enum, or both of a boolean."""
    if not isinstance(schema, Mapping):
        return ()
    if isinstance(choices := schema.get("enum"), list):
        return choices
    return (True, False) if str(schema.get("type", "")).lower() == "boolean" else ()
