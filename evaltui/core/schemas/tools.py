"""The tools of an agent in a schema: editors propose names and arguments, and no others are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaltui.core.model.declared_tool import DeclaredTool
from evaltui.core.model.tool_values import inlined, kinds_of
from evaltui.core.schemas.generating import Schema

_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_ALTERNATIVES = ("allOf", "anyOf", "any_of", "oneOf")


def proposed_names(tools: Sequence[DeclaredTool]) -> list[Schema]:
    """The names of tools as alternatives of a text."""
    return [{"const": tool.name, **_described(tool.description)} for tool in tools]


def propose_calls(call: Schema, tools: Sequence[DeclaredTool]) -> None:
    """Adds tools to the schema of a call: their names, and the arguments that go with a name."""
    name = call["properties"]["name"]
    call["properties"]["name"] = {**name, "anyOf": [*proposed_names(tools), *name["anyOf"]]}
    call["allOf"] = [
        {
            "if": {"properties": {"name": {"const": tool.name}}, "required": ["name"]},
            "then": {"properties": {"args": proposal(inlined(tool.parameters, tool.parameters))}},
        }
        for tool in tools
        if tool.parameters is not None
    ]


def proposal(schema: Any) -> Schema:
    """A schema that any value fits, with the keys, choices and types of another one for editors to propose.

    The other one is without references.
    """
    if not isinstance(schema, Mapping):
        return {}
    proposed = _described(schema.get("description"))
    properties: Schema = {}
    values: list[Schema] = []
    for part in _parts(schema):
        properties |= part.get("properties", {})
        values += [subschema for subschema in part.get("anyOf", ()) if subschema]
        proposed |= {"items": part["items"]} if "items" in part else {}
    own = schema.get("properties")
    properties |= (
        {str(name): proposal(subschema) for name, subschema in own.items()}
        if isinstance(own, Mapping)
        else {}
    )
    values += _values(schema)
    if "items" in schema:
        proposed["items"] = proposal(schema["items"])
    if properties:
        proposed["properties"] = properties
    # The last alternative is for any other value.
    return proposed | ({"anyOf": [*values, {}]} if values else {})


def _parts(schema: Mapping[str, Any]) -> list[Schema]:
    alternatives = [schema[name] for name in _ALTERNATIVES if isinstance(schema.get(name), list)]
    return [proposal(schema) for schemas in alternatives for schema in schemas]


def _values(schema: Mapping[str, Any]) -> list[Schema]:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and choices:
        return [{"enum": choices}]
    return [{"type": kind} for kind in sorted(kinds_of(schema) & _TYPES)] if "type" in schema else []


def _described(text: Any) -> Schema:
    return {"description": text} if isinstance(text, str) and text else {}
