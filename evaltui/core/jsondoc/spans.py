"""Where in a text its values are: a tree that is looked into only as far as it is asked, and kept up to date.

Positions are kept as distances from the sibling before, so that an edit changes the nodes on its way up to
the root and no others: trees before and after it share the rest.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from evaltui.core.jsondoc.edit_error import missing
from evaltui.core.model.problems import JsonPath

if TYPE_CHECKING:
    from evaltui.core.jsondoc.splices import Splice

BOM = "\ufeff"

# The members of the document, and the elements in them: in an eval set its cases. What is below is looked
# into when it is asked for.
_DEPTH = 2

_SPACE = re.compile(r"[ \t\n\r]*")
# A member up to its value, with what stands before it; its key has no escapes.
_NEXT_MEMBER = re.compile(r'[ \t\n\r]*,?[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')

# The value that begins at a position of a text, and where it ends. Raises ValueError.
decode_at = json.JSONDecoder().raw_decode


class Node:
    """A value in a text, in characters.

    `lead` is what stands between it and the end of its sibling before (or the opening bracket), separator
    included; `head` is how far its value is from its key's beginning, `key_size` the size of the key itself;
    `size` is that of the value. `extent` is all of it. `children` is None where they were not looked for yet.
    """

    __slots__ = ("children", "extent", "head", "key", "key_size", "lead", "size", "value")

    def __init__(
        self,
        value: Any,
        size: int,
        lead: int = 0,
        key: str | None = None,
        key_size: int = 0,
        head: int = 0,
        children: tuple[Node, ...] | None = None,
    ) -> None:
        self.value = value
        self.size = size
        self.lead = lead
        self.key = key
        self.key_size = key_size
        self.head = head
        self.children = children
        self.extent = lead + head + size

    def holding(self, value: Any, size: int, children: tuple[Node, ...] | None = None) -> Node:
        """The node with another value."""
        return Node(value, size, self.lead, self.key, self.key_size, self.head, children)

    def led_by(self, lead: int) -> Node:
        """The node with so many characters before it."""
        return Node(self.value, self.size, lead, self.key, self.key_size, self.head, self.children)


class BeyondPartError(Exception):
    """What is asked of a part of a text is told by what is around it."""


class Place(NamedTuple):
    """A value at its place in the text: `begin` is where its key begins, `start` its value; in an array both
    are the same."""

    text: str
    node: Node
    begin: int
    start: int

    @property
    def end(self) -> int:
        return self.start + self.node.size

    @property
    def own_text(self) -> str:
        """The text of the value."""
        return self.text[self.start : self.end]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The members or elements; members in the order of the text, with those whose key is repeated."""
        if self.node.children is None:
            self.node.children = _child_nodes(self.own_text, self.node.value)
        return self.node.children

    def child(self, index: int) -> Place:
        nodes = self.nodes
        node = nodes[index]
        begin = self.start + 1 + node.lead
        for before in nodes[:index]:
            begin += before.extent
        return Place(self.text, node, begin, begin + node.head)

    def at(self, step: str | int) -> Place | None:
        """The place that a step of a path leads to, of a repeated key the last one; None: to none."""
        index = self.index_of(step)
        return None if index is None else self.child(index)

    def index_of(self, step: str | int) -> int | None:
        """Which of the nodes a step of a path leads to, of a repeated key the last one; None: to none."""
        value = self.node.value
        if isinstance(step, int):
            return step if isinstance(value, list) and 0 <= step < len(value) else None
        if not isinstance(value, dict) or step not in value:
            return None
        nodes = self.nodes
        index = len(nodes) - 1
        while nodes[index].key != step:
            index -= 1
        return index

    def is_multiline(self) -> bool:
        return self.text.find("\n", self.start, self.end) >= 0


class Tree:
    """A JSON text with the values in it.

    `beyond` gives texts around it that tell how values are written; it is None for a part, of which nothing
    is known but itself: it need not tell how.
    """

    def __init__(self, text: str, root: Node, beyond: Callable[[], Iterable[str]] | None = tuple) -> None:
        self.text = text
        self.root = root
        self.beyond = beyond
        # The way that was gone last: the next one most often begins as it does.
        self._path: JsonPath = ()
        self._way = [Place(text, root, root.lead, root.lead)]

    @classmethod
    def parse(cls, text: str, beyond: Callable[[], Iterable[str]] | None = tuple) -> Tree:
        """Raises ValueError for a text that is not valid JSON or is nested too deeply."""
        start = skip_space(text, len(BOM) if text.startswith(BOM) else 0)
        try:
            value, end, children = _read(text, start, _DEPTH)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if (rest := skip_space(text, end)) < len(text):
            raise json.JSONDecodeError("Extra data", text, rest)
        return cls(text, Node(value, end - start, lead=start, children=children), beyond)

    def place(self, path: JsonPath) -> Place:
        return self.way_to(path)[-1]

    def way_to(self, path: JsonPath) -> list[Place]:
        """The places from the document to a path. Raises EditError where the text has nothing there."""
        way = self.deepest_way(path)
        if len(way) <= len(path):
            raise missing(path[: len(way)])
        return way

    def deepest_way(self, path: JsonPath) -> list[Place]:
        """The places from the document towards a path, as far as the text has them."""
        depth = 0
        for step, known in zip(path, self._path, strict=False):
            if step != known:
                break
            depth += 1
        way = self._way[: depth + 1]
        for step in path[depth:]:
            place = way[-1].at(step)
            if place is None:
                break
            way.append(place)
        self._path, self._way = path[: len(way) - 1], way
        return way

    def part(self, place: Place) -> Tree:
        """The value of a place, with the beginning of its line: that tells its margin."""
        begin = max(self.text.rfind("\n", 0, place.start), 0)
        root = Node(place.node.value, place.node.size, place.start - begin, children=place.node.children)
        return Tree(self.text[begin : place.end], root, None)

    def replaced(
        self, path: JsonPath, text: str, value: Any, children: tuple[Node, ...] | None = None
    ) -> Tree:
        """The tree with another value, whose text is given, at a path that it has."""
        way = self.deepest_way(path)
        old = way[-1]
        whole = "".join((self.text[: old.start], text, self.text[old.end :]))
        child, known = old.node.holding(value, len(text), children), old.node
        grown = len(text) - old.node.size
        now = [Place(whole, child, old.begin, old.start)]
        for place in reversed(way[:-1]):
            node, nodes = place.node, place.nodes
            index = nodes.index(known)
            if isinstance(node.value, dict):
                inner: Any = {**node.value, child.key: child.value}
            else:
                # Of thousands of cases one is another: much faster than to put them all together again.
                inner = node.value.copy()
                inner[index] = child.value
            children = (*nodes[:index], child, *nodes[index + 1 :])
            child, known = node.holding(inner, node.size + grown, children), node
            now.append(Place(whole, child, place.begin, place.start))
        tree = Tree(whole, child, self.beyond)
        tree._path, tree._way = path, now[::-1]
        return tree

    def spliced(self, splice: Splice) -> Tree:
        """The tree of the changed text. Raises ValueError where that is not valid JSON."""
        text = splice.apply(self.text)
        if (tree := self.renewed(text, splice)) is not None:
            return tree
        check_whole(self)
        return Tree.parse(text, self.beyond)

    def renewed(self, text: str, splice: Splice) -> Tree | None:
        """The tree of `text`, which the splice made, reading only what is around the splice.

        None where that is not enough: the splice changes the outermost brackets, or the text is not valid.
        """
        start, end = self.root.lead, self.root.lead + self.root.size
        if self.root.children is None or not start < splice.start <= splice.end < end:
            return None
        try:
            return Tree(text, _renewed(self.root, start, text, splice), self.beyond)
        except (ValueError, RecursionError):
            return None


def check_whole(tree: Tree) -> None:
    """Raises BeyondPartError for the tree of a part."""
    if tree.beyond is None:
        raise BeyondPartError


def skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _read(text: str, position: int, depth: int) -> tuple[Any, int, tuple[Node, ...] | None]:
    """The value at a position, its end, and its members or elements where `depth` is above 0."""
    if not depth or text[position : position + 1] not in ("{", "["):
        return *decode_at(text, position), None
    keyed = text[position] == "{"
    nodes, closing = _scan(text, position + 1, keyed, depth=depth - 1)
    return _joined(nodes, keyed), closing + 1, tuple(nodes)


def _scan(
    text: str, start: int, keyed: bool, *, first: bool = True, until: int | None = None, depth: int = 0
) -> tuple[list[Node], int]:
    """The members or elements from `start` on, which is after the bracket, or after an item if not `first`.

    Stops at the closing bracket or where, at `until`, the next item begins; returns that place too.
    """
    nodes: list[Node] = []
    closing = "}" if keyed else "]"
    end, position = start, skip_space(text, start)
    while text[position : position + 1] != closing:
        if nodes or not first:
            if text[position : position + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
            position = skip_space(text, position + 1)
        if position == until:
            return nodes, position
        begin, key, key_size = position, None, 0
        if keyed:
            key, position = decode_at(text, begin)
            if not isinstance(key, str):
                raise json.JSONDecodeError("Expecting property name", text, begin)
            key_size = position - begin
            position = skip_space(text, position)
            if text[position : position + 1] != ":":
                raise json.JSONDecodeError("Expecting ':' delimiter", text, position)
            position = skip_space(text, position + 1)
        value, value_end, children = _read(text, position, depth)
        size = value_end - position
        nodes.append(Node(value, size, begin - end, key, key_size, position - begin, children))
        end, position = value_end, skip_space(text, value_end)
    return nodes, position


def _joined(nodes: Sequence[Node], keyed: bool) -> Any:
    return {node.key: node.value for node in nodes} if keyed else [node.value for node in nodes]


def _child_nodes(text: str, value: Any) -> tuple[Node, ...]:
    if not isinstance(value, dict | list):
        return ()
    if isinstance(value, dict) and (members := _plain_members(text, value)) is not None:
        return members
    nodes, _ = _scan(text, 1, isinstance(value, dict))
    # The values that are there already, so that what is not edited stays the same object.
    if isinstance(value, list):
        for node, known in zip(nodes, value, strict=True):
            node.value = known
    else:
        for key, node in {node.key: node for node in nodes}.items():
            node.value = value[key]
    return tuple(nodes)


def _plain_members(text: str, value: dict[str, Any]) -> tuple[Node, ...] | None:
    """The members of an object whose value is known; None where keys have escapes or are repeated."""
    nodes: list[Node] = []
    end = 1
    while match := _NEXT_MEMBER.match(text, end):
        key, begin, start = match[1], match.start(1) - 1, match.end()
        if key not in value:
            return None
        lead = begin - end
        _, end = decode_at(text, start)
        nodes.append(Node(value[key], end - start, lead, key, match.end(1) + 1 - begin, start - begin))
    is_last = skip_space(text, end) == len(text) - 1
    return tuple(nodes) if is_last and len(nodes) == len(value) else None


def _renewed(node: Node, start: int, text: str, splice: Splice) -> Node:
    """An object or array after a splice between its brackets. Raises ValueError where that is not valid."""
    children = node.children or ()
    keyed = isinstance(node.value, dict)
    grown = len(splice.new) - len(splice.old)
    # ends[k] is where child k - 1 ended, or the opening bracket.
    ends = list(accumulate([child.extent for child in children], initial=start + 1))
    before = _count_before(children, ends, splice.start)
    after = max(before, _first_after(children, ends, splice.end, keyed))
    if after - before == 1 and _is_inside(children[before], ends[before + 1], splice):
        child_start = ends[before + 1] - children[before].size
        child = _renewed_child(children[before], child_start, text, splice)
        renewed = (*children[:before], child, *children[after:])
        if not keyed:
            # Of thousands of cases one is another: much faster than to put them all together again.
            value = node.value.copy()
            value[before] = child.value
            return node.holding(value, node.size + grown, renewed)
    else:
        closes = after == len(children)
        stop = grown + (start + node.size - 1 if closes else ends[after] + children[after].lead)
        # With the bracket, or with the first character of the next item.
        stretch = text[ends[before] : stop + 1]
        until = len(stretch) - 1
        changed, stopped = _scan(stretch, 0, keyed, first=not before, until=None if closes else until)
        if stopped != until:
            raise ValueError("the text around a splice has changed")
        tail = children[after:]
        if not closes:
            lead = until - sum(child.extent for child in changed)
            tail = (children[after].led_by(lead), *children[after + 1 :])
        renewed = (*children[:before], *changed, *tail)
    return node.holding(_joined(renewed, keyed), node.size + grown, renewed)


def _renewed_child(child: Node, start: int, text: str, splice: Splice) -> Node:
    if child.children is not None:
        return _renewed(child, start, text, splice)
    size = child.size + len(splice.new) - len(splice.old)
    value, end = decode_at(text[start : start + size], 0)
    if end != size:
        raise ValueError("the text around a splice has changed")
    return child.holding(value, size)


def _is_inside(child: Node, end: int, splice: Splice) -> bool:
    """Whether a splice is between the brackets of a child that ended at `end`."""
    return isinstance(child.value, dict | list) and end - child.size < splice.start <= splice.end < end


def _count_before(children: Sequence[Node], ends: Sequence[int], position: int) -> int:
    """How many children end before a position and cannot be changed by what stands there."""
    count = bisect_right(ends, position) - 1
    if count and ends[count] == position and not _is_closed(children[count - 1]):
        return count - 1
    return count


def _first_after(children: Sequence[Node], ends: Sequence[int], position: int, keyed: bool) -> int:
    """The first child that begins after a position and cannot be changed by what stands before it."""
    index = bisect_left(ends, position)
    if 0 < index <= len(children) and ends[index - 1] + children[index - 1].lead >= position:
        index -= 1
    index = min(index, len(children))
    if index < len(children) and ends[index] + children[index].lead == position:
        return index if keyed or _is_closed(children[index]) else index + 1
    return index


def _is_closed(node: Node) -> bool:
    """Whether a value has a character at either end that nothing beside it can change: a quote, a bracket."""
    return isinstance(node.value, str | dict | list)
