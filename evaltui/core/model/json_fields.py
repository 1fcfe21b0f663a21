"""How fields of results are written in JSON reports, besides what pydantic does by itself."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)

NOT_REPORTED = {"exclude": True}
"""Metadata of a field that is in a run's file and not in reports."""
LEFT_OUT_IF_EMPTY = {"exclude_if": not_}
"""Metadata of a field that reports have only where there is something in it."""
LEFT_OUT_IF_NONE = {"exclude_if": lambda value: value is None}
"""Metadata of a field that reports have only where it is known."""


TextOrNull = Annotated[
    str,
    BeforeValidator(lambda text: text or ""),
    PlainSerializer(lambda text: text or None, return_type=str | None),
]
"""A text that is null in JSON where it is ""."""


def _rounded_to(digits: int) -> PlainSerializer:
    def write(value: float, info: SerializationInfo) -> float:
        return value if info.round_trip else round(value, digits)

    return PlainSerializer(write, return_type=float)


Seconds = Annotated[float, _rounded_to(3)]
Dollars = Annotated[float, _rounded_to(12)]
"""Sums of prices have the noise of floats in their last digits."""


def in_order(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """The data of an object with some keys first."""
    return {name: data[name] for name in dict.fromkeys((*names, *data)) if name in data}


def keys_first(*names: str) -> Any:
    """An attribute of a dataclass that has these keys first in JSON: what is computed would be the last."""

    @model_serializer(mode="wrap")
    def write(self: Any, write_fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return in_order(write_fields(self), *names)

    return write
