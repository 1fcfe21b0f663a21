"""The formats of case files: JSON, and adapters that are asked before it."""

from __future__ import annotations

from collections.abc import Callable

from evaltui.documents.case_file import CaseFile
from evaltui.documents.document import JsonDocument

ADAPTERS: list[Callable[[str, CaseFile | None], CaseFile | None]] = []
"""Readers of other formats: None for a text of another one; chunks of the second file are shared."""


def read_case_file(text: str, like: CaseFile | None = None) -> CaseFile:
    """A text in the first format that reads it. Raises ValueError for a text in no format."""
    files = (adapter(text, like) for adapter in ADAPTERS)
    return next((file for file in files if file is not None), None) or JsonDocument(text, like)
