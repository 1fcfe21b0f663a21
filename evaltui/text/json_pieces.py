"""Long JSON documents as text in pieces, so that they need not fit in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import to_json

from evaltui.text.values import valid_json

# The exponent of a number, which pydantic, six times as fast, writes in another way than Python.
_EXPONENT = re.compile(r"e-?\d+(?:[,\n]|\Z)")


def json_pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """The text of a document in pieces, indented by two spaces, with a final line end. Values are written as
    by `valid_json`. Iterators, as members or as members of objects in it, are written as lists, one item at a
    time."""
    for piece in _pieces(document, "\n"):
        # Only texts have it. CI services find their commands in `##[…` and `##vso[…`, wherever these are.
        yield piece.replace("##", "#\\u0023")
    yield "\n"


def _pieces(value: Any, margin: str) -> Iterator[str]:
    if isinstance(value, Iterator):
        yield from _list_pieces("[", (_text(item, f"{margin}  ") for item in value), "]", margin)
    elif _has_iterators(value):
        members = (_member_pieces(name, item, f"{margin}  ") for name, item in value.items())
        yield from _list_pieces("{", members, "}", margin)
    else:
        yield from _text(value, margin)


def _text(value: Any, margin: str) -> Iterator[str]:
    # In a text, the ends of lines are escaped.
    yield _indented_text(value).replace("\n", margin)


def _indented_text(value: Any) -> str:
    # Of what is nested too deeply or is not Unicode, pydantic makes no text.
    with suppress(ValueError):
        text = to_json(value, indent=2, inf_nan_mode="null").decode()
        if not ("0.0000" in text or _EXPONENT.search(text)):
            return text
    return json.dumps(valid_json(value), indent=2, ensure_ascii=False)


def _has_iterators(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return any(isinstance(member, Iterator) or _has_iterators(member) for member in value.values())


def _member_pieces(name: str, value: Any, margin: str) -> Iterator[str]:
    yield f"{json.dumps(name, ensure_ascii=False)}: "
    yield from _pieces(value, margin)


def _list_pieces(opening: str, items: Iterator[Iterator[str]], closing: str, margin: str) -> Iterator[str]:
    before = opening
    for item in items:
        yield f"{before}{margin}  "
        yield from item
        before = ","
    yield f"{opening}{closing}" if before == opening else f"{margin}{closing}"
