"""The documents in a file, one in memory at a time: JSON, perhaps a line each, or messages of protobuf.

A file that gzip packed is unpacked on the way. What is read is never longer than one document and a little of
the next one, however long the file is.
"""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any

from evaltui.text.figures import counted
from evaltui.traces.formats.protobuf import LENGTH, NO_MESSAGE, read_protobuf
from evaltui.traces.span import Recorded, UnreadableTraceError

OpenFile = BufferedReader | gzip.GzipFile
"""A file as it is, or what gzip made of it."""

LONGEST_DOCUMENT = 512 * 1024 * 1024
"""Bytes of one JSON document or one message; the lines of a file are documents of their own."""

_CHUNK = 1024 * 1024
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


@contextmanager
def opened(path: Path) -> Iterator[OpenFile]:
    with path.open("rb") as file:
        if file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file


def documents_in(file: BufferedIOBase, warnings: list[str]) -> Iterator[Any]:
    """The JSON documents of a file, parsed; of a file of protobuf a `Recorded` for each message.

    To `warnings`, sentences on what was left out are added. Raises UnreadableTraceError.
    """
    first = line = file.readline(LONGEST_DOCUMENT + 1)
    # A message of protobuf may begin with what looks like an empty line.
    while line and not line.strip():
        line = file.readline(LONGEST_DOCUMENT + 1)
        first += line
    _check_length(len(first))
    if not _may_be_json(first):
        yield from _messages(file, first, warnings)
        return
    try:
        document = _parsed(first)
    except ValueError:
        yield from _Text(file, first, warnings).documents()
        return
    del first
    yield document
    yield from _lines(file, warnings)


def _messages(file: BufferedIOBase, prefix: bytes, warnings: list[str]) -> Iterator[Recorded]:
    """One message, or several behind their lengths, as the Collector's `file` exporter has them.

    No message begins with a zero: that is the length of one of less than 16 MB.
    """
    if prefix[:1] != b"\0":
        data = prefix + file.read(LONGEST_DOCUMENT + 1 - len(prefix))
        _check_length(len(data))
        if data:
            yield read_protobuf(data)
        return
    has_messages = False
    while head := _read_bytes(file, prefix, LENGTH):
        prefix = prefix[LENGTH:]
        size = int.from_bytes(head, "big")
        data = _read_bytes(file, prefix, size)
        prefix = prefix[size:]
        if len(head) < LENGTH or len(data) < size:
            if not has_messages:
                raise UnreadableTraceError(NO_MESSAGE)
            warnings.append("the last message is cut off and was left out")
            return
        has_messages = True
        yield read_protobuf(data)


def _read_bytes(file: BufferedIOBase, prefix: bytes, size: int) -> bytes:
    """Reads as many bytes, of which the first ones, `prefix`, were read already."""
    return prefix[:size] if len(prefix) >= size else prefix + file.read(size - len(prefix))


def _lines(file: BufferedIOBase, warnings: list[str]) -> Iterator[Any]:
    number = 1
    line = file.readline(LONGEST_DOCUMENT + 1)
    while line:
        number += 1
        _check_length(len(line))
        following = file.readline(LONGEST_DOCUMENT + 1)
        if line.strip():
            try:
                document = _parsed(line)
            except json.JSONDecodeError as error:
                if following:
                    why = f"{error.msg} at column {error.colno}"
                    raise UnreadableTraceError(f"line {number} is not JSON: {why}") from error
                # Whoever writes the file was stopped, or is still writing.
                warnings.append(f"line {number}, the last one, is cut off and was left out")
            else:
                yield document
        line = following


class _Text:
    """Documents that follow each other, with or without lines between them."""

    def __init__(self, file: BufferedIOBase, prefix: bytes, warnings: list[str]) -> None:
        self._file = file
        self._warnings = warnings
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        # Until a document was found, it may as well be a message that begins like JSON.
        self._bytes = [prefix]
        self._text = self._decode(prefix.removeprefix(_BOM))
        self._lines_before = 0
        self._is_whole = False

    def documents(self) -> Iterator[Any]:
        decoder = json.JSONDecoder()
        at = count = 0
        while True:
            at = _next(self._text, at)
            try:
                document, at = decoder.raw_decode(self._text, at)
            except RecursionError as error:
                raise UnreadableTraceError("JSON nested too deeply") from error
            except json.JSONDecodeError as error:
                if not self._is_whole:
                    at = self._read_on(at, keep_bytes=not count)
                    continue
                if at < len(self._text):
                    yield from self._end(error, count)
                return
            self._bytes.clear()
            yield document
            count += 1

    def _read_on(self, at: int, *, keep_bytes: bool) -> int:
        """Read as much again, so that a long document is looked at a few times only; forget the lines before
        `at`. Returns where that is now."""
        line = self._text.rfind("\n", 0, at) + 1
        self._lines_before += self._text.count("\n", 0, line)
        more = self._file.read(max(len(self._text) - line, _CHUNK))
        self._is_whole = not more
        if keep_bytes:
            self._bytes.append(more)
        self._text = self._text[line:] + self._decode(more, final=self._is_whole)
        _check_length(len(self._text))
        return at - line

    def _end(self, error: json.JSONDecodeError, count: int) -> Iterator[Recorded]:
        """Ends a text whose rest after `count` documents is none."""
        where = f"{error.msg} at line {self._lines_before + error.lineno}, column {error.colno}"
        if not count:
            yield _as_protobuf(b"".join(self._bytes), where)
            return
        rest = f"the rest after {counted(count, 'document')}"
        is_cut_off = error.pos >= len(self._text.rstrip()) - 1 or error.msg.startswith("Unterminated string")
        if not is_cut_off:
            raise UnreadableTraceError(f"{rest} is not JSON: {where}") from error
        self._warnings.append(f"{rest} is cut off and was left out")


def _may_be_json(data: bytes) -> bool:
    return data.removeprefix(_BOM).lstrip()[:1] in (b"{", b"[")


def _as_protobuf(data: bytes, why: str) -> Recorded:
    """A message that begins like JSON. Raises UnreadableTraceError that says `why` it is no JSON."""
    try:
        return read_protobuf(data)
    except UnreadableTraceError as error:
        raise UnreadableTraceError(f"not JSON: {why}") from error


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _parsed(line: bytes) -> Any:
    """Raises ValueError for what is no JSON."""
    try:
        return json.loads(line.removeprefix(_BOM).decode("utf-8", "replace"))
    except RecursionError as error:
        raise UnreadableTraceError("JSON nested too deeply") from error


def _check_length(size: int) -> None:
    if size > LONGEST_DOCUMENT:
        megabytes = LONGEST_DOCUMENT // 1024 // 1024
        raise UnreadableTraceError(f"a document of more than {megabytes} MB; write a trace per line instead")
