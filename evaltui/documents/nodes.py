"""Places of the values in a JSON text."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Any

from evaltui.core.model.problems import JsonPath
from evaltui.documents.edits import missing

BOM = "\ufeff"

_SPACE = re.compile(r"[ \t\n\r]*")

# The value that begins at a position of a text, and where it ends. Raises ValueError.
decode_at = json.JSONDecoder().raw_decode


def skip_space(text: str, position: int) -> int:
    """The position of the next character that is no white space of JSON."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


class Node:
    """A value in a text, from `start` to before `end`."""

    def __init__(self, text: str, start: int, end: int, key: str | None = None, item_start: int = -1) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.key = key
        """None for an element and for the document."""
        self.item_start = start if item_start < 0 else item_start
        """Start of the key of a member; for an element and the document the same as `start`."""

    @cached_property
    def value(self) -> Any:
        """The JSON data."""
        return decode_at(self.text, self.start)[0]

    @property
    def own_text(self) -> str:
        """The text of the value."""
        return self.text[self.start : self.end]

    @property
    def is_multiline(self) -> bool:
        return self.text.find("\n", self.start, self.end) >= 0

    @cached_property
    def children(self) -> list[Node]:
        """Members or elements in the order of the text, including those with a repeated key."""
        text, closing = self.text, self.end - 1
        if text[self.start] not in "{[":
            return []
        children: list[Node] = []
        position = skip_space(text, self.start + 1)
        while position < closing:
            if children:
                position = skip_space(text, position + 1)
            item_start, key = position, None
            if text[self.start] == "{":
                key, position = decode_at(text, item_start)
                position = skip_space(text, skip_space(text, position) + 1)
            end = decode_at(text, position)[1]
            children.append(Node(text, position, end, key, item_start))
            position = skip_space(text, end)
        return children

    def index_of(self, step: str | int) -> int | None:
        """The index of the child at a step of a path, the last one of a repeated key; None without one."""
        if isinstance(step, int):
            return step if self.text[self.start] == "[" and 0 <= step < len(self.children) else None
        return max((index for index, child in enumerate(self.children) if child.key == step), default=None)

    def child(self, step: str | int) -> Node | None:
        """The child at a step of a path; None for a missing one."""
        index = self.index_of(step)
        return None if index is None else self.children[index]

    def deepest_way(self, path: JsonPath) -> list[Node]:
        """The nodes from this one towards a path, as far as the text has them."""
        way = [self]
        for step in path:
            child = way[-1].child(step)
            if child is None:
                break
            way.append(child)
        return way

    def way_to(self, path: JsonPath) -> list[Node]:
        """The nodes from this one to a path. Raises EditError where the text has nothing there."""
        way = self.deepest_way(path)
        if len(way) <= len(path):
            raise missing(path[: len(way)])
        return way


def parse_nodes(text: str) -> Node:
    """The value of a text. Raises ValueError for a text that is not valid JSON or is nested too deeply."""
    start = skip_space(text, len(BOM) if text.startswith(BOM) else 0)
    try:
        _, end = decode_at(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if (rest := skip_space(text, end)) < len(text):
        raise json.JSONDecodeError("Extra data", text, rest)
    return Node(text, start, end)
