"""A JSON Schema (draft-07) of what a pydantic model reads from JSON.

A schema refuses nothing that the model accepts: keys in both spellings, numbers in quotes, enums with members
of a later version. It is draft-07, which every editor knows.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from enum import Enum
from itertools import pairwise
from typing import Any, Literal, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

Schema = dict[str, Any]

DIALECT = "http://json-schema.org/draft-07/schema#"

_NUMBER = {"type": "string", "pattern": r"^\s*[+-]?(\.?\d|[iI][nN][fF]|[nN][aA][nN])"}
_WORDS = (
    "[tTfFyYnN01]",
    "[tT][rR][uU][eE]",
    "[fF][aA][lL][sS][eE]",
    "[yY][eE][sS]",
    "[oO][nN]",
    "[nN][oO]",
    "[oO][fF]{2}",
)
_TRUTH = (
    {"type": "integer", "minimum": 0, "maximum": 1},
    {"type": "string", "pattern": f"^({'|'.join(_WORDS)})$"},
)


def schema_of(kind: Any, title: str, use: Literal["read", "event", "report"] = "read") -> Schema:
    """The schema of a type that pydantic knows, with its docs: of what evaltui reads, or of what it writes
    into events, which lack what is not set, or into reports, which have every key."""
    found = TypeAdapter(kind).json_schema(
        mode="validation" if use == "read" else "serialization",
        ref_template="#/definitions/{model}",
        schema_generator=_OfReports if use == "report" else _Generator,
    )
    definitions = found.pop("$defs", {})
    schema: Schema = {"$schema": DIALECT, **found, "title": title, "definitions": definitions}
    return schema


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        return _in_both_spellings(schema["cls"], found)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        # Editors would write it for the user.
        return {name: one for name, one in found.items() if name != "default" or one is not None}

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return self._lenient(schema, super().float_schema(schema), _NUMBER, {"type": "boolean"})

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return self._lenient(schema, super().int_schema(schema), _NUMBER, {"type": "boolean"})

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return self._lenient(schema, super().bool_schema(schema), *_TRUTH)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        found = super().enum_schema(schema)
        own = [one for one in schema["cls"].__mro__ if one not in Enum.__mro__]
        is_open = any("_missing_" in vars(one) for one in own)
        return {"anyOf": [{"enum": found["enum"]}, {"type": "string"}]} if is_open else found

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        found = super().tagged_union_schema(schema)
        # What fits both, such as {}, is told apart by a function.
        either = found.pop("oneOf", None)
        found.pop("discriminator", None)
        return found if either is None else {**found, "anyOf": either}

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        found = super().tuple_schema(schema)
        items = found.pop("prefixItems", None)
        return found if items is None else {**found, "items": items, "additionalItems": False}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        found = super().dataclass_schema(schema)
        docs = field_docs(schema["cls"])
        names = {one.get("serialization_alias"): one["name"] for one in schema["schema"].get("fields", ())}
        properties = {
            name: one | _described(docs.get(names.get(name, name)))
            for name, one in found["properties"].items()
        }
        return {**found, "properties": properties}

    def _lenient(self, schema: Any, found: JsonSchemaValue, *also: Schema) -> JsonSchemaValue:
        """What else pydantic takes for a number or a truth value where it is not strict."""
        is_strict = schema.get("strict") or self.mode == "serialization"
        return found if is_strict else {"anyOf": [found, *also]}


class _OfReports(_Generator):
    def field_is_required(self, field: Any, total: bool) -> bool:
        return field.get("serialization_exclude_if") is None

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        found = super().dataclass_field_schema(schema)
        return {k: v for k, v in found.items() if k != "default" or "serialization_exclude_if" in schema}

    def ser_schema(self, schema: Any) -> JsonSchemaValue | None:
        # A serializer around another one changes the order of the keys only.
        return None if schema["type"] == "function-wrap" else super().ser_schema(schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        found = super().dataclass_schema(schema)
        properties = {name: _in_terms_of_json(one) for name, one in found["properties"].items()}
        return {**_in_terms_of_json(found), "properties": properties}


def _in_terms_of_json(schema: Schema) -> Schema:
    """The schema of what is only written, with `null` for `None` in its description."""
    found = {name: one for name, one in schema.items() if name != "readOnly"}
    if text := found.get("description"):
        found["description"] = re.sub(r"\bNone\b", "null", " ".join(text.split()))
    return found


def _described(doc: str | None) -> Schema:
    return {"description": doc} if doc else {}


def _in_both_spellings(model: type[BaseModel], found: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a model with each key in snake_case, too, where the model reads it; and with its docs."""
    both = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    docs, given = field_docs(model), found.get("properties", {})
    properties: Schema = {}
    twins: list[tuple[str, ...]] = []
    for name, field in model.model_fields.items():
        alias = field.alias or name
        names = (name, alias) if both and alias != name else (alias,)
        schema = given[alias] | _described(docs.get(name))
        properties |= dict.fromkeys(names, schema)
        if field.is_required():
            twins.append(names)
    required = [names[0] for names in twins if len(names) == 1]
    either = [{"anyOf": [{"required": [name]} for name in names]} for names in twins if len(names) > 1]
    rest = {key: value for key, value in found.items() if key not in ("properties", "required")}
    return {
        **rest,
        "properties": properties,
        **({"required": required} if required else {}),
        **({"allOf": either} if either else {}),
    }


def field_docs(cls: type[Any]) -> dict[str, str]:
    """What is documented below the fields of a class and of those that it is made of, as one line each."""
    docs: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if one.__module__.partition(".")[0] == __name__.partition(".")[0]:
            docs |= _own_docs(one)
    return docs


def _own_docs(cls: type[Any]) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError):
        return {}
    body = cast("ast.ClassDef", tree.body[0]).body
    return {
        field.target.id: inspect.cleandoc(doc.value.value).replace("\n", " ")
        for field, doc in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(doc, ast.Expr)
        and isinstance(doc.value, ast.Constant)
        and isinstance(doc.value.value, str)
    }
