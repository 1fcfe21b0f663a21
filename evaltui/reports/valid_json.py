"""Data of others made such that every JSON reader takes it."""

from __future__ import annotations

import math
from typing import Any


def valid_json(value: Any) -> Any:
    """The same data with what JSON has no word for replaced: NaN and infinities by null, the rest by text."""
    if isinstance(value, dict):
        return {valid_text(str(key)): valid_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [valid_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return valid_text(value)
    return value if isinstance(value, int | float | None) else repr(value)


def valid_text(text: str) -> str:
    """Lone surrogates become U+FFFD: they can be escaped in JSON, but strict readers refuse them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
