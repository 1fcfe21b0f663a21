"""What the schema of a tool says of a value: its types, its members, and what it begins with."""

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
        return [inlined(one, root, depth) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    if depth > _DEEPEST:
        return {}
    if isinstance(reference := schema.get("$ref", schema.get("ref")), str):
        return inlined(_at(root, reference), root, depth + 1)
    return {name: inlined(one, root, depth + 1) for name, one in schema.items()}


def _at(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return {} if found is root else found


def kinds_of(schema: Any) -> set[str]:
    """The JSON types that a schema allows, as far as it says so at its top."""
    if not isinstance(schema, Mapping):
        return set()
    given = schema.get("type")
    if given is None:
        return {kind for one in _either(schema) for kind in kinds_of(one)}
    return {str(kind).lower() for kind in (given if isinstance(given, list) else [given])}


def _either(schema: Mapping[str, Any]) -> list[Any]:
    found = schema.get("anyOf", schema.get("any_of"))
    return found if isinstance(found, list) else []


def member_schema(schema: Any, step: str | int) -> Any:
    """The schema of a member of what a schema describes; None where it says nothing of it."""
    if not isinstance(schema, Mapping):
        return None
    if isinstance(step, int) and schema.get("items") is not None:
        return schema["items"]
    if isinstance(step, str) and step in properties_of(schema):
        return properties_of(schema)[step]
    return next((found for one in _either(schema) if (found := member_schema(one, step)) is not None), None)


def properties_of(schema: Any) -> Mapping[str, Any]:
    """The members that an object may have, by name, as far as that is known."""
    if not isinstance(schema, Mapping):
        return {}
    if isinstance(found := schema.get("properties"), Mapping):
        return found
    return next((found for one in _either(schema) if (found := properties_of(one))), {})


def first_value(schema: Any, depth: int = 0) -> Any:
    """What a value begins with: its default, its first choice, or what is empty of its type; an object with
    the members that it must have."""
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
