"""A set's text in chunks, one for each case, so that what was not edited is neither parsed nor copied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, overload

from evaltui.core.jsondoc.spans import BOM, Node, Tree, decode_at, skip_space
from evaltui.core.model.aliases import camel, spelt

CASES = "eval_cases"


class Chunk:
    """The text of one case. Its value is parsed when it is asked for, and kept from then on."""

    __slots__ = ("_eval_id", "_lines", "_value", "text")

    def __init__(self, text: str, value: Any = None) -> None:
        self.text = text
        self._value = value
        # None while nobody asked.
        self._eval_id: tuple[str | None] | None = None
        self._lines: int | None = None

    @property
    def value(self) -> Any:
        if self._value is None:
            self._value = json.loads(self.text)
        return self._value

    @property
    def eval_id(self) -> str | None:
        """The id of the case, None where it has none. A value that is parsed for that is not kept."""
        if self._eval_id is None:
            self._eval_id = (_eval_id_of(json.loads(self.text) if self._value is None else self._value),)
        return self._eval_id[0]

    @property
    def lines(self) -> int:
        """How many line breaks the text has."""
        if self._lines is None:
            self._lines = self.text.count("\n")
        return self._lines

    @classmethod
    def of(cls, value: Any) -> Chunk:
        """A case whose text is not known, of two lists that are both called its cases."""
        return cls(json.dumps(value), value)

    @classmethod
    def found(cls, text: str, value: Any) -> Chunk:
        """A chunk of a text that was just parsed: the value is looked at and not kept."""
        chunk = cls(text)
        chunk._eval_id = (_eval_id_of(value),)
        return chunk


def _eval_id_of(case: Any) -> str | None:
    value = case.get(spelt("eval_id", case)) if isinstance(case, dict) else None
    return value if isinstance(value, str) else None


class CaseList(list[Any]):
    """The cases of a set as a list of JSON values, each of which is parsed when it is asked for.

    It is never changed in place.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = tuple(chunks)
        # So that its length, and whether it is empty, are those of any list.
        super().__init__(self.chunks)

    def __iter__(self) -> Iterator[Any]:
        return (chunk.value for chunk in self.chunks)

    def __reversed__(self) -> Iterator[Any]:
        return (chunk.value for chunk in reversed(self.chunks))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return [chunk.value for chunk in self.chunks[index]]
        return self.chunks[index].value

    def __contains__(self, value: object) -> bool:
        return any(one == value for one in self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CaseList) and self.chunks == other.chunks:
            return True
        return isinstance(other, list) and len(self) == len(other) and all(map(_equal, self, other))

    def copy(self) -> list[Any]:
        return list(self)

    def __repr__(self) -> str:
        return repr(list(self))


def eval_ids_of(cases: Sequence[Any]) -> list[str | None]:
    """The ids of cases, which are JSON values, in order; None for those that have none."""
    if isinstance(cases, CaseList):
        return [chunk.eval_id for chunk in cases.chunks]
    return [_eval_id_of(case) for case in cases]


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other)


@dataclass(frozen=True)
class Chunks:
    """A text as `head`, the cases with what stands before each of them, and `tail`.

    `head` ends with the bracket that opens the list of cases, whose key is `key`. A text that has no such
    list is all `head`, and `key` is None. `frame` is the value of the text without its cases.
    """

    head: str
    leads: tuple[str, ...]
    cases: tuple[Chunk, ...]
    tail: str
    key: str | None
    frame: Any

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def parts(self) -> list[str]:
        """The texts that make this one."""
        parts = [self.head]
        for lead, case in zip(self.leads, self.cases, strict=True):
            parts += (lead, case.text)
        parts.append(self.tail)
        return parts

    def has_text_of(self, other: Chunks) -> bool:
        """Whether both texts are the same."""
        if self.key is None or other.key is None:
            return self.text == other.text
        ends = (self.head, self.tail, self.leads) == (other.head, other.tail, other.leads)
        return ends and len(self.cases) == len(other.cases) and all(map(_same_text, self.cases, other.cases))

    @property
    def value(self) -> Any:
        return self.frame if self.key is None else {**self.frame, self.key: CaseList(self.cases)}


def _same_text(one: Chunk, other: Chunk) -> bool:
    return one is other or one.text == other.text


def cut(text: str, like: Chunks | None = None) -> Chunks:
    """The chunks of a text; those that `like` has as well are the same objects, and are not parsed again.

    Raises ValueError for a text that is not valid JSON or is nested too deeply.
    """
    try:
        found = _cut_cases(text, like)
    except RecursionError:
        found = None
    if found is not None:
        return found
    return Chunks(text, (), (), "", None, Tree.parse(text).root.value)


def _cut_cases(text: str, like: Chunks | None) -> Chunks | None:
    """None where the text has no list of cases, or several."""
    opening = _list_of_cases(text)
    if opening is None:
        return None
    key, start = opening
    known = _Known(like.cases if like else ())
    leads: list[str] = []
    cases: list[Chunk] = []
    # Ten thousand leads are two texts.
    shared: dict[str, str] = {}
    end, position = start, skip_space(text, start)
    while text[position : position + 1] != "]":
        if cases:
            if text[position : position + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
            position = skip_space(text, position + 1)
        lead = text[end:position]
        case = known.at(text, position)
        end = position + len(case.text)
        leads.append(shared.setdefault(lead, lead))
        cases.append(case)
        position = skip_space(text, end)
    head, tail = text[:start], text[end:]
    frame = Tree.parse(head + tail).root
    keys = [node.key for node in frame.children or ()]
    if keys.count(key) != 1 or {CASES, camel(CASES)} <= set(keys):
        return None
    return Chunks(head, tuple(leads), tuple(cases), tail, key, frame.value)


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


class _Known:
    """Chunks that a text may have again, most often in the same order."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._next = 0
        self._numbers: dict[str, int] | None = None

    def at(self, text: str, position: int) -> Chunk:
        """The chunk that begins at a position. Raises ValueError where no JSON value does."""
        if self._next < len(self._chunks):
            expected = self._chunks[self._next]
            # An object ends with its bracket; what begins like a number may be a longer one.
            if expected.text.startswith("{") and text.startswith(expected.text, position):
                self._next += 1
                return expected
        value, end = decode_at(text, position)
        own = text[position:end]
        if not self._chunks:
            return Chunk.found(own, value)
        if self._numbers is None:
            self._numbers = {chunk.text: number for number, chunk in enumerate(self._chunks)}
        number = self._numbers.get(own)
        if number is None:
            # Most often it is the one that was expected, changed.
            self._next += 1
            return Chunk.found(own, value)
        self._next = number + 1
        return self._chunks[number]


def cases_node(tree: Tree, key: str) -> Node | None:
    """The list of cases in a tree; None where there is none, or several."""
    nodes = [node for node in tree.root.children or () if node.key in (CASES, camel(CASES))]
    if len(nodes) != 1 or nodes[0].key != key or not isinstance(nodes[0].value, list):
        return None
    return nodes[0]
