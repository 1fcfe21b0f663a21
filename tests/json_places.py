"""The places in JSON, for tests that change each of them, or any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Place = tuple[Any, ...]


def places(data: Any, above: Place = ()) -> Iterator[Place]:
    """The path of each member and item, however deep it is; first that of what it is in."""
    members = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in members:
        yield (*above, step)
        yield from places(value, (*above, step))


def value_at(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data
