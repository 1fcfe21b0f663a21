"""Parsed JSON read by path."""

from __future__ import annotations

from typing import Any

from evaltui.core.model.problems import JsonPath

# What stands where a value is missing; None is a value.
ABSENT: Any = object()


def value_at(data: Any, path: JsonPath, default: Any = None) -> Any:
    """The value at a path, `default` where there is none."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(data, dict) or step not in data:
                return default
        elif not isinstance(data, list) or not 0 <= step < len(data):
            return default
        data = data[step]
    return data


def list_at(data: Any, path: JsonPath) -> list[Any]:
    """The list at a path; empty where something else or nothing is there."""
    value = value_at(data, path)
    return value if isinstance(value, list) else []
