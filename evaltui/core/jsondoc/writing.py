"""Edits as splices: each takes a tree and gives the changed tree with the splices that made it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from evaltui.core.jsondoc.edit_error import EditError, missing
from evaltui.core.jsondoc.edits import (
    Duplicate,
    Edit,
    Insert,
    InsertText,
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
    text_value,
)
from evaltui.core.jsondoc.spans import BeyondPartError, Place, Tree, check_whole
from evaltui.core.jsondoc.splices import Splice, smallest
from evaltui.core.jsondoc.style import (
    Style,
    Verbatim,
    is_plain,
    key_text,
    margin_at,
    margin_in,
    model_for,
    plain_text,
    written,
)
from evaltui.core.model.problems import JsonPath

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]|[^][{}:,\s"]+')
_INDENT = "  "


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
            yield "\n" + _INDENT * depth
        elif token == ",":
            yield "\n" + _INDENT * depth
        elif follows in ("}", "]") and not is_empty:
            yield "\n" + _INDENT * (depth - 1)


def in_one_line(text: str, model: str) -> str:
    """Valid JSON text on one line, spaced as the model, which is on one."""
    between = {mark: _space_behind(mark, model) for mark in ":,"}
    return "".join(token + between.get(token, "") for token in _TOKEN.findall(text))


def _space_behind(mark: str, model: str) -> str:
    found = [token.start() for token in _TOKEN.finditer(model) if token[0] == mark]
    return " " if not found or model[found[0] + 1 : found[0] + 2] == " " else ""


def narrowed(path: JsonPath, old: Any, new: Any) -> Iterator[Put | Insert | Remove]:
    """The edits, to be done one after the other, that make the new value of the old one at a path."""
    if alike(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and _in_order(old, new):
        yield from _members(path, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _elements(path, old, new)
    else:
        yield Put(path, new)


def _in_order(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether some members stay, in the order that they have, and new ones come after them."""
    stay = [key for key in old if key in new]
    return bool(stay) and stay == list(new)[: len(stay)]


def _members(path: JsonPath, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Put | Insert | Remove]:
    yield from (Remove((*path, key)) for key in old if key not in new)
    for key, value in new.items():
        if key in old:
            yield from narrowed((*path, key), old[key], value)
        else:
            yield Put((*path, key), value)


def _elements(path: JsonPath, old: list[Any], new: list[Any]) -> Iterator[Put | Insert | Remove]:
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if not alike(old[index], new[index])), shorter)
    rest = range(1, shorter - head + 1)
    tail = next((index - 1 for index in rest if not alike(old[-index], new[-index])), shorter - head)
    if len(old) != len(new) and not head and not tail:
        yield Put(path, new)
        return
    between = shorter - tail
    for index in range(head, between):
        yield from narrowed((*path, index), old[index], new[index])
    yield from (Remove((*path, index)) for index in reversed(range(between, len(old) - tail)))
    yield from (Insert(path, index, new[index]) for index in range(between, len(new) - tail))


_JSON_SPACE = " \t\r\n"
_BLANK_END_OF_LINE = re.compile(r"[ \t]+(?=\r?\n)")

Done = tuple[Tree, list[Splice]]


def performed(tree: Tree, edit: Edit) -> Done:
    """The tree after an edit. Raises EditError where the edit cannot be done."""
    match edit:
        case Put(path, value):
            return _put_changes(tree, path, json_value(value, path))
        case PutText(path, text):
            return _put(tree, path, _verbatim(text, path))
        case Insert(path, index, value):
            return _insert(tree, path, index, json_value(value, path))
        case InsertText(path, index, text):
            return _insert(tree, path, index, _verbatim(text, path))
        case Remove(path):
            return _remove(tree, path)
        case Move(path, index, to):
            return _move(tree, path, index, to)
        case Duplicate(path, index):
            array = tree.place(path)
            check_index(array.node.value, path, index)
            return _insert(tree, path, index + 1, Verbatim(array.child(index).own_text))
        case Rename(path, key):
            return _rename(tree, path, key)


def _verbatim(text: str, path: JsonPath) -> Verbatim:
    text_value(text, path)
    return Verbatim(text.strip(_JSON_SPACE))


def _put_changes(tree: Tree, path: JsonPath, value: Any) -> Done:
    """Put that leaves alone what is in both the old and the new value."""
    way = tree.deepest_way(path)
    if len(way) <= len(path):
        return _put(tree, path, value)
    place = way[-1]
    edits = list(narrowed((), place.node.value, value))
    match edits:
        case []:
            return tree, []
        case [Put((), item)]:
            return _fill(tree, way[:-1], path, place, item)
    before = tree.part(place)
    try:
        part, splices = _all_done(before, (), edits)
    except BeyondPartError:
        return _all_done(tree, path, edits)
    start = place.start - before.root.lead
    root = part.root
    tree = tree.replaced(path, part.text[root.lead :], root.value, root.children)
    return tree, [splice.later(start) for splice in splices]


def _all_done(tree: Tree, path: JsonPath, edits: Iterable[Put | Insert | Remove]) -> Done:
    """The tree after edits of what is at a path, in which their own paths begin."""
    done: list[Splice] = []
    for edit in edits:
        where = (*path, *edit.path)
        match edit:
            case Put(_, item):
                tree, splices = _put(tree, where, item)
            case Insert(_, index, item):
                tree, splices = _insert(tree, where, index, item)
            case Remove():
                tree, splices = _remove(tree, where)
        done += splices
    return tree, done


def _put(tree: Tree, path: JsonPath, value: Any) -> Done:
    if not path:
        return _fill(tree, [], path, tree.place(path), value)
    way = tree.way_to(path[:-1])
    holder = way[-1]
    index = holder.index_of(path[-1])
    if index is not None:
        return _fill(tree, way, path, holder.child(index), value)
    if not isinstance(holder.node.value, dict) or not isinstance(path[-1], str):
        raise missing(path)
    return _add(tree, way, path, len(holder.nodes), value)


def _fill(tree: Tree, way: list[Place], path: JsonPath, place: Place, value: Any) -> Done:
    """Another value at a place that has one; `way` leads to what holds it."""
    if way and is_plain(value):
        text = plain_text(value, way, tree)
        splice = smallest(place.start, place.own_text, text)
        if splice.old == splice.new:
            return tree, []
        return tree.replaced(path, text, value), [splice]
    if not way:
        check_whole(tree)
    model = model_for(way, tree, path, value)
    if not way and value and isinstance(value, dict | list) and isinstance(place.node.value, type(value)):
        model = place if place.node.value else None
    style = Style(way, tree, value, model)
    text = written(value, style, margin_in(tree, place.begin) if style.newline else "", model)
    return _replace(tree, place.start, place.end, text)


def _insert(tree: Tree, path: JsonPath, index: int, value: Any) -> Done:
    way = tree.way_to(path)
    check_index(way[-1].node.value, path, index, at_end=True)
    return _add(tree, way, (*path, index), index, value)


def _add(tree: Tree, way: list[Place], path: JsonPath, index: int, value: Any) -> Done:
    """A new item before the one with this index in the last of the places; `path` is the one it gets."""
    holder, step = way[-1], path[-1]
    if not holder.nodes:
        only = {step: value} if isinstance(step, str) else [value]
        return _fill(tree, way[:-1], path[:-1], holder, only)
    # A new element looks like the one before it rather than the one that it pushes on.
    like = (*path[:-1], step - 1) if isinstance(step, int) and step else path
    model = model_for(way, tree, like, value)
    style = Style(way, tree, {step: value} if isinstance(step, str) else value, model)
    separator = _separator(holder, index, style)
    margin = ""
    if index and "\n" in separator:
        margin = margin_at(separator, len(separator))
    elif style.newline:
        margin = margin_in(tree, holder.child(index - 1).end if index else holder.child(0).begin)
    text = written(value, style, margin, model)
    if isinstance(step, str):
        text = key_text(step, style) + style.colon + text
    return paste(tree, holder, index, text, separator)


def _separator(holder: Place, index: int, style: Style) -> str:
    """What goes between a new item and the one before it, or after it if it is the first: as beside it."""
    count = len(holder.nodes)
    if count == 1:
        only = holder.child(0)
        lead = holder.text[only.begin - only.node.lead : only.begin]
        return "," + lead if "\n" in lead else style.comma
    like = holder.child(min(max(index, 1), count - 1))
    return holder.text[like.begin - like.node.lead : like.begin]


def paste(tree: Tree, holder: Place, index: int, text: str, separator: str) -> Done:
    """The text of an item put before the one with this index; the holder has others."""
    if not index:
        begin = holder.child(0).begin
        return _replace(tree, begin, begin, text + separator)
    end = holder.child(index - 1).end
    limit = holder.child(index).begin if index < len(holder.nodes) else holder.end
    blank = _BLANK_END_OF_LINE.match(tree.text[end:limit])
    if blank and separator.startswith(","):
        # What ends the line of the item before stays there.
        return _replace(tree, end, end + blank.end(), "," + blank[0] + separator[1:] + text)
    return _replace(tree, end, end, separator + text)


def _remove(tree: Tree, path: JsonPath) -> Done:
    check_not_root(path)
    tree.way_to(path)
    done: list[Splice] = []
    # All members of that key: were one left, it would be the one that counts.
    while (index := (holder := tree.place(path[:-1])).index_of(path[-1])) is not None:
        tree, splices, _, _ = cut_out(tree, holder, index)
        done += splices
        if isinstance(path[-1], int):
            break
    return tree, done


def cut_out(tree: Tree, holder: Place, index: int) -> tuple[Tree, list[Splice], str, str]:
    """An item taken out, with its text and the separator that went with it."""
    text, item = tree.text, holder.child(index)
    own = text[item.begin : item.end]
    if len(holder.nodes) == 1:
        start, end, separator = holder.start + 1, holder.end - 1, ""
    elif index < len(holder.nodes) - 1:
        start, end = item.begin, holder.child(index + 1).begin
        separator = text[item.end : end]
    else:
        start, end = holder.child(index - 1).end, item.end
        separator = text[start : item.begin]
    tree, splices = _replace(tree, start, end, "")
    return tree, splices, own, separator


def _move(tree: Tree, path: JsonPath, index: int, to: int) -> Done:
    array = tree.place(path)
    check_index(array.node.value, path, index)
    check_index(array.node.value, path, to)
    if index == to:
        return tree, []
    tree, cut, own, separator = cut_out(tree, array, index)
    tree, pasted = paste(tree, tree.place(path), to, own, separator)
    return tree, [*cut, *pasted]


def _rename(tree: Tree, path: JsonPath, key: str) -> Done:
    check_not_root(path)
    way = tree.way_to(path)
    holder = way[-2]
    check_new_key(holder.node.value, path, key)
    if key == path[-1]:
        return tree, []
    text = key_text(key, Style(way[:-1], tree, key))
    done: list[Splice] = []
    for splice in list(_key_splices(holder, path[-1], text)):
        tree = tree.spliced(splice)
        done.append(splice)
    return tree, done


def _key_splices(holder: Place, key: str | int, text: str) -> Iterator[Splice]:
    """All members of that key, the last one first so that the others stay where they are."""
    for index in reversed(range(len(holder.nodes))):
        if holder.nodes[index].key == key:
            member = holder.child(index)
            end = member.begin + member.node.key_size
            yield smallest(member.begin, member.text[member.begin : end], text)


def _replace(tree: Tree, start: int, end: int, text: str) -> Done:
    splice = smallest(start, tree.text[start:end], text)
    if splice.old == splice.new:
        return tree, []
    try:
        return tree.spliced(splice), [splice]
    except ValueError as error:
        raise EditError(f"the edited text would not be valid JSON: {error}") from error
