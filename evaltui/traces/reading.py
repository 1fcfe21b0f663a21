"""Reads spans from files: the format is told by the content, never by the name; one document in memory at a
time."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any

from evaltui.core.model.datasets import is_dataset
from evaltui.core.model.file_kinds import SESSION_DATABASE, file_kind, is_scenarios, is_session
from evaltui.project.eval_sets import SQLITE, recognised
from evaltui.text.figures import counted, short_list
from evaltui.text.values import cut, visible
from evaltui.traces.formats.adk import is_served_span, read_served_span, read_sqlite
from evaltui.traces.formats.adk_session import read_scenarios, read_session, read_session_database
from evaltui.traces.formats.console import is_printed_span, read_printed_span
from evaltui.traces.formats.dataset import read_dataset
from evaltui.traces.formats.jaeger import is_jaeger, read_jaeger
from evaltui.traces.formats.otlp import is_bare_span, is_otlp, read_otlp, read_span
from evaltui.traces.formats.protobuf import NO_MESSAGE, read_protobuf
from evaltui.traces.receiver.spool import is_spool, read_spool
from evaltui.traces.span import Recorded, UnreadableTraceError

OpenFile = BufferedReader | gzip.GzipFile
"""A file as it is, or what gzip made of it."""

LONGEST_DOCUMENT = 512 * 1024 * 1024
"""Bytes of one JSON document or one message."""

_CHUNK = 1024 * 1024
# Bytes of the length before each of several messages.
_LENGTH = 4
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
    prefix = file.read(_CHUNK)
    is_json = prefix.removeprefix(_BOM).lstrip()[:1] in (b"{", b"[")
    yield from _Text(file, prefix, warnings).documents() if is_json else _messages(file, prefix, warnings)


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
    while head := _read_bytes(file, prefix, _LENGTH):
        prefix = prefix[_LENGTH:]
        size = int.from_bytes(head, "big")
        data = _read_bytes(file, prefix, size)
        prefix = prefix[size:]
        if len(head) < _LENGTH or len(data) < size:
            if not has_messages:
                raise UnreadableTraceError(NO_MESSAGE)
            warnings.append("the last message is cut off and was left out")
            return
        has_messages = True
        yield read_protobuf(data)


def _read_bytes(file: BufferedIOBase, prefix: bytes, size: int) -> bytes:
    """Reads as many bytes, of which the first ones, `prefix`, were read already."""
    return prefix[:size] if len(prefix) >= size else prefix + file.read(size - len(prefix))


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


def _check_length(size: int) -> None:
    if size > LONGEST_DOCUMENT:
        megabytes = LONGEST_DOCUMENT // 1024 // 1024
        raise UnreadableTraceError(f"a document of more than {megabytes} MB; write a trace per line instead")


_MAX_NAME_LENGTH = 40
_READ = (
    "read are OTLP (JSON, JSON lines, protobuf), Tempo, Jaeger, spans as Python's console exporter prints "
    "them, spans of ADK's dev server or SQLite file, sessions of ADK, and runs of agents-cli"
)


def read_file(path: Path) -> Iterator[Recorded]:
    """The spans and log records in a file, perhaps compressed with gzip, a document at a time.

    Raises UnreadableTraceError that says why it cannot be read, and where.
    """
    try:
        with opened(path) as file:
            yield from _in_file(file, path)
    except UnreadableTraceError as error:
        raise UnreadableTraceError(f"{path}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableTraceError(f"{path}: the gzip stream is cut off or damaged: {error}") from error
    except FileNotFoundError as error:
        raise UnreadableTraceError(f"{path} does not exist") from error
    except OSError as error:
        raise UnreadableTraceError(f"{path}: {error.strerror or error}") from error


def _in_file(file: OpenFile, path: Path) -> Iterator[Recorded]:
    if file.peek(len(SQLITE))[: len(SQLITE)] == SQLITE:
        yield from _in_database(path)
        return
    cuts: list[str] = []
    yield from map(read_document, documents_in(file, cuts))
    lost = [f"{path}: {cut_off}" for cut_off in cuts]
    yield Recorded(warnings=[*lost], lost=lost)


def read_document(document: Any) -> Recorded:
    """The spans of one parsed JSON document, or a `Recorded` that was read already.

    Raises UnreadableTraceError for what has no spans.
    """
    if isinstance(document, Recorded):
        return _in_format("OTLP protobuf", document)
    if isinstance(document, list):
        recorded = Recorded()
        for item in document:
            recorded.add(read_document(item))
        return recorded
    if isinstance(document, dict):
        if is_otlp(document):
            is_tempo = "batches" in document or "trace" in document
            return _in_format("Tempo" if is_tempo else "OTLP JSON", read_otlp(document))
        if is_jaeger(document):
            return _in_format("Jaeger", read_jaeger(document))
        if is_printed_span(document):
            return _in_format("Python's console exporter", Recorded([read_printed_span(document)]))
        if is_served_span(document):
            return _in_format("ADK's dev server", Recorded([read_served_span(document)]))
        if is_bare_span(document):
            return _in_format("bare spans", Recorded([read_span(document, {}, "")]))
        if is_dataset(document):
            return _in_format("EvaluationDataset", read_dataset(document))
        if is_session(document):
            return _in_format("ADK session", read_session(document))
        if is_scenarios(document):
            return _in_format("ADK scenarios", read_scenarios(document))
        if isinstance(document.get("spans"), list):
            # With facts around them, as exports of sessions have them.
            return read_document(document["spans"])
        names = [visible(cut(name, _MAX_NAME_LENGTH)) for name in document]
        what = f"an object with {short_list(names)}" if document else "an empty object"
    else:
        what = f"a JSON {type(document).__name__}"
    if (other := file_kind(document)) is not None:
        raise UnreadableTraceError(f"holds no spans, it is {other.sentence}")
    raise UnreadableTraceError(f"holds no spans: {what}; {_READ}")


def _in_format(name: str, recorded: Recorded) -> Recorded:
    recorded.formats = {name: None}
    return recorded


def _in_database(path: Path) -> Iterator[Recorded]:
    try:
        if is_spool(path):
            for recorded in read_spool(path):
                yield _in_format("spool of evaltui listen", recorded)
            return
    except sqlite3.Error as error:
        raise UnreadableTraceError(f"damaged database: {error}") from error
    if recognised(path) is SESSION_DATABASE:
        for recorded in read_session_database(path):
            yield _in_format("ADK session database", recorded)
        return
    for recorded in read_sqlite(path):
        yield _in_format("ADK SQLite", recorded)


def read_files(paths: Iterable[Path]) -> Iterator[Recorded]:
    """Reads each of the files, as `read_file` does; of a folder every file below it, in order."""
    for path in files_in(paths):
        yield from read_file(path)


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, of a folder every file below it, in order, without hidden ones. Raises UnreadableTraceError
    for a folder below that cannot be read, and for what is no file."""
    for path in paths:
        if path.is_dir():
            yield from _files_below(path, set())
        else:
            yield path


def _files_below(folder: Path, seen: set[str]) -> Iterator[Path]:
    # A link may lead back to a folder that it is in.
    if (real := os.path.realpath(folder)) in seen:
        return
    seen.add(real)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UnreadableTraceError(f"{folder}: {error.strerror or error}") from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if os.path.isdir(entry):  # noqa: PTH112
            yield from _files_below(entry, seen)
        elif os.path.isfile(entry) or entry.is_symlink():  # noqa: PTH113
            yield entry
        else:
            # Reading a pipe would wait for what writes to it.
            raise UnreadableTraceError(f"{entry}: no file and no folder")
