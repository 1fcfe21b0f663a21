"""The two spellings of a field's name: snake_case and camelCase, both read by ADK in most places."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


@cache
def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def spelt(name: str, data: Mapping[str, Any]) -> str:
    """The key under which a field is given; its snake_case name where it is given twice or not at all."""
    return camel(name) if name not in data and camel(name) in data else name
