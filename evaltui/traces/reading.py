"""Reads spans from files: the format is told by the content, never by the name; one document in memory at a
time."""

from __future__ import annotations

import gzip
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from evaltui.core.model.datasets import is_dataset
from evaltui.core.model.file_kinds import SESSION_DATABASE, file_kind
from evaltui.files.recognition import SQLITE, recognised
from evaltui.text.figures import some_of
from evaltui.text.values import cut, visible
from evaltui.traces.documents import OpenFile, documents_in, opened
from evaltui.traces.formats.adk import is_served_span, read_served_span, read_sqlite
from evaltui.traces.formats.console import is_printed_span, read_printed_span
from evaltui.traces.formats.dataset import read_dataset
from evaltui.traces.formats.jaeger import is_jaeger, read_jaeger
from evaltui.traces.formats.otlp import is_bare_span, is_otlp, read_otlp, read_span
from evaltui.traces.receiver.spool import is_spool, read_spool
from evaltui.traces.span import Recorded, UnreadableTraceError

_LONGEST_NAME = 40
_READ = (
    "read are OTLP (JSON, JSON lines, protobuf), Tempo, Jaeger, spans as Python's console exporter prints "
    "them, spans of ADK's dev server or SQLite file, and runs of agents-cli"
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
    warnings: list[str] = []
    yield from map(read_document, documents_in(file, warnings))
    yield Recorded(warnings=[f"{path}: {warning}" for warning in warnings])


def read_bytes(data: bytes) -> Recorded:
    """Reads data in memory, as `read_file` does."""
    recorded = Recorded()
    for document in documents_in(BytesIO(data), recorded.warnings):
        recorded.add(read_document(document))
    return recorded


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
        if isinstance(document.get("spans"), list):
            # With facts around them, as exports of sessions have them.
            return read_document(document["spans"])
        names = [visible(cut(name, _LONGEST_NAME)) for name in document]
        what = f"an object with {some_of(names)}" if document else "an empty object"
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
        raise UnreadableTraceError(f"holds no spans, it is {SESSION_DATABASE.sentence}")
    for recorded in read_sqlite(path):
        yield _in_format("ADK SQLite", recorded)


def read_files(paths: Iterable[Path]) -> Iterator[Recorded]:
    """Reads each of the files, as `read_file` does; of a folder every file below it, in order."""
    for path in files_in(paths):
        yield from read_file(path)


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, of a folder every file below it, in order."""
    for path in paths:
        if path.is_dir():
            yield from sorted(
                file for file in path.rglob("*") if file.is_file() and not _is_hidden(file, path)
            )
        else:
            yield path


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
