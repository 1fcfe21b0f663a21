"""Types of google-genai as fields of our models, imported when a value of one is first read.

Importing google.genai takes longer than all else that a command does, and few files have such values.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticKnownError, core_schema, to_json


@dataclass(frozen=True)
class GenaiType:
    """Annotates a field whose values are of a type of `google.genai.types`."""

    name: str

    def imported(self) -> type[Any]:
        genai_type: type[Any] = getattr(import_module("google.genai.types"), self.name)
        return genai_type

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._read,
            serialization=core_schema.plain_serializer_function_ser_schema(_written, info_arg=True),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        try:
            return handler(TypeAdapter(self.imported()).core_schema)
        except AttributeError:
            # See `_read`.
            return {}

    def _read(self, value: Any) -> Any:
        try:
            kind = self.imported()
        except AttributeError:
            # Of a later version than the one that is installed.
            raise PydanticKnownError("extra_forbidden") from None
        if isinstance(value, kind):
            return value
        # As JSON, in which bytes are base64.
        return TypeAdapter(kind).validate_json(to_json(value, bytes_mode="base64"))


@dataclass(frozen=True)
class GenaiField:
    """Annotates keys that a model of ours does not know: those that a model of `google.genai.types` has in a
    later version. Others are refused."""

    model: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked_key, core_schema.str_schema())

    def _checked_key(self, key: str) -> str:
        fields = GenaiType(self.model).imported().model_fields
        if not any(key in (name, field.alias) for name, field in fields.items()):
            raise PydanticKnownError("extra_forbidden")
        return key


def _written(value: Any, info: core_schema.SerializationInfo) -> Any:
    if not isinstance(value, BaseModel):
        return value
    return value.model_dump(
        mode=info.mode,
        by_alias=info.by_alias,
        exclude_unset=info.exclude_unset,
        exclude_defaults=info.exclude_defaults,
        exclude_none=info.exclude_none,
    )
