"""Editable files in any format: text in chunks, one for each case, and changes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from evaltui.core.matching.pairing import common_ends
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.edits import Edit

CASES = "eval_cases"


class Chunk(NamedTuple):
    """A case with the text before it."""

    lead: str
    case: StoredCase


class CaseFile(Protocol):
    """The text of a file of cases or of a config, in one format.

    It is immutable: edits return another one. The text is `head`, a chunk for each case, and `tail`; a text
    that cannot be divided is all `head`. Data, paths, edits and texts of values are those of an eval set or
    config as JSON in every format; the text of a case is that of the file. Unchanged chunks stay the same
    objects.
    """

    head: str
    chunks: tuple[Chunk, ...]
    tail: str
    key: str | None
    """The member of `value` with the cases; None where the text is not cut into chunks."""

    @property
    def text(self) -> str: ...

    @property
    def frame(self) -> str:
        """The text without the chunks."""
        ...

    @property
    def value(self) -> Any:
        """The JSON data, which is not to be changed."""
        ...

    @property
    def cases(self) -> tuple[StoredCase, ...]:
        """The cases; empty for a file that is no eval set."""
        ...

    def read(self, text: str) -> CaseFile:
        """Another text of the format, which shares the chunks that both have. Raises ValueError."""
        ...

    def has_text_of(self, other: CaseFile) -> bool:
        """Whether both texts are the same."""
        ...

    def edited(self, edits: Iterable[Edit]) -> CaseFile:
        """The file after edits, this one where they change nothing. Raises EditError."""
        ...

    def with_chunks(self, chunks: Iterable[Chunk]) -> CaseFile:
        """The file with other chunks."""
        ...

    @property
    def lines_of_cases(self) -> Sequence[int]:
        """The line, from 1, on which each case begins."""
        ...

    def line_of(self, path: JsonPath) -> int:
        """The line, from 1, on which a path begins, or its deepest ancestor that exists."""
        ...

    def text_at(self, path: JsonPath) -> str:
        """The JSON text of a value. Raises EditError for a missing path."""
        ...


@dataclass(frozen=True)
class Hunk:
    """A run of chunks, from an index on, that others replace."""

    index: int
    before: tuple[Chunk, ...]
    after: tuple[Chunk, ...]


@dataclass(frozen=True)
class Change:
    """The difference between two documents, as replaced chunks.

    Where the documents are not cut alike, `whole` holds both, and `hunks` is empty.
    """

    frames: tuple[CaseFile, CaseFile]
    """Both without chunks, or as a whole."""
    hunks: tuple[Hunk, ...] = ()
    whole: bool = False

    @classmethod
    def between(cls, before: CaseFile, after: CaseFile) -> Change:
        """The change that makes one document of another."""
        if before.key is None or before.key != after.key:
            return cls((before, after), whole=True)
        frames = before.with_chunks(()), after.with_chunks(())
        return cls(frames, tuple(_hunks(before.chunks, after.chunks)))

    @property
    def inverse(self) -> Change:
        hunks = tuple(Hunk(hunk.index, hunk.after, hunk.before) for hunk in self.hunks)
        return Change(self.frames[::-1], hunks, self.whole)

    def applied(self, document: CaseFile) -> CaseFile:
        """The document that the change makes. Raises ValueError where it does not fit."""
        before, after = self.frames
        if self.whole:
            if not document.has_text_of(before):
                raise ValueError("the text is not the text of this change")
            return after
        chunks = list(document.chunks)
        is_fitting = document.key == before.key and document.frame == before.frame
        for hunk in reversed(self.hunks):
            end = hunk.index + len(hunk.before)
            here = chunks[hunk.index : end]
            is_fitting = is_fitting and _texts(here) == _texts(hunk.before)
            chunks[hunk.index : end] = hunk.after
        if not is_fitting:
            raise ValueError("the text is not the text of this change")
        return after.with_chunks(chunks)


def _texts(chunks: Iterable[Chunk]) -> list[tuple[str, str]]:
    return [(chunk.lead, chunk.case.text) for chunk in chunks]


def _hunks(before: Sequence[Chunk], after: Sequence[Chunk]) -> Iterator[Hunk]:
    """The hunks: one for each chunk that differs; after additions or removals one for the whole stretch."""
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if not is_same(old, new):
                yield Hunk(index, (old,), (new,))
        return
    head, tail = common_ends(before, after, is_same)
    yield Hunk(head, tuple(before[head : len(before) - tail]), tuple(after[head : len(after) - tail]))


def is_same(first: Chunk, second: Chunk) -> bool:
    return first is second or (first.lead == second.lead and first.case.text == second.case.text)
