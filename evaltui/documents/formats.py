"""The formats of case files: JSON, and adapters that are asked before it."""

from __future__ import annotations

from collections.abc import Callable

from evaltui.documents.case_file import CaseFile
from evaltui.documents.document import JsonDocument

ADAPTERS: list[Callable[[str, CaseFile | None], CaseFile | None]] = []
"""Each gives a text as a file of its format, None for any other; chunks of the second file are shared."""


def read_case_file(text: str, like: CaseFile | None = None) -> CaseFile:
    """A text in the first format that reads it. Raises ValueError where it is no JSON either."""
    files = (adapter(text, like) for adapter in ADAPTERS)
    return next((file for file in files if file is not None), None) or JsonDocument(text, like)
