"""The text of a case file or a config: cut into a chunk for each case, edited by replacing chunks."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import groupby
from typing import Any

from evaltui.core.model.json_values import camel, field_of, list_or_empty
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import CaseList, StoredCase
from evaltui.documents.case_file import CASES, CaseFile, Chunk, is_same
from evaltui.documents.edits import (
    Duplicate,
    Edit,
    EditError,
    Insert,
    Move,
    Put,
    PutText,
    Remove,
    Rename,
    Splice,
    alike,
    json_value,
    spliced,
)
from evaltui.documents.nodes import BOM, Node, decode_at, parse_nodes, skip_space
from evaltui.documents.style import Style, Verbatim, margin_at, model_for
from evaltui.documents.values import edits_between

# Cases on each side whose form new text may take.
_AROUND = 5


class JsonDocument:
    """A JSON text with its byte order mark.

    It is immutable: an edit returns another document. An eval set is `head`, a chunk for each case, and
    `tail`; the list of cases is the member `key`. Another text is all `head`, with `key` None. Unchanged
    chunks stay the same objects. Of a duplicate key the last one counts.
    """

    def __init__(self, text: str, like: CaseFile | None = None) -> None:
        """Chunks that `like` has as well are shared with it.

        Raises ValueError for a text that is not valid JSON or is nested too deeply.
        """
        try:
            parts = _cut(text, like.chunks if like else ())
        except RecursionError:
            parts = None
        head, chunks, tail, key, frame = parts or (text, (), "", None, parse_nodes(text).value)
        self.head: str = head
        self.chunks: tuple[Chunk, ...] = chunks
        self.tail: str = tail
        self.key: str | None = key
        self._frame: Any = frame

    @property
    def text(self) -> str:
        """The whole text, joined anew each time; some milliseconds for a big document."""
        return "".join(self.parts())

    def parts(self) -> Iterator[str]:
        """The pieces of the text, in order."""
        yield self.head
        for chunk in self.chunks:
            yield chunk.lead
            yield chunk.case.text
        yield self.tail

    @property
    def frame(self) -> str:
        """The text without the chunks."""
        return self.head + self.tail

    @cached_property
    def value(self) -> Any:
        """The JSON data, which must not be changed; each case is parsed on demand."""
        return self._frame if self.key is None else {**self._frame, self.key: CaseList(self._stored)}

    @property
    def _stored(self) -> tuple[StoredCase, ...]:
        return tuple(chunk.case for chunk in self.chunks)

    @cached_property
    def cases(self) -> tuple[StoredCase, ...]:
        """The cases of an eval set; none of any other file."""
        if self.key is not None or not isinstance(self.value, dict):
            return self._stored
        return tuple(map(StoredCase.of_data, list_or_empty(field_of(self.value, CASES))))

    def read(self, text: str) -> JsonDocument:
        """Another text, which shares the chunks that both have. Raises ValueError as the constructor."""
        return JsonDocument(text, self)

    def has_text_of(self, other: CaseFile) -> bool:
        """Whether both texts are the same."""
        if self is other:
            return True
        if self.key is None or other.key is None:
            return self.text == other.text
        ends = (self.head, self.tail) == (other.head, other.tail)
        is_as_long = len(self.chunks) == len(other.chunks)
        return ends and is_as_long and all(map(is_same, self.chunks, other.chunks))

    # Edits

    def edited(self, edits: Iterable[Edit]) -> JsonDocument:
        """The document after edits, one after the other; this one where they change nothing.

        Raises EditError.
        """
        editor = _Editor(self)
        # Equal elements that change places are moved all the same: the selection follows them.
        is_moved = False
        for edit in edits:
            try:
                editor.perform(edit)
            except RecursionError:
                raise EditError("nested too deeply", edit.path) from None
            is_moved = is_moved or (isinstance(edit, Move) and edit.index != edit.to)
        document = editor.document()
        return self if document.has_text_of(self) and not is_moved else document

    def with_chunks(self, chunks: Iterable[Chunk]) -> JsonDocument:
        """The document with other chunks; the first has no comma before it, any other has."""
        document = JsonDocument.__new__(JsonDocument)
        document.head, document.tail, document.key, document._frame = (
            self.head,
            self.tail,
            self.key,
            self._frame,
        )
        document.chunks = tuple(chunks)
        return document

    # Places

    @cached_property
    def lines_of_cases(self) -> Sequence[int]:
        """The line, from 1, on which each case begins."""
        line = self.head.count("\n") + 1
        lines = array("Q")
        for lead, case in self.chunks:
            line += lead.count("\n")
            lines.append(line)
            line += case.lines
        return lines

    def line_of(self, path: JsonPath) -> int:
        """The line of a path, from 1: for a member, that of its key; for a missing path, that of its
        deepest existing ancestor."""
        number = self._case_at(path)
        if number is None:
            text = self.frame
            position = parse_nodes(text).deepest_way(path)[-1].item_start
            lines = text.count("\n", 0, position) + 1
            if self.key is not None and position >= len(self.head):
                lines += sum(lead.count("\n") + case.lines for lead, case in self.chunks)
            return lines
        text = self.chunks[number].case.text
        start = parse_nodes(text).deepest_way(path[2:])[-1].item_start
        return self.lines_of_cases[number] + text.count("\n", 0, start)

    def text_at(self, path: JsonPath) -> str:
        """The text of a value. Raises EditError for a missing path."""
        number = self._case_at(path)
        if number is None:
            text = self.frame if path and path[0] != self.key else self.text
            return parse_nodes(text).way_to(path)[-1].own_text
        try:
            return parse_nodes(self.chunks[number].case.text).way_to(path[2:])[-1].own_text
        except EditError as error:
            raise EditError(error.message, (*path[:2], *error.path)) from None

    def _case_at(self, path: JsonPath) -> int | None:
        """The index of the case that a path leads into; None for any other path."""
        if self.key is None or len(path) < 2 or path[0] != self.key:
            return None
        number = path[1]
        return number if isinstance(number, int) and 0 <= number < len(self.chunks) else None


_Parts = tuple[str, tuple[Chunk, ...], str, str, Any]


def _cut(text: str, like: Sequence[Chunk]) -> _Parts | None:
    """The parts of a text with one list of cases; None for other JSON. Raises ValueError for no JSON."""
    opening = _list_of_cases(text)
    if opening is None:
        return None
    key, start = opening
    reusable = _ReusableChunks(like)
    chunks: list[Chunk] = []
    # Ten thousand leads are two texts.
    shared: dict[str, str] = {}
    end, position = start, skip_space(text, start)
    while text[position : position + 1] != "]":
        if chunks:
            if text[position : position + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
            position = skip_space(text, position + 1)
        lead = text[end:position]
        chunk = reusable.at(shared.setdefault(lead, lead), text, position)
        end = position + len(chunk.case.text)
        chunks.append(chunk)
        position = skip_space(text, end)
    head, tail = text[:start], text[end:]
    frame = parse_nodes(head + tail)
    keys = [node.key for node in frame.children]
    if keys.count(key) != 1 or {CASES, camel(CASES)} <= set(keys):
        return None
    return head, tuple(chunks), tail, key, frame.value


def _list_of_cases(text: str) -> tuple[str, int] | None:
    """The key of the first list of cases, and where its elements begin."""
    position = skip_space(text, len(BOM) if text.startswith(BOM) else 0)
    if text[position : position + 1] != "{":
        return None
    position = skip_space(text, position + 1)
    while text[position : position + 1] == '"':
        key, position = decode_at(text, position)
        position = skip_space(text, position)
        if text[position : position + 1] != ":":
            return None
        position = skip_space(text, position + 1)
        if key in (CASES, camel(CASES)):
            return (key, position + 1) if text[position : position + 1] == "[" else None
        _, position = decode_at(text, position)
        position = skip_space(text, position)
        if text[position : position + 1] != ",":
            return None
        position = skip_space(text, position + 1)
    return None


class _ReusableChunks:
    """Chunks that a text may have again, most often in the same order."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._next = 0
        self._numbers: dict[str, int] | None = None

    def at(self, lead: str, text: str, position: int) -> Chunk:
        """The chunk whose case begins at a position. Raises ValueError where no JSON value does."""
        if self._next < len(self._chunks):
            expected = self._chunks[self._next]
            # An object ends with its bracket; what begins like a number may be a longer one.
            if expected.case.text.startswith("{") and text.startswith(expected.case.text, position):
                self._next += 1
                return expected if expected.lead == lead else Chunk(lead, expected.case)
        value, end = decode_at(text, position)
        own = text[position:end]
        if not self._chunks:
            return Chunk(lead, StoredCase.parsed(own, value))
        if self._numbers is None:
            self._numbers = {chunk.case.text: number for number, chunk in enumerate(self._chunks)}
        number = self._numbers.get(own)
        # Most often a new one is the one that was expected, changed.
        self._next = (self._next if number is None else number) + 1
        case = StoredCase.parsed(own, value) if number is None else self._chunks[number].case
        return Chunk(lead, case)


class _Editor:
    """A document while it is edited: each edit is done in a small text of the cases around its place."""

    def __init__(self, document: JsonDocument) -> None:
        self._frame = document
        self._chunks = list(document.chunks)

    def document(self) -> JsonDocument:
        """The document with all edits so far."""
        return self._frame.with_chunks(self._chunks)

    def perform(self, edit: Edit) -> None:
        key, path = self._frame.key, edit.path
        is_of_list = isinstance(edit, Insert | Move | Duplicate)
        if key is None or not path or (path == (key,) and not is_of_list):
            self._perform_on_all(edit)
        elif path[0] != key:
            self._perform_in(0, min(len(self._chunks), _AROUND), edit, edit)
        elif len(path) > 1:
            low, high = self._around(number := int(path[1]))
            self._perform_in(low, high, edit, replace(edit, path=(key, number - low, *path[2:])))
        elif isinstance(edit, Move):
            cases = [chunk.case for chunk in self._chunks]
            cases.insert(edit.to, cases.pop(edit.index))
            for at in range(min(edit.index, edit.to), max(edit.index, edit.to) + 1):
                self._chunks[at] = Chunk(self._chunks[at].lead, cases[at])
        elif isinstance(edit, Insert | Duplicate):
            low, high = self._around(edit.index)
            self._perform_in(low, high, edit, replace(edit, index=edit.index - low))

    def _around(self, number: int) -> tuple[int, int]:
        return max(0, number - _AROUND), min(len(self._chunks), number + _AROUND + 1)

    def _perform_on_all(self, edit: Edit) -> None:
        before = self.document()
        self._frame = JsonDocument(edited_text(before.text, edit), before)
        self._chunks = list(self._frame.chunks)

    def _perform_in(self, low: int, high: int, edit: Edit, local: Edit) -> None:
        """Does an edit with the cases from `low` to before `high`, to which `local` refers."""
        window = self._chunks[low:high]
        if low:
            # The first one in a list has no comma before it.
            window[0] = Chunk(window[0].lead.replace(",", " ", 1), window[0].case)
        before = self._frame.with_chunks(window)
        text = edited_text(before.text, local, lambda: (chunk.case.text for chunk in self._chunks))
        after = JsonDocument(text, before)
        if after.key != self._frame.key:
            # Another list is that of the cases now, or none.
            self._perform_on_all(edit)
            return
        chunks = list(after.chunks)
        if low and chunks:
            chunks[0] = Chunk(self._chunks[low].lead, chunks[0].case)
        self._frame = after
        self._chunks[low:high] = chunks


def edited_text(text: str, edit: Edit, beyond: Callable[[], Iterable[str]] = tuple) -> str:
    """A JSON text after an edit; `beyond` gives further texts of the file that show how it is written."""
    if isinstance(edit, Put) and isinstance(edit.value, dict | list):
        way = parse_nodes(text).deepest_way(edit.path)
        if len(way) > len(edit.path):
            smaller = edits_between(way[-1].value, json_value(edit.value, edit.path), edit.path)
            return reduce(lambda text, edit: _spliced(text, edit, beyond), smaller, text)
    return _spliced(text, edit, beyond)


def _spliced(text: str, edit: Edit, beyond: Callable[[], Iterable[str]]) -> str:
    return spliced(text, _Splicing(text, beyond).splices(edit))


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
                return self._put(path, Verbatim(text.strip(" \t\r\n")))
            case Insert(path, index, value):
                return self._insert(path, index, json_value(value, path))
            case Remove(path):
                return self._remove(path)
            case Move(path, index, to):
                return self._move(path, index, to)
            case Duplicate(path, index):
                twin = self._root.way_to((*path, index))[-1]
                return self._insert(path, index + 1, Verbatim(twin.own_text))
            case Rename(path, key):
                return self._rename(path, key)

    def _put(self, path: JsonPath, value: Any) -> Iterator[Splice]:
        way = self._root.deepest_way(path)
        if len(way) > len(path):
            if isinstance(value, Verbatim) or not alike(way[-1].value, value):
                yield self._filled(way, path, value)
        else:
            yield self._added(way, path[:-1], len(way[-1].children), path[-1], value)

    def _insert(self, path: JsonPath, index: int, value: Any) -> Iterator[Splice]:
        yield self._added(self._root.way_to(path), path, index, index, value)

    def _remove(self, path: JsonPath) -> Iterator[Splice]:
        holder = self._root.way_to(path)[-2]
        step = path[-1]
        # All members of that key: were one left, it would be the one that counts.
        yield from _removals(
            holder, [index for index, node in enumerate(holder.children) if step in (index, node.key)]
        )

    def _move(self, path: JsonPath, index: int, to: int) -> Iterator[Splice]:
        """The splices that exchange the texts of elements; the text between them stays."""
        array = self._root.way_to(path)[-1]
        places = array.children[min(index, to) : max(index, to) + 1]
        texts = [node.own_text for node in places]
        texts.insert(len(texts) if to > index else 0, texts.pop(0 if to > index else -1))
        for node, text in zip(places, texts, strict=True):
            yield Splice(node.start, node.end, text)

    def _rename(self, path: JsonPath, key: str) -> Iterator[Splice]:
        way = self._root.way_to(path)
        text = self._style(way[:-1], key).key(key)
        for node in way[-2].children:
            if node.key == path[-1] != key:
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

    def _added(self, way: list[Node], path: JsonPath, index: int, step: str | int, value: Any) -> Splice:
        """A new item before the one with this index in the last node of a way."""
        holder = way[-1]
        if not holder.children:
            return self._filled(way, path, {step: value} if isinstance(step, str) else [value])
        # A new element looks like the one before it rather than the one that it pushes on.
        like = index - 1 if isinstance(step, int) and index else step
        model = model_for(way, (*path, like), value)
        style = self._style(way, {step: value} if isinstance(step, str) else value, model)
        separator, margin = _separator(holder, index, style), ""
        beside = holder.children[index - 1 if index else 0]
        if index and "\n" in separator:
            margin = margin_at(separator, len(separator))
        elif style.newline:
            margin = margin_at(self._text, beside.end if index else beside.item_start)
        key = style.key(step) + style.colon if isinstance(step, str) else ""
        text = key + style.written(value, margin, model)
        if index:
            return Splice(beside.end, beside.end, separator + text)
        return Splice(beside.item_start, beside.item_start, text + separator)

    def _style(self, way: Sequence[Node], value: Any, model: Node | None = None) -> Style:
        return Style(self._text, way, value, model, self._beyond)


def _separator(holder: Node, index: int, style: Style) -> str:
    """The separator for a new item, as between its neighbours."""
    children = holder.children
    if len(children) == 1:
        lead = holder.text[holder.start + 1 : children[0].item_start]
        return "," + lead if "\n" in lead else style.comma
    place = min(max(index, 1), len(children) - 1)
    return holder.text[children[place - 1].end : children[place].item_start]


def _removals(holder: Node, indexes: Collection[int]) -> Iterator[Splice]:
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
