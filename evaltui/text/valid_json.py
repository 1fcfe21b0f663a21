"""Data of others made such that every JSON reader takes it."""

from __future__ import annotations

import json
import math
from typing import Any


def valid_json(value: Any) -> Any:
    """The same data with what JSON has no word for replaced: NaN and infinities by null, the rest by text."""
    return json.loads(valid_json_text(value))


def valid_json_text(value: Any) -> str:
    """The data of `valid_json` in one line of text."""
    try:
        # Nearly all data is valid, and the encoder finds that out far faster than a walk in Python.
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, TypeError):
        return json.dumps(_valid(value), ensure_ascii=False)
    return text


def _valid(value: Any) -> Any:
    if isinstance(value, dict):
        return {valid_text(str(key)): _valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return valid_text(value)
    return value if isinstance(value, int | float | None) else repr(value)


def valid_text(text: str) -> str:
    """Lone surrogates become U+FFFD: they can be escaped in JSON, but strict readers refuse them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
