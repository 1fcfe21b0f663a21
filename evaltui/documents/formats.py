"""The formats of case files: eval sets and configs as JSON, and Google's EvaluationDataset."""

from __future__ import annotations

from evaltui.documents.case_file import CaseFile
from evaltui.documents.dataset import DatasetDocument
from evaltui.documents.document import JsonDocument


def read_case_file(text: str, like: CaseFile | None = None) -> CaseFile:
    """A text in the format that it has; chunks of `like` are shared. Raises ValueError for no JSON."""
    source = JsonDocument(text, like.source if isinstance(like, DatasetDocument) else like)
    return DatasetDocument.of(source, like) or source
