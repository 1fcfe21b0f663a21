"""Values by the schema of a tool: their types, their members, and their initial value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Schemas may contain themselves.
_DEEPEST = 8
_EMPTY: dict[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def inlined(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """A schema with what its references in `root` stand for in their place; {} where it goes too deep."""
    if isinstance(schema, list):
        return [inlined(subschema, root, depth) for subschema in schema]
    if not isinstance(schema, Mapping):
        return schema
    if depth > _DEEPEST:
        return {}
    if isinstance(reference := schema.get("$ref", schema.get("ref")), str):
        return inlined(_at(root, reference), root, depth + 1)
    return {name: inlined(subschema, root, depth + 1) for name, subschema in schema.items()}


def _at(root: Mapping[str, Any], reference: str) -> Any:
    target: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        target = target.get(step) if isinstance(target, Mapping) else None
    return {} if target is root else target


def kinds_of(schema: Any) -> set[str]:
    """The JSON types that a schema allows, as far as it says so at its top."""
    if not isinstance(schema, Mapping):
        return set()
    declared = schema.get("type")
    if declared is None:
        return {kind for alternative in _either(schema) for kind in kinds_of(alternative)}
    return {str(kind).lower() for kind in (declared if isinstance(declared, list) else [declared])}


def _either(schema: Mapping[str, Any]) -> list[Any]:
    alternatives = schema.get("anyOf", schema.get("any_of"))
    return alternatives if isinstance(alternatives, list) else []


def member_schema(schema: Any, step: str | int) -> Any:
    """The schema of a member of what a schema describes; None where it says nothing of it."""
    if not isinstance(schema, Mapping):
        return None
    if isinstance(step, int) and schema.get("items") is not None:
        return schema["items"]
    if isinstance(step, str) and step in properties_of(schema):
        return properties_of(schema)[step]
    return next(
        (
            member
            for alternative in _either(schema)
            if (member := member_schema(alternative, step)) is not None
        ),
        None,
    )


def properties_of(schema: Any) -> Mapping[str, Any]:
    """The members that an object may have, by name, as far as that is known."""
    if not isinstance(schema, Mapping):
        return {}
    if isinstance(members := schema.get("properties"), Mapping):
        return members
    return next((members for alternative in _either(schema) if (members := properties_of(alternative))), {})


def first_value(schema: Any, depth: int = 0) -> Any:
    """The initial value by a schema: its default, its first choice, or the empty value of its type; an
    object with its required members."""
    if isinstance(schema, Mapping):
        if schema.get("default") is not None:
            return schema["default"]
        if isinstance(choices := schema.get("enum"), list) and choices:
            return choices[0]
    kinds = kinds_of(schema)
    kind = next((kind for kind in _EMPTY if kind in kinds), "string")
    required = schema.get("required") if isinstance(schema, Mapping) else None
    if kind == "object" and isinstance(required, list) and depth < _DEEPEST:
        properties = properties_of(schema)
        return {name: first_value(properties[name], depth + 1) for name in required if name in properties}
    return list(_EMPTY[kind]) if kind == "array" else dict(_EMPTY[kind]) if kind == "object" else _EMPTY[kind]
