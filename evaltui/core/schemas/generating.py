"""JSON Schemas (draft-07, known to every editor) for pydantic models.

A schema accepts everything that the model accepts: keys in both spellings, numbers in quotes, later members
of enums.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from enum import Enum
from itertools import pairwise
from typing import Any, Literal, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

Schema = dict[str, Any]

DIALECT = "http://json-schema.org/draft-07/schema#"

_NUMBER = {"type": "string", "pattern": r"^\s*[+-]?(\.?\d|[iI][nN][fF]|[nN][aA][nN])"}
_INTEGER = {"type": "string", "pattern": r"^\s*[+-]?\d[\d_]*(\.0*)?\s*$"}
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
    """The schema of a type that pydantic knows, with its docs.

    `use` is reading, writing events, which lack unset fields, or writing reports, which have every key.
    """
    generated = TypeAdapter(kind).json_schema(
        mode="validation" if use == "read" else "serialization",
        ref_template="#/definitions/{model}",
        schema_generator=_ReportGenerator if use == "report" else _Generator,
    )
    definitions = generated.pop("$defs", {})
    schema: Schema = {"$schema": DIALECT, **generated, "title": title, "definitions": definitions}
    return schema


def _booleans(bounds: Mapping[str, Any]) -> Schema:
    """The schema of the truth values that pydantic takes for a number: false is 0."""
    takes_zero = bounds.get("gt", -1) < 0 and bounds.get("ge", 0) <= 0
    return {"type": "boolean"} if takes_zero else {"const": True}


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        generated = super().model_schema(schema)
        return _add_both_spellings(schema["cls"], generated)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        generated = super().default_schema(schema)
        # Editors would write it for the user.
        return {name: value for name, value in generated.items() if name != "default" or value is not None}

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return self._lenient(schema, super().float_schema(schema), _NUMBER, _booleans(schema))

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return self._lenient(schema, super().int_schema(schema), _INTEGER, _booleans(schema))

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return self._lenient(schema, super().bool_schema(schema), *_TRUTH)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        generated = super().enum_schema(schema)
        own = [base for base in schema["cls"].__mro__ if base not in Enum.__mro__]
        is_open = any("_missing_" in vars(base) for base in own)
        return {"anyOf": [{"enum": generated["enum"]}, {"type": "string"}]} if is_open else generated

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        generated = super().tagged_union_schema(schema)
        # What fits both, such as {}, is told apart by a function.
        either = generated.pop("oneOf", None)
        generated.pop("discriminator", None)
        return generated if either is None else {**generated, "anyOf": either}

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        generated = super().tuple_schema(schema)
        items = generated.pop("prefixItems", None)
        return generated if items is None else {**generated, "items": items, "additionalItems": False}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        generated = super().dataclass_schema(schema)
        docs = field_docs(schema["cls"])
        names = {
            entry.get("serialization_alias"): entry["name"] for entry in schema["schema"].get("fields", ())
        }
        properties = {
            name: entry | _description(docs.get(names.get(name, name)))
            for name, entry in generated["properties"].items()
        }
        return {**generated, "properties": properties}

    def _lenient(self, schema: Any, generated: JsonSchemaValue, *also: Schema) -> JsonSchemaValue:
        """The schema with the further values that pydantic accepts in lax mode for a number or a boolean."""
        is_strict = schema.get("strict") or self.mode == "serialization"
        return generated if is_strict else {"anyOf": [generated, *also]}


class _ReportGenerator(_Generator):
    def field_is_required(self, field: Any, total: bool) -> bool:
        return field.get("serialization_exclude_if") is None

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        generated = super().dataclass_field_schema(schema)
        return {k: v for k, v in generated.items() if k != "default" or "serialization_exclude_if" in schema}

    def ser_schema(self, schema: Any) -> JsonSchemaValue | None:
        # A serializer around another one changes the order of the keys only.
        return None if schema["type"] == "function-wrap" else super().ser_schema(schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        generated = super().dataclass_schema(schema)
        properties = {name: _null_for_none(member) for name, member in generated["properties"].items()}
        return {**_null_for_none(generated), "properties": properties}


def _null_for_none(schema: Schema) -> Schema:
    """A schema of written data, with `null` for `None` in descriptions."""
    written = {name: value for name, value in schema.items() if name != "readOnly"}
    if text := written.get("description"):
        written["description"] = re.sub(r"\bNone\b", "null", " ".join(text.split()))
    return written


def _description(doc: str | None) -> Schema:
    return {"description": doc} if doc else {}


def _add_both_spellings(model: type[BaseModel], generated: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a model with keys also in snake_case where the model reads them, and with its docs."""
    both = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    docs, declared = field_docs(model), generated.get("properties", {})
    properties: Schema = {}
    twins: list[tuple[str, ...]] = []
    for name, field in model.model_fields.items():
        alias = field.alias or name
        if alias not in declared:
            # What no file has.
            continue
        names = (name, alias) if both and alias != name else (alias,)
        schema = declared[alias] | _description(docs.get(name))
        properties |= dict.fromkeys(names, schema)
        if field.is_required():
            twins.append(names)
    required = [names[0] for names in twins if len(names) == 1]
    either = [{"anyOf": [{"required": [name]} for name in names]} for names in twins if len(names) > 1]
    rest = {key: value for key, value in generated.items() if key not in ("properties", "required")}
    return {
        **rest,
        "properties": properties,
        **({"required": required} if required else {}),
        **({"allOf": either} if either else {}),
    }


def field_docs(cls: type[Any]) -> dict[str, str]:
    """The docs below the fields of a class and its bases, each as one line."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] == __name__.partition(".")[0]:
            docs |= _own_docs(base)
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
