"""What a model is told of a tool: its name, what it is for and what it takes, as google-genai has it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from ....core.model.events import Json


@dataclass(frozen=True)
class FunctionDeclaration:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters_json_schema: Json | None
    """None where it takes nothing."""

    def as_json(self) -> Json:
        """Without what is None, as google-genai writes it."""
        declared = {"description": self.description, "name": self.name}
        schema = self.parameters_json_schema
        return declared if schema is None else declared | {"parameters_json_schema": schema}


def types_of(parameters: Iterable[inspect.Parameter]) -> dict[str, TypeAdapter[Any]]:
    """What each parameter takes, by its name. Raises ValueError for what pydantic has no validator for."""
    types = {}
    for parameter in parameters:
        if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            continue
        try:
            types[parameter.name] = TypeAdapter(parameter.annotation)
        except PydanticUserError as error:
            raise ValueError(f"parameter {parameter}: {error}") from error
    return types


def declared(
    name: str, doc: str | None, parameters: Iterable[inspect.Parameter], types: Mapping[str, TypeAdapter[Any]]
) -> FunctionDeclaration:
    """The declaration of a function; of the parameters, those that have `types` are in it.

    The schemas are pydantic's, put together as google-genai does (`use_json_schema`). Raises ValueError for a
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
        required = [one for one, schema in properties.items() if schema and "default" not in schema]
        whole = {"type": "object", "properties": properties}
        whole |= {"$defs": definitions} if definitions else {}
        whole |= {"required": required}
    return FunctionDeclaration(name, inspect.cleandoc(doc) if doc else "", whole)


def _closed(schema: Json) -> Json:
    """Models take a tuple of fixed length for an open list where it is not said that it ends."""
    fixed = schema.get("type") == "array" and schema.get("prefixItems")
    if fixed and len(schema["prefixItems"]) == schema.get("maxItems"):
        return schema | {"unevaluatedItems": False}
    return schema
