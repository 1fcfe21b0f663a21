"""`evaltui import`: chooses the importer by what a file holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Literal

from evaltui.commands.output import UsageError
from evaltui.core.model.datasets import has_runs, is_dataset
from evaltui.core.model.file_kinds import file_kind, is_promptfoo
from evaltui.documents.nodes import BOM
from evaltui.documents.yaml_text import YAML_SUFFIXES
from evaltui.exchange.row_files import CSV_SUFFIXES
from evaltui.traces.reading import documents_in, opened, read_document
from evaltui.traces.span import UnreadableTraceError

_Kind = Literal["trace", "cases"]
_OF_TRACES = {"conversation": "--conversation", "case": "--case", "turns": "--turns"}
# Bytes, among which a text of JSON has begun.
_START = 64
# Members of eval sets, and of cases and turns in old formats.
_OF_SETS = {"eval_cases", "evalCases", "expected_tool_use", "initial_session"}
_OF_CASES = {"map": "--map", "conflicts": "--conflicts"}


def import_files(options: argparse.Namespace) -> int:
    """Imports traces, or one file of rows or tests; returns the exit code."""
    kinds = {_kind(path, is_mapped=bool(options.map)) for path in options.traces}
    if kinds == {"trace"}:
        _refuse(options, _OF_CASES, "rows and suites")
        from evaltui.commands.import_traces import import_traces

        return import_traces(options)
    if len(options.traces) > 1:
        raise UsageError("import one file of rows or tests at a time: each has its own mapping")
    _refuse(options, _OF_TRACES, "traces")
    from evaltui.commands.import_cases import import_cases

    return import_cases(options, options.traces[0])


def _refuse(options: argparse.Namespace, names: dict[str, str], of_what: str) -> None:
    """Raises UsageError where an option of another kind of file is used."""
    if used := next((option for name, option in names.items() if getattr(options, name)), None):
        raise UsageError(f"{used} is for {of_what} only")


def _kind(path: Path, *, is_mapped: bool) -> _Kind:
    suffix = path.suffix.lower()
    if suffix in CSV_SUFFIXES or suffix in YAML_SUFFIXES:
        return "cases"
    data = None if path.is_dir() else _first_document(path)
    first = data[0] if isinstance(data, list) and data else data
    if is_promptfoo(data) or is_mapped or (is_dataset(data) and not has_runs(data)):
        return "cases"
    is_other = file_kind(data) is not None or not isinstance(first, dict) or bool(first.keys() & _OF_SETS)
    return "trace" if is_other or _has_spans(data) else "cases"


def _first_document(path: Path) -> Any:
    """The first JSON document of a file; None where it has none, or cannot be read."""
    try:
        with opened(path) as file:
            if file.peek(_START)[:_START].removeprefix(BOM.encode()).lstrip()[:1] not in (b"{", b"["):
                return None
            return next(iter(documents_in(file, [])), None)
    except (OSError, EOFError, ValueError, UnreadableTraceError):
        return None


def _has_spans(data: Any) -> bool:
    try:
        read_document(data)
    except UnreadableTraceError:
        return False
    return True
