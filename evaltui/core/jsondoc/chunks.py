"""A set's text in chunks, one for each case, so that what was not edited is neither parsed nor copied."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.jsondoc.spans import BOM, Node, Tree, decode_at, skip_space
from evaltui.core.model.json_values import camel
from evaltui.core.model.stored_cases import CaseList, StoredCase

CASES = "eval_cases"


@dataclass(frozen=True)
class Chunks:
    """A text as `head`, the cases with what stands before each of them, and `tail`.

    `head` ends with the bracket that opens the list of cases, whose key is `key`. A text that has no such
    list is all `head`, and `key` is None. `frame` is the value of the text without its cases.
    """

    head: str
    leads: tuple[str, ...]
    cases: tuple[StoredCase, ...]
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

    @cached_property
    def lines_of_cases(self) -> Sequence[int]:
        """The line, from 1, on which each case begins."""
        line = self.head.count("\n") + 1
        lines = array("Q")
        for lead, case in zip(self.leads, self.cases, strict=True):
            line += lead.count("\n")
            lines.append(line)
            line += case.lines
        return lines

    def has_text_of(self, other: Chunks) -> bool:
        """Whether both texts are the same."""
        if self.key is None or other.key is None:
            return self.text == other.text
        ends = (self.head, self.tail, self.leads) == (other.head, other.tail, other.leads)
        return ends and len(self.cases) == len(other.cases) and all(map(_same_text, self.cases, other.cases))

    @property
    def value(self) -> Any:
        return self.frame if self.key is None else {**self.frame, self.key: CaseList(self.cases)}


def _same_text(one: StoredCase, other: StoredCase) -> bool:
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
    cases: list[StoredCase] = []
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

    def __init__(self, chunks: Sequence[StoredCase]) -> None:
        self._chunks = chunks
        self._next = 0
        self._numbers: dict[str, int] | None = None

    def at(self, text: str, position: int) -> StoredCase:
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
            return StoredCase.parsed(own, value)
        if self._numbers is None:
            self._numbers = {case.text: number for number, case in enumerate(self._chunks)}
        number = self._numbers.get(own)
        if number is None:
            # Most often it is the one that was expected, changed.
            self._next += 1
            return StoredCase.parsed(own, value)
        self._next = number + 1
        return self._chunks[number]


def cases_node(tree: Tree, key: str) -> Node | None:
    """The list of cases in a tree; None where there is none, or several."""
    nodes = [node for node in tree.root.children or () if node.key in (CASES, camel(CASES))]
    if len(nodes) != 1 or nodes[0].key != key or not isinstance(nodes[0].value, list):
        return None
    return nodes[0]
