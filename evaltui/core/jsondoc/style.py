"""What new text looks like: as the text around it does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.jsondoc.spans import BeyondPartError, Place, Tree, check_whole
from evaltui.core.model.problems import JsonPath

_BLANK = re.compile(r"[ \t]*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# A character beyond ASCII that is written as an escape; the backslash itself is not escaped.
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}")

# How many siblings in each direction are asked what a value such as theirs looks like, and how much text
# around a place is searched for escapes.
_NEIGHBOURS = 4
_NEARBY = 100_000
_LONGEST_MARGIN = 10_000

# By whether they escape all that is beyond ASCII.
_ENCODERS = {escapes: json.JSONEncoder(ensure_ascii=escapes) for escapes in (False, True)}


@dataclass(frozen=True)
class Verbatim:
    """A value as JSON text that is taken over as it is."""

    text: str


@dataclass
class Style:
    """How a new value, or key and value, is written in the last of the places on the way from the document.

    Each side of it is looked for when it is asked for. Raises BeyondPartError where a part does not tell.
    """

    way: Sequence[Place]
    """Empty where the value becomes the whole document."""
    tree: Tree
    value: Any
    model: Place | None = None
    """A value whose form the new one takes."""

    @property
    def _nearest(self) -> Iterator[Place]:
        """The places that tell, the nearest first, and at the end of those of a part the rest of the text."""
        yield from [] if self.model is None else [self.model]
        yield from reversed(self.way)
        check_whole(self.tree)

    @cached_property
    def newline(self) -> str:
        """Empty where everything is in one line."""
        return _newline(self.way, self.tree.text, self.model)

    @cached_property
    def indent(self) -> str:
        """One level."""
        found = (_indent(place, self.tree) for place in self._nearest)
        return next((unit for unit in found if unit is not None), "  ")

    @cached_property
    def colon(self) -> str:
        return next(filter(None, map(_colon, self._nearest)), ": ")

    @cached_property
    def comma(self) -> str:
        """What is between the items of a line."""
        found = next(filter(None, map(_comma, self._nearest)), None)
        return found or ("," if self.colon == ":" else ", ")

    @cached_property
    def ascii(self) -> bool:
        """Whether all other characters are escaped."""
        return _is_beyond_ascii(self.value) and _escapes(self.way, self.tree)


def _newline(way: Sequence[Place], text: str, model: Place | None) -> str:
    around = way[-1] if way else model
    if around is None:
        position = text.find("\n", 0, len(text))
        return "\r\n" if position > 0 and text[position - 1 : position] == "\r" else "\n"
    position = text.find("\n", around.start, around.end)
    if position < 0:
        return ""
    return "\r\n" if text[position - 1 : position] == "\r" else "\n"


def _indent(place: Place, tree: Tree) -> str | None:
    """How much further in than itself an object or array has its items; None where they tell nothing."""
    if not place.nodes:
        return None
    begin = place.child(0).begin
    line = place.text.rfind("\n", place.start, begin) + 1
    if not line:
        return None
    margin = place.text[line:begin]
    if not _BLANK.fullmatch(margin):
        return None
    own = margin_in(tree, place.start)
    return margin.removeprefix(own) if margin.startswith(own) else None


def margin_at(text: str, position: int) -> str:
    """The white space that the line of a position begins with."""
    line = text.rfind("\n", 0, position) + 1
    # A line may be all of the document; its margin is not that long.
    head = text[line : min(position, line + _LONGEST_MARGIN)]
    match = _BLANK.match(head.removeprefix("\ufeff"))
    return match[0] if match else ""


def margin_in(tree: Tree, position: int) -> str:
    """As `margin_at`, in the text of a tree. Raises BeyondPartError where the line begins before its part."""
    if tree.beyond is None and tree.text.find("\n", 0, position) < 0:
        raise BeyondPartError
    return margin_at(tree.text, position)


def _colon(place: Place) -> str | None:
    if not isinstance(place.node.value, dict) or not place.nodes:
        return None
    last = place.child(len(place.nodes) - 1)
    between = place.text[last.begin + last.node.key_size : last.start]
    return None if "\n" in between else between


def _comma(place: Place) -> str | None:
    if len(place.nodes) < 2:
        return None
    second = place.child(1)
    between = place.text[second.begin - second.node.lead : second.begin]
    return None if "\n" in between else between


def _is_beyond_ascii(value: Any) -> bool:
    if isinstance(value, str):
        return not value.isascii()
    if value is None or isinstance(value, int | float):
        return False
    return not json.dumps(value, ensure_ascii=False, default=lambda _: None).isascii()


def _escapes(way: Sequence[Place], tree: Tree) -> bool:
    """Whether characters beyond ASCII are escaped: as the nearest ones are."""
    for around in _around(way, tree):
        if not around.removeprefix("\ufeff").isascii():
            return False
        # The plain search first: it is a hundred times faster, and most texts have no escape at all.
        if "\\u" in around and _ESCAPED.search(around):
            return True
    return False


def _around(way: Sequence[Place], tree: Tree) -> Iterator[str]:
    """The texts around the last of the places, the nearest first."""
    yield from (place.own_text for place in reversed(way) if place.node.size <= _NEARBY)
    if tree.beyond is None:
        raise BeyondPartError
    yield from (tree.text[start : start + _NEARBY] for start in range(0, len(tree.text), _NEARBY))
    yield from tree.beyond()


def model_for(way: Sequence[Place], tree: Tree, path: JsonPath, value: Any) -> Place | None:
    """A value in the text whose form a new one at a path takes; None where nothing is like it.

    That is the old value, else what has the same path in a sibling, the nearest first, else a member beside
    it, if all there are of its kind are in one line. `way` leads to the object or array that gets the value.
    """
    if not value or not isinstance(value, dict | list):
        return None
    kind = type(value)
    for depth in reversed(range(len(path))):
        step, rest = path[depth], path[depth + 1 :]
        for near in _nearest(step) if isinstance(step, int) else ([step] if not rest else []):
            found = _follow(way[depth], (near, *rest))
            if found is not None and found.node.value and isinstance(found.node.value, kind):
                return found
    check_whole(tree)
    if not way or not isinstance(way[-1].node.value, dict):
        return None
    beside = [
        way[-1].child(index)
        for index, node in enumerate(way[-1].nodes)
        if node.value and isinstance(node.value, kind)
    ]
    return beside[-1] if beside and not any(place.is_multiline() for place in beside) else None


def _nearest(index: int) -> list[int]:
    away = range(1, _NEIGHBOURS + 1)
    return [index, *(near for distance in away for near in (index - distance, index + distance))]


def _follow(place: Place, path: JsonPath) -> Place | None:
    found: Place | None = place
    for step in path:
        found = found.at(step) if found else None
    return found


def is_plain(value: Any) -> bool:
    """Whether a value is written without looking at its form: anything but objects and lists with items."""
    return not isinstance(value, Verbatim) and (not value or not isinstance(value, dict | list))


def plain_text(value: Any, way: Sequence[Place], tree: Tree) -> str:
    """A plain value as text, in the last of the places on the way from the document."""
    return _scalar(value, ascii=_is_beyond_ascii(value) and _escapes(way, tree))


def written(
    value: Any, style: Style, margin: str, model: Place | None = None, *, in_line: bool = False
) -> str:
    """A value as text whose first line has that margin."""
    if isinstance(value, Verbatim):
        return value.text
    if is_plain(value):
        return _scalar(value, ascii=style.ascii)
    in_line = in_line or not style.newline or (model is not None and not model.is_multiline())
    inner = margin if in_line else margin + style.indent

    def item_text(step: str | int, item: Any) -> str:
        return written(item, style, inner, _like(model, step, item), in_line=in_line)

    if isinstance(value, dict):
        opening, closing = "{", "}"
        items = [key_text(key, style) + style.colon + item_text(key, item) for key, item in value.items()]
    else:
        opening, closing = "[", "]"
        items = [item_text(0, item) for item in value]
    if in_line:
        return opening + style.comma.join(items) + closing
    line = style.newline + inner
    return opening + line + ("," + line).join(items) + style.newline + margin + closing


def _like(model: Place | None, step: str | int, value: Any) -> Place | None:
    """What a model has where a new value has this item."""
    if model is None or not value or not isinstance(value, dict | list):
        return None
    found = _follow(model, (step,))
    if found is None or not found.node.value or not isinstance(found.node.value, type(value)):
        return None
    return found


def key_text(key: str, style: Style) -> str:
    return _scalar(key, ascii=style.ascii)


def _scalar(value: Any, *, ascii: bool) -> str:
    text = _ENCODERS[ascii].encode(value)
    if text.isascii():
        return text
    # Half a character cannot be written in UTF-8.
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
