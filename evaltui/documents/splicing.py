"""Edits of one JSON text: each parses it, finds the place and replaces as little as it can."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

from evaltui.core.model.problems import JsonPath
from evaltui.documents.edits import (
    Duplicate,
    Edit,
    Insert,
    Move,
    Put,
    PutText,
    Remove,
    Rename,
    alike,
    check_index,
    check_new_key,
    check_not_root,
    json_value,
    missing,
    text_value,
)
from evaltui.documents.nodes import Node, parse_nodes
from evaltui.documents.style import Style, Verbatim, margin_at, model_for
from evaltui.documents.values import edits_between


class Splice(NamedTuple):
    """The replacement of the text from `start` to before `end` by `new`."""

    start: int
    end: int
    new: str


def edited_text(text: str, edit: Edit, beyond: Callable[[], Iterable[str]] = tuple) -> str:
    """A JSON text after an edit; `beyond` gives further texts of the file that show how it is written.

    Raises EditError where the edit cannot be done.
    """
    if isinstance(edit, Put) and isinstance(edit.value, dict | list):
        way = parse_nodes(text).deepest_way(edit.path)
        if len(way) > len(edit.path):
            smaller = edits_between(way[-1].value, json_value(edit.value, edit.path), edit.path)
            return reduce(lambda text, edit: _spliced(text, edit, beyond), smaller, text)
    return _spliced(text, edit, beyond)


def _spliced(text: str, edit: Edit, beyond: Callable[[], Iterable[str]]) -> str:
    position, parts = 0, list[str]()
    for splice in sorted(_Splicing(text, beyond).splices(edit), key=lambda splice: splice[:2]):
        parts += (text[position : splice.start], splice.new)
        position = splice.end
    return "".join((*parts, text[position:]))


class _Splicing:
    """The splices that do an edit in a text; they do not overlap."""

    def __init__(self, text: str, beyond: Callable[[], Iterable[str]]) -> None:
        self._text = text
        self._beyond = beyond
        self._root = parse_nodes(text)

    def splices(self, edit: Edit) -> Iterator[Splice]:
        match edit:
            case Put(path, value):
                return self._put(path, json_value(value, path))
            case PutText(path, text):
                return self._put(path, _verbatim(text, path))
            case Insert(path, index, value):
                return self._insert(path, index, json_value(value, path))
            case Remove(path):
                return self._remove(path)
            case Move(path, index, to):
                return self._move(path, index, to)
            case Duplicate(path, index):
                array = self._root.way_to(path)[-1]
                check_index(array.value, path, index)
                return self._insert(path, index + 1, Verbatim(array.children[index].own_text))
            case Rename(path, key):
                return self._rename(path, key)

    def _put(self, path: JsonPath, value: Any) -> Iterator[Splice]:
        way = self._root.deepest_way(path)
        if len(way) > len(path):
            if isinstance(value, Verbatim) or not alike(way[-1].value, value):
                yield self._filled(way, path, value)
            return
        holder = self._root.way_to(path[:-1])[-1]
        if not isinstance(holder.value, dict) or not isinstance(path[-1], str):
            raise missing(path)
        yield from self._added(way, path[:-1], len(holder.children), [(path[-1], value)])

    def _insert(self, path: JsonPath, index: int, value: Any) -> Iterator[Splice]:
        way = self._root.way_to(path)
        check_index(way[-1].value, path, index, at_end=True)
        yield from self._added(way, path, index, [(index, value)])

    def _remove(self, path: JsonPath) -> Iterator[Splice]:
        check_not_root(path)
        holder = self._root.way_to(path)[-2]
        step = path[-1]
        # All members of that key: were one left, it would be the one that counts.
        yield from _cut(
            holder, [index for index, node in enumerate(holder.children) if step in (index, node.key)]
        )

    def _move(self, path: JsonPath, index: int, to: int) -> Iterator[Splice]:
        """The splices that exchange the texts of elements; the text between them stays."""
        array = self._root.way_to(path)[-1]
        check_index(array.value, path, index)
        check_index(array.value, path, to)
        places = array.children[min(index, to) : max(index, to) + 1]
        texts = [node.own_text for node in places]
        texts.insert(len(texts) if to > index else 0, texts.pop(0 if to > index else -1))
        for node, text in zip(places, texts, strict=True):
            yield Splice(node.start, node.end, text)

    def _rename(self, path: JsonPath, key: str) -> Iterator[Splice]:
        check_not_root(path)
        way = self._root.way_to(path)
        holder = way[-2]
        check_new_key(holder.value, path, key)
        if key == path[-1]:
            return
        text = self._style(way[:-1], key).key(key)
        for node in holder.children:
            if node.key == path[-1]:
                end = node.text.rindex('"', node.item_start, node.start) + 1
                yield Splice(node.item_start, end, text)

    def _filled(self, way: list[Node], path: JsonPath, value: Any) -> Splice:
        """The splice that writes the value at the end of a way anew."""
        node, holders = way[-1], way[:-1]
        model = model_for(holders, path, value)
        if not holders and value and isinstance(value, dict | list) and type(value) is type(node.value):
            model = node if node.value else None
        style = self._style(holders, value, model)
        margin = margin_at(self._text, node.item_start) if style.newline else ""
        return Splice(node.start, node.end, style.written(value, margin, model))

    def _added(
        self, way: list[Node], path: JsonPath, index: int, items: Sequence[tuple[str | int, Any]]
    ) -> Iterator[Splice]:
        """New items, each with its step, before the one with this index in the last node of a way."""
        holder = way[-1]
        if not holder.children:
            only = dict(items) if isinstance(holder.value, dict) else [item for _, item in items]
            yield self._filled(way, path, only)
            return
        texts: list[str] = []
        separator = ""
        for step, value in items:
            # A new element looks like the one before it rather than the one that it pushes on.
            like = index - 1 if isinstance(step, int) and index else step
            model = model_for(way, (*path, like), value)
            style = self._style(way, {step: value} if isinstance(step, str) else value, model)
            separator = separator or _separator(holder, index, style)
            margin = ""
            if index and "\n" in separator:
                margin = margin_at(separator, len(separator))
            elif style.newline:
                child = holder.children[index - 1] if index else holder.children[0]
                margin = margin_at(self._text, child.end if index else child.item_start)
            key = style.key(step) + style.colon if isinstance(step, str) else ""
            texts.append(key + style.written(value, margin, model))
        if index:
            end = holder.children[index - 1].end
            yield Splice(end, end, "".join(separator + text for text in texts))
        else:
            start = holder.children[0].item_start
            yield Splice(start, start, "".join(text + separator for text in texts))

    def _style(self, way: Sequence[Node], value: Any, model: Node | None = None) -> Style:
        return Style(self._text, way, value, model, self._beyond)


def _verbatim(text: str, path: JsonPath) -> Verbatim:
    text_value(text, path)
    return Verbatim(text.strip(" \t\r\n"))


def _separator(holder: Node, index: int, style: Style) -> str:
    """The separator for a new item, as between its neighbours."""
    children = holder.children
    if len(children) == 1:
        lead = holder.text[holder.start + 1 : children[0].item_start]
        return "," + lead if "\n" in lead else style.comma
    place = min(max(index, 1), len(children) - 1)
    return holder.text[children[place - 1].end : children[place].item_start]


def _cut(holder: Node, indexes: Collection[int]) -> Iterator[Splice]:
    """The splices that remove items, each run of them with its separators."""
    children = holder.children
    if indexes and len(indexes) == len(children):
        yield Splice(holder.start + 1, holder.end - 1, "")
        return
    for _, group in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0]):
        run = [index for _, index in group]
        first, last = run[0], run[-1]
        if last < len(children) - 1:
            yield Splice(children[first].item_start, children[last + 1].item_start, "")
        else:
            yield Splice(children[first - 1].end, children[last].end, "")
