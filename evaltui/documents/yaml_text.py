"""YAML as text: its data, the lines of its values, and edits that leave every other byte as it is.

ruamel.yaml tells where values are; the text is spliced there, since its dump would indent everything anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from evaltui.core.matching.pairing import common_ends
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.documents.edits import EditError, Splice, alike, same, spliced

YAML_SUFFIXES = (".yaml", ".yml")
# One of ruamel.yaml's nodes, which have no common type with marks and styles.
Node = Any

_NO_PLACE = "its YAML leaves no place for this change: edit it as text"
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*\s+)+")
_PLAIN = re.compile(r"[A-Za-z_](?:[\w./ -]*[\w./-])?")
# Texts that YAML 1.1, which agents-cli reads, takes for something else.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def parse_yaml(text: str) -> Any | Problem:
    """The data of a YAML text, or what is wrong with it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(text)
        # An alias may name a value around it, which no data of JSON has.
        json.dumps(data, skipkeys=True, default=str)
        return data
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        return Problem.error((), f"not valid YAML: {error.problem or error.context}", line=line)
    except (YAMLError, ValueError, RecursionError) as error:
        return Problem.error((), f"not valid YAML: {str(error).splitlines()[0]}")


class YamlText:
    """A YAML text with the data of JSON. It never changes: an edit gives another."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for a text that is not valid YAML."""
        self.text = text
        self.value: Any = parse_yaml(text)
        """The data."""
        if isinstance(self.value, Problem):
            raise ValueError(str(self.value))
        self._newline = "\r\n" if "\r\n" in text else "\n"

    @cached_property
    def _root(self) -> Node | None:
        from ruamel.yaml import YAML

        node: Node | None = YAML(typ="safe", pure=True).compose(self.text)
        return node

    # Places

    def has(self, path: JsonPath) -> bool:
        """Whether there is a value at a path."""
        return len(list(self._way(path))) == len(path) + 1

    def line_of(self, path: JsonPath) -> int:
        """The line, from 1, of a value, for a member that of its key, else of its deepest ancestor there."""
        *_, (key, node) = [(None, None), *self._way(path)]
        mark = key or node
        return 1 if mark is None else int(mark.start_mark.line) + 1

    def first_line(self, path: JsonPath) -> int | None:
        """The line, from 1, on which the lines of a literal text begin; None for any other value."""
        way = list(self._way(path))
        node = way[-1][1] if len(way) == len(path) + 1 else None
        # Lists and objects have no such style.
        is_literal = getattr(node, "style", None) == "|"
        return int(node.start_mark.line) + 2 if node is not None and is_literal else None

    def _way(self, path: JsonPath) -> Iterator[tuple[Node | None, Node]]:
        """The nodes towards a path as far as the text has them, each with the node of its key."""
        node = self._root
        if node is None:
            return
        yield None, node
        for step in path:
            item = next((pair for name, *pair in _items(node) if name == step), None)
            if item is None:
                return
            key, node = item
            assert node is not None
            yield key, node

    # Edits

    def with_value(self, value: Any) -> YamlText:
        """The text with other data, in which what is the same stays to the byte. Raises EditError."""
        if alike(self.value, value):
            return self
        try:
            edited = YamlText(spliced(self.text, self._changes(self._root, self.value, value, ())))
        except EditError:
            raise
        except (IndexError, ValueError):
            edited = None
        if edited is None or not same(edited.value, value):
            # Anchors, tags, merged keys and the like.
            raise EditError(_NO_PLACE)
        return edited

    def _changes(self, node: Node, old: Any, new: Any, path: JsonPath) -> Iterator[Splice]:
        """The splices that make one value of another."""
        if alike(old, new):
            return
        if isinstance(old, dict) and isinstance(new, dict) and old and new:
            yield from self._of_mapping(node, old, new, path)
        elif isinstance(old, list) and isinstance(new, list) and old and new:
            yield from self._of_list(node, old, new, path)
        else:
            yield self._replaced(node, new, path)

    def _of_mapping(self, node: Node, old: Any, new: Any, path: JsonPath) -> Iterator[Splice]:
        items = list(_items(node))
        places = {name: number for number, (name, *_) in enumerate(items)}
        for name in old.keys() & new.keys():
            if not alike(old[name], new[name]):
                if name not in places:
                    raise EditError(_NO_PLACE, (*path, name))
                yield from self._changes(items[places[name]][2], old[name], new[name], (*path, name))
        if removed := [places[name] for name in old if name not in new and name in places]:
            yield from self._removals(node, removed)
        if added := {name: new[name] for name in new if name not in old}:
            yield self._added(node, len(items), added, without=removed)

    def _of_list(self, node: Node, old: Any, new: Any, path: JsonPath) -> Iterator[Splice]:
        items = list(_items(node))
        head, tail = common_ends(old, new, alike)
        rest_of_old, rest_of_new = len(old) - head - tail, len(new) - head - tail
        changed = min(rest_of_old, rest_of_new) if rest_of_old == rest_of_new else 0
        for number in range(head, head + changed):
            yield from self._changes(items[number][2], old[number], new[number], (*path, number))
        if changed:
            return
        removed = list(range(head, head + rest_of_old))
        if removed:
            yield from self._removals(node, removed)
        if rest_of_new:
            values = new[head : head + rest_of_new]
            yield self._added(node, head + rest_of_old, values, without=removed)

    def _replaced(self, node: Node, new: Any, path: JsonPath) -> Splice:
        *_, (key, _) = self._way(path)
        start, end = node.start_mark.index, self._end(node)
        if start == node.end_mark.index and key is not None:
            start = end = self._after_colon(key)
        if properties := _PROPERTIES.match(self.text, start, end):
            start = properties.end()
        if isinstance(new, dict | list) and new and not self._is_in_flow(path):
            lines = "".join(self._block(new, self._indent_below(path)))
            # A comment stays beside the key.
            rest = self.text[end : self._line_end(end)]
            return Splice(len(self.text[:start].rstrip(" ")), end + len(rest), rest.rstrip() + lines)
        return Splice(start, end, f" {self._flow(new)}" if start == end else self._like(start, new))

    def _is_in_flow(self, path: JsonPath) -> bool:
        return any(node.flow_style for _, node in list(self._way(path))[:-1])

    def _indent_below(self, path: JsonPath) -> int:
        """The indentation of the lines of a block that is the value at a path."""
        *_, (key, _) = self._way(path)
        return (int(key.start_mark.column) + 2) if key is not None else 0

    def _removals(self, node: Node, numbers: Sequence[int]) -> Iterator[Splice]:
        items = [(key or item, self._item_end(key, item)) for _, key, item in _items(node)]
        for number in numbers:
            first, end = items[number]
            start = first.start_mark.index
            if node.flow_style:
                if number + 1 < len(items) and number + 1 not in numbers:
                    yield Splice(start, items[number + 1][0].start_mark.index, "")
                else:
                    before = items[number - 1][1] if number else start
                    yield Splice(before, end, "")
                continue
            line = self.text.rfind("\n", 0, start) + 1
            lead = self.text[line:start]
            if lead.strip() in ("", "-"):
                is_first_of_item = lead.strip() == "-" and node.id == "mapping"
                if is_first_of_item:
                    yield Splice(start, items[number + 1][0].start_mark.index, "")
                else:
                    yield Splice(line, self._line_end(end, through=True), "")
            else:
                raise EditError(_NO_PLACE)

    def _added(self, node: Node, index: int, new: Any, without: Sequence[int]) -> Splice:
        """New items before the one with an index; those `without` are removed at the same time."""
        items = [(key or item, self._item_end(key, item)) for _, key, item in _items(node)]
        remaining = [number for number in range(len(items)) if number not in without]
        if node.flow_style:
            text = self._flow(new)[1:-1]
            before = [number for number in remaining if number < index]
            if before:
                place = items[before[-1]][1]
                return Splice(place, place, f", {text}")
            place = items[remaining[0]][0].start_mark.index if remaining else self._end(node) - 1
            return Splice(place, place, f"{text}, " if remaining else text)
        # The mark of the node itself is that of an anchor before it.
        first = items[0][0].start_mark.index
        first = first if node.id == "mapping" else self.text.rindex("-", 0, first)
        line = self.text.rfind("\n", 0, first) + 1
        lines = "".join(self._block(new, first - line))
        if index == 0:
            return Splice(line, line, lines.removeprefix(self._newline) + self._newline)
        place = self._line_end(items[index - 1][1])
        return Splice(place, place, lines)

    def _end(self, node: Node) -> int:
        """Where the text of a value ends, without the white space and the comments after it."""
        if node.id == "scalar" and node.style in ("|", ">"):
            return len(self.text[: node.end_mark.index].rstrip())
        if node.id == "scalar" or node.flow_style:
            return int(node.end_mark.index)
        *_, (_, key, last) = _items(node)
        return self._item_end(key, last)

    def _item_end(self, key: Node | None, node: Node) -> int:
        """Where the text of an item ends; see `_end`."""
        is_empty = node.start_mark.index == node.end_mark.index
        return self._after_colon(key) if is_empty and key is not None else self._end(node)

    def _after_colon(self, key: Node) -> int:
        # The marks of an absent value stand behind the comments after it.
        return self.text.index(":", key.end_mark.index) + 1

    def _line_end(self, position: int, *, through: bool = False) -> int:
        """The end of the line of a position; `through` its line break."""
        end = self.text.find("\n", position)
        if end < 0:
            return len(self.text)
        return end + 1 if through else end - (self.text[end - 1 : end] == "\r")

    # New text

    def _block(self, value: Any, indent: int) -> Iterator[str]:
        """The lines of an object or a list in block style, each after a line break."""
        pad = self._newline + " " * indent
        items = value.items() if isinstance(value, dict) else (("-", item) for item in value)
        for name, item in items:
            is_member = isinstance(value, dict)
            lead = f"{_scalar(name)}:" if is_member else "-"
            if isinstance(item, dict | list) and item:
                inner = list(self._block(item, indent + 2))
                if not is_member:
                    # The first line of an element stands behind its dash.
                    inner[0] = " " + inner[0].lstrip()
                yield f"{pad}{lead}"
                yield from inner
            else:
                yield f"{pad}{lead} {self._flow(item)}"

    def _flow(self, value: Any) -> str:
        if isinstance(value, dict):
            members = (f"{_scalar(name)}: {self._flow(item)}" for name, item in value.items())
            return f"{{{', '.join(members)}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(self._flow, value))}]"
        return _scalar(value)

    def _like(self, start: int, value: Any) -> str:
        """A value in the place of another, in quotes of the same kind."""
        if isinstance(value, str) and self.text[start : start + 1] == "'" and value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, str) and self.text[start : start + 1] == '"':
            return json.dumps(value, ensure_ascii=False)
        return self._flow(value)


def _items(node: Node) -> Iterator[tuple[str | int, Node | None, Node]]:
    """The items of a node: the key or the index, the node of the key, the node of the value."""
    if node.id == "mapping":
        for key, value in node.value:
            yield key.value, key, value
    elif node.id == "sequence":
        for index, value in enumerate(node.value):
            yield index, None, value


def _scalar(value: Any) -> str:
    """A value on one line: a text without quotes where it reads as the same text."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS and parse_yaml(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)
