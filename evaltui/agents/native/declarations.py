"""The declaration of a tool for a model: name, description and parameters, as google-genai has them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from ...core.model.events import Json


@dataclass(frozen=True)
class FunctionDeclaration:
    """The declaration of a tool for a model."""

    name: str
    description: str
    parameters_json_schema: Json | None
    """The JSON schema of the parameters; None for a tool without parameters."""

    def as_json(self) -> Json:
        """The declaration as JSON, without fields that are None, as google-genai writes it."""
        fields = {"description": self.description, "name": self.name}
        schema = self.parameters_json_schema
        return fields if schema is None else fields | {"parameters_json_schema": schema}


def types_of(parameters: Iterable[inspect.Parameter]) -> dict[str, TypeAdapter[Any]]:
    """The validator of each parameter, by its name. Raises ValueError for a type without a pydantic
    validator."""
    types = {}
    for parameter in parameters:
        if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            continue
        try:
            types[parameter.name] = TypeAdapter(parameter.annotation)
        except PydanticUserError as error:
            raise ValueError(f"parameter {parameter}: {error}") from error
    return types


def declaration_of(
    name: str, doc: str | None, parameters: Iterable[inspect.Parameter], types: Mapping[str, TypeAdapter[Any]]
) -> FunctionDeclaration:
    """The declaration of a function with those `parameters` that are in `types`.

    The schemas are pydantic's, combined as google-genai does (`use_json_schema`). Raises ValueError for a
    parameter that has no JSON schema.
    """
    properties, definitions = dict[str, Json](), Json()
    for parameter in parameters:
        if parameter.name not in types:
            continue
        try:
            schema = _closed(types[parameter.name].json_schema())
            if parameter.default is not inspect.Parameter.empty:
                schema["default"] = to_jsonable_python(parameter.default)
        except (PydanticUserError, ValueError) as error:
            raise ValueError(f"parameter {parameter}: {error}") from error
        definitions |= schema.pop("$defs", {})
        properties[parameter.name] = schema
    whole: Json | None = None
    if properties:
        required = [
            parameter for parameter, schema in properties.items() if schema and "default" not in schema
        ]
        whole = {"type": "object", "properties": properties}
        whole |= {"$defs": definitions} if definitions else {}
        whole |= {"required": required}
    return FunctionDeclaration(name, inspect.cleandoc(doc) if doc else "", whole)


def _closed(schema: Json) -> Json:
    """The schema with the end of a tuple of fixed length stated; else models take it for an open list."""
    fixed = schema.get("type") == "array" and schema.get("prefixItems")
    if fixed and len(schema["prefixItems"]) == schema.get("maxItems"):
        return schema | {"unevaluatedItems": False}
    return schema
