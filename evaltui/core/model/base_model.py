"""Base classes of the models of eval data, and serialization."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)


class DataModel(BaseModel):
    """A model whose validator is built on first use, because a command needs few of them."""

    model_config = ConfigDict(defer_build=True)


def dump(model: BaseModel) -> dict[str, Any]:
    """JSON data in the form of ADK's eval set writer: snake_case, without defaults and nulls."""
    return model.model_dump(mode="json", exclude_unset=True, exclude_defaults=True, exclude_none=True)


NOT_REPORTED = {"exclude": True}
"""Metadata of a field that a run's file has, but reports omit."""
LEFT_OUT_IF_EMPTY = {"exclude_if": not_}
"""Metadata of a field that reports omit where it is empty."""
LEFT_OUT_IF_NONE = {"exclude_if": lambda value: value is None}
"""Metadata of a field that reports omit where it is None."""


TextOrNull = Annotated[
    str,
    BeforeValidator(lambda text: text or ""),
    PlainSerializer(lambda text: text or None, return_type=str | None),
]
"""A text that is null in JSON if it is ""."""


def _rounded_to(digits: int) -> PlainSerializer:
    def write(value: float, info: SerializationInfo) -> float:
        return value if info.round_trip else round(value, digits)

    return PlainSerializer(write, return_type=float)


Seconds = Annotated[float, _rounded_to(3)]
Dollars = Annotated[float, _rounded_to(12)]
"""US dollars, rounded to remove floating-point noise from sums."""


def in_order(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """The data of an object with some keys first."""
    return {name: data[name] for name in dict.fromkeys((*names, *data)) if name in data}


def keys_first(*names: str) -> Any:
    """A serializer attribute of a dataclass that puts these keys first in JSON."""

    @model_serializer(mode="wrap")
    def write(self: Any, write_fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return in_order(write_fields(self), *names)

    return write
