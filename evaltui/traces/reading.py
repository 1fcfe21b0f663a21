"""What holds traces, to spans: told by its content, never by its name, one document in memory at a time."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from evaltui.text.figures import counted, some_of
from evaltui.text.values import cut, visible
from evaltui.traces.formats.adk import SQLITE, is_served_span, read_served_span, read_sqlite
from evaltui.traces.formats.console import is_printed_span, read_printed_span
from evaltui.traces.formats.jaeger import is_jaeger, read_jaeger
from evaltui.traces.formats.otlp import is_bare_span, is_otlp, read_otlp, read_span
from evaltui.traces.formats.protobuf import read_protobuf
from evaltui.traces.receiver.spool import read_spool
from evaltui.traces.span import Recorded, UnreadableTraceError

# A file as it is, or what gzip made of it.
_Bytes = BufferedReader | gzip.GzipFile

LONGEST_DOCUMENT = 512 * 1024 * 1024
"""Bytes of one JSON document or one message; the lines of a file are documents of their own."""

_LONGEST_NAME = 40
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_READ = (
    "read are OTLP (JSON, JSON lines, protobuf), Tempo, Jaeger, spans as Python's console exporter prints "
    "them, and spans of ADK's dev server or SQLite file"
)


def read_file(path: Path) -> Recorded:
    """The spans and log records in a file, perhaps compressed with gzip.

    Raises UnreadableTraceError that says why it cannot be read, and where.
    """
    found = Recorded()
    try:
        with _opened(path) as file:
            if file.peek(len(SQLITE))[: len(SQLITE)] == SQLITE:
                return _read_database(path)
            for document in _documents(file, found.warnings):
                found.add(read_document(document))
    except UnreadableTraceError as error:
        raise UnreadableTraceError(f"{path}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableTraceError(f"{path}: the gzip stream is cut off or damaged: {error}") from error
    except FileNotFoundError as error:
        raise UnreadableTraceError(f"{path} does not exist") from error
    except OSError as error:
        raise UnreadableTraceError(f"{path}: {error.strerror or error}") from error
    found.warnings = [f"{path}: {one}" for one in found.warnings]
    return found


def read_bytes(data: bytes) -> Recorded:
    """As `read_file`, of what is in memory."""
    found = Recorded()
    for document in _in_text(data, found.warnings):
        found.add(read_document(document))
    return found


def read_document(document: Any) -> Recorded:
    """What one parsed JSON document holds, or a `Recorded` that was read already.

    Raises UnreadableTraceError for what has no spans.
    """
    if isinstance(document, Recorded):
        return _in_format("OTLP protobuf", document)
    if isinstance(document, list):
        found = Recorded()
        for item in document:
            found.add(read_document(item))
        return found
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
        names = [visible(cut(name, _LONGEST_NAME)) for name in document]
        what = f"an object with {some_of(names)}" if document else "an empty object"
    else:
        what = f"a JSON {type(document).__name__}"
    raise UnreadableTraceError(f"holds no spans: {what}; {_READ}")


def _in_format(name: str, found: Recorded) -> Recorded:
    found.formats = {name: None}
    return found


def _read_database(path: Path) -> Recorded:
    try:
        found = read_spool(path)
    except sqlite3.Error as error:
        raise UnreadableTraceError(f"damaged database: {error}") from error
    if found is None:
        return _in_format("ADK SQLite", read_sqlite(path))
    return _in_format("spool of evaltui listen", found)


@contextmanager
def _opened(path: Path) -> Iterator[_Bytes]:
    with path.open("rb") as file:
        if file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file


def _documents(file: _Bytes, warnings: list[str]) -> Iterator[Any]:
    """The JSON documents of a file: a line each where the first line is one."""
    first = line = file.readline(LONGEST_DOCUMENT + 1)
    # A message of protobuf may begin with what looks like an empty line.
    while line and not line.strip():
        line = file.readline(LONGEST_DOCUMENT + 1)
        first += line
    _check_length(first)
    if not _may_be_json(first):
        rest = file.read(LONGEST_DOCUMENT + 1)
        _check_length(rest)
        if first + rest:
            yield read_protobuf(first + rest)
        return
    try:
        document = _parsed(first)
    except ValueError:
        rest = file.read(LONGEST_DOCUMENT + 1)
        _check_length(rest)
        yield from _in_text(first + rest, warnings)
        return
    del first
    yield document
    yield from _lines(file, warnings)


def _lines(file: _Bytes, warnings: list[str]) -> Iterator[Any]:
    number = 1
    line = file.readline(LONGEST_DOCUMENT + 1)
    while line:
        number += 1
        _check_length(line)
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


def _in_text(data: bytes, warnings: list[str]) -> Iterator[Any]:
    """Documents that follow each other, with or without lines between them."""
    if not _may_be_json(data):
        yield read_protobuf(data)
        return
    text = data.decode("utf-8-sig", "replace")
    decoder = json.JSONDecoder()
    at = count = 0
    while (at := _next(text, at)) < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except RecursionError as error:
            raise UnreadableTraceError("JSON nested too deeply") from error
        except json.JSONDecodeError as error:
            if not count:
                yield _as_protobuf(data, f"{error.msg} at line {error.lineno}, column {error.colno}")
                return
            rest = f"the rest after {counted(count, 'document')}"
            is_cut_off = error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string")
            if not is_cut_off:
                raise UnreadableTraceError(
                    f"{rest} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
                ) from error
            warnings.append(f"{rest} is cut off and was left out")
            return
        yield document
        count += 1


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


def _check_length(data: bytes) -> None:
    if len(data) > LONGEST_DOCUMENT:
        megabytes = LONGEST_DOCUMENT // 1024 // 1024
        raise UnreadableTraceError(f"a document of more than {megabytes} MB; write a trace per line instead")


def read_files(paths: Iterable[Path]) -> Iterator[Recorded]:
    """Each of the files; of a folder every file below it, in order. Raises what `read_file` does."""
    yield from map(read_file, files_in(paths))


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, of a folder every file below it, in order."""
    for path in paths:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*") if one.is_file() and not _is_hidden(one, path))
        else:
            yield path


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
