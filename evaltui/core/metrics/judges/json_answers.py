"""The JSON in what a judge answers: fenced or not, with prose around it, with a comma too many."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_DECODER = json.JSONDecoder(strict=False)
_START = re.compile(r"[{\[]")
_STRING_OR_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


def json_values(text: str) -> list[Any]:
    """Every object and list in a text that is not part of another one, in order; `[]` where there is none."""
    # Each comma gives way to a blank, so places in both texts are the same.
    repaired = _STRING_OR_LAST_COMMA.sub(lambda match: match.group(1) or " ", text)
    values = []
    position = 0
    while start := _START.search(text, position):
        value, position = _value_at(start.start(), text, repaired)
        if value is not None:
            values.append(value)
    return values


def objects_with(key: str, value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a JSON value, itself included, that have a key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        inside: Any = value.values()
    else:
        inside = value if isinstance(value, list) else ()
    for part in inside:
        yield from objects_with(key, part)


def _value_at(start: int, *texts: str) -> tuple[Any, int]:
    """The value that begins here and where it ends; None and the next place to look where there is none."""
    for text in texts:
        try:
            return _DECODER.raw_decode(text, start)
        except RecursionError:
            # Nested a thousand deep: to look again at each bracket would take forever.
            return None, len(text)
        except ValueError:
            continue
    return None, start + 1
