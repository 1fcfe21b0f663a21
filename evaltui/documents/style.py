"""The style of new JSON text, taken from the text around it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.model.problems import JsonPath
from evaltui.documents.nodes import BOM, Node

_BLANK = re.compile(r"[ \t]*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# A character beyond ASCII that is written as an escape; the backslash itself is not escaped.
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}")

# Siblings in each direction whose form a new value may take.
_NEIGHBOURS = 4
# Characters around a place that are searched for escapes.
_NEARBY = 100_000
_MAX_MARGIN_LENGTH = 10_000

# By whether they escape all that is beyond ASCII.
_ENCODERS = {escapes: json.JSONEncoder(ensure_ascii=escapes) for escapes in (False, True)}


@dataclass(frozen=True)
class Verbatim:
    """A value as JSON text that is inserted unchanged."""

    text: str


@dataclass
class Style:
    """The format of a new value, or of a key and value, at a place in a document."""

    text: str
    way: Sequence[Node]
    """The nodes from the document to the value; empty where the value becomes the whole document."""
    value: Any
    model: Node | None = None
    """A value whose form the new one takes."""
    beyond: Callable[[], Iterable[str]] = tuple
    """Texts of the same file beside this one."""

    @property
    def _nearest(self) -> Iterator[Node]:
        yield from [] if self.model is None else [self.model]
        yield from reversed(self.way)

    @cached_property
    def newline(self) -> str:
        """The line break; empty where everything is on one line."""
        around = self.way[-1] if self.way else self.model
        first = self.text.find("\n", *((around.start, around.end) if around else (0,)))
        if first < 0 and around:
            return ""
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"

    @cached_property
    def indent(self) -> str:
        """The indentation of one level."""
        units = map(_indent, self._nearest)
        return next((unit for unit in units if unit is not None), "  ")

    @cached_property
    def colon(self) -> str:
        return next(filter(None, map(_colon, self._nearest)), ": ")

    @cached_property
    def comma(self) -> str:
        """The separator of items on one line."""
        comma = next(filter(None, map(_comma, self._nearest)), None)
        return comma or ("," if self.colon == ":" else ", ")

    @cached_property
    def ascii(self) -> bool:
        """Whether the new value's characters beyond ASCII are escaped, as the nearest ones in the file."""
        return _is_beyond_ascii(self.value) and self._escapes()

    def _escapes(self) -> bool:
        """Whether the nearest characters beyond ASCII are escaped."""
        for around in self._around():
            if not around.removeprefix(BOM).isascii():
                return False
            # The plain search first: it is a hundred times faster, and most texts have no escape at all.
            if "\\u" in around and _ESCAPED.search(around):
                return True
        return False

    def _around(self) -> Iterator[str]:
        """The texts around the new value, the nearest first."""
        yield from (node.own_text for node in reversed(self.way) if node.end - node.start <= _NEARBY)
        yield from (self.text[start : start + _NEARBY] for start in range(0, len(self.text), _NEARBY))
        yield from self.beyond()

    def key(self, key: str) -> str:
        """The text of a key."""
        return _scalar(key, ascii=self.ascii)

    def written(self, value: Any, margin: str, model: Node | None = None, *, in_line: bool = False) -> str:
        """A value as JSON text; `margin` is the indentation of its first line."""
        if isinstance(value, Verbatim):
            return value.text
        if not value or not isinstance(value, dict | list):
            return _scalar(value, ascii=self.ascii)
        in_line = in_line or not self.newline or (model is not None and not model.is_multiline)
        inner = margin if in_line else margin + self.indent

        def item_text(step: str | int, item: Any) -> str:
            like = model.child(step) if model else None
            return self.written(item, inner, like if like and _is_like(like, item) else None, in_line=in_line)

        if isinstance(value, dict):
            opening, closing = "{", "}"
            items = [self.key(key) + self.colon + item_text(key, item) for key, item in value.items()]
        else:
            opening, closing = "[", "]"
            items = [item_text(0, item) for item in value]
        if in_line:
            return opening + self.comma.join(items) + closing
        line = self.newline + inner
        return opening + line + ("," + line).join(items) + self.newline + margin + closing


def _is_like(node: Node, value: Any) -> bool:
    """Whether a value may take the form of a node: both are objects, or both lists, and neither is empty."""
    return (
        bool(value and node.value) and isinstance(value, dict | list) and isinstance(node.value, type(value))
    )


def _indent(node: Node) -> str | None:
    """The indentation of the items of an object or array; None where it is unclear."""
    if not node.children:
        return None
    start = node.children[0].item_start
    line = node.text.rfind("\n", node.start, start) + 1
    margin = node.text[line:start]
    if not line or not _BLANK.fullmatch(margin):
        return None
    own = margin_at(node.text, node.start)
    return margin.removeprefix(own) if margin.startswith(own) else None


def margin_at(text: str, position: int) -> str:
    """The white space that the line of a position begins with."""
    line = text.rfind("\n", 0, position) + 1
    # A line may be all of the document; its margin is not that long.
    match = _BLANK.match(text[line : min(position, line + _MAX_MARGIN_LENGTH)].removeprefix(BOM))
    return match[0] if match else ""


def _colon(node: Node) -> str | None:
    if not isinstance(node.value, dict) or not node.children:
        return None
    last = node.children[-1]
    between = node.text[last.item_start : last.start]
    # The key has no line break, and ends with a quote.
    between = between[between.rindex('"') + 1 :]
    return None if "\n" in between else between


def _comma(node: Node) -> str | None:
    if len(node.children) < 2:
        return None
    between = node.text[node.children[0].end : node.children[1].item_start]
    return None if "\n" in between else between


def _is_beyond_ascii(value: Any) -> bool:
    if isinstance(value, str):
        return not value.isascii()
    if value is None or isinstance(value, int | float):
        return False
    return not json.dumps(value, ensure_ascii=False, default=lambda _: None).isascii()


def model_for(way: Sequence[Node], path: JsonPath, value: Any) -> Node | None:
    """The existing value whose format a new value at a path takes; None without one.

    It is the old value, else the value at the same path in the nearest sibling, else a member beside it if
    all members of its kind are on one line. `way` leads to the object or array for the value.
    """
    if not value or not isinstance(value, dict | list):
        return None
    for depth in reversed(range(len(path))):
        step, rest = path[depth], path[depth + 1 :]
        for near in _nearest(step) if isinstance(step, int) else ([step] if not rest else []):
            nodes = way[depth].deepest_way((near, *rest))
            if len(nodes) == len(rest) + 2 and _is_like(nodes[-1], value):
                return nodes[-1]
    if not way or not isinstance(way[-1].value, dict):
        return None
    beside = [child for child in way[-1].children if _is_like(child, value)]
    return beside[-1] if beside and not any(node.is_multiline for node in beside) else None


def _nearest(index: int) -> list[int]:
    away = range(1, _NEIGHBOURS + 1)
    return [index, *(near for distance in away for near in (index - distance, index + distance))]


def _scalar(value: Any, *, ascii: bool) -> str:
    text = _ENCODERS[ascii].encode(value)
    if text.isascii():
        return text
    # Half a character cannot be written in UTF-8.
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]|[^][{}:,\s"]+')


def laid_out(text: str) -> str:
    """Valid JSON text over several lines, an item on each."""
    return "".join(_lines(_TOKEN.findall(text)))


def _lines(tokens: list[str]) -> Iterator[str]:
    depth = 0
    for number, token in enumerate(tokens):
        follows = tokens[number + 1] if number + 1 < len(tokens) else ""
        is_empty = (token, follows) in (("{", "}"), ("[", "]"))
        if token in "}]":
            depth -= (tokens[number - 1], token) not in (("{", "}"), ("[", "]"))
        yield token + " " if token == ":" else token
        if token in "{[" and not is_empty:
            depth += 1
            yield "\n" + "  " * depth
        elif token == ",":
            yield "\n" + "  " * depth
        elif follows in ("}", "]") and not is_empty:
            yield "\n" + "  " * (depth - 1)


def in_one_line(text: str, model: str) -> str:
    """Valid JSON text on one line, spaced as the model, which is on one."""
    between = {mark: _space_behind(mark, model) for mark in ":,"}
    return "".join(token + between.get(token, "") for token in _TOKEN.findall(text))


def _space_behind(mark: str, model: str) -> str:
    ends = [token.end() for token in _TOKEN.finditer(model) if token[0] == mark]
    return " " if not ends or model[ends[0] : ends[0] + 1] == " " else ""
